"""Arrays as compiled loops want them: rows of whole vector registers, that begin at a cache line, far from others."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

#: Four doubles fill a 256-bit register.
LANES = 4
CACHE_LINE = 64
#: Numbers that a loop handles at a time are fewer than these.
DISTANCE = 128


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


def apart(shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Numbers, not yet set, for a loop to write that may reorder its sums; no other array is near.

    Such a loop asks first whether what it writes lies close before something that it reads, and if so takes its numbers
    one by one, which rounds differently. Small arrays are neighbours or not as memory happens to be free: sums of one
    batch had other last bits in another thread.

    Examples
    --------
    >>> from pluri.engine.aligned import apart
    >>> room = apart((3, 4))
    >>> room.shape, room.flags.c_contiguous
    ((3, 4), True)
    """
    shape = (shape,) if isinstance(shape, int) else shape
    size = math.prod(shape)
    return np.empty(size + 2 * DISTANCE)[DISTANCE : DISTANCE + size].reshape(shape)


def zeros_apart(shape: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Zeros that a loop adds to; see `apart`."""
    room = apart(shape)
    room.fill(0.0)
    return room
