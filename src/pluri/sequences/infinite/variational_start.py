"""Where variational runs start: steps given to states without looking at their neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pluri.components.k_means import k_means
from pluri.sequences.infinite.observations import ObservationModel

if TYPE_CHECKING:
    from pluri.sequences.infinite.variational_problem import Beliefs, VariationalInfiniteHMM

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Starts are chosen from the first sequences, up to this many steps.
FIRST_STEPS = 20_000


def first_beliefs(
    problem: VariationalInfiniteHMM, X: Array, offsets: Integers, n_states: int, rng: np.random.Generator
) -> Beliefs:
    """Beliefs after steps were given to states without looking at their neighbours."""
    member = first_members(problem.model, X, n_states, rng)
    within = np.ones(len(X) - 1, dtype=bool)
    within[offsets[1:-1] - 1] = False
    pairs = member[:-1][within].T @ member[1:][within]
    counts = np.vstack([pairs, member[offsets[:-1]].sum(axis=0)])
    sums = problem.model.prepare(X, offsets).weighted_sums(member)
    return problem.start(counts, tuple(sums))


def first_members(model: ObservationModel, X: Array, n_states: int, rng: np.random.Generator) -> Array:
    """Weights of the states in each step: (n_steps, n_states)."""
    if n_states == 1:
        return np.ones((len(X), 1))
    if model.family in ("categorical", "bernoulli"):
        return _grouped_symbols(X, n_states, rng)
    filled = np.where(np.isnan(X), 0.0, X - np.nanmean(np.vstack([X, np.zeros_like(X[:1])]), axis=0))
    spread = filled.std(axis=0)
    filled /= np.where(spread > 0, spread, 1.0)
    labels = k_means(filled, np.ones(len(X)), n_states, rng, n_init=1, max_iter=20)[0]
    return np.asarray(np.eye(n_states)[labels])


def _grouped_symbols(X: Array, n_states: int, rng: np.random.Generator) -> Array:
    """Each symbol of a column has a leaning to each state at random; those of the columns add up."""
    leaning = np.zeros((len(X), n_states))
    for column in X.T:
        codes = np.where(np.isnan(column), 0, column).astype(np.int64)
        leaning += np.where(np.isnan(column), 0.0, 1.0)[:, None] * rng.gumbel(size=(codes.max() + 1, n_states))[codes]
    member = np.exp(leaning - leaning.max(axis=1, keepdims=True))
    return np.asarray(member / member.sum(axis=1, keepdims=True))
