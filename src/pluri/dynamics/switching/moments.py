r"""Expected moments of states and observations, which add up over sequences, and the regressions they lead to.

Moves of a regime are a weighted regression of x_t on u = (x_{t-1}, 1): with W = [A b] and moments summed under q,

    W = (sum x_t u^T + l W_0) (sum u u^T + l I)^-1,
    Q = (sum (x_t - W u)(x_t - W u)^T + l (W - W_0)(W - W_0)^T + l S) / (n + l),

the maximum under a prior that is worth l steps of a random walk, W_0 = [I 0], with covariance S:

    log p(W, Q) = -tr(Q^-1 (l (W - W_0)(W - W_0)^T + l S)) / 2 - l log|Q| / 2.

Observations are regressed on (x_t, 1) alike; their prior is worth a fraction of a row with the features' variances, and
leaves c alone: it draws C of a regime that explains nothing to 0, and R to these variances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Statistics

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Regression(Statistics):
    """Weighted sums of outputs v (q,) and inputs u (p,), of r regressions.

    Attributes
    ----------
    count : (r,)
    inputs : (r, p, p): sum u u^T
    cross : (r, q, p): sum v u^T
    outputs : (r, q, q): sum v v^T
    """

    count: Array
    inputs: Array
    cross: Array
    outputs: Array

    def coefficients(self, ridge: Array, center: Array | None = None) -> Array:
        """The best W (r, q, p), drawn to `center` (q, p), or 0, by `ridge` (p,) pseudo-observations of each input."""
        inputs = self.inputs + np.diag(ridge)
        cross = self.cross if center is None else self.cross + ridge * center
        return np.swapaxes(_solve(inputs, np.swapaxes(cross, 1, 2)), 1, 2)

    def scatter(self, W: Array) -> Array:
        """Sum (v - W u)(v - W u)^T: (r, q, q)."""
        one = self.cross @ np.swapaxes(W, 1, 2)
        scatter = self.outputs - one - np.swapaxes(one, 1, 2) + W @ self.inputs @ np.swapaxes(W, 1, 2)
        return 0.5 * (scatter + np.swapaxes(scatter, 1, 2))


def _solve(matrices: Array, right: Array) -> Array:
    """Solutions of symmetric systems; the shortest where a matrix is singular."""
    try:
        return np.asarray(np.linalg.solve(matrices, right))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(matrices, hermitian=True) @ right)


def with_constant(second: Array, first: Array, count: Array) -> Array:
    """Sums of (x, 1)(x, 1)^T from those of x x^T (..., d, d), x (..., d) and 1 (...)."""
    d = first.shape[-1]
    out = np.empty((*count.shape, d + 1, d + 1))
    out[..., :d, :d], out[..., :d, d], out[..., d, :d], out[..., d, d] = second, first, first, count
    return out


def moves(weights: Array, mean: Array, covariance: Array, lagged: Array, later: NDArray[np.int64]) -> Regression:
    """Regressions of x_t on (x_{t-1}, 1), one for each column of `weights` (n, k); rows `later` have one before."""
    d, k = mean.shape[1], weights.shape[1]
    some = weights[later].T
    before, after = mean[later - 1], mean[later]
    second = (covariance + mean[:, :, None] * mean[:, None, :]).reshape(len(mean), d * d)
    crossed = (lagged[later - 1] + after[:, :, None] * before[:, None, :]).reshape(len(later), d * d)
    count, sums = some.sum(axis=1), some @ before
    inputs = with_constant((some @ second[later - 1]).reshape(k, d, d), sums, count)
    cross = np.concatenate([(some @ crossed).reshape(k, d, d), (some @ after)[:, :, None]], axis=2)
    return Regression(count, inputs, cross, (some @ second[later]).reshape(k, d, d))


def sights(weights: Array, X: Array, offset: Array, mean: Array, covariance: Array, by_feature: bool) -> Regression:
    """Regressions of observations (n, m), less an offset (g, m), on (x_t, 1), for each column of `weights` (n, g).

    The offset of the last parameters keeps squares small, so that they lose no digits. By feature there is one
    regression for each pair of column and feature, over the rows in which it was seen: (g m,). Otherwise a row counts
    only if all of it was seen.
    """
    (n, m), d, g = X.shape, mean.shape[1], weights.shape[1]
    second = (covariance + mean[:, :, None] * mean[:, None, :]).reshape(n, d * d)
    seen = ~np.isnan(X)
    apart = np.where(seen, X, 0.0) - np.where(seen, offset[:, None, :], 0.0)
    if not by_feature:
        some = weights.T * np.asarray(seen.all(axis=1))
        inputs = with_constant((some @ second).reshape(g, d, d), some @ mean, some.sum(axis=1))
        valued = some[:, :, None] * apart
        cross = np.swapaxes(valued, 1, 2) @ np.column_stack([mean, np.ones(n)])
        return Regression(some.sum(axis=1), inputs, cross, np.swapaxes(valued, 1, 2) @ apart)
    some = (weights.T[:, None, :] * seen.T).reshape(g * m, n)
    values = np.swapaxes(apart, 1, 2).reshape(g * m, n)
    valued = some * values
    count = some.sum(axis=1)
    inputs = with_constant((some @ second).reshape(g * m, d, d), some @ mean, count)
    cross = np.column_stack([valued @ mean, valued.sum(axis=1)])[:, None, :]
    return Regression(count, inputs, cross, np.einsum("rn,rn->r", valued, values)[:, None, None])
