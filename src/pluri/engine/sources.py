"""Sources: data in memory, in a ``.npy`` file or from any iterable, as a stream of batches.

A source can be read many times (EM reads it once per sweep) and always gives the same batches in the same order.
`ParquetSource` lives in its own module.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.engine.batches import Batch, LazyBatch, check_labels, check_lengths, check_weight
from pluri.engine.cutting import DEFAULT_BATCH_SIZE, check_batch_size, cut_sequences, fits
from pluri.engine.mapped import NpySlice, locate


class ArraySource:
    """Cut an array into batches of whole sequences, or of rows when there are no sequences.

    Batches are views of the array, never copies (unless its rows are not contiguous in memory). An array that is
    memory-mapped from a file gives lazy batches, which other processes read from the file themselves.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The observations.
    lengths : int array of shape (n_sequences,), optional
        Lengths of the sequences in ``X``, zero allowed. None: the rows are independent.
    sample_weight : float array of shape (n_sequences,), optional
        Weight of each sequence, or of each row when ``lengths`` is None.
    labels : int array of shape (n_samples,), optional
        Known states, -1 where unknown.
    batch_size : int, default=16384
        A batch holds at most so many samples, except that a longer sequence has a batch of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.engine import ArraySource
    >>> source = ArraySource(np.zeros((10, 3)), lengths=[4, 1, 5], batch_size=5)
    >>> [batch.load().lengths.tolist() for batch in source.batches()]
    [[4, 1], [5]]
    """

    def __init__(
        self,
        X: NDArray[Any],
        lengths: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        self._X = np.asarray(X)
        if self._X.ndim != 2:
            raise ValueError(f"X must have 2 dimensions (n_samples, n_features), got shape {self._X.shape}")
        n_samples = len(self._X)
        batch_size = check_batch_size(batch_size)
        self._lengths = None if lengths is None else check_lengths(lengths, n_samples)
        n_sequences = n_samples if self._lengths is None else len(self._lengths)
        self._weight = None if sample_weight is None else check_weight(sample_weight, n_sequences)
        self._labels = None if labels is None else check_labels(labels, n_samples)
        self._location = locate(self._X)
        self._whole: Batch | None = None
        if self._lengths is None:
            self._sequences = np.append(np.arange(0, n_samples, batch_size), n_samples)
            self._rows = self._sequences
        else:
            self._sequences = cut_sequences(self._lengths, batch_size)
            self._rows = np.append(0, np.cumsum(self._lengths))[self._sequences]

    @property
    def X(self) -> NDArray[Any]:
        """The observations."""
        return self._X

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self._X.shape[1])

    @property
    def is_mapped(self) -> bool:
        """Whether the observations lie in a file that is mapped into memory."""
        return self._location is not None

    def with_array(self, X: NDArray[Any]) -> ArraySource:
        """The same sequences, weights, labels and batches, with other observations (as many rows)."""
        if X.shape[0] != self._X.shape[0]:
            raise ValueError(f"X must have {self._X.shape[0]} rows, got {X.shape[0]}")
        other = copy.copy(self)
        other._X, other._location, other._whole = np.asarray(X), locate(np.asarray(X)), None
        return other

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_whole": None}

    def batches(self) -> Iterator[LazyBatch]:
        """Start a new pass over the data."""
        if self._location is None and len(self._rows) == 2:
            if self._whole is None:  # made, and checked, once: of little data that takes longer than a pass
                self._whole = Batch(self._X, self._lengths, self._weight, self._labels)
            yield self._whole
            return
        for index in range(len(self._rows) - 1):
            rows = slice(int(self._rows[index]), int(self._rows[index + 1]))
            sequences = slice(int(self._sequences[index]), int(self._sequences[index + 1]))
            lengths = None if self._lengths is None else self._lengths[sequences]
            weight = None if self._weight is None else self._weight[sequences]
            labels = None if self._labels is None else self._labels[rows]
            if self._location is None:
                yield Batch(self._X[rows], lengths, weight, labels)
            else:
                location = self._location.rows(rows.start, rows.stop)
                yield NpySlice(location, lengths, weight, labels, view=self._X[rows])


class NpySource(ArraySource):
    """Read a ``.npy`` file batch by batch; it may be larger than memory.

    Takes the arguments of `ArraySource`, with the path of the file in place of the array.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from pluri.engine import NpySource, map_reduce
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "X.npy"
    ...     np.save(path, np.ones((1000, 2)))
    ...     map_reduce(lambda batch: batch.X.sum(axis=0), NpySource(path, batch_size=100))
    array([1000., 1000.])
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        lengths: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        X = np.load(path, mmap_mode="r", allow_pickle=False)
        if not isinstance(X, np.ndarray):
            raise ValueError(f"path must name a .npy file with one array, got {os.fspath(path)!r}")
        super().__init__(X, lengths, sample_weight=sample_weight, labels=labels, batch_size=batch_size)


