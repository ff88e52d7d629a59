"""Taking chosen rows out of a data set, or out of whatever stands for its rows: what selectors of rows share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.processes.dpp.kernel_forms import IntArray


class ChosenRows:
    """Methods of a fitted selector of rows, whose choice is `_chosen` among `n_samples_fit_` rows."""

    n_samples_fit_: int

    @property
    def _chosen(self) -> IntArray:
        """Chosen rows in order."""
        raise NotImplementedError  # abstract

    def _takes_sparse(self) -> bool:
        return True

    def transform(self, X: Any) -> Any:
        """The chosen rows of X in the order of the choice: an array of an array, a data frame of a data frame.

        Parameters
        ----------
        X : array_like, sparse matrix or data frame (n_samples_fit_, n_features), or a sequence (n_samples_fit_,)
            The rows of the fit, or anything that stands for them one by one. A matrix of numbers must have the columns
            of the fit; texts, labels and tables of other things are taken as they are.
        """
        check_is_fitted(self)
        rows = X
        if not self._stands_for_rows(X):
            rows = validate_data(self, X, accept_sparse=self._takes_sparse() and "csr", dtype=None, reset=False)
        n_rows = rows.shape[0] if hasattr(rows, "shape") else len(rows)
        if n_rows != self.n_samples_fit_:
            raise ValueError(
                f"X must have the {self.n_samples_fit_} rows among which fit has chosen, got {n_rows}: "
                "the choice is among given rows, fit again for others"
            )
        if hasattr(X, "iloc"):  # with its index, and with columns of different types
            return X.iloc[self._chosen]
        if isinstance(rows, list | tuple):
            return [rows[index] for index in self._chosen]
        return rows[self._chosen]

    def _stands_for_rows(self, X: Any) -> bool:
        """Whether X is no matrix of numbers, but something else with rows."""
        if issparse(X):
            return False
        if hasattr(X, "iloc") and X.ndim == 2:
            return not all(getattr(dtype, "kind", "O") in "biufc" for dtype in X.dtypes)
        try:
            values = np.asarray(X)
        except ValueError:  # rows of different lengths
            return isinstance(X, list | tuple)
        if values.ndim == 0 or not (hasattr(X, "iloc") or isinstance(X, np.ndarray | list | tuple)):
            return False
        is_number = values.dtype.kind in "biufc"
        # (A single row of numbers is more likely a mistake, unless it is as long as the rows are many.)
        return not is_number or values.ndim > 2 or (values.ndim == 1 and len(values) == self.n_samples_fit_)

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Which rows were chosen: a mask (n_samples_fit_,), or their sorted numbers."""
        check_is_fitted(self)
        if indices:
            return np.sort(self._chosen)
        mask = np.zeros(self.n_samples_fit_, dtype=bool)
        mask[self._chosen] = True
        return mask
