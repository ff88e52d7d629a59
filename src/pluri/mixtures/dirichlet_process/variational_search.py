"""Search for the variational approximation of highest bound: many starts, then clusters merged or dissolved.

Coordinate ascent rarely empties a component that many rows have settled in, so that a start with too many clusters
keeps them at a much lower bound. Starts therefore have 1, 2, 4, ... occupied components, all in a model of the same
truncation, whose bounds can be compared. After a few sweeps the best ones go on until they settle; then pairs of
components are joined, or the rows of one given to the others, as long as the bound rises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pluri.components.k_means import k_means
from pluri.inference.run import IterationState
from pluri.inference.variational import CoordinateAscentResult, coordinate_ascent
from pluri.mixtures.dirichlet_process.variational import Beliefs, TruncatedMeanField, WeightedRows, standardised
from pluri.processes.conjugate_clusters.records import Array, Integers
from pluri.validation.interruption import holding

Result = CoordinateAscentResult[Beliefs]

#: Sweeps of every start, after which only this many of them go on.
TRIAL_SWEEPS, FINALISTS = 10, 6
#: A run that would not reach the best bound in this many more sweeps like the last one is given up.
PATIENCE = 20
#: Pairs that are joined and components that are dissolved on trial, and sweeps after which a trial is judged.
TRIED_MOVES, MOVE_SWEEPS = 5, 5
#: How many of the best runs are improved so.
MOVED = 3
#: What is said after Ctrl-C, which may come in the first sweep of a run, or between two runs.
KEPT = "fit interrupted; the best run so far is kept"
#: A component of fewer rows than this is empty.
OCCUPIED = 1e-3


def best_beliefs(
    model: TruncatedMeanField, rows: WeightedRows, rng: np.random.Generator, *, n_init: int, max_iter: int, tol: float,
    verbose: int = 0,
) -> Result:  # fmt: skip
    """The best of `n_init` starts for each number of clusters in 1, 2, 4, ..., improved by merging and dissolving.

    After Ctrl-C it is the best so far.
    """

    def ascend(start: Beliefs, sweeps: int | None = None, least: float = -np.inf) -> Result:
        def out_of_reach(state: IterationState[Beliefs]) -> bool:
            left = min(state.max_iter - state.iteration + 1, PATIENCE)
            return state.objective + left * state.gain < least

        return coordinate_ascent(
            model, rows, rng=rng, start=[start], max_iter=min(sweeps or max_iter, max_iter), tol=tol,
            verbose=0 if sweeps else verbose,
            on_iteration=out_of_reach,
        )  # fmt: skip

    found: list[Result] = []
    numbers = occupied_numbers(min(model.n_components, rows.data.shape[0]))
    tried: set[bytes] = set()
    with holding(KEPT, having=found):
        for number in np.repeat(numbers, [1 if number == 1 else n_init for number in numbers]).tolist():
            labels = clustered_labels(rows, number, rng)
            if (partition := _by_first_member(labels).tobytes()) in tried:
                continue
            tried.add(partition)
            found.append(
                ascend(model.start(rows, labels), TRIAL_SWEEPS, least=max(map(_bound, found), default=-np.inf))
            )
            if found[-1].interrupted:
                return replace(max(found, key=_bound), interrupted=True)
        found.sort(key=_bound, reverse=True)
        for place in range(min(FINALISTS, len(found))):
            if not found[place].converged:
                least = max(map(_bound, found))
                found[place] = _continued(found[place], ascend(found[place].params, least=least))
                if found[place].interrupted:
                    return replace(max(found, key=_bound), interrupted=True)
        best = max(found, key=_bound)
        for result in sorted(found, key=_bound, reverse=True)[:MOVED]:
            improved = _with_fewer(model, rows, result, ascend, tol, best.elbo)
            best = max(best, improved, key=_bound)
            if improved.interrupted:
                return replace(best, interrupted=True)
        return best
    return replace(max(found, key=_bound), interrupted=True)


def _with_fewer(
    model: TruncatedMeanField, rows: WeightedRows, best: Result, ascend: Callable[..., Result], tol: float, least: float
) -> Result:
    """A result improved by joining and dissolving components, as long as the bound rises."""
    with holding(KEPT):
        moved = True
        while moved:
            moved = False
            for statistics, sizes in fewer_components(model.likelihood, best.params):
                trial = ascend(model.settled(statistics, sizes, best.params.alpha, rows), MOVE_SWEEPS, least=best.elbo)
                if trial.interrupted:
                    best = _continued(best, trial) if trial.elbo > best.elbo else best
                    return replace(best, interrupted=True)
                if trial.elbo > best.elbo + tol * abs(best.elbo):
                    best = _continued(best, _continued(trial, ascend(trial.params, least=least)))
                    moved = True
                if best.interrupted:
                    return best
                if moved:
                    break
        return best
    return replace(best, interrupted=True)


def _bound(result: Result) -> float:
    return result.elbo


def _continued(first: Result, second: Result) -> Result:
    """The second run with the sweeps of the first before it."""
    trace = np.append(first.trace, second.trace[second.trace > first.elbo])
    return replace(second, trace=trace, n_iter=len(trace) - 1)


def _by_first_member(labels: Integers) -> Integers:
    """Labels of the same partition, numbered in the order of the first rows of the clusters."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse], dtype=np.int64)


def occupied_numbers(most: int) -> list[int]:
    """1, 2, 4, ... and `most`."""
    return [*(2**power for power in range(most.bit_length()) if 2**power < most), most]


def clustered_labels(rows: WeightedRows, n_clusters: int, rng: np.random.Generator) -> Integers:
    """Clusters of the rows by k-means, which does not know the number."""
    if n_clusters == 1:
        return np.zeros(rows.data.shape[0], dtype=np.int64)
    data = standardised(rows)
    return np.asarray(k_means(data, rows.weights, n_clusters, rng, n_init=1, max_iter=20)[0], dtype=np.int64)


def fewer_components(likelihood: Any, q: Beliefs) -> Iterator[tuple[Array, Array]]:
    """Statistics and sizes with two components joined, or one dissolved; those most likely to help first.

    Joining is judged by ``log p(both) - log p(one) - log p(other)``, which needs no pass over the data.
    """
    used = np.flatnonzero(q.next_sizes > OCCUPIED)
    if len(used) < 2:
        return
    one, other = (used[place] for place in np.triu_indices(len(used), 1))
    alone = np.asarray(likelihood.log_marginal(q.next_statistics))
    gain = np.asarray(likelihood.log_marginal(q.next_statistics[one] + q.next_statistics[other]))
    gain = gain - alone[one] - alone[other]
    for pair in np.argsort(-gain, kind="stable")[:TRIED_MOVES]:
        statistics, sizes = q.next_statistics.copy(), q.next_sizes.copy()
        statistics[one[pair]] += statistics[other[pair]]
        sizes[one[pair]] += sizes[other[pair]]
        statistics[other[pair]], sizes[other[pair]] = 0.0, 0.0
        yield statistics, sizes
    for gone in used[np.argsort(q.next_sizes[used], kind="stable")[:TRIED_MOVES]]:
        statistics, sizes = q.next_statistics.copy(), q.next_sizes.copy()
        statistics[gone], sizes[gone] = 0.0, 0.0
        yield statistics, sizes
