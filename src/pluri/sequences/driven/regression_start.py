"""Starting values of regressions that alternate: windows of consecutive rows, grouped by the regression they follow.

A window is taken to lie in one state. States start from the regressions of windows that the others explain badly, drawn
as in k-means++, and every window is then given to the one that explains it best, a few times over. Rows are (z_t, x_t),
P regressors and D outputs; moments are sums of outer products of (z_t, 1, x_t) as seen from the mean row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Times that windows are given to the regression that explains them best.
N_ROUNDS = 5
#: Weight, in observations, that draws the regression of a window to that of all rows.
SHRINKAGE = 1.0
#: Standard deviation, in that of the residuals, of what is added to the intercepts: no two states are the same.
JITTER = 0.05


def start_from_windows(
    X: Array, n_regressors: int, n_components: int, scale: Array, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """Coefficients (k, D, P), intercepts (k, D) and one covariance (D, D) of the residuals."""
    rows, center = _extended(X, n_regressors)
    pooled, covariance = _pooled(rows, n_regressors, scale)
    width = int(min(max(16, 4 * (n_regressors + 2)), max(len(rows) // n_components, 1)))
    windows = rows[: len(rows) // width * width].reshape(-1, width, rows.shape[1])
    moments = windows.transpose(0, 2, 1) @ windows
    whitening = np.linalg.inv(np.linalg.cholesky(covariance))
    own = _regressions(moments, np.broadcast_to(pooled, (len(moments), *pooled.shape)), scale)
    coef = own[_scattered(moments, own, whitening, n_components, rng)]
    for _ in range(N_ROUNDS):
        nearest = _errors(coef, moments, whitening).argmin(axis=1)
        sums = np.zeros((n_components, *moments.shape[1:]))
        np.add.at(sums, nearest, moments)
        coef = _regressions(sums, coef, scale)
    error = _errors(coef, moments, whitening).min(axis=1).sum() / (len(moments) * width * len(covariance))
    covariance = covariance * max(float(error), 1e-6)
    coef[:, :, -1] += JITTER * rng.standard_normal(coef.shape[:2]) * np.sqrt(np.diagonal(covariance))
    return *_uncentered(coef, center), covariance


def pooled_start(X: Array, n_regressors: int, n_components: int, scale: Array) -> tuple[Array, Array, Array]:
    """One regression for all states; what is returned is as in `start_from_windows`."""
    rows, center = _extended(X, n_regressors)
    pooled, covariance = _pooled(rows, n_regressors, scale)
    return *_uncentered(np.repeat(pooled[None], n_components, axis=0), center), covariance


def _extended(X: Array, n_regressors: int) -> tuple[Array, Array]:
    """Rows (z, 1, x) without a missing value, seen from their mean, and the mean of (z, x)."""
    rows = X[~np.isnan(X).any(axis=1)]
    if not len(rows):
        raise ValueError(
            "X must hold at least one step whose value and regressors are all known, got none: too much is missing"
        )
    center = rows.mean(axis=0)
    return np.insert(rows - center, n_regressors, 1.0, axis=1), center


def _pooled(rows: Array, n_regressors: int, scale: Array) -> tuple[Array, Array]:
    """The regression of all rows, (D, P + 1), and the covariance of its residuals, (D, D)."""
    moments = rows.T @ rows
    n_outputs = rows.shape[1] - n_regressors - 1
    coef = _regressions(moments[None], np.zeros((1, n_outputs, n_regressors + 1)), scale)[0]
    residual = _residual_map(coef)
    covariance = residual @ moments @ residual.T / len(rows)
    variance = float(np.diagonal(covariance).mean())
    return coef, covariance + (1e-9 * variance if variance > 0 else 1.0) * np.eye(n_outputs)


def _regressions(moments: Array, toward: Array, scale: Array) -> Array:
    """Regressions of moments (n, Q, Q), drawn to those given: (n, D, P + 1), the intercept last."""
    P = toward.shape[2]
    normal = moments[:, :P, :P]
    ridge = SHRINKAGE * np.diag(np.append(scale, 1.0))
    gap = moments[:, P:, :P] - toward @ normal
    return toward + np.linalg.solve(normal + ridge, gap.transpose(0, 2, 1)).transpose(0, 2, 1)


def _residual_map(coef: Array) -> Array:
    """The matrix that takes (z, 1, x) to the residual: (..., D, Q)."""
    n_outputs = coef.shape[-2]
    return np.concatenate([-coef, np.broadcast_to(np.eye(n_outputs), (*coef.shape[:-1], n_outputs))], axis=-1)


def _errors(coef: Array, moments: Array, whitening: Array) -> Array:
    """Squared whitened residuals of windows (n,) under regressions (k,): (n, k)."""
    residual = whitening @ _residual_map(coef)
    gram = residual.transpose(0, 2, 1) @ residual
    return np.maximum(moments.reshape(len(moments), -1) @ gram.reshape(len(gram), -1).T, 0.0)


def _scattered(
    moments: Array, own: Array, whitening: Array, n_components: int, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Windows whose regressions to start from: each drawn by what those before it leave unexplained."""
    residual = whitening @ _residual_map(own)
    least = np.einsum("ndp,npq,ndq->n", residual, moments, residual)
    chosen = [int(rng.integers(len(moments)))]
    left = np.full(len(moments), np.inf)
    while len(chosen) < n_components:
        left = np.minimum(left, _errors(own[chosen[-1:]], moments, whitening)[:, 0])
        mass = np.cumsum(np.maximum(left - least, 0.0))
        uniform = rng.random()
        place = np.searchsorted(mass, uniform * mass[-1], side="right") if mass[-1] > 0 else uniform * len(mass)
        chosen.append(min(int(place), len(mass) - 1))
    return np.array(chosen)


def _uncentered(coef: Array, center: Array) -> tuple[Array, Array]:
    """Coefficients (k, D, P) and intercepts (k, D) of regressions on regressors and outputs as they come."""
    P = coef.shape[2] - 1
    slopes = np.ascontiguousarray(coef[:, :, :P])
    return slopes, coef[:, :, P] + center[P:] - slopes @ center[:P]
