"""The variance that observations of a Gaussian field take away: monotone, but in general not submodular [1]_.

References
----------
.. [1] A. Das and D. Kempe, "Algorithms for subset selection in linear regression", STOC 2008.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.decisions.selection.covariance_residuals import NOTHING_LEFT
from pluri.decisions.selection.gaussian_functions import _Gaussian
from pluri.decisions.selection.set_function import Array, IntArray, SelectionState, checked_items
from pluri.validation import Number, check_value


class VarianceReduction(_Gaussian):
    """How much observations of some Gaussian variables lower the variances of all of them, in total.

    Monotone, but in general not submodular: a greedy choice has no guarantee, and its upper bound is that of principal
    components: k observations cannot take away more than the k largest eigenvalues.

    Parameters
    ----------
    covariance : array-like of shape (n_items, n_items)
        Of the variables without noise.
    noise_variance : float, default=0.0
        Of an observation.

    Examples
    --------
    >>> from pluri.decisions import VarianceReduction
    >>> VarianceReduction([[1.0, 0.5], [0.5, 1.0]]).value([0])
    1.25
    """

    monotone = True
    submodular = False

    def __init__(self, covariance: Any, noise_variance: float = 0.0) -> None:
        check_value(noise_variance, "noise_variance", Number(least=0))
        super().__init__(covariance)
        self.noise_variance = float(noise_variance)

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        chosen = checked_items(items, self.n_items)
        observed = self._block(chosen) + self.noise_variance * np.eye(len(chosen))
        across = self.covariance[:, chosen]
        return float(np.sum(across @ np.linalg.pinv(observed, hermitian=True) * across))

    def _begin(self) -> Array:
        return self.covariance.copy()  # given what was observed

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        left = state.memory
        variance = np.diagonal(left)[items] + self.noise_variance
        own = np.diagonal(self.covariance)[items] + self.noise_variance
        squares = np.einsum("ij,ij->j", left[:, items], left[:, items])
        return np.divide(squares, variance, out=np.zeros(len(items)), where=variance > NOTHING_LEFT * own)

    def _insert(self, item: int, state: SelectionState) -> None:
        left = state.memory
        column, variance = left[item].copy(), left[item, item] + self.noise_variance
        if variance > 0:
            left -= np.outer(column / variance, column)

    def size_bounds(self, size: int) -> Array:
        """Sums of the largest eigenvalues, and what observing everything would bring."""
        largest = np.linalg.eigvalsh(self.covariance)[::-1][:size].clip(min=0.0)
        if self.noise_variance:
            # A unit observation of the direction of an eigenvalue v brings v^2 / (v + noise).
            largest = largest**2 / (largest + self.noise_variance)
        return np.minimum(np.concatenate([[0.0], np.cumsum(largest)]), self.value(np.arange(self.n_items)))
