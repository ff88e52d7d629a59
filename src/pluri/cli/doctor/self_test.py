"""Small computations whose answers are known: does this installation compute what it should?

Each takes a second or less once its functions are compiled, and compares with an answer found another way.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Finding(NamedTuple):
    """What came of one computation."""

    title: str
    trouble: str  # empty if all is well
    seconds: float


def run(title: str, check: Callable[[], str]) -> Finding:
    """Do one computation; whatever it raises is what is wrong."""
    began = time.perf_counter()
    try:
        trouble = check()
    except Exception as error:
        trouble = f"{type(error).__name__}: {error}"
    return Finding(title, trouble, time.perf_counter() - began)


def hidden_markov_model() -> str:
    """The likelihood of six steps with a hole is the sum over all 64 paths."""
    from scipy.stats import norm

    from pluri.sequences import GaussianHMM

    model = GaussianHMM(2, init_params="", params="")
    start, transition, means = np.array([0.6, 0.4]), np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.0], [2.0]])
    model.startprob_, model.transmat_, model.means_, model.covars_ = start, transition, means, np.array([[1.0], [0.5]])
    X = np.array([0.1, 1.7, np.nan, 2.2, -0.4, 0.3])
    density = norm.pdf(X[:, None], means.T, np.sqrt([1.0, 0.5]))
    density[np.isnan(X)] = 1.0
    paths = itertools.product(range(2), repeat=len(X))
    total = sum(
        start[path[0]] * np.prod(density[range(len(X)), path]) * np.prod(transition[path[:-1], path[1:]])
        for path in map(list, paths)
    )
    return _differs("the log-likelihood", model.score(X[:, None]), float(np.log(total)), 1e-9)


def mixture() -> str:
    """EM of a mixture never lowers its likelihood, and ends with the moments of the data."""
    from pluri.mixtures import GaussianMixture

    rng = np.random.default_rng(0)
    X = rng.normal(np.repeat([[0.0, 0.0], [6.0, 6.0]], 100, axis=0), 1.0)
    model = GaussianMixture(2, reg_covar=0.0, random_state=0).fit(X)
    found = model.weights_ @ model.means_
    return _differs("the mean of the fitted mixture", found, X.mean(0), 1e-6)


def markov_chain() -> str:
    """Draws of a slice sampler have the moments of the normal distribution (one false alarm in 10 million)."""
    from pluri.inference import mcmc

    trace = mcmc.sample(
        mcmc.Slice(lambda x: -0.5 * float(x @ x)), np.zeros(1), n_draws=2000, n_chains=2, random_state=0
    )
    (draws,) = trace.draws.values()
    summary = trace.summary()
    # The effective size is itself an estimate: 7 standard errors instead of the 5.3 of the stated rate.
    error = 7 / np.sqrt(float(summary["ess_bulk"][0]))
    return _differs("the mean of the draws", draws.mean(), 0.0, error) or _differs(
        "the variance of the draws", draws.var(), 1.0, 2 * error
    )


def model_file() -> str:
    """A model that was saved and loaded says the same."""
    import pluri
    from pluri.mixtures import GaussianMixture

    X = np.random.default_rng(0).normal(size=(60, 2))
    model = GaussianMixture(2, random_state=0).fit(X)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        pluri.save(model, path)
        loaded = pluri.load(path)
    return _differs("what a loaded model says", loaded.predict_proba(X), model.predict_proba(X), 0.0)


def subset() -> str:
    """The most diverse pair of five points, by comparison of all pairs."""
    from pluri.processes.dpp import DPPSelector

    X = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.6, 0.6], [0.2, 0.7]])
    kernel = X @ X.T
    best = max(itertools.combinations(range(5), 2), key=lambda pair: np.linalg.det(kernel[np.ix_(pair, pair)]))
    found = DPPSelector(2, method="map", kernel="linear", random_state=0).select(X)
    return _differs("the chosen pair", np.sort(found), np.array(best), 0.0)


def figure() -> str:
    """A figure can be drawn and written."""
    from pluri.cli.demo.part import new_figure, write_figure

    drawn = new_figure(2, 2)
    drawn.subplots().plot([0, 1])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.png"
        write_figure(drawn, path)
        return "" if path.read_bytes().startswith(b"\x89PNG") else "no PNG file was written"


#: Title of each computation, in the order in which they are done.
CHECKS: dict[str, Callable[[], str]] = {
    "hidden Markov model against all paths": hidden_markov_model,
    "mixture against the moments of its data": mixture,
    "Markov chain against the normal distribution": markov_chain,
    "diverse pair against all pairs": subset,
    "model file, saved and loaded": model_file,
    "figure, drawn and written": figure,
}


def _differs(what: str, found: object, expected: object, tolerance: float) -> str:
    gap = float(np.max(np.abs(np.asarray(found, dtype=float) - np.asarray(expected, dtype=float))))
    return "" if gap <= tolerance else f"{what} is off by {gap:.2g}, where {tolerance:.2g} is allowed"
