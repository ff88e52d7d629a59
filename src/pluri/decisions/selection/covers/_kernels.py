"""Compiled loop of the exact set cover.

best[mask] is the least cost to cover (at least) the elements of a mask. Masks in rising order: the lowest element that
is missing must be covered by some set, so only sets that hold it are tried.
"""

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


@compiled(allocates=False)
def cheapest_covers(
    masks: IntArray, costs: Array, holders: IntArray, starts: IntArray, best: Array, last: IntArray, before: IntArray
) -> None:
    """Change ``best``, ``last`` and ``before``: least cost of a mask, the set added last, and the mask without it."""
    n_masks = len(best)
    for mask in range(n_masks - 1):
        cost = best[mask]
        if cost == float("inf"):
            continue
        lowest = 0
        while mask >> lowest & 1:
            lowest += 1
        for entry in range(starts[lowest], starts[lowest + 1]):
            chosen = holders[entry]
            reached = mask | masks[chosen]
            if cost + costs[chosen] < best[reached]:
                best[reached] = cost + costs[chosen]
                last[reached] = chosen
                before[reached] = mask
