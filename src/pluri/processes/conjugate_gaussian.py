"""Gaussian likelihoods whose mean and covariance can be integrated out.

With n rows, ``k = k0 + n``, ``v = v0 + n``, ``m = (k0 m0 + sum x) / k`` and
``S = S0 + sum xx' + k0 m0 m0' - k mm'`` the density of the rows is
``pi^(-nD/2) (k0 / k)^(D/2) |S0|^(v0/2) / |S|^(v/2) prod_i Gamma((v + 1 - i) / 2) / Gamma((v0 + 1 - i) / 2)`` and the
next row is Student t with ``v - D + 1`` degrees of freedom, mean m and scale ``S (k + 1) / (k (v - D + 1))``.

References
----------
Murphy (2007), Conjugate Bayesian analysis of the Gaussian distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from pluri.processes.conjugate import AdditiveStatistics, as_positive, check_columns
from pluri.validation import Stored, check_positive

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NormalInverseWishart(AdditiveStatistics):
    """Gaussian rows; the covariance is inverse Wishart, the mean Gaussian around a prior mean.

    Statistics are kept around the prior mean, so that sums of squares do not cancel when the data are far from zero.

    Parameters
    ----------
    mean : array-like of shape (n_features,)
        Prior mean m0.
    strength : float
        How many rows the prior mean is worth, k0.
    df : float
        Degrees of freedom v0, above ``n_features - 1``.
    scale : array-like of shape (n_features, n_features)
        S0; the prior mean of the covariance is ``scale / (df - n_features - 1)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import NormalInverseWishart
    >>> gaussian = NormalInverseWishart(mean=[0.0, 0.0], strength=0.1, df=4.0, scale=np.eye(2))
    >>> float(gaussian.log_predictive(gaussian.empty(), np.array([0.2, -0.1])))
    -3.1484979
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "mean": Stored("n_features"),
        "scale": Stored("n_features", "n_features"),
    }

    mean: Any
    strength: float
    df: float
    scale: Any
    n_features: int = field(init=False)

    def __post_init__(self) -> None:
        mean = np.atleast_1d(np.asarray(self.mean, dtype=np.float64))
        scale = np.atleast_2d(np.asarray(self.scale, dtype=np.float64))
        d = len(mean)
        check_positive(self.strength, "strength")
        if mean.ndim != 1 or not np.isfinite(mean).all():
            raise ValueError(f"mean must be one axis of finite numbers, got {self.mean!r}")
        if not (np.ndim(self.df) == 0 and np.isfinite(self.df) and self.df > d - 1):
            raise ValueError(f"df must be a number above {d - 1}, got {self.df!r}")
        if scale.shape != (d, d) or not np.isfinite(scale).all() or not np.allclose(scale, scale.T):
            raise ValueError(f"scale must be a symmetric matrix of shape ({d}, {d}), got shape {scale.shape}")
        try:
            np.linalg.cholesky(scale)
        except np.linalg.LinAlgError:
            raise ValueError("scale must be positive definite, got a matrix that is not") from None
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "n_features", d)

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """Length of the statistics: number, sums, and sums of products."""
        return 1 + self.n_features + self.n_features**2

    def check(self, X: ArrayLike) -> Array:
        """Finite numbers, (n_samples, n_features)."""
        return check_columns(X, self.n_features)

    def statistics(self, X: Array) -> Array:
        """One, the row from the prior mean, and its products."""
        Y = np.asarray(X, dtype=np.float64) - self.mean
        return np.column_stack([np.ones(len(Y)), Y, (Y[:, :, None] * Y[:, None, :]).reshape(len(Y), -1)])

    def _posterior(self, statistics: Array) -> tuple[Array, Array, Array, Array]:
        """k, v, m - m0 and S; shapes (...), (...), (..., D) and (..., D, D)."""
        d = self.n_features
        n, total = statistics[..., 0], statistics[..., 1 : d + 1]
        k = self.strength + n
        centre = total / k[..., None]
        products = statistics[..., d + 1 :].reshape(*statistics.shape[:-1], d, d)
        scatter = self.scale + products - k[..., None, None] * centre[..., :, None] * centre[..., None, :]
        return k, self.df + n, centre, scatter

    def log_marginal(self, statistics: Array) -> Array:
        """Log density of the rows."""
        d = self.n_features
        n = statistics[..., 0]
        k, v, _, scatter = self._posterior(statistics)
        log_gammas = (
            gammaln((v[..., None] - np.arange(d)) / 2).sum(axis=-1) - gammaln((self.df - np.arange(d)) / 2).sum()
        )
        log_scale = self.df / 2 * np.linalg.slogdet(self.scale)[1] - v / 2 * np.linalg.slogdet(scatter)[1]
        return np.asarray(-n * d / 2 * math.log(math.pi) + d / 2 * np.log(self.strength / k) + log_scale + log_gammas)

    def log_predictive(self, statistics: Array, x: Array) -> Array:
        """Log density of one more row, a Student t."""
        d = self.n_features
        k, v, centre, scatter = self._posterior(statistics)
        freedom = v - d + 1
        factor = np.linalg.cholesky(scatter)
        away = (np.asarray(x, dtype=np.float64) - self.mean - centre)[..., None]
        distance = (np.linalg.solve(factor, away)[..., 0] ** 2).sum(axis=-1) * k / (k + 1)
        log_det = 2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1) + d * np.log((k + 1) / k)
        return np.asarray(
            gammaln((v + 1) / 2)
            - gammaln(freedom / 2)
            - (d * math.log(math.pi) + log_det + (v + 1) * np.log1p(distance)) / 2
        )

    def sample_posterior(self, rng: np.random.Generator, statistics: Array) -> tuple[Array, Array]:
        """Draw the mean and the covariance of one cluster."""
        d = self.n_features
        k, v, centre, scatter = self._posterior(statistics)
        # Bartlett: S^-1 = (C A)(C A)' with C C' the inverse scale; solve instead of inverting.
        bartlett = np.tril(rng.standard_normal((d, d)), -1)
        bartlett[np.diag_indices(d)] = np.sqrt(rng.chisquare(v - np.arange(d)))
        root = np.linalg.solve(bartlett, np.linalg.cholesky(scatter).T).T
        mean = self.mean + centre + root @ rng.standard_normal(d) / np.sqrt(k)
        return mean, root @ root.T

    def sample_data(self, rng: np.random.Generator, parameters: tuple[Array, Array], n: int) -> Array:
        """Draw n rows."""
        mean, covariance = parameters
        return np.asarray(mean + rng.standard_normal((n, self.n_features)) @ np.linalg.cholesky(covariance).T)


