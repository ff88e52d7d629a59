"""How data are cut into batches: whole sequences, in order, greedily, as many as fit.

The cut depends on the lengths and ``batch_size`` only, never on where the work runs, so that sums are formed in the
same order on one core and on a cluster.
"""

from __future__ import annotations

import numbers

import numpy as np
from numpy.typing import NDArray

DEFAULT_BATCH_SIZE = 16_384


def cut_sequences(lengths: NDArray[np.int64], batch_size: int) -> NDArray[np.int64]:
    """Cut consecutive sequences into batches of at most ``batch_size`` samples.

    A sequence longer than ``batch_size`` has a batch of its own, and a sequence of length zero joins the batch
    before it: a batch is without samples only if all the data are.

    Returns
    -------
    boundaries : int array of shape (n_batches + 1,)
        Batch ``b`` holds the sequences ``boundaries[b]:boundaries[b + 1]``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.engine.cutting import cut_sequences
    >>> cut_sequences(np.array([2, 2, 1, 9, 0, 1, 1]), batch_size=4)
    array([0, 2, 3, 5, 7])
    """
    ends = np.cumsum(lengths)
    boundaries = [0]
    begin = 0
    while boundaries[-1] < len(ends):
        stop = int(np.searchsorted(ends, begin + batch_size, side="right"))
        if stop < len(ends) and (stop == 0 or ends[stop - 1] == begin):  # the next sequence is too long for any batch
            stop = int(np.searchsorted(ends, ends[stop], side="right"))
        boundaries.append(stop)
        begin = int(ends[stop - 1])
    return np.array(boundaries, dtype=np.int64)


def fits(total: int, length: int, batch_size: int) -> bool:
    """Whether a sequence of this length joins a batch that has ``total`` samples; the rule of `cut_sequences`."""
    return total == 0 or length == 0 or total + length <= batch_size


def check_batch_size(batch_size: int) -> int:
    """Give ``batch_size`` as an int, or refuse it."""
    if not isinstance(batch_size, numbers.Integral) or isinstance(batch_size, bool) or batch_size < 1:
        raise ValueError(f"batch_size must be a positive integer, got {batch_size!r}")
    return int(batch_size)
