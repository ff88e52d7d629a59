"""The records that travel: a batch of data goes out, additive statistics come back.

A model's expectation step is a function ``expect(batch) -> statistics`` whose answers add up,
``T(data) = sum_b T(batch_b)``, so that the same function serves an array in memory, threads, files larger than
memory and a cluster. A sequence is never cut between two batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.validation import plain_array


@dataclass(frozen=True, eq=False)
class Batch:
    """Some whole sequences, or some independent rows: what a model's ``expect`` receives.

    ``X`` is always in C order and aligned (copied only if it is not), so that every engine, and every memory layout
    of the user's array, leads to the same bits. It may be read-only, since it can be a view of a file.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        The observations; independent rows may also be a CSR matrix.
    lengths : int array of shape (n_sequences,), optional
        Lengths of the sequences that follow each other in ``X``; they sum to ``n_samples`` and may be zero.
        None: the rows are independent, each a sequence of its own.
    weight : float array of shape (n_sequences,), optional
        Weight of each sequence, or of each row when ``lengths`` is None.
    labels : int array of shape (n_samples,), optional
        Known states, -1 where unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.engine import Batch
    >>> batch = Batch(np.zeros((5, 2)), lengths=[3, 0, 2])
    >>> batch.n_samples, batch.n_sequences, batch.offsets
    (5, 3, array([0, 3, 3, 5]))
    """

    X: NDArray[Any]
    lengths: NDArray[np.int64] | None = None
    weight: NDArray[np.float64] | None = None
    labels: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        if self.X.ndim != 2:
            raise ValueError(f"X must have 2 dimensions (n_samples, n_features), got shape {self.X.shape}")
        if isinstance(self.X, np.ndarray):
            object.__setattr__(self, "X", _orderly(self.X))
        if self.lengths is not None:
            object.__setattr__(self, "lengths", check_lengths(self.lengths, self.n_samples))
        if self.weight is not None:
            object.__setattr__(self, "weight", check_weight(self.weight, self.n_sequences))
        if self.labels is not None:
            object.__setattr__(self, "labels", check_labels(self.labels, self.n_samples))

    @property
    def n_samples(self) -> int:
        """Number of rows of ``X``."""
        return int(self.X.shape[0])

    @property
    def n_sequences(self) -> int:
        """Number of sequences; the number of rows when they are independent."""
        return self.n_samples if self.lengths is None else len(self.lengths)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where sequences start and end: sequence ``i`` is ``X[offsets[i]:offsets[i + 1]]``; (n_sequences + 1,)."""
        if self.lengths is None:
            return np.arange(self.n_samples + 1, dtype=np.int64)
        offsets = np.zeros(len(self.lengths) + 1, dtype=np.int64)
        np.cumsum(self.lengths, out=offsets[1:])
        return offsets

    def load(self) -> Batch:
        """Give the batch itself: it is in memory already."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor: arrays that Dask received start at odd addresses, where NumPy avoids the BLAS.
        return Batch, (self.X, self.lengths, self.weight, self.labels)

    def __sizeof__(self) -> int:
        # Dask asks this to know when a worker is full and has to spill to disk.
        arrays = (self.X, self.lengths, self.weight, self.labels)
        return object.__sizeof__(self) + sum(_size(array) for array in arrays if array is not None)


@runtime_checkable
class LazyBatch(Protocol):
    """A promise of a batch: small to send, ``load()`` is called where the work runs. A ``Batch`` is one too."""

    def load(self) -> Batch:
        """Read the batch."""
        ...


@runtime_checkable
class Source(Protocol):
    """Data as a stream of batches that can be read again and again, always in the same order."""

    def batches(self) -> Iterator[LazyBatch]:
        """Start a new pass over the data."""
        ...


@dataclass(frozen=True)
class Statistics:
    """Base of what an expectation step returns: a record that adds up field by field.

    Fields are arrays, numbers, None, other ``Statistics``, or tuples of these. Every subclass has a field
    ``log_likelihood: float``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from pluri.engine import Statistics
    >>> @dataclass(frozen=True)
    ... class Moments(Statistics):
    ...     total: np.ndarray
    ...     log_likelihood: float
    >>> Moments(np.array([1.0, 2.0]), -3.0) + Moments(np.array([10.0, 20.0]), -4.0)
    Moments(total=array([11., 22.]), log_likelihood=-7.0)
    """

    if TYPE_CHECKING:
        # Not a field of the base, where it would have to come first in every subclass.
        @property
        def log_likelihood(self) -> float:
            """Log-likelihood of the observations the statistics are made from."""
            ...

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        names = [field.name for field in fields(self)]  # class variables are not among them
        return type(self)(**{name: _add(name, getattr(self, name), getattr(other, name)) for name in names})

    def __radd__(self, other: int) -> Self:
        # The built-in sum() starts from 0.
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented


def _add(name: str, left: Any, right: Any) -> Any:
    if left is None and right is None:
        return None
    if isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right):
        return tuple(_add(name, one, other) for one, other in zip(left, right))
    # Broadcasting, and concatenating tuples, lists or words, would hide a mistake.
    never = (tuple, list, str, dict, type(None))
    if isinstance(left, never) or isinstance(right, never) or np.shape(left) != np.shape(right):
        raise TypeError(f"field {name} of the statistics cannot be added: got {_describe(left)} and {_describe(right)}")
    return left + right


def _describe(value: Any) -> str:
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"


def _size(array: Any) -> int:
    if isinstance(array, np.ndarray):
        return array.nbytes
    return int(array.data.nbytes + array.indices.nbytes + array.indptr.nbytes)  # a sparse matrix


def _orderly(array: NDArray[Any]) -> NDArray[Any]:
    array = np.ascontiguousarray(array)
    return array if array.flags.aligned else array.copy()


def check_lengths(lengths: ArrayLike, n_samples: int) -> NDArray[np.int64]:
    """Turn ``lengths`` into an int64 array, or refuse it."""
    array = np.asarray(lengths)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu") or (array < 0).any():
        raise ValueError(f"lengths must be a 1-dimensional array of non-negative integers, got {lengths!r}")
    if int(array.sum()) != n_samples:
        raise ValueError(f"lengths must sum to the number of samples ({n_samples}), got the sum {int(array.sum())}")
    return plain_array(array, np.int64)


def check_weight(weight: ArrayLike, n_sequences: int) -> NDArray[np.float64]:
    """Turn weights into a float64 array with one per sequence (or independent row), or refuse them."""
    array = np.asarray(weight, dtype=np.float64)
    if array.shape != (n_sequences,):
        raise ValueError(f"sample_weight must have one weight per sequence ({n_sequences}), got shape {array.shape}")
    return plain_array(array)


def check_labels(labels: ArrayLike, n_samples: int) -> NDArray[np.int64]:
    """Turn known states into an int64 array with one per sample, or refuse them."""
    array = np.asarray(labels)
    if array.shape != (n_samples,) or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"labels must be integers, one per sample ({n_samples}), got dtype {array.dtype} and shape {array.shape}"
        )
    return plain_array(array, np.int64)
