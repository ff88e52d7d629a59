"""Transactions kept as they are, by rows and by columns: what counting models answer from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pluri.factors.binary_completion import BinaryCompletionMixin, check_columns
from pluri.validation import Stored, check_compressed
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
Places = NDArray[np.int64]


class CountedTransactions(BinaryCompletionMixin, Estimator):
    """Base of models that count past transactions when they are asked.

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features,)
        Number (or weight) of the transactions that contain each item.
    row_weights_ : ndarray of shape (n_samples,)
        Weight of each transaction.
    n_features_in_ : int
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "row_indptr_": Stored("n_rows+1", whole=True),
        "row_weights_": Stored("n_rows", least=0),
        "frequencies_": Stored("n_features_in_", least=0),
    }

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Keep the transactions.

        Parameters
        ----------
        X : {array, sparse matrix} of shape (n_samples, n_features)
            Not zero where an item occurs.
        y : ignored
        sample_weight : array of shape (n_samples,), optional
            A transaction of weight 2 counts as two.

        Returns
        -------
        self
        """
        self._check_parameters()
        matrix = sparse.csr_array(validate_data(self, X, accept_sparse="csr", dtype=np.float64))
        weights = _check_sample_weight(sample_weight, matrix, dtype=np.float64, ensure_non_negative=True)
        matrix = matrix.copy()
        matrix.sum_duplicates()  # sorts the indices too
        matrix.eliminate_zeros()
        by_column = matrix.tocsc()
        self.row_indptr_, self.row_items_ = _integers(matrix)
        self.column_indptr_, self.column_rows_ = _integers(by_column)
        self.row_weights_ = weights
        self.frequencies_ = self._counts(np.arange(len(weights)))
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense."""

    def rows_with(self, item: int) -> Places:
        """Numbers of the transactions that contain an item."""
        return self.column_rows_[self.column_indptr_[item] : self.column_indptr_[item + 1]]

    def _rows_of(self, present: Places, absent: Places) -> Places:
        """Transactions that contain all items of `present` and none of `absent`."""
        if present.size:
            rows = self.rows_with(int(present[0]))
            for item in present[1:]:
                rows = np.intersect1d(rows, self.rows_with(int(item)), assume_unique=True)
        else:
            rows = np.arange(len(self.row_weights_))
        for item in absent:
            rows = np.setdiff1d(rows, self.rows_with(int(item)), assume_unique=True)
        return rows

    def _counts(self, rows: Places) -> Array:
        """Weight of the given transactions that contain each item."""
        starts, stops = self.row_indptr_[rows], self.row_indptr_[rows + 1]
        sizes = stops - starts
        # Places of all entries of these rows: a range for each row, end to end.
        entries = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        weights = np.repeat(self.row_weights_[rows], sizes)
        counts = np.bincount(self.row_items_[entries], weights, minlength=self.n_features_in_)
        return counts.astype(np.float64)  # of no entries at all it counts whole numbers

    def support(self, items: ArrayLike) -> float:
        """Number (or weight) of the transactions that contain all of some items; all of them if there are none."""
        check_is_fitted(self)
        chosen = check_columns(items, "items", self.n_features_in_)
        return float(self.row_weights_[self._rows_of(chosen, np.empty(0, dtype=np.int64))].sum())

    def _complete(self, ones: Any, zeros: Any) -> Array:
        answers = np.empty(ones.shape)
        for number, answer in enumerate(answers):
            answer[:] = self._scores(*(_items(pattern, number) for pattern in (ones, zeros)))
        return answers

    @abstractmethod
    def _scores(self, present: Places, absent: Places) -> Array:
        """Scores of all files, given those known to change and those known not to."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_fitted_state(self) -> None:
        if hasattr(self, "row_indptr_"):
            n_rows, n_items = len(self.row_weights_), self.n_features_in_
            check_compressed("rows", self.row_indptr_, self.row_items_, n_rows, n_items)
            check_compressed("columns", self.column_indptr_, self.column_rows_, n_items, n_rows)


def _items(pattern: Any, row: int) -> Places:
    return np.asarray(pattern.indices[pattern.indptr[row] : pattern.indptr[row + 1]], dtype=np.int64)


def _integers(matrix: Any) -> tuple[Places, Places]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
