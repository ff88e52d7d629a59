"""How far tables of counts reach: beyond what was seen, unless somebody says where counts end.

Other data have larger counts than those of the fit, and are not impossible for that. A shape is learned a little beyond
the largest count, where the penalty on bent shapes says how probable counts are; from there on it is a line, which is
the tail of a Poisson distribution.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.counts.learning import CountProblem
from pluri.dynamics.counts.records import CountObservation, SystemParameters
from pluri.dynamics.counts.survey import MOST_COUNTS

Array = NDArray[np.float64]


def learned_count(largest: int) -> int:
    """Largest count of a shape that is learned from data with this largest count."""
    room = max(3, min(ceil(0.5 * largest), ceil(3.0 * largest**0.5)))
    return min(largest + room, max(largest, MOST_COUNTS))


def cut_off_count(largest: int) -> int:
    """Where to cut off a distribution that has a formula, fitted to data with this largest count: it hardly matters."""
    return 3 * largest + 20


def scored_count(largest: int) -> int:
    """Where to cut off the normalizer of a distribution that is asked for this count."""
    return 2 * largest + 20


def continued(g: Array, max_count: int) -> Array:
    """Shapes (..., K + 1) up to `max_count`: cut off, or going on as the line through their last two values."""
    width = g.shape[-1]
    if max_count < width:
        return g[..., : max_count + 1].copy()
    long = np.concatenate([g, np.full((*g.shape[:-1], max_count + 1 - width), -np.inf)], axis=-1)
    k = np.arange(max_count + 1)
    for one in long.reshape(-1, max_count + 1):
        last = int(np.flatnonzero(np.isfinite(one))[-1])
        if last > 0:
            slope = one[last] - one[last - 1] if np.isfinite(one[last - 1]) else one[last] / last
            one[last + 1 :] = one[last] + slope * (k[last + 1 :] - last)
    return long


def possible_counts(occurs: NDArray[np.bool_], *, shared: bool, formula: bool) -> NDArray[np.bool_]:
    """Counts (N, K + 1) in the tables of neurons, by default: beyond the largest that each of them had.

    Parameters
    ----------
    occurs : (N, K + 1): which counts were seen
    shared : whether all neurons have one shape
    formula : whether the shape is a line, which needs no learning
    """
    reach = cut_off_count if formula else learned_count
    highest = np.where(occurs, np.arange(occurs.shape[1]), 0).max(axis=1)
    highest = np.full_like(highest, highest.max()) if shared else highest
    ends = np.array([reach(count) if count else 0 for count in highest.tolist()])
    return np.arange(ends.max(initial=1) + 1) <= ends[:, None]


def reaching(params: SystemParameters, problem: CountProblem, counts: Array) -> tuple[SystemParameters, CountProblem]:
    """Parameters whose tables reach beyond counts (n, N); of a count above `MOST_COUNTS` no table is made."""
    g = params.observation.g
    largest = np.where(np.isnan(counts), 0.0, counts).max(axis=0, initial=0.0)
    beyond = (largest > np.isfinite(g).sum(axis=1) - 1) & ~problem.silent
    if not beyond.any() or largest.max() > MOST_COUNTS:
        return params, problem
    width = max(scored_count(int(largest[beyond].max())), g.shape[1] - 1) + 1
    wide = np.full((len(g), width), -np.inf)
    wide[:, : g.shape[1]] = g
    wide[beyond] = continued(g[beyond], width - 1)
    observation = CountObservation(params.observation.loadings, wide)
    model = replace(problem.model, support=np.isfinite(wide))
    return replace(params, observation=observation), replace(problem, model=model)


def in_tables(start: SystemParameters, support: NDArray[np.bool_], mean_counts: Array) -> SystemParameters:
    """Parameters of another fit with shapes on this support (N, K + 1): lines where there were none."""
    g = continued(start.observation.g, support.shape[1] - 1)
    k = np.arange(support.shape[1])
    for one, possible, mean in zip(g, support, mean_counts):
        known = np.isfinite(one)
        line = np.interp(k, k[known], one[known]) if known.sum() > 1 else np.log(max(mean, 1e-3)) * k
        one[:] = np.where(possible, np.where(known, one, line), -np.inf)
    return replace(start, observation=CountObservation(start.observation.loadings, g))
