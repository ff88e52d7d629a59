r"""Euclidean projection on the probability simplex, with optional lower bounds.

The projection of :math:`y` on :math:`\{x : x \ge \ell, \sum_j x_j = r\}` is

.. math:: x_j = \ell_j + \max(y_j - \ell_j - \theta, 0),

where the one number :math:`\theta` that makes the row sum to :math:`r` is found by sorting.

References
----------
.. [1] J. Duchi, S. Shalev-Shwartz, Y. Singer and T. Chandra, "Efficient projections onto the l1-ball for learning in
   high dimensions", ICML 2008.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def project_to_simplex(Y: ArrayLike, *, floor: ArrayLike = 0.0, radius: float = 1.0) -> NDArray[np.float64]:
    """Project every row of ``Y`` on the simplex: the nearest point with entries >= ``floor`` that sum to ``radius``.

    Parameters
    ----------
    Y : array_like, shape (..., n)
        Points; the last axis is projected, the leading axes are independent.
    floor : array_like, default=0.0
        Lower bound of the entries, one number or anything that broadcasts to ``Y``; its sum along the last axis must
        stay below ``radius``.
    radius : float, default=1.0
        What the entries sum to.

    Returns
    -------
    ndarray, shape (..., n)
        A new array; ``Y`` is left alone. Costs a sort of each row.

    Examples
    --------
    >>> from pluri.optimize import project_to_simplex
    >>> project_to_simplex([[0.6, 0.6, -0.2], [2.0, 0.0, 0.0]])
    array([[0.5, 0.5, 0. ],
           [1. , 0. , 0. ]])
    >>> project_to_simplex([2.0, 0.0, 0.0], floor=0.1)
    array([0.8, 0.1, 0.1])
    """
    points = np.asarray(Y, dtype=np.float64)
    if points.ndim == 0 or points.shape[-1] == 0:
        raise ValueError(f"Y must have at least one entry along its last axis, got shape {points.shape}")
    if not np.isfinite(points).all():
        raise ValueError("Y must be finite, got NaN or infinity")
    if not (np.isfinite(radius) and radius > 0):
        raise ValueError(f"radius must be a positive number, got {radius!r}")
    lower = np.broadcast_to(np.asarray(floor, dtype=np.float64), points.shape)
    if not (lower >= 0).all():
        raise ValueError(f"floor must be non-negative, got {floor!r}")
    room = radius - lower.sum(axis=-1, keepdims=True)
    if not (room > 0).all():
        raise ValueError(f"floor must leave room: its sum over a row must be below the radius {radius}, got {floor!r}")

    # The projection does not change when a constant is added to a row. With the largest entry at zero, theta is at
    # least -room, so entries below -room are inactive: clipping them there keeps the sums exact for any magnitude.
    with np.errstate(over="ignore"):
        shifted = points - lower
        shifted = shifted - shifted.max(axis=-1, keepdims=True)
    shifted = np.maximum(shifted, -room)
    descending = -np.sort(-shifted, axis=-1)
    excess = np.cumsum(descending, axis=-1) - room
    rank = np.arange(1, points.shape[-1] + 1)
    active = np.count_nonzero(descending * rank > excess, axis=-1, keepdims=True)
    theta = np.take_along_axis(excess, active - 1, axis=-1) / active
    return lower + np.maximum(shifted - theta, 0.0)
