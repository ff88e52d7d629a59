"""Sparse matrices as a source: rows in batches, without ever making them dense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import ArrayLike

from pluri.engine.batches import Batch, LazyBatch, check_weight
from pluri.engine.cutting import DEFAULT_BATCH_SIZE, check_batch_size


class SparseSource:
    """Cut a sparse matrix with independent rows into batches.

    Parameters
    ----------
    X : scipy.sparse matrix or array of shape (n_samples, n_features)
        Converted to CSR if it is not.
    sample_weight : float array of shape (n_samples,), optional
        Weight of each row.
    batch_size : int, default=16384
        Rows of a batch.

    Examples
    --------
    >>> from scipy import sparse
    >>> from pluri.engine import SparseSource
    >>> source = SparseSource(sparse.eye(5, format="csr"), batch_size=2)
    >>> [batch.load().X.nnz for batch in source.batches()]
    [2, 2, 1]
    """

    def __init__(self, X: Any, *, sample_weight: ArrayLike | None = None, batch_size: int = DEFAULT_BATCH_SIZE) -> None:
        self._X = X.tocsr()
        self._weight = None if sample_weight is None else check_weight(sample_weight, self._X.shape[0])
        self._batch_size = check_batch_size(batch_size)

    @property
    def X(self) -> Any:
        """The observations, in CSR form."""
        return self._X

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self._X.shape[1])

    def batches(self) -> Iterator[LazyBatch]:
        """Start a new pass over the data."""
        for begin in range(0, self._X.shape[0], self._batch_size):
            rows = slice(begin, begin + self._batch_size)
            yield Batch(self._X[rows], weight=None if self._weight is None else self._weight[rows])
