"""Missing values of rows filled by what a mixture expects of them, given what is seen of the row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]


class ImputesRows:
    """The method `impute` of mixtures whose family can fill rows."""

    predict_proba: Callable[[Any], Array]
    _model: Callable[[], Any]
    _check_rows: Callable[..., Any]

    def impute(self, X: Any, *, return_std: bool = False) -> Any:
        """Fill in missing values by their expectation under the mixture, given what is observed of the row.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            NaN marks a missing value.
        return_std : bool, default=False
            Whether to give the standard deviations too, 0 where a value was seen. The parameters are taken as known.

        Returns
        -------
        filled : array of shape (n_samples, n_features)
            Of counts the expected number.
        std : array of shape (n_samples, n_features)
            If `return_std`.

        Examples
        --------
        >>> import numpy as np
        >>> from pluri.mixtures import GaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2)) + np.repeat([[0.0, 0.0], [9.0, 9.0]], 100, axis=0)
        >>> model = GaussianMixture(2, random_state=0).fit(X)
        >>> filled, std = model.impute([[9.5, np.nan], [np.nan, 0.1]], return_std=True)
        >>> bool(filled[0, 1] > 8), bool(filled[1, 0] < 1), bool(0.7 < std[0, 1] < 1.3)
        (True, True, True)
        """
        problem, params = self._model()
        rows = self._check_rows(X, fitting=False)
        if sparse.issparse(rows):
            raise TypeError("X must be dense to have missing values: what a sparse matrix does not store is zero")
        posterior = self.predict_proba(X)
        return problem.family.impute(params.components, problem.family.prepare(rows), posterior).answer(return_std)
