"""States that are one and the same are put together while chains warm up.

Chains begin with many states, because two that should be one are easier to put together than one is to be taken apart.
Samplers that move steps do the former slowly too: for a long while both halves of a state are equally good. So in the
second half of the warm-up, up to its last tenth, the two states whose union raises the log joint density most are
merged after each sweep, if any does. Not earlier: states that are still random are all alike, and would all become one.
Draws are made without it: the posterior is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pluri.sequences.infinite.observations import Array, Integers, Observations
from pluri.sequences.infinite.transitions import Hyperparameters, log_path

#: Pairs whose observations fit together best: of these the transitions are looked at.
N_PAIRS = 10


@dataclass
class MergingWarmup:
    """Lets the kernel merge states in the second half of the warm-up, up to its last tenth."""

    n_warmup: int
    n_done: int = 0

    def start(self, rng: np.random.Generator, kernel: Any, state: Any) -> Any:
        """The kernel of the next sweep."""
        return replace(kernel, merges=0.5 * self.n_warmup <= self.n_done < 0.9 * self.n_warmup)

    def update(self, rng: np.random.Generator, kernel: Any, state: Any, info: Any) -> Any:
        """The kernel of the next sweep."""
        self.n_done += 1
        return self.start(rng, kernel, state)

    def finish(self, kernel: Any) -> Any:
        """The kernel of the draws."""
        return replace(kernel, merges=False)


def best_merge(
    observations: Observations, labels: Integers, counts: Integers, weights: Array, hyper: Hyperparameters
) -> tuple[int, int] | None:
    """The two states whose union raises the log joint density most; None if none does.

    `labels` number the states 0, ..., K - 1, `counts` (K + 1, K) are their transitions and `weights` (K,) theirs.
    """
    n_states = len(weights)
    if n_states < 2:
        return None
    first, second = np.triu_indices(n_states, 1)
    gains = np.zeros(len(first))
    for part, sums in zip(observations.parts, observations.sums(labels, n_states)):
        alone = part.likelihood.log_marginal(sums)
        gains += part.likelihood.log_marginal(sums[first] + sums[second]) - alone[first] - alone[second]
    before = log_path(counts, hyper, weights)
    best, pair = 0.0, None
    for at in np.argsort(-gains, kind="stable")[:N_PAIRS]:
        a, b = int(first[at]), int(second[at])
        merged = counts.copy()
        merged[a] += merged[b]
        merged[:, a] += merged[:, b]
        together = weights.copy()
        together[a] += together[b]
        path = log_path(np.delete(np.delete(merged, b, 0), b, 1), hyper, np.delete(together, b))
        if gains[at] + path - before > best:
            best, pair = float(gains[at] + path - before), (a, b)
    return pair
