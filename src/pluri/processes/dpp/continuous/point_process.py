"""What determinantal point processes in space have in common: eigenvalues, densities and correlations.

Densities are with respect to the Poisson process of unit rate on the base measure: ``det(L_X) / prod_n (1 + lambda_n)``
for an unordered set X, and ``det(L_X) / e_k(lambda)`` where the number k of points is fixed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from pluri.processes.dpp.kernel_forms import Array
from pluri.processes.dpp.structured.directions import chances, check_size, log_normalizer
from pluri.validation import RandomState


class PointProcess(ABC):
    """A determinantal point process over a space, of finite rank to working precision."""

    log_odds: Array

    @property
    @abstractmethod
    def n_dimensions(self) -> int:
        """Number of coordinates."""

    @abstractmethod
    def kernel(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """``L(x, y)`` of all pairs."""

    @abstractmethod
    def base_density(self, X: ArrayLike) -> Array:
        """Density of the base measure with respect to volume."""

    @abstractmethod
    def sample(
        self, n_samples: int | None = None, size: int | None = None, random_state: RandomState = None
    ) -> Array | list[Array]:
        """Draw sets of points."""

    @abstractmethod
    def _marginal(self, X: Array, Y: Array) -> Array: ...

    @abstractmethod
    def _marginal_diagonal(self, X: Array) -> Array: ...

    @abstractmethod
    def _log_determinant(self, points: Array) -> float: ...

    @property
    def rank(self) -> int:
        """Number of eigenvalues: no set has more points."""
        return int(self.log_odds.size)

    @property
    def eigenvalues(self) -> Array:
        """Eigenvalues of the kernel as an integral operator, largest first."""
        return np.asarray(np.exp(self.log_odds))

    @property
    def log_normalizer(self) -> float:
        """``log prod_n (1 + lambda_n)``."""
        return log_normalizer(self.log_odds, None)

    @property
    def expected_size(self) -> float:
        """Mean number of points."""
        return float(chances(self.log_odds, None).sum())

    def log_prob(self, X: ArrayLike, size: int | None = None) -> float:
        """Log density of a set of points with respect to the unit-rate Poisson process on the base measure.

        With ``size`` it is that of the process with a fixed number of points: minus infinity for another number.
        """
        points = as_points(X, self.n_dimensions)
        check_size(size, self.rank)
        if size is not None and len(points) != size:
            return -np.inf
        return self._log_determinant(points) - log_normalizer(self.log_odds, size)

    def marginal_kernel(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """``K(x, y)``: the expected number of points at x, for each unit of the base measure, is ``K(x, x)``."""
        return self._marginal(as_points(X, self.n_dimensions), as_points(Y, self.n_dimensions))

    def intensity(self, X: ArrayLike) -> Array:
        """Expected number of points for each unit of volume."""
        points = as_points(X, self.n_dimensions)
        return np.asarray(self._marginal_diagonal(points) * self.base_density(points))

    def pair_correlation(self, X: ArrayLike, Y: ArrayLike) -> Array:
        """``1 - K(x, y)^2 / (K(x, x) K(y, y))`` of all pairs: 1 far apart, 0 where they meet."""
        one, other = as_points(X, self.n_dimensions), as_points(Y, self.n_dimensions)
        both = self._marginal_diagonal(one)[:, None] * self._marginal_diagonal(other)
        return np.asarray(1.0 - self._marginal(one, other) ** 2 / both)


def as_points(X: ArrayLike, n_dimensions: int, name: str = "X") -> Array:
    """Points as rows; a vector is one coordinate of many points where there is only one coordinate."""
    points = np.asarray(X, dtype=np.float64)
    if points.ndim == 1 and (n_dimensions == 1 or points.size == 0):
        points = points.reshape(-1, n_dimensions)
    if points.ndim != 2 or points.shape[1] != n_dimensions:
        raise ValueError(f"{name} must be points with {n_dimensions} coordinates, got shape {np.shape(X)}")
    if not np.isfinite(points).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return points


def scale_odds(log_odds: Array, expected_size: float) -> float:
    """The factor of the odds that makes ``expected_size`` the mean number of points."""
    from scipy.optimize import brentq

    if not 0 < expected_size < log_odds.size:
        raise ValueError(
            f"expected_size must lie between 0 and the rank of the kernel ({log_odds.size}), got {expected_size!r}"
        )

    def excess(log_factor: float) -> float:
        return float(chances(log_odds + log_factor, None).sum()) - expected_size

    low, high = -1.0, 1.0
    while excess(low) > 0:
        low *= 2.0
    while excess(high) < 0:
        high *= 2.0
    return float(np.exp(brentq(excess, low, high, xtol=1e-13)))
