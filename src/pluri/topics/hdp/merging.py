"""Variational topics that say the same are merged where the bound rises.

Coordinate ascent cannot empty one of two topics with the same words: on the way the bound would fall. Here their
expected counts are added, a few sweeps follow, and the merger stays if the bound is higher than before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.variational import coordinate_ascent
from pluri.topics.hdp.batch_ascent import FRESH_EVERY, BatchAscent, Beliefs

#: Topics that differ more, in total variation, are not tried.
FARTHEST = 0.6
#: Sweeps after which a merger must have paid.
N_SWEEPS = 3
#: Expected tokens below which a topic is empty.
EMPTY = 0.5


def similar_pairs(stats: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Pairs of topics that are not empty, the most similar first."""
    sizes = stats.sum(axis=1)
    used = np.flatnonzero(sizes > EMPTY)
    laws = stats[used] / sizes[used, None]
    pairs = []
    for i in range(1, len(used)):
        distance = 0.5 * np.abs(laws[:i] - laws[i]).sum(axis=1)
        pairs += [(float(distance[j]), i, int(j)) for j in np.flatnonzero(distance < FARTHEST)]
    for _, i, j in sorted(pairs):
        small, large = sorted((int(used[i]), int(used[j])), key=lambda k: (sizes[k], -k))
        yield large, small


def merged(beliefs: Beliefs, kept: int, gone: int) -> Beliefs:
    """The same beliefs with one topic's sticks and counts given to another; documents are to make a new start next."""
    stats = {name: np.array(value) for name, value in beliefs.stats.items()}
    zeta = beliefs.factors[0].copy()
    for table in (stats["topic_word"], stats["usage"], zeta.T):
        table[kept] += table[gone]
        table[gone] = 0.0
    return replace(beliefs, stats=stats, factors=(zeta, beliefs.factors[1]), n_sweeps=FRESH_EVERY - 1)


def merge_topics(
    ascent: BatchAscent, beliefs: Beliefs, elbo: float, data: Any, rng: np.random.Generator, *, max_tries: int
) -> tuple[Beliefs, float, int]:
    """Try mergers until none of `max_tries` in a row pays.

    Returns
    -------
    beliefs, elbo, n_merged
    """
    n_merged, failed = 0, 0
    tried: set[tuple[int, int]] = set()
    while failed < max_tries:
        pair = next((p for p in similar_pairs(beliefs.stats["topic_word"]) if p not in tried), None)
        if pair is None:
            break
        tried.add(pair)
        # `begin` would look for new factors of all documents: an update goes on from the merged ones.
        first = ascent.update(merged(beliefs, *pair), data)
        result = coordinate_ascent(ascent, data, rng=rng, start=first, max_iter=N_SWEEPS, tol=0.0)
        if result.interrupted:
            break
        if result.elbo > elbo:
            beliefs, elbo, n_merged, failed = result.params, result.elbo, n_merged + 1, 0
        else:
            failed += 1
    return beliefs, elbo, n_merged
