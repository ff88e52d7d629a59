"""What observations say of the states: log N(y; C x + c, R) as a quadratic function of x, with holes left out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.switching.parameters import SwitchingParameters

Array = NDArray[np.float64]
LOG_2_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class Potentials:
    """log p(y_t | x_t) = constant + linear^T x - x^T quadratic x / 2, for each of g groups of regimes.

    Attributes
    ----------
    constant, linear, quadratic : (g, n), (g, n, d), (g, n, d, d)
    """

    constant: Array
    linear: Array
    quadratic: Array

    def averaged(self, regimes: Array) -> tuple[Array, Array]:
        """Quadratic (n, d, d) and linear (n, d) terms, averaged over q(z) (n, k); fresh arrays."""
        if len(self.constant) == 1:
            return self.quadratic[0].copy(), self.linear[0].copy()
        return np.einsum("nk,knij->nij", regimes, self.quadratic), np.einsum("nk,kni->ni", regimes, self.linear)

    def expected(self, mean: Array, covariance: Array) -> Array:
        """E[log p(y_t | x_t)] under Gaussians: (g, n)."""
        second = covariance + mean[:, :, None] * mean[:, None, :]
        squares = np.einsum("gnij,nij->gn", self.quadratic, second)
        return self.constant + np.einsum("gni,ni->gn", self.linear, mean) - 0.5 * squares


def observation_potentials(parameters: SwitchingParameters, X: Array) -> Potentials:
    """Potentials of observations (n, m); NaN where nothing was seen."""
    n, (_, d, m) = len(X), parameters.sizes
    g = len(parameters.emission)
    found = Potentials(np.zeros((g, n)), np.zeros((g, n, d)), np.zeros((g, n, d, d)))
    seen = ~np.isnan(X)
    diagonal = np.eye(m, dtype=bool)
    for z in range(g):
        C, R = parameters.emission[z], parameters.emission_covariance[z]
        residual = np.where(seen, X - parameters.emission_offset[z], 0.0)
        if not R[~diagonal].any():
            variance = np.diagonal(R)
            weights = seen / variance
            squares = (residual * residual * weights).sum(axis=1)
            found.constant[z] = -0.5 * (squares + seen @ (np.log(variance) + LOG_2_PI))
            found.linear[z] = (residual * weights) @ C
            found.quadratic[z] = (weights @ (C[:, :, None] * C[:, None, :]).reshape(m, -1)).reshape(n, d, d)
            continue
        patterns, which = np.unique(seen, axis=0, return_inverse=True)
        for p, pattern in enumerate(patterns):
            rows = np.flatnonzero(which.ravel() == p)
            if not pattern.any():
                continue
            precision = np.linalg.inv(R[np.ix_(pattern, pattern)])
            some = residual[np.ix_(rows, pattern)]
            log_scale = np.linalg.slogdet(precision)[1] - pattern.sum() * LOG_2_PI
            found.constant[z, rows] = 0.5 * (log_scale - np.einsum("ni,ij,nj->n", some, precision, some))
            found.linear[z, rows] = some @ precision @ C[pattern]
            found.quadratic[z, rows] = C[pattern].T @ precision @ C[pattern]
    return found


def log_normal(apart: Array, precision_factor: Array) -> Array:
    """Log density (n,) of differences (n, d) from the mean, for the Cholesky factor of the precision."""
    whitened = apart @ precision_factor
    log_scale = np.log(np.diagonal(precision_factor)).sum()
    return -0.5 * np.einsum("ni,ni->n", whitened, whitened) + log_scale - 0.5 * len(precision_factor) * LOG_2_PI
