r"""Orthonormal frames: how to move on the manifolds that they form, and how to climb a quadratic there.

A frame U (D by d) has :math:`U^\top U = I`. On the *Stiefel* manifold frames themselves count: a slope G becomes the
tangent :math:`G - U \, \mathrm{sym}(U^\top G)`, and a step ends in the orthogonal factor of :math:`U + tT`. On the
*Grassmann* manifold only the subspace counts: the tangent is :math:`G - U U^\top G = Q \Sigma V^\top`, and the geodesic
:math:`U V \cos(\Sigma t) V^\top + Q \sin(\Sigma t) V^\top`. Where an objective is not invariant to rotations of the
columns, Grassmann steps climb too, but stop where only a rotation would help.

References
----------
.. [1] A. Edelman, T. Arias and S. Smith, "The geometry of algorithms with orthogonality constraints", SIAM Journal on
   Matrix Analysis and Applications 20, 1998.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MANIFOLDS = ("stiefel", "grassmann")
#: Share of the promised gain that a step must bring.
ARMIJO = 1e-4


def orthonormal(matrix: Array) -> Array:
    """The orthogonal factor with a positive diagonal of the other one.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.exponential_family_pca.frames import orthonormal
    >>> orthonormal(np.array([[3.0], [4.0]]))
    array([[0.6],
           [0.8]])
    """
    q, r = np.linalg.qr(matrix)
    # Diagonal entries of r carry the sign; with them moved over, the factor is unique.
    return np.asarray(q * np.where(np.diagonal(r) < 0, -1.0, 1.0))


def tangent(frame: Array, slope: Array, manifold: str = "stiefel") -> Array:
    """The part of a slope along the manifold."""
    inner = frame.T @ slope
    if manifold == "stiefel":
        inner = 0.5 * (inner + inner.T)
    return slope - frame @ inner


def move(frame: Array, direction: Array, size: float, manifold: str = "stiefel") -> Array:
    """A step of some size along a tangent."""
    if manifold == "stiefel":
        return orthonormal(frame + size * direction)
    across, angles, turn = np.linalg.svd(direction, full_matrices=False)
    moved = frame @ (turn.T * np.cos(size * angles)) @ turn + (across * np.sin(size * angles)) @ turn
    # Rounding adds up over many steps; the nearest frame spans the same subspace.
    left, _, right = np.linalg.svd(moved, full_matrices=False)
    return np.asarray(left @ right)


def climb_frame(
    value: Callable[[Array], float],
    slope: Callable[[Array], Array],
    frame: Array,
    *,
    manifold: str = "stiefel",
    n_steps: int = 10,
    size: float = 1.0,
) -> Array:
    """Raise a function of a frame by steps along its slope, halved until they pay.

    Parameters
    ----------
    value, slope : callables
        The function, and its gradient in the surrounding space.
    frame : array of shape (n_features, n_latent)
    manifold : {"stiefel", "grassmann"}
    n_steps : int
    size : float
        First step; the later ones follow from how slopes change (Barzilai and Borwein).

    Examples
    --------
    The leading directions of a covariance matrix maximise the variance that they span.

    >>> import numpy as np
    >>> from pluri.mixtures.exponential_family_pca.frames import climb_frame
    >>> covariance = np.diag([1.0, 9.0, 4.0])
    >>> start = np.array([[0.8, 0.0], [0.0, 1.0], [0.6, 0.0]])
    >>> frame = climb_frame(
    ...     lambda u: np.trace(u.T @ covariance @ u), lambda u: 2 * covariance @ u, start, n_steps=50, size=0.1)
    >>> np.round(frame @ frame.T, 4)
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    now = value(frame)
    along = tangent(frame, slope(frame), manifold)
    for _ in range(n_steps):
        square = float(np.sum(along**2))
        if square <= 1e-24:
            break
        for _ in range(30):
            moved = move(frame, along, size, manifold)
            after = value(moved)
            if after >= now + ARMIJO * size * square:
                break
            size *= 0.5
        else:
            break
        next_along = tangent(moved, slope(moved), manifold)
        shift, change = moved - frame, next_along - along
        bend = abs(float(np.sum(shift * change)))
        longest = 10.0 * size
        size = min(float(np.sum(shift**2)) / bend, longest) if bend > 1e-300 else longest
        frame, along, now = moved, next_along, after
    return frame


@dataclass(frozen=True)
class Quadratic:
    r"""The model :math:`\sum_j (g_j^\top \delta_j - \frac12 \delta_j^\top P_j \delta_j)` of weights around a centre.

    Attributes
    ----------
    centre : (n_features, n_latent)
    gradient : (n_features, n_latent)
    precision : (n_features, n_latent, n_latent)
    """

    centre: Array
    gradient: Array
    precision: Array

    def value(self, weights: Array) -> float:
        """The model at some weights."""
        step = weights - self.centre
        pull = np.matmul(self.precision, step[:, :, None])[:, :, 0]
        return float(np.sum(step * (self.gradient - 0.5 * pull)))

    def slope(self, weights: Array) -> Array:
        """Its gradient."""
        step = weights - self.centre
        return self.gradient - np.matmul(self.precision, step[:, :, None])[:, :, 0]


def climb_scales(quadratic: Quadratic, frame: Array, scales: Array, ridge: Array, sparsity: float) -> Array:
    """The scales that maximise the model less ``ridge scale^2 / 2 + sparsity |scale|``, by coordinates.

    Each coordinate is solved exactly: a soft threshold, so that scales become exactly zero.
    """
    scales = scales.copy()
    slope = np.einsum("ji,ji->i", frame, quadratic.slope(frame * scales))
    curve = np.einsum("ji,jil,jl->il", frame, quadratic.precision, frame)
    for _ in range(50):
        largest = 0.0
        for i in range(len(scales)):
            bend = max(curve[i, i], 1e-12)
            aim = slope[i] + bend * scales[i]
            new = np.sign(aim) * max(abs(aim) - sparsity, 0.0) / (bend + ridge[i])
            change = new - scales[i]
            if change:
                slope -= curve[:, i] * change
                scales[i] = new
                largest = max(largest, abs(change))
        if largest <= 1e-10 * max(1.0, float(np.abs(scales).max())):
            break
    return scales
