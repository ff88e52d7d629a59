"""Compiled loops of facility location: what rows gain by one more item.

With best_i the similarity of row i to the nearest item chosen: gain_j = sum_i max(s_ji - best_i, 0).
"""

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


@compiled(reorder=True, allocates=False)
def dense_gains(similarity: Array, best: Array, items: IntArray, out: Array) -> None:
    """Change ``out``: gain of each of the items, whose similarities are rows of a dense matrix."""
    n_rows = similarity.shape[1]
    for place in range(len(items)):
        item = items[place]
        total = 0.0
        for row in range(n_rows):
            total += max(similarity[item, row] - best[row], 0.0)
        out[place] = total


@compiled(allocates=False)
def sparse_gains(data: Array, columns: IntArray, starts: IntArray, best: Array, items: IntArray, out: Array) -> None:
    """Change ``out``: gain of each of the items, whose similarities are rows of a compressed matrix."""
    for place in range(len(items)):
        item = items[place]
        total = 0.0
        for entry in range(starts[item], starts[item + 1]):
            total += max(data[entry] - best[columns[entry]], 0.0)
        out[place] = total
