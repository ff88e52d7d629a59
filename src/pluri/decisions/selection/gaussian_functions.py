r"""Set functions of Gaussian variables: entropy, information, and the variance that observations take away.

With the covariance matrix S of n variables (at n places, say) and a subset A::

    log determinant      log det S_AA                              gain log d_y
    entropy              1/2 log det(2 pi e S_AA)                  gain 1/2 log(2 pi e d_y)
    information gain     1/2 log det(I + S_AA / noise)             gain 1/2 log d_y of I + S / noise
    mutual information   I(X_A; X_rest) = H(X_rest) - H(X_rest | X_A)
                                                                   gain 1/2 log(d_y e_y)
    variance reduction   tr S - tr S_(all | A observed with noise)

Here d_y = var(y | A), the residual of S after a partial Cholesky factorisation with pivots A, and e_y the same residual
of the precision matrix P = S^-1: 1 / e_y = var(y | all others that are not chosen). Both take O(n) a pick and earlier
pick, so that k picks by mutual information cost O(n^3 + k^2 n) instead of O(k n^4) [1]_.

Mutual information is submodular, not monotone (nothing is learned about no places at all), and
H(X_A) - sum_a h(a | all others) is a monotone submodular function that is nowhere below it: its bounds are bounds of
the mutual information too. Variance reduction is monotone, but in general not submodular [2]_.

References
----------
.. [1] A. Krause, A. Singh and C. Guestrin, "Near-optimal sensor placements in Gaussian processes", Journal of Machine
   Learning Research 9, 2008.
.. [2] A. Das and D. Kempe, "Algorithms for subset selection in linear regression", STOC 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from pluri.decisions.selection.covariance_residuals import (
    NOTHING_LEFT,
    Residuals,
    checked_covariance,
    inverse,
    log_det,
)
from pluri.decisions.selection.set_function import Array, IntArray, SelectionState, SetFunction, checked_items
from pluri.validation import Number, check_value

LOG_2PIE = float(np.log(2.0 * np.pi * np.e))
#: Negative eigenvalues up to this share of the mean variance are rounding.
ROUNDING = 1e-9


class _Gaussian(SetFunction):
    """What functions of a covariance matrix share."""

    batch = 1 << 30  # all gains are one operation on vectors

    def __init__(self, covariance: Any, *, is_definite: bool = False) -> None:
        self.covariance = covariance if is_definite else checked_covariance(covariance)
        self.n_items = len(self.covariance)
        if not is_definite:
            scale = float(np.mean(np.diagonal(self.covariance))) or 1.0
            raised = self.covariance.copy()
            raised.flat[:: self.n_items + 1] += ROUNDING * scale
            if lapack.dpotrf(raised, lower=1, overwrite_a=1)[1]:
                raise ValueError("covariance must be positive semi-definite, got a negative eigenvalue")

    def _block(self, items: ArrayLike) -> Array:
        chosen = checked_items(items, self.n_items)
        return np.asarray(self.covariance[np.ix_(chosen, chosen)])

    def _log_left(self, residuals: Residuals, items: IntArray) -> Array:
        left, own = residuals.left[items], np.diagonal(residuals.matrix)[items]
        with np.errstate(divide="ignore"):
            return np.where(left > NOTHING_LEFT * own, np.log(left), -np.inf)


class LogDeterminant(_Gaussian):
    """Log determinant of a kernel over the chosen items: diversity, as in a determinantal point process.

    Parameters
    ----------
    kernel : array-like of shape (n_items, n_items)
        Symmetric and positive semi-definite.
    jitter : float, default=0.0
        Added to the diagonal; with 1 (``log det(I + L_AA)``) the function is monotone.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.decisions import LogDeterminant
    >>> f = LogDeterminant([[1.0, 0.5], [0.5, 1.0]])
    >>> round(f.value([0, 1]), 4), round(float(np.log(0.75)), 4)
    (-0.2877, -0.2877)
    """

    def __init__(self, kernel: Any, jitter: float = 0.0) -> None:
        check_value(jitter, "jitter", Number(least=0))
        super().__init__(kernel)
        if jitter:
            self.covariance = self.covariance + jitter * np.eye(self.n_items)
        # det S_(A + y) / det S_A is at least the least eigenvalue.
        self.monotone = True if jitter >= 1.0 else None

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        return log_det(self._block(items))

    def _begin(self) -> Residuals:
        return Residuals.of(self.covariance)

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        return self._log_left(state.memory, items)

    def _insert(self, item: int, state: SelectionState) -> None:
        state.memory.pivot(item)

    def last_gains(self, items: Sequence[int]) -> Array:
        """What each item adds to all the others."""
        try:
            variances = 1.0 / np.diagonal(inverse(self.covariance))
        except ValueError:  # some item is a combination of others
            return np.full(len(items), -np.inf)
        return np.asarray(np.log(variances[np.asarray(items, dtype=np.int64)]))


class GaussianEntropy(LogDeterminant):
    """Differential entropy of jointly Gaussian variables, in nats; neither monotone nor non-negative in general.

    Parameters
    ----------
    covariance : array-like of shape (n_items, n_items)

    Examples
    --------
    >>> from pluri.decisions import GaussianEntropy
    >>> round(GaussianEntropy([[1.0]]).value([0]), 4)  # 1/2 log(2 pi e)
    1.4189
    """

    def __init__(self, covariance: Any) -> None:
        super().__init__(covariance)

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        return 0.5 * (super().value(items) + LOG_2PIE * np.size(items))

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        return np.asarray(0.5 * (super()._gains(state, items) + LOG_2PIE))

    def last_gains(self, items: Sequence[int]) -> Array:
        """What each item adds to all the others."""
        return np.asarray(0.5 * (super().last_gains(items) + LOG_2PIE))


class InformationGain(LogDeterminant):
    """Information that noisy observations of some Gaussian variables give about all of them; monotone.

    Parameters
    ----------
    covariance : array-like of shape (n_items, n_items)
        Of the variables without noise.
    noise_variance : float
        Of an observation.

    Examples
    --------
    >>> from pluri.decisions import InformationGain
    >>> round(InformationGain([[1.0]], noise_variance=1.0).value([0]), 4)  # 1/2 log 2
    0.3466
    """

    def __init__(self, covariance: Any, noise_variance: float) -> None:
        check_value(noise_variance, "noise_variance", Number(above=0))
        super().__init__(checked_covariance(covariance) / noise_variance, jitter=1.0)

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        return 0.5 * super().value(items)

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        return 0.5 * super()._gains(state, items)

    def last_gains(self, items: Sequence[int]) -> Array:
        """What each item adds to all the others."""
        return 0.5 * super().last_gains(items)


class GaussianMutualInformation(_Gaussian):
    """Information that the variables of a subset give about all the others; zero for none and for all.

    Parameters
    ----------
    covariance : array-like of shape (n_items, n_items)
        Positive definite: with the noise of an observation.

    Examples
    --------
    >>> from pluri.decisions import GaussianMutualInformation
    >>> f = GaussianMutualInformation([[1.0, 0.6], [0.6, 1.0]])
    >>> round(f.value([0]), 4), f.value([0, 1])  # -1/2 log(1 - 0.6^2)
    (0.2231, 0.0)
    """

    monotone = False

    def __init__(self, covariance: Any) -> None:
        checked = checked_covariance(covariance)
        self.precision = inverse(checked)
        super().__init__(checked, is_definite=True)

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        chosen = checked_items(items, self.n_items)
        if len(chosen) in (0, self.n_items):
            return 0.0
        # The determinant over the rest is that of the whole times that of the precision over the chosen.
        return 0.5 * (log_det(self._block(chosen)) + log_det(self.precision[np.ix_(chosen, chosen)]))

    def _begin(self) -> tuple[Residuals, Residuals]:
        return Residuals.of(self.covariance), Residuals.of(self.precision)

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        given_chosen, given_rest = state.memory
        return np.asarray(0.5 * (self._log_left(given_chosen, items) + self._log_left(given_rest, items)))

    def _insert(self, item: int, state: SelectionState) -> None:
        for residuals in state.memory:
            residuals.pivot(item)

    def last_gains(self, items: Sequence[int]) -> Array:
        """What each item adds to all the others: less than nothing."""
        chosen = np.asarray(items, dtype=np.int64)
        return np.asarray(-0.5 * np.log(np.diagonal(self.covariance)[chosen] * np.diagonal(self.precision)[chosen]))

    def majorant(self) -> SetFunction:
        """H(X_A) - sum of h(a | all others) over A: monotone, submodular, nowhere below."""
        scale = np.sqrt(np.diagonal(self.precision))
        # The entropy of variables each scaled by its last standard deviation is H(X_A) less those entropies.
        return _HalfLogDeterminant(self.covariance * scale * scale[:, None])


class _HalfLogDeterminant(LogDeterminant):
    """Half the log determinant of a matrix that no item can shrink."""

    def __init__(self, covariance: Any) -> None:
        _Gaussian.__init__(self, covariance, is_definite=True)
        self.monotone = True

    def value(self, items: ArrayLike) -> float:
        return 0.5 * super().value(items)

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        return 0.5 * super()._gains(state, items)
