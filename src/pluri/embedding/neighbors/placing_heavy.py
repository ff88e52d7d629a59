r"""Where new objects lie on a fixed map with heavy tails.

A new object has a distribution p over the old ones, with points y_j. With :math:`w_j = 1 / (1 + |y - y_j|^2)` and the
rate :math:`r = n / Z` of the map, which it does not change, its divergence as a function of its own place y is

.. math:: C(y) = -\sum_j p_j \log w_j + r \sum_j w_j + \text{const}, \qquad
          \nabla C = 2 \sum_j (p_j - r w_j)\, w_j\, (y - y_j):

the cost of one more row, of first order in its part of Z.

It has several minima. The search begins at the best of the mean of the neighbours and the places of the most probable
ones, and goes down by Newton's method, with the absolute values of the eigenvalues of the Hessian.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.fixed_point import iterate

Array = NDArray[np.float64]

#: Most probable neighbours at whose places a search may begin.
N_STARTS = 5
#: Newton's method needs fewer steps than this; each halves at most so often.
NEWTON_STEPS, HALVINGS = 100, 30
#: Longest step, largest gradient of a place that is found, and the least curvature as a part of the largest.
LONGEST, LEVEL, LEAST_CURVATURE = 2.0, 1e-7, 1e-3


def heavy_divergences(places: Array, P: Array, points: Array, rate: float) -> tuple[Array, Array]:
    """Cross entropies (m,) of rows P (m, n) at places (m, L), and the weights w (m, n)."""
    squares = np.ones(P.shape)
    for own, others in zip(places.T, points.T, strict=True):
        squares += (own[:, None] - others) ** 2
    weights = 1.0 / squares
    return (P * np.log(squares)).sum(axis=1) + rate * weights.sum(axis=1), weights


def place_with_heavy_tails(P: Array, points: Array, rate: float) -> Array:
    """Places (m, L) of new objects whose neighbours among `points` (n, L) have the probabilities P (m, n)."""
    if not len(P):
        return P @ points

    def step(state: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array, Array], float]:
        places, value, weights = state
        gradient, hessian = slopes(places, P, weights, points, rate)
        curvature, axes = np.linalg.eigh(hessian)
        curvature = np.abs(curvature)
        curvature = np.maximum(curvature, LEAST_CURVATURE * curvature.max(axis=1, keepdims=True) + 1e-12)
        along = np.einsum("mij,mi->mj", axes, gradient)
        direction = -np.einsum("mij,mj->mi", axes, along / curvature)
        slope = (direction * gradient).sum(axis=1)
        length = np.minimum(1.0, LONGEST / np.maximum(np.linalg.norm(direction, axis=1), 1e-300))
        for _ in range(HALVINGS):
            tried = places + length[:, None] * direction
            new, weights = heavy_divergences(tried, P, points, rate)
            worse = new > value + 1e-4 * length * slope + 1e-12 * np.abs(value)
            if not worse.any():
                break
            length[worse] *= 0.5
        return (tried, new, weights), float(np.abs(gradient).max() - LEVEL)

    start = _best_start(P, points, rate)
    return iterate(step, (start, *heavy_divergences(start, P, points, rate)), max_iter=NEWTON_STEPS).state[0]


def _best_start(P: Array, points: Array, rate: float) -> Array:
    """The best of the mean under P and the places of the most probable neighbours, of each row (m, L)."""
    likely = np.argsort(-P, axis=1, kind="stable")[:, :N_STARTS]
    candidates = [P @ points, *(points[column] for column in likely.T)]
    values = np.array([heavy_divergences(places, P, points, rate)[0] for places in candidates])
    best = values.argmin(axis=0)
    return np.asarray(np.stack(candidates)[best, np.arange(len(P))], dtype=np.float64)


def slopes(places: Array, P: Array, weights: Array, points: Array, rate: float) -> tuple[Array, Array]:
    """Gradient (m, L) and Hessian (m, L, L) of the divergences."""
    pull = (P - rate * weights) * weights
    bend = (8.0 * rate * weights - 4.0 * P) * weights**2
    size = places.shape[1]
    differences = [own[:, None] - others for own, others in zip(places.T, points.T, strict=True)]
    gradient = np.column_stack([2.0 * (pull * one).sum(axis=1) for one in differences])
    hessian = 2.0 * pull.sum(axis=1)[:, None, None] * np.eye(size)
    for a in range(size):
        bent = bend * differences[a]
        for b in range(a + 1):
            hessian[:, a, b] += (bent * differences[b]).sum(axis=1)
            if a != b:
                hessian[:, b, a] = hessian[:, a, b]
    return gradient, hessian