@dataclass(frozen=True, eq=False)
class NormalGamma(AdditiveStatistics):
    """Independent Gaussian columns; precisions are Gamma(shape, rate), means Gaussian around a prior mean.

    The precision of a mean is `strength` times that of its column.

    Parameters
    ----------
    n_features : int
    mean : float or array-like of shape (n_features,), default=0.0
    strength, shape : float, default=1.0
    rate : float or array-like of shape (n_features,), default=1.0

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import NormalGamma
    >>> gaussian = NormalGamma(1)
    >>> float(gaussian.log_predictive(gaussian.empty(), np.array([0.0])))
    -1.3862944
    """

    n_features: int
    mean: Any = 0.0
    strength: float = 1.0
    shape: float = 1.0
    rate: Any = 1.0

    def __post_init__(self) -> None:
        for name in ("strength", "shape"):
            check_positive(getattr(self, name), name)
        rate = as_positive(self.rate, self.n_features, "rate")
        object.__setattr__(self, "rate", float(self.rate) if np.ndim(self.rate) == 0 else rate)
        mean = np.asarray(self.mean, dtype=np.float64)
        if mean.shape not in ((), (self.n_features,)) or not np.isfinite(mean).all():
            raise ValueError(f"mean must be a finite number or {self.n_features} of them, got {self.mean!r}")

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """Length of the statistics: number, sums, and sums of squares."""
        return 1 + 2 * self.n_features

    def check(self, X: ArrayLike) -> Array:
        """Finite numbers, (n_samples, n_features)."""
        return check_columns(X, self.n_features)

    def statistics(self, X: Array) -> Array:
        """One, the row from the prior mean, and its squares."""
        Y = np.asarray(X, dtype=np.float64) - np.asarray(self.mean)
        return np.column_stack([np.ones(len(Y)), Y, Y**2])

    def _posterior(self, statistics: Array) -> tuple[Array, Array, Array, Array]:
        """Strength, mean from the prior mean, shape and rate."""
        d = self.n_features
        n, total, squares = statistics[..., :1], statistics[..., 1 : d + 1], statistics[..., d + 1 :]
        strength = self.strength + n
        centre = total / strength
        return strength, centre, self.shape + n / 2, self.rate + (squares - strength * centre**2) / 2

    def log_marginal(self, statistics: Array) -> Array:
        """Log density of the rows."""
        k, _, shape, rate = self._posterior(statistics)
        terms = gammaln(shape) - gammaln(self.shape) + self.shape * np.log(self.rate) - shape * np.log(rate)
        terms = terms + (np.log(self.strength / k) - statistics[..., :1] * math.log(2 * math.pi)) / 2
        return np.asarray(terms.sum(axis=-1))

    def log_predictive(self, statistics: Array, x: Array) -> Array:
        """Log density of one more row: a Student t in each column."""
        k, centre, shape, rate = self._posterior(statistics)
        spread = 2 * rate * (k + 1) / k
        away = np.asarray(x, dtype=np.float64) - np.asarray(self.mean) - centre
        terms = gammaln(shape + 0.5) - gammaln(shape) - 0.5 * np.log(math.pi * spread)
        return np.asarray((terms - (shape + 0.5) * np.log1p(away**2 / spread)).sum(axis=-1))

    def sample_posterior(self, rng: np.random.Generator, statistics: Array) -> tuple[Array, Array]:
        """Draw the means and the variances of one cluster."""
        k, centre, shape, rate = self._posterior(statistics)
        variance = rate / rng.gamma(np.broadcast_to(shape, rate.shape))
        return np.asarray(self.mean) + centre + np.sqrt(variance / k) * rng.standard_normal(rate.shape), variance

    def sample_data(self, rng: np.random.Generator, parameters: tuple[Array, Array], n: int) -> Array:
        """Draw n rows."""
        mean, variance = parameters
        return np.asarray(mean + np.sqrt(variance) * rng.standard_normal((n, self.n_features)))
