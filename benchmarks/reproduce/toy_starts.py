"""The toy problem's three ways to start, and one fit of it with its measures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pluri.metrics import bhattacharyya_diversity, effective_states, one_to_one_accuracy
from pluri.sequences import GaussianHMM

N_STATES = 5
STARTS = ("poor", "data", "k-means")


class Measures(NamedTuple):
    accuracy: float
    diversity: float
    n_states: int


def start_model(model: GaussianHMM, how: str, X: np.ndarray, rng: np.random.Generator) -> GaussianHMM:
    """Set the starting values; "poor" is the published way: means N(0, 1), variances Gamma(1, 1), whatever the data."""
    model.init_params = ""
    model.startprob_ = rng.dirichlet(np.full(N_STATES, 3.0))
    model.transmat_ = rng.dirichlet(np.full(N_STATES, 3.0), size=N_STATES)
    if how == "poor":
        model.means_ = rng.normal(size=(N_STATES, 1))
        model.covars_ = rng.gamma(1.0, 1.0, size=(N_STATES, 1)) + 1e-3
    elif how == "data":
        model.means_ = X.mean() + X.std() * rng.normal(size=(N_STATES, 1))
        model.covars_ = np.full((N_STATES, 1), X.var())
    else:
        model.init_params = "mc"
    return model


def measure(toy: object, how: str, diversity: float, seed: int, threshold: int = 50) -> Measures:
    """Fit from one start (the same for every strength of the prior) and measure."""
    model = GaussianHMM(N_STATES, diversity=diversity, n_iter=500, tol=1e-4, random_state=seed)
    start_model(model, how, toy.X, np.random.default_rng(1000 + seed))
    model.fit(toy.X, lengths=toy.lengths)
    states = model.predict(toy.X, toy.lengths)
    return Measures(
        one_to_one_accuracy(toy.states, states),
        bhattacharyya_diversity(np.maximum(model.transmat_, 1e-12)).mean,
        effective_states(states, threshold=threshold),
    )


def oracle(toy: object) -> float:
    """Accuracy of Viterbi decoding with the true parameters."""
    model = GaussianHMM(N_STATES)
    model.startprob_, model.transmat_ = toy.startprob, toy.transmat
    model.means_, model.covars_ = toy.means, toy.covars
    return float(np.mean(model.predict(toy.X, toy.lengths) == toy.states))
