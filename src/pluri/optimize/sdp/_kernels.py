"""The perceptron on the constraints that it remembers, in terms of scores and products of constraints alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Array = NDArray[np.float64]


@compiled(allocates=False)
def learn(scores: Array, products: Array, counts: Array, thresholds: Array, budget: int) -> int:
    """Change `scores` and `counts`: add violated rows to the point, at most `budget` times; return how often.

    A row k counts as violated while ``scores[k] <= thresholds[k]``. Rows 0 and 1 come first, in this order; of the
    others the one that is violated most. Adding row j to the point adds ``products[j]`` to all scores.
    """
    n_rows = scores.shape[0]
    made = 0
    while made < budget:
        chosen = -1
        if scores[0] <= thresholds[0]:
            chosen = 0
        elif scores[1] <= thresholds[1]:
            chosen = 1
        else:
            worst = 0.0
            for k in range(2, n_rows):
                excess = scores[k] - thresholds[k]
                if excess <= worst:
                    worst = excess
                    chosen = k
            if chosen < 0:
                break
        counts[chosen] += 1.0
        made += 1
        for k in range(n_rows):
            scores[k] += products[chosen, k]
    return made
