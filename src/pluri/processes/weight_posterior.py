r"""The posterior of the weights of a linear model, in the space of weights or of observations, whichever is smaller.

    y = X w + e,    w ~ N(0, S),    e ~ N(0, v I).

With S = R R^T and w = R u, the prior of u is standard normal and everything follows from one Cholesky factor,

    weights       A = I + R^T X^T X R / v  (d, d)     u ~ N(A^-1 R^T X^T y / v, A^-1)
    observations  K = X R R^T X^T + v I    (n, n)     u = R^T X^T K^-1 y,  cov(u) = I - R^T X^T K^-1 X R

so that neither S nor A is ever inverted. The log evidence is the same number in both,
-1/2 [(y^T y - y^T X w) / v + log|A| + n log(2 pi v)], with log|A| = log|K| - n log v.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from pluri.validation import Stored

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RegressionData:
    """What is kept of the observations: rows while they are fewer than the weights, else sums of products.

    A row of weight c counts c times: X and y are scaled by sqrt(c), and `n_total` is the sum of weights.

    Attributes
    ----------
    X, y : (n, d), (n,): scaled rows, or None
    gram, cross : (d, d), (d,): X^T X and X^T y, or None
    square : y^T y
    n_total : number of observations
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "gram": Stored("n_weights", "n_weights"),
        "cross": Stored("n_weights"),
    }

    X: Array | None
    y: Array | None
    gram: Array | None
    cross: Array | None
    square: float
    n_total: float

    @classmethod
    def of(cls, X: Array, y: Array, weight: Array) -> RegressionData:
        """Gather rows with weights."""
        seen = weight > 0
        root = np.sqrt(weight[seen])
        X, y = X[seen] * root[:, None], y[seen] * root
        data = cls(X, y, None, None, float(y @ y), float(weight.sum()))
        return data if len(X) < X.shape[1] else data.summed()

    def summed(self) -> RegressionData:
        """The same with sums of products instead of rows."""
        if self.X is None or self.y is None:
            return self
        return replace(self, X=None, y=None, gram=self.X.T @ self.X, cross=self.X.T @ self.y)

    def __add__(self, other: RegressionData) -> RegressionData:
        square, n_total = self.square + other.square, self.n_total + other.n_total
        if self.X is not None and other.X is not None and self.y is not None and other.y is not None:
            X, y = np.concatenate([self.X, other.X]), np.concatenate([self.y, other.y])
            both = RegressionData(X, y, None, None, square, n_total)
            return both if len(X) < X.shape[1] else both.summed()
        one, two = self.summed(), other.summed()
        gram, cross = np.add(one.gram, two.gram), np.add(one.cross, two.cross)  # type: ignore[arg-type]
        return RegressionData(None, None, gram, cross, square, n_total)

    def left_out(self, weights: Array) -> tuple[float, float]:
        """Mean of what such weights leave of y, the last of them an intercept's, and the mean's standard error."""
        if self.X is not None and self.y is not None:
            rest = self.y - self.X @ weights
            total, squares = float(self.X[:, -1] @ rest), float(rest @ rest)
        else:
            gram, cross = np.asarray(self.gram), np.asarray(self.cross)
            total = float(cross[-1] - gram[-1] @ weights)
            squares = self.square - float(weights @ (2.0 * cross - gram @ weights))
        mean = total / self.n_total
        return mean, float(np.sqrt(max(squares / self.n_total - mean**2, 0.0) / self.n_total))


@dataclass(frozen=True)
class PriorRoot:
    """A root R of the prior covariance: its diagonal (d,), or a lower triangle (d, d)."""

    root: Array

    @classmethod
    def of(cls, covariance: Array) -> PriorRoot:
        """From variances (d,) or a covariance matrix (d, d); LinAlgError if it is not positive definite."""
        return cls(np.sqrt(covariance) if covariance.ndim == 1 else cholesky(covariance, lower=True))

    def rows(self, X: Array) -> Array:
        """X R."""
        return X * self.root if self.root.ndim == 1 else X @ self.root

    def transposed(self, x: Array) -> Array:
        """R^T x, for a vector or columns."""
        return (x.T * self.root).T if self.root.ndim == 1 else self.root.T @ x

    def weights(self, u: Array) -> Array:
        """R u, for a vector or columns."""
        return (u.T * self.root).T if self.root.ndim == 1 else self.root @ u


