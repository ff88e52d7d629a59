"""Means over neighbouring steps of sequences."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def averaged(rows: Array, offsets: Integers, window: int) -> Array:
    """Means of the rows up to `window` steps away in the same sequence."""
    out = np.empty_like(rows)
    for begin, end in pairwise(offsets):
        reached = np.concatenate([np.zeros((1, rows.shape[1])), np.cumsum(rows[begin:end], axis=0)])
        steps = np.arange(end - begin)
        first, last = np.maximum(steps - window, 0), np.minimum(steps + window + 1, end - begin)
        out[begin:end] = (reached[last] - reached[first]) / (last - first)[:, None]
    return out
