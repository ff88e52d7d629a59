"""Arrays as compiled loops want them: rows of whole vector registers, that begin at a cache line."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Four doubles fill a 256-bit register.
LANES = 4
CACHE_LINE = 64


def padded_width(size: int, lanes: int = LANES) -> int:
    """Smallest multiple of `lanes` that holds `size`."""
    return -(-size // lanes) * lanes


def aligned_zeros(shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Zeros whose first entry lies at the beginning of a cache line.

    Examples
    --------
    >>> from pluri.engine.aligned import aligned_zeros
    >>> aligned_zeros((3, 16), "float32").ctypes.data % 64
    0
    """
    shape = (shape,) if isinstance(shape, int) else shape
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(n_bytes + CACHE_LINE, dtype=np.uint8)
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + n_bytes].view(dtype).reshape(shape)
