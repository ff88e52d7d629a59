"""Kernel Stein discrepancy: how far draws are from a density of which only the gradient of the logarithm is known.

With the score s(x) = grad log p(x) and the inverse multiquadric kernel ``k(x, y) = (1 + |x - y|^2 / h^2)^(-1/2)``,

    u(x, y) = s(x).s(y) k + s(x).grad_y k + s(y).grad_x k + trace(grad_x grad_y k)

has mean zero in each argument under p, and ``V = (1 / n) sum_ij u(x_i, x_j)`` stays bounded if and only if the draws
come from p. Its distribution is that of ``(1 / n) sum_ij e_i e_j u(x_i, x_j)`` with random signs e (wild bootstrap).

References
----------
.. [1] Chwialkowski, K., Strathmann, H. and Gretton, A. (2016). A kernel test of goodness of fit. ICML.
.. [2] Gorham, J. and Mackey, L. (2017). Measuring sample quality with kernels. ICML.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def stein_matrix(points: Array, scores: Array, bandwidth: float | None = None) -> Array:
    """The matrix ``u(x_i, x_j)`` for points and scores (n, d); the bandwidth is the median distance by default."""
    dim = points.shape[1]
    squared = np.maximum(((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2), 0.0)
    if bandwidth is None:
        positive = squared[squared > 0]
        bandwidth = float(np.sqrt(np.median(positive))) if len(positive) else 1.0
    scale = bandwidth**2
    base = 1.0 + squared / scale
    kernel, power = base**-0.5, -(base**-1.5) / scale  # grad_x k = power * (x - y)
    along = (scores * points).sum(axis=1)
    cross = scores @ points.T
    # s(y).(x - y) - s(x).(x - y), for all pairs.
    slope = cross.T - along[None, :] - along[:, None] + cross
    trace = -dim * power - 3.0 * squared * base**-2.5 / scale**2
    matrix: Array = (scores @ scores.T) * kernel + power * slope + trace
    return matrix


def stein_test(
    points: Array, score: Callable[[Array], Any], rng: np.random.Generator, n_bootstrap: int = 999
) -> tuple[float, float]:
    """Discrepancy V of independent points (n, d), and its bootstrap p-value."""
    scores = np.array([np.asarray(score(point), dtype=np.float64).reshape(-1) for point in points])
    if scores.shape != points.shape:
        raise ValueError(f"gradient must give {points.shape[1]} numbers at each draw, got {scores.shape[1:]}")
    if not np.isfinite(scores).all():
        raise ValueError("gradient must be finite at every draw")
    matrix = stein_matrix(points, scores)
    statistic = float(matrix.sum() / len(points))
    signs = rng.choice([-1.0, 1.0], size=(len(points), n_bootstrap))
    bootstrap = (signs * (matrix @ signs)).sum(axis=0) / len(points)
    return statistic, float((1 + (bootstrap >= statistic).sum()) / (n_bootstrap + 1))


def numerical_score(log_density: Callable[[Array], float]) -> Callable[[Array], Array]:
    """Gradient of a log density by central differences."""

    def score(point: Array) -> Array:
        gradient = np.empty(len(point))
        for j in range(len(point)):
            shift = np.zeros(len(point))
            shift[j] = 6e-6 * max(1.0, abs(point[j]))
            gradient[j] = (float(log_density(point + shift)) - float(log_density(point - shift))) / (2.0 * shift[j])
        return gradient

    return score
