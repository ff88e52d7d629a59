"""One interface for all methods that find a sparse code: ``fit(Phi, y).coef_``, as scikit-learn's regressors have.

The rows of the matrix are measurements, its columns measured atoms, and there is no intercept: ``y = Phi w + noise``.
`sparse_codes` does many rows with any of the methods, or with any regressor of scikit-learn that has ``coef_``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from pluri.validation import Stored, check_parameters
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

#: Larger numbers could not be squared and summed.
LARGEST = 1e100


class SparseRegression(RegressorMixin, Estimator):
    """Base of the methods: checks, `fit` and `predict`; a method gives `_solve`."""

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {"coef_": Stored("n_features_in_")}

    @abstractmethod
    def _solve(self, Phi: Array, y: Array) -> Array:
        """The code (n_atoms,) of measurements y (n_measurements,); stores whatever else the method finds out."""

    def fit(self, X: Any, y: Any) -> Self:
        """Find the code of one row of measurements.

        Parameters
        ----------
        X : array-like of shape (n_measurements, n_atoms)
            The measured dictionary, ``Phi = S D'``.
        y : array-like of shape (n_measurements,)

        Returns
        -------
        self : object
        """
        check_parameters(self)
        Phi, values = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        values = np.asarray(values, dtype=np.float64)
        for name, array in (("X", Phi), ("y", values)):
            if float(np.abs(array).max()) > LARGEST:
                raise ValueError(f"{name} must not exceed {LARGEST:g} in size, got {np.abs(array).max():.3g}")
        self.coef_ = np.asarray(self._solve(Phi, values), dtype=np.float64)
        return self

    def predict(self, X: Any) -> Array:
        """Measurements that the code stands for: ``X @ coef_``."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False) @ self.coef_)


def sparse_codes(method: Any, Y: Any, Phi: Any) -> Array:
    """Codes of many rows of measurements by one method.

    Parameters
    ----------
    method : estimator
        One of the baselines, or a regressor of scikit-learn with ``coef_`` (made with ``fit_intercept=False``). It is
        cloned and left as it is.
    Y : array-like of shape (n_samples, n_measurements)
    Phi : array-like of shape (n_measurements, n_atoms) or (n_samples, n_measurements, n_atoms)
        The measured dictionary: one for all rows, or one for each.

    Returns
    -------
    array of shape (n_samples, n_atoms)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.dictionaries.sensing import StOMP, sparse_codes
    >>> rng = np.random.default_rng(0)
    >>> Phi = rng.normal(size=(3, 20, 40))  # 40 atoms, 20 measurements, each of three rows measured by itself
    >>> codes = np.zeros((3, 40))
    >>> codes[[0, 1, 2], [4, 7, 30]] = 5.0
    >>> found = sparse_codes(StOMP(), np.einsum("ink,ik->in", Phi, codes), Phi)
    >>> bool(np.allclose(found, codes))
    True
    """
    values = check_array(Y, dtype=np.float64, input_name="Y")
    matrices = check_array(Phi, dtype=np.float64, allow_nd=True, input_name="Phi")
    if matrices.ndim not in (2, 3) or matrices.shape[-2] != values.shape[1]:
        raise ValueError(
            f"Phi must have shape ({values.shape[1]}, n_atoms) or ({len(values)}, {values.shape[1]}, n_atoms), "
            f"got {matrices.shape}"
        )
    if matrices.ndim == 3 and len(matrices) != len(values):
        raise ValueError(f"Phi must be one for each of {len(values)} rows, or one for all, got {len(matrices)}")
    if getattr(method, "fit_intercept", False):
        raise ValueError("method must be made with fit_intercept=False: codes have no room for an intercept")
    copy = clone(method)
    many = getattr(copy, "_solve_many", None)
    if many is not None:
        check_parameters(copy)
        return np.asarray(many(matrices, values))
    found = np.empty((len(values), matrices.shape[-1]))
    for i, row in enumerate(values):
        found[i] = copy.fit(matrices if matrices.ndim == 2 else matrices[i], row).coef_
    return found
