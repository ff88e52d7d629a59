"""Minibatches in random order: rows of an array, or the batches of a source, which may be larger than memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.engine import Batch, LazyBatch, Source
from pluri.validation import Only, Whole, check_value

#: Batches of a source that wait to be drawn from; they are read from disk only when drawn, where the source can.
WINDOW = 16


@dataclass(frozen=True)
class Minibatches:
    """Data, and how a pass cuts them.

    Parameters
    ----------
    data : array or sparse matrix of shape (n_samples, n_features), or Source
    batch_size : int or None, default=256
        Rows of a minibatch; None is all rows. Not used for a source, which is cut already.
    shuffle : bool, default=True
        Whether minibatches are drawn at random; False takes them in the order of the data.
    n_total : float, optional
        Number of rows of the data set that the minibatches stand for; counted if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational import Minibatches
    >>> in_order = Minibatches(np.arange(4.0)[:, None], 2, shuffle=False)
    >>> [batch.X.ravel().tolist() for batch in in_order.drawn(np.random.default_rng(0))]
    [[0.0, 1.0], [2.0, 3.0]]
    """

    data: Any
    batch_size: int | None = 256
    shuffle: bool = True
    n_total: float | None = None

    def drawn(self, rng: np.random.Generator) -> Iterator[Batch]:
        """The minibatches of one pass."""
        return minibatches(self.data, self.batch_size, rng, shuffle=self.shuffle)


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
    check_value(batch_size, "batch_size", Whole(1) | Only(None))
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
