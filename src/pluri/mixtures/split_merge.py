"""Split and merge: leave a local optimum in which two components share one cluster while a third covers two.

After EM has converged, candidates (i, j; l) are ranked: i and j explain the same rows (large correlation of their
responsibilities), and l describes its rows badly (their mean log density under l alone falls short of what a
distribution of its kind would give). A candidate joins i and j, divides l in two, and EM runs on; it is kept if the
objective rises, and the search starts again. The objective can therefore only rise.

References
----------
.. [1] Ueda, Nakano, Ghahramani and Hinton (2000). SMEM algorithm for mixture models. Neural Computation 12, 2109-2128.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.components.k_means import filled
from pluri.components.starting_shares import divide_rows, shortened
from pluri.engine import Source
from pluri.engine.aligned import padded_width
from pluri.engine.first_rows import weighted_initial_rows
from pluri.inference import EMResult, History, expectation_maximization
from pluri.mixtures.learning import MixtureParameters, MixtureProblem, MixtureStatistics
from pluri.validation.interruption import held, holding

Array = NDArray[np.float64]

#: Rows that candidates are ranked on and starting values are made from.
MAX_ROWS = 20_000


def improve(
    problem: MixtureProblem[Any],
    source: Source,
    result: EMResult[MixtureParameters[Any]],
    n_candidates: int,
    rng: np.random.Generator,
    options: dict[str, Any],
) -> EMResult[MixtureParameters[Any]]:
    """Try up to `n_candidates` moves from each optimum; the history grows by the runs that were tried."""
    if problem.n_components < 3:
        return result
    X, weight = weighted_initial_rows(source, problem.family.prepare)
    if X.shape[0] > MAX_ROWS:
        chosen = np.sort(rng.choice(X.shape[0], MAX_ROWS, replace=False))
        X, weight = X[chosen], None if weight is None else weight[chosen]
    weight = np.ones(X.shape[0]) if weight is None else weight
    rows = list(result.history)
    n_runs = int(max(row.restart for row in rows)) + 1
    with holding("fit interrupted; the best run so far is kept"):
        improved = True
        while improved and not result.interrupted:
            improved = False
            for candidate in _candidates(problem, result.params, X, weight)[:n_candidates]:
                start = _moved(problem, result.params, X, weight, candidate, rng)
                trial = expectation_maximization(problem, source, rng=rng, start=start, **options)
                rows += [row._replace(restart=n_runs) for row in trial.history]
                if trial.objective > result.objective + max(options["tol"], 0.0):
                    result = dataclasses.replace(trial, restart=n_runs)
                    improved = True
                n_runs += 1
                if improved or trial.interrupted:
                    break
    return dataclasses.replace(result, history=History(rows), interrupted=held())


def _candidates(
    problem: MixtureProblem[Any], params: MixtureParameters[Any], X: Any, weight: Array
) -> list[tuple[int, int, int]]:
    """Triples (i, j, l): join i and j, divide l; the most promising first."""
    k = problem.n_components
    responsibility = problem.posterior(params, X)[0][:, :k]
    norms = np.sqrt((weight[:, None] * responsibility**2).sum(axis=0))
    overlap = (responsibility * weight[:, None]).T @ responsibility
    overlap = overlap / np.maximum(np.outer(norms, norms), 1e-300)
    above, beside = np.triu_indices(k, 1)
    pairs = np.argsort(-overlap[above, beside], kind="stable")
    misfit = _misfit(problem, params, X, responsibility * weight[:, None])
    worst = [int(index) for index in np.argsort(-misfit, kind="stable")]
    triples = [
        (rank + place, int(above[pair]), int(beside[pair]), other)
        for rank, pair in enumerate(pairs[: 2 * k])
        for place, other in enumerate(worst)
        if other not in (above[pair], beside[pair])
    ]
    triples.sort(key=lambda item: item[0])
    return [(i, j, other) for _, i, j, other in triples]


def _misfit(problem: MixtureProblem[Any], params: MixtureParameters[Any], X: Any, share: Array) -> Array:
    """Spread of each component's log density over its own rows, weighed by how many they are.

    Rows that come from the component's own distribution have log densities that vary by an amount of the order of the
    number of features; a component that covers two clusters has rows that all lie far out.
    """
    padded = np.empty((X.shape[0], padded_width(problem.n_components)))
    problem.family.log_prob(params.components, X, padded)
    log_prob = padded[:, : problem.n_components]
    density = problem.posterior(params, X)[1]
    # The local Kullback-Leibler divergence of the rows from the component, with the mixture's density as reference.
    own = share / np.maximum(share.sum(axis=0), 1e-300)
    return np.asarray((own * (density[:, None] - log_prob)).sum(axis=0) + np.log(np.maximum(params.weights, 1e-300)))


def _moved(
    problem: MixtureProblem[Any],
    params: MixtureParameters[Any],
    X: Any,
    weight: Array,
    candidate: tuple[int, int, int],
    rng: np.random.Generator,
) -> MixtureParameters[Any]:
    """The M-step of responsibilities in which i takes over those of j, and j half of those of l."""
    i, j, other = candidate
    posterior = problem.posterior(params, X)[0]
    side = _two_sides(X, weight * posterior[:, other], rng)
    posterior[:, i] += posterior[:, j]
    posterior[:, j] = posterior[:, other] * side
    posterior[:, other] *= 1.0 - side
    posterior *= weight[:, None]
    occupancy = posterior[:, : problem.n_components].sum(axis=0)
    stats = MixtureStatistics(0.0, occupancy, problem.family.accumulate(params.components, X, posterior))
    return problem.maximize(stats, params)


def _two_sides(X: Any, share: Array, rng: np.random.Generator) -> Array:
    """0 or 1 for each row: on which side of a weighted two-means division it lies."""
    points = shortened(X, 1.0) if sparse.issparse(X) else filled(np.asarray(X, dtype=np.float64))
    if int((share > 0).sum()) < 2:
        return rng.random(points.shape[0]).round()
    return divide_rows(points, share, 2, "kmeans", rng)[:, 1]
