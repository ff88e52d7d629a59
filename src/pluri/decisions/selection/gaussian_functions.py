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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack

from pluri.decisions.selection.set_function import Array, IntArray, SelectionState, SetFunction, checked_items
from pluri.validation import Number, check_value

LOG_2PIE = float(np.log(2.0 * np.pi * np.e))
#: A residual variance below this share of the variance itself is rounding.
NOTHING_LEFT = 1e-12
#: Negative eigenvalues up to this share of the mean variance are rounding.
ROUNDING = 1e-9


@dataclass
class Residuals:
    """What is left of the diagonal of a matrix after a partial Cholesky factorisation.

    Attributes
    ----------
    matrix : (n, n)
    left : (n,)
        Schur complement's diagonal, given the pivots so far.
    columns : list of (n,)
        Columns of the factor.
    """

    matrix: Array
    left: Array
    columns: list[Array]

    @classmethod
    def of(cls, matrix: Array) -> Residuals:
        """Before the first pivot."""
        return cls(matrix, np.diagonal(matrix).copy(), [])

    def pivot(self, item: int) -> None:
        """Change the record: one more pivot."""
        column = self.matrix[item].copy()
        for earlier in self.columns:
            column -= earlier[item] * earlier
        column /= np.sqrt(self.left[item])
        self.columns.append(column)
        self.left -= column**2
        np.maximum(self.left, 0.0, out=self.left)


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
        return _log_det(self._block(items))

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
        return 0.5 * (_log_det(self._block(chosen)) + _log_det(self.precision[np.ix_(chosen, chosen)]))

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


def checked_covariance(covariance: Any) -> Array:
    """A finite symmetric matrix without negative variances."""
    found = np.asarray(covariance, dtype=np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not len(found):
        raise ValueError(f"covariance must be a square matrix, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("covariance must be finite, got NaN or infinity")
    gap = float(np.abs(found - found.T).max())
    if gap == 0 and (np.diagonal(found) >= 0).all():
        return found
    if gap > 1e-8 * max(1.0, float(np.abs(found).max())):
        raise ValueError(f"covariance must be symmetric, got entries that differ by {gap:.3g}")
    if (np.diagonal(found) < 0).any():
        raise ValueError(f"covariance must have non-negative variances, got {np.diagonal(found).min():.3g}")
    return (found + found.T) / 2.0


def inverse(covariance: Array) -> Array:
    """Inverse of a positive definite matrix, by its Cholesky factor."""
    # A symmetric matrix is its own transpose, so that LAPACK, which wants columns, need not copy it into another order.
    factor, failed = lapack.dpotrf(covariance.T.copy(order="F"), lower=1, clean=0, overwrite_a=1)
    if failed == 0:
        found, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise ValueError(
            "covariance must be positive definite, got one that is not: add the variance of the noise to its diagonal"
        )
    upper = np.triu(found.T)  # the same numbers, in C order
    whole = upper + upper.T
    np.fill_diagonal(whole, np.diagonal(upper))
    return np.asarray(whole)


def _log_det(block: Array) -> float:
    if not len(block):
        return 0.0
    sign, value = np.linalg.slogdet(block)
    return float(value) if sign > 0 else -np.inf
