"""Linear regression with several targets whose coefficients and noise covariance can be integrated out.

``y = B p + noise``, noise ``N(0, Sigma)``, ``Sigma ~ inverse Wishart(df, scale)`` and, given it, the coefficients
``B ~ matrix normal(mean, Sigma, precision^-1)``. With ``z = (p, y - mean p)`` all that data tell is the number of rows
and ``sum zz'``. The Cholesky factor L of ``blockdiag(precision, scale) + sum zz'``, predictors first, has the posterior
in its corners: ``L_p L_p'`` is the precision of the coefficients, ``L_yp L_p^-1`` their mean (from the prior mean) and
``L_y L_y'`` the scatter of the noise; and with ``w = L^-1 z`` the next row has a Student t density that depends on
``|w_p|^2`` and ``|w_y|^2`` alone. With the single predictor 1 this is `NormalInverseWishart`.

References
----------
West and Harrison (1997), Bayesian forecasting and dynamic models, chapter 16.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from pluri.processes.conjugate import AdditiveStatistics, check_columns
from pluri.processes.conjugate_clusters.records import safe_cholesky
from pluri.validation import Stored

Array = NDArray[np.float64]


class Regressions(NamedTuple):
    """Parameters of several clusters: coefficients (K, d, p), and roots (K, d, d) of the noise covariances."""

    coefficients: Array
    root: Array


@dataclass(frozen=True, eq=False)
class MatrixNormalInverseWishart(AdditiveStatistics):
    """Rows of predictors and targets; targets are a linear function of the predictors, and Gaussian noise.

    A row is the predictors followed by the targets. Densities are those of the targets given the predictors.

    Parameters
    ----------
    mean : array-like of shape (n_targets, n_predictors)
        Prior mean of the coefficients.
    precision : array-like of shape (n_predictors, n_predictors)
        Of the coefficients of one target, in units of its noise variance.
    df : float
        Degrees of freedom of the noise covariance, above ``n_targets - 1``.
    scale : array-like of shape (n_targets, n_targets)
        The prior mean of the noise covariance is ``scale / (df - n_targets - 1)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes import MatrixNormalInverseWishart
    >>> line = MatrixNormalInverseWishart(mean=[[0.0, 0.0]], precision=np.eye(2), df=3.0, scale=[[1.0]])
    >>> seen = line.statistics(np.array([[1.0, 0.0, 1.0], [1.0, 1.0, 2.0], [1.0, 2.0, 3.0]])).sum(axis=0)
    >>> line.posterior_mean(seen).round(2)
    array([[0.8 , 0.93]])
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "mean": Stored("n_targets", "n_predictors"),
        "precision": Stored("n_predictors", "n_predictors"),
        "scale": Stored("n_targets", "n_targets"),
    }

    mean: Any
    precision: Any
    df: float
    scale: Any
    n_predictors: int = field(init=False)
    n_targets: int = field(init=False)
    n_features: int = field(init=False)

    def __post_init__(self) -> None:
        mean = np.atleast_2d(np.asarray(self.mean, dtype=np.float64))
        if mean.ndim != 2 or not np.isfinite(mean).all():
            raise ValueError(f"mean must be a matrix of finite numbers, got {self.mean!r}")
        d, p = mean.shape
        if not (np.ndim(self.df) == 0 and np.isfinite(self.df) and self.df > d - 1):
            raise ValueError(f"df must be a number above {d - 1}, got {self.df!r}")
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "precision", _positive_definite(self.precision, p, "precision"))
        object.__setattr__(self, "scale", _positive_definite(self.scale, d, "scale"))
        object.__setattr__(self, "n_predictors", p)
        object.__setattr__(self, "n_targets", d)
        object.__setattr__(self, "n_features", p + d)

    @property
    def n_statistics(self) -> int:  # type: ignore[override]
        """Length of the statistics: number of rows, and sums of products."""
        return 1 + self.n_features**2

    def check(self, X: ArrayLike) -> Array:
        """Finite numbers, (n_samples, n_predictors + n_targets)."""
        return check_columns(X, self.n_features)

    def centered(self, X: Array) -> Array:
        """Rows with their targets taken from what the prior mean predicts."""
        Z = np.array(X, dtype=np.float64)
        Z[..., self.n_predictors :] -= Z[..., : self.n_predictors] @ self.mean.T
        return Z

    def statistics(self, X: Array) -> Array:
        """One, and the products of the centered row."""
        Z = self.centered(X)
        return np.column_stack([np.ones(len(Z)), (Z[:, :, None] * Z[:, None, :]).reshape(len(Z), -1)])

    def weighted_sums(self, X: Array, weights: Array) -> Array:
        """Statistics of clusters given the weight of each row in each, (n_samples, n_clusters)."""
        Z = self.centered(X)
        products = [((Z * weights[:, k : k + 1]).T @ Z).ravel() for k in range(weights.shape[1])]
        return np.column_stack([weights.sum(axis=0), np.reshape(products, (weights.shape[1], -1))])

    def prior_matrix(self) -> Array:
        """``blockdiag(precision, scale)``."""
        p = self.n_predictors
        out = np.zeros((self.n_features, self.n_features))
        out[:p, :p], out[p:, p:] = self.precision, self.scale
        return out

    def _posterior(self, statistics: Array) -> tuple[Array, Array, Array, Array]:
        """Degrees of freedom (...), L (..., q, q), and the sums of the logs of the diagonals of L_p and L_y."""
        q, p = self.n_features, self.n_predictors
        products = statistics[..., 1:].reshape(*statistics.shape[:-1], q, q)
        factor = safe_cholesky(self.prior_matrix() + products)
        logs = np.log(np.diagonal(factor, axis1=-2, axis2=-1))
        return self.df + statistics[..., 0], factor, logs[..., :p].sum(axis=-1), logs[..., p:].sum(axis=-1)

    def _log_gammas(self, df: Any) -> Array:
        return np.asarray(gammaln((np.asarray(df)[..., None] - np.arange(self.n_targets)) / 2).sum(axis=-1))

    def log_marginal(self, statistics: Array) -> Array:
        """Log density of the targets."""
        d, n = self.n_targets, statistics[..., 0]
        df, _, log_p, log_y = self._posterior(statistics)
        _, _, prior_p, prior_y = self._posterior(self.empty())
        return np.asarray(
            -n * d / 2 * math.log(math.pi) + d * (prior_p - log_p) + self.df * prior_y - df * log_y
            + self._log_gammas(df) - self._log_gammas(self.df)
        )  # fmt: skip

    def _whitened(self, factor: Array, X: Array) -> tuple[Array, Array]:
        """``|w_p|^2`` and ``|w_y|^2`` of rows under one factor."""
        w = self.centered(np.atleast_2d(X)) @ np.linalg.inv(factor).T
        w *= w
        return w[:, : self.n_predictors].sum(axis=1), w[:, self.n_predictors :].sum(axis=1)

    def log_predictive(self, statistics: Array, x: Array) -> Array:
        """Log density of the targets of one more row, a Student t."""
        d = self.n_targets
        df, factor, _, log_y = self._posterior(statistics)
        pairs = [self._whitened(one, x) for one in factor.reshape(-1, *factor.shape[-2:])]
        in_p, in_y = (np.reshape([pair[side][0] for pair in pairs], df.shape) for side in (0, 1))
        constant = gammaln((df + 1) / 2) - gammaln((df - d + 1) / 2) - d / 2 * math.log(math.pi) - log_y
        return np.asarray(constant - d / 2 * np.log1p(in_p) - (df + 1) / 2 * np.log1p(in_y / (1 + in_p)))

    def log_predictive_table(self, statistics: Array, X: Array) -> Array:
        """Log density of the targets of each row after the rows of each cluster: (n_samples, n_clusters)."""
        d = self.n_targets
        df, factor, _, log_y = self._posterior(statistics)
        constant = gammaln((df + 1) / 2) - gammaln((df - d + 1) / 2) - d / 2 * math.log(math.pi) - log_y
        out = np.empty((len(X), len(statistics)))
        for k in range(len(statistics)):
            in_p, in_y = self._whitened(factor[k], X)
            out[:, k] = constant[k] - d / 2 * np.log1p(in_p) - (df[k] + 1) / 2 * np.log1p(in_y / (1 + in_p))
        return out

    def posterior_mean(self, statistics: Array) -> Array:
        """Posterior means of the coefficients: (..., n_targets, n_predictors)."""
        p = self.n_predictors
        factor = self._posterior(statistics)[1]
        return np.asarray(self.mean + factor[..., p:, :p] @ np.linalg.inv(factor[..., :p, :p]))

    def sample_posterior(self, rng: np.random.Generator, statistics: Array) -> tuple[Array, Array]:
        """Draw the coefficients and the noise covariance of one cluster."""
        coefficients, root = (array[0] for array in self.draw_parameters(rng, statistics[None]))
        return coefficients, root @ root.T

    def draw_parameters(self, rng: np.random.Generator, statistics: Array) -> Regressions:
        """Draw the parameters of clusters given their statistics, (n_clusters, n_statistics)."""
        d, p, n_clusters = self.n_targets, self.n_predictors, len(statistics)
        df, factor, _, _ = self._posterior(statistics)
        # Bartlett, as for Gaussian clusters: a root of the covariance from the factor of its scatter.
        bartlett = np.tril(rng.standard_normal((n_clusters, d, d)), -1)
        bartlett[:, range(d), range(d)] = np.sqrt(rng.chisquare(df[:, None] - np.arange(d)))
        root = np.swapaxes(np.linalg.solve(bartlett, np.swapaxes(factor[:, p:, p:], 1, 2)), 1, 2)
        noise = root @ rng.standard_normal((n_clusters, d, p))
        inverse = np.linalg.inv(factor[:, :p, :p])
        return Regressions(self.mean + (factor[:, p:, :p] + noise) @ inverse, root)

    def log_density(self, parameters: Regressions, X: Array) -> Array:
        """Log density of the targets of each row given the parameters of each cluster: (n_samples, n_clusters)."""
        inverse = np.linalg.inv(parameters.root)
        whitening = np.concatenate([-inverse @ parameters.coefficients, inverse], axis=2)
        out = np.empty((len(whitening), len(X)))
        for k, own in enumerate(whitening):
            whitened = X @ own.T
            np.einsum("ij,ij->i", whitened, whitened, out=out[k])
        log_det = 2 * np.linalg.slogdet(parameters.root)[1] + self.n_targets * np.log(2 * np.pi)
        out += log_det[:, None]
        out *= -0.5
        return np.ascontiguousarray(out.T)

    def expected_log_density(self, statistics: Array, X: Array) -> Array:
        """``E_q log p(targets | predictors)`` under the posterior q of each cluster: (n_samples, n_clusters)."""
        d = self.n_targets
        df, factor, _, log_y = self._posterior(statistics)
        constant = 0.5 * (self._log_precision(df, log_y) - d * np.log(2 * np.pi))
        out = np.empty((len(X), len(statistics)))
        for k in range(len(statistics)):
            in_p, in_y = self._whitened(factor[k], X)
            out[:, k] = constant[k] - 0.5 * (d * in_p + df[k] * in_y)
        return out

    def _log_precision(self, df: Array, log_y: Array) -> Array:
        """``E log |Sigma^-1|``."""
        d = self.n_targets
        return np.asarray(digamma((df[..., None] - np.arange(d)) / 2).sum(axis=-1) + d * np.log(2.0) - 2 * log_y)

    def divergence(self, statistics: Array) -> Array:
        """``KL(q || prior)`` of the posterior q of each cluster: (n_clusters,)."""
        d, p = self.n_targets, self.n_predictors
        df, factor, log_p, log_y = self._posterior(statistics)
        _, prior, prior_p, prior_y = self._posterior(self.empty())
        inverse = np.linalg.inv(factor)
        in_p, in_y = inverse[:, :p, :p], inverse[:, p:, p:]
        # inverse[:, p:, :p] is minus L_y^-1 times the coefficients from their prior mean.
        away = ((inverse[:, p:, :p] @ prior[:p, :p]) ** 2).sum(axis=(1, 2))
        spread = ((in_p @ prior[:p, :p]) ** 2).sum(axis=(1, 2))
        coefficients = d * (log_p - prior_p) + 0.5 * (d * (spread - p) + df * away)
        trace = ((in_y @ prior[p:, p:]) ** 2).sum(axis=(1, 2))
        normaliser = self._log_normaliser(np.asarray(self.df), prior_y) - self._log_normaliser(df, log_y)
        wishart = normaliser + 0.5 * ((df - self.df) * self._log_precision(df, log_y) + df * (trace - d))
        return np.asarray(coefficients + wishart)

    def _log_normaliser(self, df: Array, log_root: Array) -> Array:
        return np.asarray(df * self.n_targets / 2 * np.log(2.0) - df * log_root + self._log_gammas(df))


def _positive_definite(value: Any, size: int, name: str) -> Array:
    matrix = np.atleast_2d(np.asarray(value, dtype=np.float64))
    if matrix.shape != (size, size) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise ValueError(f"{name} must be a symmetric matrix of shape ({size}, {size}), got shape {matrix.shape}")
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        raise ValueError(f"{name} must be positive definite, got a matrix that is not") from None
    return matrix
