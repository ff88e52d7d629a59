r"""Where new objects lie on a map that is fixed.

A new object has a distribution p over the old ones, with points y_j of weight w_j (one, unless they are images of an
object that has several). Its divergence as a function of its own place y is

.. math:: C(y) = \log \sum_j w_j e^{2 y \cdot y_j - |y_j|^2} - 2\, y \cdot \sum_j p_j y_j + \text{const}

(the squares of y cancel), which is convex: its gradient is :math:`2 (\sum_j q_j y_j - \sum_j p_j y_j)`, its Hessian
four times the covariance of the y_j under q. So there is one place, where the two means agree, and Newton's method
finds it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.optimize.fixed_point import iterate

Array = NDArray[np.float64]

#: Newton's method needs fewer steps than this; each halves at most so often.
NEWTON_STEPS, HALVINGS = 100, 30
#: Difference of the two means, in the units of the map, at which a place is found.
MEANS_AGREE = 1e-9
#: Curvature added where all points that count lie on a line or in one place.
RIDGE = 1e-8
#: Steps between the posterior of images and the place, and the change of places at which they end.
EM_STEPS, SETTLED = 100, 1e-6


def divergences(places: Array, P: Array, points: Array, log_weights: Array | float = 0.0) -> tuple[Array, Array]:
    """Cross entropies (m,) of rows P (m, n) at places (m, L), and Q (m, n)."""
    d = ((places[:, None, :] - points) ** 2).sum(axis=2) - log_weights
    least = d.min(axis=1, keepdims=True)
    Q = np.exp(least - d)
    norms = Q.sum(axis=1, keepdims=True)
    Q /= norms
    return (P * d).sum(axis=1) - least[:, 0] + np.log(norms[:, 0]), Q


def place(P: Array, points: Array, log_weights: Array | float = 0.0, start: Array | None = None) -> Array:
    """Places (m, L) of new objects whose neighbours among `points` (n, L) have the probabilities P (m, n).

    Where the mean under P lies on the rim of the map (a single point at a corner), the best place is infinitely far
    out; the one that is given is where the two means agree to `MEANS_AGREE`, or the last that Newton's method reached.
    """
    means = P @ points
    if not len(P):
        return means
    ridge = RIDGE * np.eye(points.shape[1])

    def step(state: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array, Array], float]:
        places, value, Q = state
        centre = Q @ points
        gradient = 2.0 * (centre - means)
        moments = (Q @ (points[:, :, None] * points[:, None, :]).reshape(len(points), -1)).reshape(-1, *ridge.shape)
        hessian = 4.0 * (moments - centre[:, :, None] * centre[:, None, :]) + ridge
        direction = -np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        slope = (direction * gradient).sum(axis=1)
        # Beyond a unit or two the quadratic model means nothing: other points count there.
        length = np.minimum(1.0, 2.0 / np.maximum(np.linalg.norm(direction, axis=1), 1e-300))
        for _ in range(HALVINGS):
            tried = places + length[:, None] * direction
            new, Q = divergences(tried, P, points, log_weights)
            worse = new > value + 1e-4 * length * slope + 1e-12 * np.abs(value)
            if not worse.any():
                break
            length[worse] *= 0.5
        return (tried, new, Q), float(np.abs(Q @ points - means).max() - MEANS_AGREE)

    start = means if start is None else start
    return iterate(step, (start, *divergences(start, P, points, log_weights)), max_iter=NEWTON_STEPS).state[0]


def place_among_images(P: Array, images: Array, log_shares: Array, start: Array) -> Array:
    """Places (m, L) of new objects with one image each, among the images (n, B, L) of the old ones.

    Which image of a neighbour is met is hidden: in turn its posterior is found and the object placed, which never
    raises the divergence. The places found depend on where they begin.
    """
    n, n_images, width = images.shape
    if not len(P):
        return start
    points, weights = images.reshape(-1, width), log_shares.ravel()

    def step(places: Array) -> tuple[Array, float]:
        log_joint = weights - ((places[:, None, :] - points) ** 2).sum(axis=2)
        log_joint = log_joint.reshape(-1, n, n_images)
        shares = np.exp(log_joint - log_joint.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        moved = place((P[:, :, None] * shares).reshape(len(P), -1), points, weights, places)
        return moved, float(np.abs(moved - places).max() - SETTLED)

    return iterate(step, start, max_iter=EM_STEPS).state