Item = Batch | LazyBatch | NDArray[Any] | tuple[NDArray[Any], ArrayLike | None]


class IterableSource:
    """Batches from a collection, or from a function that makes an iterator each time the data are to be read.

    Parameters
    ----------
    items : iterable or callable
        Each item is an array (one sequence), a tuple ``(X, lengths)``, or a `Batch` (or anything with a ``load()``
        that returns one). A generator can be read only once: pass the function that makes it.
    group : bool, default=True
        Whether to join arrays and tuples that follow each other into batches of at most ``batch_size`` samples, by
        the rule of `ArraySource`. A `Batch` always stays as it is.
    batch_size : int, default=16384
        Number of samples up to which to group.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.engine import IterableSource
    >>> source = IterableSource([np.zeros((3, 1)), np.zeros((2, 1)), np.zeros((4, 1))], batch_size=6)
    >>> [batch.load().lengths.tolist() for batch in source.batches()]
    [[3, 2], [4]]
    """

    def __init__(
        self,
        items: Iterable[Item] | Callable[[], Iterable[Item]],
        *,
        group: bool = True,
        batch_size: int = DEFAULT_BATCH_SIZE,
    ) -> None:
        if isinstance(items, Iterator):
            raise TypeError(
                f"items must be readable more than once, got a {type(items).__name__}: "
                "pass the function that makes it, such as IterableSource(lambda: read(files))"
            )
        if not isinstance(items, Iterable) and not callable(items):
            raise TypeError(f"items must be a collection or a function that makes an iterator, got {items!r}")
        self._items = items
        self._group = group
        self._batch_size = check_batch_size(batch_size)
        self._was_read = False

    @property
    def n_features(self) -> int | None:
        """Number of columns, if it is known without reading anything."""
        if not isinstance(self._items, Sequence) or not self._items:
            return None
        first = self._items[0]
        X = first[0] if isinstance(first, tuple) else getattr(first, "X", first)
        return int(X.shape[1]) if isinstance(X, np.ndarray) and X.ndim == 2 else None

    def batches(self) -> Iterator[LazyBatch]:
        """Start a new pass over the data."""
        items: Iterable[Any] = self._items if isinstance(self._items, Iterable) else self._items()
        pending = _Pending()
        index = -1
        for index, item in enumerate(items):
            if hasattr(item, "load"):
                yield from pending.joined()
                yield item
                continue
            X, lengths = _as_sequences(item, index)
            joins = self._group and lengths is not None
            if not joins or not fits(pending.n_samples, len(X), self._batch_size):
                yield from pending.joined()
            if not joins:
                yield Batch(X, lengths)
                continue
            pending.add(X, lengths, index)
        yield from pending.joined()
        if index < 0 and self._was_read:
            raise ValueError(
                "items gave data on the first pass and nothing on this one: the function must make a new iterator "
                "each time it is called"
            )
        self._was_read = self._was_read or index >= 0


class _Pending:
    """Sequences that wait to become one batch."""

    def __init__(self) -> None:
        self.n_samples = 0
        self._parts: list[NDArray[Any]] = []
        self._lengths: list[Any] = []

    def add(self, X: NDArray[Any], lengths: Any, index: int) -> None:
        if self._parts and self._parts[0].shape[1] != X.shape[1]:
            raise ValueError(
                f"item {index} must have as many features as the items before it ({self._parts[0].shape[1]}), "
                f"got {X.shape[1]}"
            )
        self.n_samples += len(X)
        self._parts.append(X)
        self._lengths.append(lengths)

    def joined(self) -> Iterator[Batch]:
        """Give what waits as one batch, if anything does, and forget it."""
        parts, lengths = self._parts, self._lengths
        self.n_samples, self._parts, self._lengths = 0, [], []
        if parts:
            yield Batch(parts[0] if len(parts) == 1 else np.concatenate(parts), np.concatenate(lengths))


def _as_sequences(item: Any, index: int) -> tuple[NDArray[Any], Any]:
    """Turn an item into observations and lengths."""
    is_pair = isinstance(item, tuple) and len(item) == 2
    X = np.asarray(item[0] if is_pair else item)
    if X.ndim != 2:
        raise ValueError(
            f"item {index} must be an array of 2 dimensions, a tuple (X, lengths) or a Batch, got shape {X.shape}"
        )
    if not is_pair:
        return X, (len(X),)
    return X, None if item[1] is None else check_lengths(item[1], len(X))
