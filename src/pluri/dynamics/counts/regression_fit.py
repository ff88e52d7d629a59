r"""Maximum likelihood of a count regression: y_i ~ GC(x_i beta, g), both beta and the shape g learned.

    sum_i w_i [ y_i x_i beta + g(y_i) - log y_i! - log M(x_i beta, g) ] - kappa sum_k (g(k+1) - 2 g(k) + g(k-1))^2
        - (alpha / 2) ||beta||^2

It is concave in (beta, g) together: Newton steps in a trust region where all are free, L-BFGS-B where some are bounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp

from pluri.dynamics.counts.shapes import ShapeFunction, second_differences

Array = NDArray[np.float64]

#: More parameters than this are climbed by L-BFGS, which keeps no matrix of their second derivatives.
LARGEST_NEWTON = 400


@dataclass(frozen=True, eq=False)
class FittedRegression:
    """Where the ascent ended: coefficients (p,), shape g (K + 1,), its numbers phi, iterations, and whether it stopped
    by itself.
    """

    coefficients: Array
    g: Array
    phi: Array
    n_iter: int
    converged: bool
    objective: float


#: Newton steps at the end of a bounded fit: each doubles the digits.
SHARPENING_STEPS = 4


class RegressionObjective:
    """The negative objective per unit of weight, its gradient and second derivatives, in scaled columns.

    Parameters
    ----------
    X : (n, p) array or CSR matrix
    counts : (n,) integers
    weight : (n,)
    shape : what g may be
    kappa, alpha : weights of the two penalties
    """

    def __init__(
        self, X: Any, counts: NDArray[np.int64], weight: Array, shape: ShapeFunction, kappa: float, alpha: float
    ) -> None:
        self.shape = shape
        self.total = float(weight.sum())
        self.weight = weight / self.total
        scale = np.sqrt((X.multiply(X) if hasattr(X, "multiply") else X * X).T @ self.weight)
        self.scale = np.where(scale > 0, scale, 1.0)
        self.X = X.multiply(1.0 / self.scale).tocsr() if hasattr(X, "multiply") else X / self.scale
        self.counts = counts
        self.k = np.arange(len(shape.support), dtype=np.float64)
        self.log_factorial = gammaln(self.k + 1.0)
        self.frequency = np.bincount(counts, self.weight, minlength=len(self.k))
        self.bend = second_differences(len(self.k) - 1)
        if not shape.support.all():
            self.bend = self.bend[:0]  # a shape with gaps has no second differences
        self.kappa = kappa / self.total
        self.ridge = alpha / self.total / self.scale**2
        self.n_features = X.shape[1]

    def _tables(self, vector: Array) -> tuple[Array, Array, Array, Array]:
        """Theta (n,), g (K + 1,), probabilities (n, K + 1) and log normalizers (n,)."""
        theta = self.X @ vector[: self.n_features]
        g = self.shape.g(vector[self.n_features :])
        scores = np.outer(theta, self.k) + (g - self.log_factorial)
        normalizer = logsumexp(scores, axis=1)
        return theta, g, np.exp(scores - normalizer[:, None]), normalizer

    def _bent(self, g: Array) -> Array:
        return self.bend @ np.where(self.shape.support, g, 0.0)

    def value_and_gradient(self, vector: Array) -> tuple[float, Array]:
        """Negative objective per unit of weight, and its gradient."""
        beta, phi = vector[: self.n_features], vector[self.n_features :]
        theta, g, P, normalizer = self._tables(vector)
        if not np.isfinite(normalizer).all():
            return np.inf, np.zeros_like(vector)
        seen = self.frequency > 0
        bent = self._bent(g)
        value = self.weight @ (self.counts * theta - normalizer) + self.frequency[seen] @ (g - self.log_factorial)[seen]
        value -= self.kappa * (bent @ bent) + 0.5 * self.ridge @ (beta * beta)
        slope = self.X.T @ (self.weight * (self.counts - P @ self.k)) - self.ridge * beta
        by_count = self.frequency - self.weight @ P - 2.0 * self.kappa * (self.bend.T @ bent)
        return -float(value), -np.concatenate([slope, self.shape.jacobian(phi).T @ by_count])

    def hessian(self, vector: Array) -> Array:
        """Second derivatives of the negative objective; for shapes that are linear in phi."""
        p = self.n_features
        _, _, P, _ = self._tables(vector)
        B = self.shape.jacobian(vector[p:])
        mean = P @ self.k
        spread = self.weight * (P @ self.k**2 - mean**2)
        H = np.empty((len(vector), len(vector)))
        weighted = self.X.multiply(spread[:, None]) if hasattr(self.X, "multiply") else self.X * spread[:, None]
        square = self.X.T @ weighted
        H[:p, :p] = square.toarray() if hasattr(square, "toarray") else square
        H[:p, :p] += np.diag(self.ridge)
        H[:p, p:] = self.X.T @ ((self.weight[:, None] * P * (self.k - mean[:, None])) @ B)
        H[p:, :p] = H[:p, p:].T
        by_count = (
            np.diag(self.weight @ P) - P.T @ (self.weight[:, None] * P) + 2.0 * self.kappa * self.bend.T @ self.bend
        )
        H[p:, p:] = B.T @ by_count @ B
        return H


def fit_regression(objective: RegressionObjective, *, max_iter: int, tol: float) -> FittedRegression:
    """Maximise from no effect of X and a Poisson distribution of the mean of the counts.

    `tol` bounds the gradient per unit of weight where the ascent stops.
    """
    p, shape = objective.n_features, objective.shape
    start = np.concatenate([np.zeros(p), shape.start])
    if not len(start):
        return FittedRegression(np.zeros(0), shape.g(np.zeros(0)), np.zeros(0), 0, True, 0.0)
    if shape.is_linear and len(start) <= LARGEST_NEWTON:
        options = {"maxiter": max_iter, "gtol": tol, "initial_trust_radius": 1.0, "max_trust_radius": 1e6}
        result = minimize(
            objective.value_and_gradient, start, jac=True, hess=objective.hessian, method="trust-exact", options=options
        )
    else:
        bounds = None if shape.bounds is None else [(None, None)] * p + shape.bounds
        options = {"maxiter": max_iter, "maxfun": 20 * max_iter, "gtol": tol, "ftol": 1e-15, "maxcor": 20, "maxls": 50}
        result = minimize(
            objective.value_and_gradient, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options
        )
    vector = np.asarray(result.x, dtype=np.float64)
    if shape.bounds is not None and len(start) <= LARGEST_NEWTON:
        vector = _sharpened(objective, vector, np.array([(None, None)] * p + shape.bounds, dtype=np.float64).T)
    # A line search gives up at the top, where differences of the objective are rounding errors.
    at_top = bool(np.abs(result.jac).max() < 1e3 * tol) or (result.status != 1 and result.status != 3)
    return FittedRegression(
        coefficients=vector[:p] / objective.scale,
        g=shape.g(vector[p:]),
        phi=vector[p:],
        n_iter=int(result.nit),
        converged=bool(result.success) or at_top,
        objective=-float(result.fun) * objective.total,
    )


def _sharpened(objective: RegressionObjective, vector: Array, bounds: Array) -> Array:
    """Newton steps for what is not held by a bound (lower and upper, NaN where there is none).

    L-BFGS ends where differences of the objective are rounding errors, which is half of the digits of the maximum.
    """
    low, high = np.where(np.isnan(bounds[0]), -np.inf, bounds[0]), np.where(np.isnan(bounds[1]), np.inf, bounds[1])
    _, slope = objective.value_and_gradient(vector)
    for _ in range(SHARPENING_STEPS):
        free = ~((vector <= low) & (slope > 0)) & ~((vector >= high) & (slope < 0))
        if not free.any():
            break
        step = np.zeros_like(vector)
        try:
            step[free] = np.linalg.solve(objective.hessian(vector)[np.ix_(free, free)], slope[free])
        except np.linalg.LinAlgError:
            break
        trial = np.clip(vector - step, low, high)
        _, trial_slope = objective.value_and_gradient(trial)
        if not np.abs(trial_slope[free]).max() < np.abs(slope[free]).max():
            break
        vector, slope = trial, trial_slope
    return vector
