"""The data of a mixture: independent rows, in memory, sparse or in batches, as an estimator checks them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import validate_data

from pluri.components.em_estimator import EMEstimator
from pluri.engine import ArraySource, Batch, Source, SparseSource
from pluri.validation import check_row_weight, is_source, refuse_dates, unmasked
from pluri.validation.inputs import refuse_words


class RowEstimator(EMEstimator):
    """Estimator fitted by EM to independent rows, each of which may have a weight."""

    #: Whether `fit` and the queries take sparse matrices.
    _takes_sparse: ClassVar[bool] = False
    #: Fewest rows that `fit` takes.
    _least_samples: ClassVar[int] = 1

    n_components: int

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    def _check_rows(self, X: Any, *, fitting: bool) -> Any:
        """X as an array (or CSR matrix) that the family accepts; NaN marks a missing value."""
        return self._validated(X, fitting)

    def _validated(self, X: Any, fitting: bool, **options: Any) -> Any:
        options = {
            "dtype": [np.float64, np.float32],
            "ensure_all_finite": "allow-nan",
            "accept_sparse": "csr" if self._takes_sparse else False,
            "ensure_min_samples": self._least_samples if fitting else 1,
        } | options
        refuse_dates(X)
        if options["dtype"] is not None:
            refuse_words(X)
        return validate_data(self, unmasked(X), reset=fitting, **options)

    def _source(self, X: Any, sample_weight: ArrayLike | None) -> Source:
        if is_source(X):
            if sample_weight is not None:
                raise ValueError("sample_weight must be None when X is a source: it holds the weights of its rows")
            return self._checked_source(X)
        data = self._check_rows(X, fitting=True)
        weight = check_row_weight(sample_weight, data.shape[0])
        _refuse_empty_columns(data)
        if data.shape[0] < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {data.shape[0]}"
            )
        return as_source(data, weight)

    def _check_batch(self, batch: Batch) -> None:
        if batch.lengths is not None and (batch.lengths != 1).any():
            raise ValueError("X, a source of batches, must give independent rows, got sequences")
        self._check_rows(batch.X, fitting=True)


def as_source(data: Any, weight: NDArray[np.float64] | None) -> Source:
    """Rows in memory as a source of batches."""
    return (SparseSource if sparse.issparse(data) else ArraySource)(data, sample_weight=weight)


def total_weight(batch: Batch) -> float:
    """Sum of the weights of a batch's rows."""
    return float(batch.n_samples if batch.weight is None else batch.weight.sum())


def _refuse_empty_columns(X: Any) -> None:
    """Refuse a feature of which nothing was observed: nothing can be learnt about it."""
    if sparse.issparse(X) or X.dtype.kind != "f":
        return
    empty = np.flatnonzero(np.isnan(X).all(axis=0))
    if empty.size:
        raise ValueError(f"X must have an observed value in every column, got none in {empty.tolist()}: drop them")