@dataclass(frozen=True)
class WeightPosterior:
    """Posterior of the weights.

    Attributes
    ----------
    prior : PriorRoot
    mean_u, mean : (d,): posterior means of u and of w
    factor : lower Cholesky factor of A, or of K if `rows` is not None
    rows : X R, (n, d), or None
    y : (n,) or None
    spread : (d,): posterior variances of u
    fit : y^T y - y^T X w
    noise_variance, log_evidence : float
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "mean_u": Stored("n_weights"),
        "mean": Stored("n_weights"),
        "factor": Stored("n_weights", "n_weights"),
        "spread": Stored("n_weights"),
    }

    prior: PriorRoot
    mean_u: Array
    mean: Array
    factor: Array
    rows: Array | None
    y: Array | None
    spread: Array
    fit: float
    noise_variance: float
    log_evidence: float

    def variance(self, X: Array) -> Array:
        """Variance of x^T w for the rows of X."""
        scaled = self.prior.rows(X)
        if self.rows is None:
            return (solve_triangular(self.factor, scaled.T, lower=True) ** 2).sum(axis=0)
        explained = (solve_triangular(self.factor, self.rows @ scaled.T, lower=True) ** 2).sum(axis=0)
        return np.maximum((scaled**2).sum(axis=1) - explained, 0.0)

    def covariance(self) -> Array:
        """Covariance of the weights, (d, d)."""
        d = len(self.mean)
        if self.rows is None:
            half = solve_triangular(self.factor, self.prior.transposed(np.eye(d)), lower=True)
            return half.T @ half
        half = solve_triangular(self.factor, self.rows, lower=True)
        inner = np.eye(d) - half.T @ half
        return self.prior.weights(self.prior.weights(inner).T)

    def sample(self, n_samples: int, rng: np.random.Generator) -> Array:
        """Draws of the weights, (n_samples, d)."""
        d = len(self.mean)
        noise = rng.normal(size=(d, n_samples))
        if self.rows is None or self.y is None:
            u = self.mean_u[:, None] + solve_triangular(self.factor, noise, lower=True, trans="T")
        else:
            # A draw from the prior, corrected by what it says wrongly about the observations (Matheron's rule).
            errors = np.sqrt(self.noise_variance) * rng.normal(size=(len(self.y), n_samples))
            gap = self.y[:, None] - self.rows @ noise - errors
            half = solve_triangular(self.factor, gap, lower=True)
            u = noise + self.rows.T @ solve_triangular(self.factor, half, lower=True, trans="T")
        return self.prior.weights(u).T


def weight_posterior(data: RegressionData, prior: PriorRoot, noise_variance: float) -> WeightPosterior:
    """Condition the weights on the data."""
    v = noise_variance
    rows: Array | None = None
    if data.X is not None and data.y is not None:
        rows = prior.rows(data.X)
        factor = cholesky(rows @ rows.T + v * np.eye(len(rows)), lower=True)
        half = solve_triangular(factor, data.y, lower=True)
        mean_u = rows.T @ solve_triangular(factor, half, lower=True, trans="T")
        spread = 1.0 - (solve_triangular(factor, rows, lower=True) ** 2).sum(axis=0)
        fit = v * float(half @ half)
        log_determinant = 2.0 * float(np.log(np.diag(factor)).sum()) - len(rows) * float(np.log(v))
    else:
        gram, cross = np.asarray(data.gram), np.asarray(data.cross)
        d = len(cross)
        factor = cholesky(np.eye(d) + prior.transposed(prior.rows(gram)) / v, lower=True)
        half = solve_triangular(factor, prior.transposed(cross) / v, lower=True)
        mean_u = solve_triangular(factor, half, lower=True, trans="T")
        spread = (solve_triangular(factor, np.eye(d), lower=True) ** 2).sum(axis=0)
        fit = max(data.square - v * float(half @ half), 0.0)
        log_determinant = 2.0 * float(np.log(np.diag(factor)).sum())
    log_evidence = -0.5 * (fit / v + log_determinant + data.n_total * float(np.log(2.0 * np.pi * v)))
    mean = prior.weights(mean_u)
    return WeightPosterior(prior, mean_u, mean, factor, rows, data.y, spread, fit, v, log_evidence)


@dataclass(frozen=True)
class LearnedVariances:
    """Factors of the prior covariance and of the noise variance with the largest evidence."""

    prior_scale: float
    noise_variance: float
    converged: bool
    n_iter: int


def maximize_evidence(
    data: RegressionData, prior: PriorRoot, n_free: int, noise_variance: float, *, max_iter: int, tol: float,
    learn: tuple[bool, bool] = (True, True),
) -> LearnedVariances:  # fmt: skip
    """Type-II maximum likelihood of a factor of the first `n_free` prior variances and of the noise variance.

    `learn` says which of the two; the other stays as given.

    The gradient follows from Fisher's identity, d log p(y) / d t = E[d log p(y, w) / d t | y]:
    1/2 (E|u|^2 - d) in log scale, and 1/2 (E|y - X w|^2 / v - n) in log v.
    """
    from scipy.optimize import minimize

    free = np.arange(len(prior.root)) < n_free
    size = data.square / data.n_total or 1.0

    def objective(vector: Array) -> tuple[float, Array]:
        scale, v = np.exp(vector)
        posterior = weight_posterior(data, scaled_prior(prior, free, float(scale)), float(v))
        second = posterior.mean_u**2 + posterior.spread
        squares = posterior.fit / v - float(posterior.mean_u @ posterior.mean_u)
        used = len(second) - float(posterior.spread.sum())
        gradient = 0.5 * np.array([second[free].sum() - n_free, squares + used - data.n_total])
        return -posterior.log_evidence, -gradient

    middle = np.log(size)
    start = np.array([0.0, np.log(noise_variance)])
    # Data that a line fits exactly have no best noise variance above 0: stop at a billionth of the mean square.
    bounds = np.array([(-30.0, 30.0), (middle - 20.0, middle + 5.0)])
    if learn[1]:
        start[1] = np.clip(start[1], middle - 20.0, middle + 2.0)
    bounds[~np.array(learn)] = start[~np.array(learn), None]
    options: dict[str, Any] = {"maxiter": max_iter, "ftol": tol, "gtol": 1e-8}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    scale, v = np.exp(found.x)
    # Status 2 says that rounding left nothing to gain on the last line; only status 1 ran out of iterations.
    return LearnedVariances(float(scale), float(v), found.status != 1, int(found.nit))


def scaled_prior(prior: PriorRoot, free: NDArray[np.bool_], scale: float) -> PriorRoot:
    """The prior with the covariance of the free weights multiplied by `scale`; the others are independent of them."""
    factors = np.where(free, np.sqrt(scale), 1.0)
    return PriorRoot(prior.root * factors if prior.root.ndim == 1 else prior.root * factors[:, None])
