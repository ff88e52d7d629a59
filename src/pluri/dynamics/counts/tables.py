"""How far tables of counts reach: as far as the data, unless somebody says where counts end.

Other data have larger counts than those of the fit, and are not impossible for that. Where such counts are asked for, a
shape goes on as a line, which is the tail of a Poisson distribution. A fit has no use for them: it would have to learn
from nothing but a penalty how rare they are, and zeros and ones would no longer be a logistic regression.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.counts.count_model import CountModel
from pluri.dynamics.counts.learning import CountProblem
from pluri.dynamics.counts.records import CountObservation, SystemParameters
from pluri.dynamics.counts.survey import MOST_COUNTS

Array = NDArray[np.float64]


def cut_off_count(largest: int) -> int:
    """Where to cut off a distribution that has a formula, fitted to data with this largest count: it hardly matters."""
    return 3 * largest + 20


def scored_count(largest: int) -> int:
    """Where to cut off the normalizer of a distribution that is asked for this count."""
    return 2 * largest + 20


def continued(g: Array, max_count: int) -> Array:
    """Shapes (..., K + 1) up to `max_count`: cut off, or going on as lines.

    Their slope is that of the last step, or the mean slope if that is less: the last step rests on the few largest
    counts, and where it is steep by chance most of the distribution would lie where nothing was seen.
    """
    width = min(g.shape[-1], max_count + 1)
    long = np.full((*g.shape[:-1], max_count + 1), -np.inf)
    long[..., :width] = g[..., :width]
    k = np.arange(max_count + 1)
    for one in long.reshape(-1, max_count + 1):
        last = int(np.flatnonzero(np.isfinite(one))[-1])
        if last > 0:
            step = one[last] - one[last - 1] if np.isfinite(one[last - 1]) else np.inf
            slope = min(step, one[last] / last)
            one[last + 1 :] = one[last] + slope * (k[last + 1 :] - last)
    return long


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
    assert isinstance(problem.model, CountModel)
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
