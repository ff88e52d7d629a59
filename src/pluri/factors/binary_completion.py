"""Rows of zeros and ones, some of them unknown: how they are read, and the question "what else is one?".

Models that complete binary rows share the two methods of `BinaryCompletionMixin`; each answers them in its own way.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.validation import unmasked
from pluri.validation.inputs import warn_of_one_side

Array = NDArray[np.float64]

#: Answers of at most this many numbers are made at a time.
BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class BinaryRows:
    """Where the ones are, and where nothing is known.

    Attributes
    ----------
    ones : csr_array (n_samples, n_features) of ones
    missing : csr_array of ones like it where an entry is unknown; None if all are known
    """

    ones: Any
    missing: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        n, d = self.ones.shape
        return int(n), int(d)

    def __getitem__(self, rows: slice) -> BinaryRows:
        return BinaryRows(self.ones[rows], None if self.missing is None else self.missing[rows])

    @property
    def zeros(self) -> Any:
        """csr_array of ones where an entry is known to be zero; as large as a dense matrix."""
        known = self.ones if self.missing is None else self.ones + self.missing
        return sparse.csr_array(1.0 - known.toarray())

    def toarray(self, missing: float = np.nan) -> Array:
        """Dense zeros and ones, and something else where unknown."""
        dense: Array = self.ones.toarray()
        if self.missing is not None:
            dense[self.missing.nonzero()] = missing
        return dense


def pattern(matrix: Any) -> Any:
    """The csr_array of ones at the places where a matrix is not zero."""
    found = sparse.csr_array(matrix, dtype=np.float64, copy=True)  # cleaned up in place
    found.sum_duplicates()
    found.eliminate_zeros()
    found.sort_indices()
    return sparse.csr_array((np.ones(found.nnz), found.indices, found.indptr), shape=found.shape)


def check_binary(estimator: Any, X: Any, *, binarize: float | None = 0.0, reset: bool) -> BinaryRows:
    """Read a matrix for an estimator: values above `binarize` are ones, NaN is unknown.

    Parameters
    ----------
    estimator : estimator that gets or has ``n_features_in_``
    X : array-like or sparse matrix of shape (n_samples, n_features)
        What a sparse matrix does not store is zero, NaN that it stores is unknown.
    binarize : float or None
        None if X holds only zeros and ones.
    reset : bool
        Whether the estimator is being fitted.
    """
    if binarize is not None and (not isinstance(binarize, Real) or isinstance(binarize, bool)):
        raise ValueError(f"binarize must be a number or None, got {binarize!r}")
    data = validate_data(
        estimator, unmasked(X), accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan", reset=reset
    )
    if sparse.issparse(data):
        if binarize is not None and binarize < 0:
            raise ValueError(f"binarize must be at least 0 for a sparse X, whose gaps are zeros, got {binarize}")
        data = sparse.csr_array(data, copy=True)
        data.sum_duplicates()
        values = data.data
    else:
        values = data
        if reset:
            warn_of_one_side(data, binarize)
    unknown = np.isnan(values)
    if binarize is None:
        if not np.isin(values[~unknown], (0.0, 1.0)).all():
            raise ValueError("X must hold only zeros and ones (and NaN) when binarize is None")
        high = values == 1.0
    else:
        high = values > binarize
    if sparse.issparse(data):
        parts = [
            pattern(sparse.csr_array((part.astype(np.float64), data.indices, data.indptr), shape=data.shape))
            for part in (high, unknown)
        ]
    else:
        parts = [pattern(high), pattern(unknown)]
    return BinaryRows(parts[0], parts[1] if unknown.any() else None)


def known_entries(estimator: Any, X: Any, binarize: float | None) -> tuple[Any, Any]:
    """Patterns of the ones and of the zeros of a query; the gaps of a sparse matrix are unknown, not zero."""
    if sparse.issparse(X):
        rows = check_binary(estimator, X, binarize=binarize, reset=False)
        return rows.ones, sparse.csr_array(rows.shape, dtype=np.float64)
    rows = check_binary(estimator, X, binarize=binarize, reset=False)
    return rows.ones, rows.zeros


def check_columns(
    columns: ArrayLike | None, name: str, n_features: int, feature_names: ArrayLike | None = None
) -> NDArray[np.int64]:
    """Numbers of columns, in order, that are given by number or, where columns have names, by name.

    Repeats are refused: a row of zeros and ones would otherwise be taken for the columns 0 and 1.
    """
    values = np.asarray([] if columns is None else columns)
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    if values.ndim == 1 and feature_names is not None and all(isinstance(value, str) for value in values.tolist()):
        place = {str(key): number for number, key in enumerate(np.asarray(feature_names))}
        unknown = [str(value) for value in values if str(value) not in place]
        if unknown:
            raise ValueError(f"{name} must hold names of columns of the fit, got {unknown[0]!r}")
        values = np.array([place[str(value)] for value in values])
    hint = "a row of zeros and ones goes to predict_missing_rows, with NaN where unknown"
    if values.ndim != 1 or values.dtype.kind not in "iu":
        kinds = "column numbers" if feature_names is None else "column numbers or names"
        raise ValueError(f"{name} must be a sequence of {kinds}, got {columns!r}; {hint}")
    if values.min() < 0 or values.max() >= n_features:
        raise ValueError(f"{name} must hold column numbers from 0 to {n_features - 1}, got {columns!r}")
    chosen = np.unique(values).astype(np.int64)
    if len(chosen) < len(values):
        raise ValueError(f"{name} must name each column once, got repeats in {columns!r}; {hint}")
    return chosen


class BinaryCompletionMixin:
    """Probabilities of the unknown entries of binary rows, given the known ones."""

    n_features_in_: int

    @abstractmethod
    def _complete(self, ones: Any, zeros: Any) -> Array:
        """Probabilities (n, n_features) given patterns of known ones and zeros, of the same shape."""

    def predict_missing(self, present: ArrayLike, absent: ArrayLike | None = None) -> Array:
        """Probability that each column is one, given columns that are known; all others are unobserved.

        Parameters
        ----------
        present : sequence of int or str
            Columns known to be one: their numbers, or their names if the model was fitted to a data frame.
        absent : sequence of int or str, optional
            Columns known to be zero.

        Returns
        -------
        array of shape (n_features,)
            One for the present columns, zero for the absent ones.
        """
        check_is_fitted(self)
        width, names = self.n_features_in_, getattr(self, "feature_names_in_", None)
        known = [
            check_columns(columns, name, width, names) for name, columns in (("present", present), ("absent", absent))
        ]
        both = np.intersect1d(known[0], known[1])
        if both.size:
            raise ValueError(f"present and absent must have no column in common, both have {both.tolist()}")
        ones, zeros = (
            sparse.csr_array((np.ones(len(part)), part, np.array([0, len(part)])), shape=(1, width)) for part in known
        )
        answer = self._complete(ones, zeros)[0]
        answer[known[0]], answer[known[1]] = 1.0, 0.0
        return answer

    def predict_missing_rows(self, X: Any) -> Array:
        """:meth:`predict_missing` for many rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) with NaN where unobserved, or sparse matrix
            Entries that a sparse matrix does not store are unobserved.

        Returns
        -------
        array of shape (n_samples, n_features)
            Known entries are what they are.
        """
        check_is_fitted(self)
        ones, zeros = known_entries(self, X, getattr(self, "binarize", 0.0))
        answer = np.empty(ones.shape)
        step = max(1, BLOCK // ones.shape[1])
        for first in range(0, len(answer), step):
            rows = slice(first, first + step)
            answer[rows] = self._complete(ones[rows], zeros[rows])
        answer[ones.nonzero()] = 1.0
        answer[zeros.nonzero()] = 0.0
        return answer
