r"""Planar layer: pushes points along one direction, by an amount that depends on their place along another.

``f(z) = z + u' tanh(w.z + b)`` with ``det = 1 + (1 - tanh(s)^2) u'.w`` at ``s = w.z + b``. It is invertible if and
only if ``u'.w >= -1``, which ``u' = u + (m(w.u) - w.u) w / |w|^2`` ensures for any u, where m maps the line onto
(-1, inf). We take ``m(x) = softplus(x + log(e - 1)) - 1``, shifted from the usual one so that ``m(0) = 0``: then
``u = 0`` is the identity, and u' stays bounded where w goes to 0.

The inverse solves ``s + (u'.w) tanh(s) = w.y + b``, which increases in s, by Newton steps inside a bracket.

References
----------
Rezende and Mohamed (2015), Variational inference with normalizing flows, ICML, appendix A.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.inference.variational.flows.layer import Array, Cache, sigmoid, softplus

SHIFT = float(np.log(np.expm1(1.0)))
#: Added to |w|^2, so that w = 0 divides by something.
TINY = 1e-12


@dataclass(frozen=True)
class Planar:
    """Planar layer; parameters are w (dim), u (dim), b (1).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows import Planar
    >>> layer = Planar(2)
    >>> z = np.array([[0.5, -1.0]])
    >>> y, log_det, _ = layer.forward(np.array([1.0, 0.0, 2.0, 0.0, 0.0]), z)
    >>> y, log_det
    (array([[ 1.247, -1.   ]]), array([0.8206]))
    >>> layer.inverse(np.array([1.0, 0.0, 2.0, 0.0, 0.0]), y)[0]
    array([[ 0.5, -1. ]])
    """

    dim: int

    @property
    def n_parameters(self) -> int:
        """Two vectors and an offset."""
        return 2 * self.dim + 1

    def initialize(self, rng: np.random.Generator, scale: float) -> Array:
        """All parameters from a normal distribution."""
        return scale * rng.standard_normal(self.n_parameters)

    def _unpack(self, parameters: Array) -> tuple[Array, Array, float, Array, float]:
        """Give w, u, b, and the direction u' with u'.w > -1."""
        w, u, b = parameters[: self.dim], parameters[self.dim : -1], float(parameters[-1])
        product = float(w @ u)
        kappa = float(softplus(product + SHIFT)) - 1.0 - product
        return w, u, b, u + kappa / (float(w @ w) + TINY) * w, kappa

    def forward(self, parameters: Array, z: Array) -> tuple[Array, Array, Cache]:
        """See `Layer.forward`."""
        w, _, b, direction, _ = self._unpack(parameters)
        a = np.tanh(z @ w + b)
        slope = 1.0 - a * a
        det = np.maximum(1.0 + slope * float(direction @ w), np.finfo(float).tiny)
        return z + a[:, None] * direction, np.log(det), (z, a, slope, det)

    def inverse(self, parameters: Array, y: Array) -> tuple[Array, Array]:
        """See `Layer.inverse`."""
        w, _, b, direction, _ = self._unpack(parameters)
        product = float(direction @ w)
        a = np.tanh(solve_increasing(y @ w + b, product))
        det = np.maximum(1.0 + (1.0 - a * a) * product, np.finfo(float).tiny)
        return y - a[:, None] * direction, -np.log(det)

    def backward(self, parameters: Array, cache: Cache, grad_y: Array, grad_log_det: Array) -> tuple[Array, Array]:
        """See `Layer.backward`."""
        z, a, slope, det = cache
        w, u, _, direction, kappa = self._unpack(parameters)
        product = float(direction @ w)
        ratio = grad_log_det / det
        grad_s = slope * (grad_y @ direction - 2.0 * a * product * ratio)
        weight = float(slope @ ratio)  # of d(u'.w) in the loss
        grad_direction = a @ grad_y + weight * w
        grad_w = weight * direction + grad_s @ z
        # Through u' = u + kappa(w.u) w / (|w|^2 + TINY).
        square = float(w @ w) + TINY
        along = float(grad_direction @ w) / square
        bend = along * (float(sigmoid(w @ u + SHIFT)) - 1.0)
        grad_u = grad_direction + bend * w
        grad_w += bend * u + kappa / square * (grad_direction - 2.0 * along * w)
        return grad_y + grad_s[:, None] * w, np.concatenate([grad_w, grad_u, [grad_s.sum()]])


def solve_increasing(target: Array, product: float, max_iter: int = 200) -> Array:
    """Solve ``s + product * tanh(s) = target`` for s, where product > -1: Newton, or bisection where that leaves.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows.planar import solve_increasing
    >>> s = solve_increasing(np.array([-3.0, 0.2]), product=-0.9)
    >>> s - 0.9 * np.tanh(s)
    array([-3. ,  0.2])
    """
    low, high = target - abs(product), target + abs(product)
    solution = target.copy()
    open_rows = np.arange(len(target))
    for _ in range(max_iter):
        s, wanted = solution[open_rows], target[open_rows]
        a = np.tanh(s)
        error = s + product * a - wanted
        low[open_rows] = left = np.where(error < 0, s, low[open_rows])
        high[open_rows] = right = np.where(error > 0, s, high[open_rows])
        with np.errstate(divide="ignore", invalid="ignore"):
            newton = s - error / (1.0 + product * (1.0 - a * a))
        solution[open_rows] = step = np.where((newton >= left) & (newton <= right), newton, 0.5 * (left + right))
        open_rows = open_rows[np.abs(step - s) > 1e-15 * np.maximum(np.abs(s), 1.0)]
        if not len(open_rows):
            break
    return solution
