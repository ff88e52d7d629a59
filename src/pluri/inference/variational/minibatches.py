"""Minibatches in random order: rows of an array, or the batches of a source, which may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np

from pluri.engine import Batch, LazyBatch, Source

#: Batches of a source that wait to be drawn from; they are read from disk only when drawn, where the source can.
WINDOW = 16


def minibatches(
    data: Any, batch_size: int | None, rng: np.random.Generator, *, shuffle: bool = True
) -> Iterator[Batch]:
    """One pass over the data, by default in random order.

    Parameters
    ----------
    data : array or sparse matrix of shape (n_samples, n_features), or Source
    batch_size : int or None
        Rows of a minibatch, the last of a pass may have fewer; None is all rows. Not used for a source.
    rng : numpy.random.Generator
    shuffle : bool, default=True
        False keeps the order of the rows, or of the batches of a source.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.minibatches import minibatches
    >>> rng = np.random.default_rng(0)
    >>> [batch.n_samples for batch in minibatches(np.zeros((10, 2)), 4, rng)]
    [4, 4, 2]
    """
    if isinstance(data, Source):
        items = _shuffled(data, rng) if shuffle else data.batches()
        yield from (batch for item in items if (batch := item.load()).n_sequences)
        return
    n_samples = data.shape[0]
    integral = isinstance(batch_size, Integral) and not isinstance(batch_size, bool)
    if batch_size is not None and not (integral and batch_size >= 1):
        raise ValueError(f"batch_size must be None or an integer of at least 1, got {batch_size!r}")
    if batch_size is None or batch_size >= n_samples:
        yield Batch(data)
        return
    order = rng.permutation(n_samples) if shuffle else np.arange(n_samples)
    for begin in range(0, n_samples, int(batch_size)):
        yield Batch(data[order[begin : begin + batch_size]])


def count_rows(data: Any) -> int:
    """Number of rows (of sequences, if the data are sequences); a source is read once for it."""
    if not isinstance(data, Source):
        return int(data.shape[0])
    n_rows = sum(item.load().n_sequences for item in data.batches())
    if n_rows == 0:
        raise ValueError("data must have at least one row, got an empty source")
    return n_rows


def _shuffled(source: Source, rng: np.random.Generator) -> Iterator[LazyBatch]:
    waiting: list[LazyBatch] = []
    for item in source.batches():
        waiting.append(item)
        if len(waiting) == WINDOW:
            yield waiting.pop(int(rng.integers(WINDOW)))
    while waiting:
        yield waiting.pop(int(rng.integers(len(waiting))))
