"""Transactions kept as they are, by rows and by columns: what counting models answer from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pluri.cochange.models.counting import Array, CommitRows, Places
from pluri.factors.binary_completion import BinaryCompletionMixin, check_columns
from pluri.validation import Stored, check_compressed
from pluri.validation.estimator import Estimator


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
    _input_tags: ClassVar[Mapping[str, bool]] = {"sparse": True}

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
        self.frequencies_ = self._rows.counts(np.arange(len(weights)))
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters that make no sense."""

    @property
    def _rows(self) -> CommitRows:
        return CommitRows.of(vars(self))

    def rows_with(self, item: int) -> Places:
        """Numbers of the transactions that contain an item."""
        return self._rows.rows_with(item)

    def support(self, items: ArrayLike) -> float:
        """Number (or weight) of the transactions that contain all of some items; all of them if there are none."""
        check_is_fitted(self)
        chosen = check_columns(items, "items", self.n_features_in_)
        return float(self.row_weights_[self._rows.rows_of(chosen, np.empty(0, dtype=np.int64))].sum())

    def _complete(self, ones: Any, zeros: Any) -> Array:
        answers = np.empty(ones.shape)
        for number, answer in enumerate(answers):
            answer[:] = self._scores(*(_items(pattern, number) for pattern in (ones, zeros)))
        return answers

    @abstractmethod
    def _scores(self, present: Places, absent: Places) -> Array:
        """Scores of all files, given those known to change and those known not to."""

    def _check_fitted_state(self) -> None:
        if hasattr(self, "row_indptr_"):
            n_rows, n_items = len(self.row_weights_), self.n_features_in_
            check_compressed("rows", self.row_indptr_, self.row_items_, n_rows, n_items)
            check_compressed("columns", self.column_indptr_, self.column_rows_, n_items, n_rows)


def _items(pattern: Any, row: int) -> Places:
    return np.asarray(pattern.indices[pattern.indptr[row] : pattern.indptr[row + 1]], dtype=np.int64)


def _integers(matrix: Any) -> tuple[Places, Places]:
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
