"""Arrays as loops over several topics at a time want them: rows of whole blocks that begin at a cache line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Topics looked at together by samplers, in float32; and by variational Bayes and EM, in double precision.
BLOCK, LANES = 16, 8
CACHE_LINE = 64


def padded(n_topics: int) -> int:
    """Number of topics, rounded up to whole blocks."""
    return -(-n_topics // BLOCK) * BLOCK


def padded_to_lanes(size: int) -> int:
    """Number of topics or words, rounded up to whole vectors of double precision; at least one."""
    return max(-(-size // LANES), 1) * LANES


def aligned_zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros whose first entry lies at the beginning of a cache line.

    Examples
    --------
    >>> from pluri.topics.lda.aligned_arrays import aligned_zeros
    >>> aligned_zeros((3, 16), "float32").ctypes.data % 64
    0
    """
    shape = (shape,) if isinstance(shape, int) else shape
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(n_bytes + CACHE_LINE, dtype=np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + n_bytes].view(dtype).reshape(shape)


def aligned(*shape: int) -> NDArray[np.float64]:
    """Array of double precision that begins at a cache line; not initialised."""
    size = math.prod(shape)
    room = np.empty(size + LANES)
    start = -(room.ctypes.data // 8) % LANES
    return room[start : start + size].reshape(shape)
