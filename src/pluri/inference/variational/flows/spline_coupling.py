"""Spline coupling layer: some coordinates stay, and say which monotone spline each of the others goes through.

One layer can make a density with several modes from one with a single
mode, which an affine coupling layer cannot.

The splines are monotone and rational-quadratic. On ``[-bound, bound]`` the spline runs through K + 1 knots with given
slopes; outside it is the identity. In the bin with left knot ``(x_k, y_k)``, width w, height h, mean slope ``s = h /
w`` and end slopes d0, d1, at ``xi = (x - x_k) / w`` and ``t = xi (1 - xi)``::

    y      = y_k + h (s xi^2 + d0 t) / (s + (d0 + d1 - 2 s) t)
    dy/dx  = s^2 (d1 xi^2 + 2 s t + d0 (1 - xi)^2) / (s + (d0 + d1 - 2 s) t)^2

which increases for any positive w, h, d0, d1, and whose inverse is a quadratic equation.

References
----------
Durkan, Bekasov, Murray and Papamakarios (2019), Neural spline flows, NeurIPS.
Gregory and Delbourgo (1982), Piecewise rational quadratic interpolation to monotonic data, IMA J. Num. Anal. 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pluri.inference.variational.flows.conditioner import Conditioner
from pluri.inference.variational.flows.layer import Array, Cache, sigmoid, softplus

#: No bin is narrower or lower than this share of the box, and no slope is smaller than this.
SMALLEST = 1e-3
#: Raw slopes of zero mean a slope of one.
SLOPE_SHIFT = float(np.log(np.expm1(1.0 - SMALLEST)))


class Knots(NamedTuple):
    """Splines for m numbers.

    Attributes
    ----------
    width_shares, height_shares : (m, K): softmax of the raw widths and heights
    x, y : (m, K + 1): knots
    slopes : (m, K + 1): derivatives at the knots; 1 at both ends
    raw_slopes : (m, K - 1): the inner ones before softplus
    """

    width_shares: Array
    height_shares: Array
    x: Array
    y: Array
    slopes: Array
    raw_slopes: Array


class Evaluation(NamedTuple):
    """What the gradient needs from an evaluation: each of shape (m,)."""

    bin: Any
    inside: Any
    xi: Array
    width: Array
    height: Array
    left_slope: Array
    right_slope: Array


def make_knots(raw: Array, bound: float) -> Knots:
    """Knots from unconstrained numbers: raw has shape (m, 3 K - 1): K widths, K heights, K - 1 inner slopes."""
    n_bins = (raw.shape[1] + 1) // 3
    widths, heights = _softmax(raw[:, :n_bins]), _softmax(raw[:, n_bins : 2 * n_bins])
    raw_slopes = raw[:, 2 * n_bins :]
    slopes = np.ones((len(raw), n_bins + 1))
    slopes[:, 1:-1] = SMALLEST + softplus(raw_slopes + SLOPE_SHIFT)
    return Knots(widths, heights, _cumulate(widths, bound), _cumulate(heights, bound), slopes, raw_slopes)


def _softmax(raw: Array) -> Array:
    powers = np.exp(raw - raw.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _cumulate(shares: Array, bound: float) -> Array:
    knots = np.empty((len(shares), shares.shape[1] + 1))
    knots[:, 0] = -bound
    np.cumsum(2.0 * bound * (SMALLEST + (1.0 - SMALLEST * shares.shape[1]) * shares), axis=1, out=knots[:, 1:])
    knots[:, 1:] -= bound
    knots[:, -1] = bound
    return knots


def _find(knots: Knots, edges: Array, values: Array) -> Evaluation:
    """Bin of each value; xi is filled in by the caller."""
    inside = (values > edges[:, 0]) & (values < edges[:, -1])
    position = (values[:, None] >= edges[:, 1:-1]).sum(axis=1)
    row = np.arange(len(values))
    width = knots.x[row, position + 1] - knots.x[row, position]
    height = knots.y[row, position + 1] - knots.y[row, position]
    left, right = knots.slopes[row, position], knots.slopes[row, position + 1]
    return Evaluation(position, inside, np.zeros(len(values)), width, height, left, right)


def _log_slope(at: Evaluation) -> Array:
    slope, t = at.height / at.width, at.xi * (1.0 - at.xi)
    bottom = slope + (at.left_slope + at.right_slope - 2.0 * slope) * t
    top = at.right_slope * at.xi**2 + 2.0 * slope * t + at.left_slope * (1.0 - at.xi) ** 2
    return np.where(at.inside, 2.0 * np.log(slope / bottom) + np.log(top), 0.0)


def evaluate(knots: Knots, x: Array) -> tuple[Array, Array, Evaluation]:
    """Values and log derivatives at x of shape (m,), one number for each spline.

    Examples
    --------
    Raw numbers of zero are the identity.

    >>> import numpy as np
    >>> from pluri.inference.variational.flows.spline_coupling import evaluate, make_knots
    >>> y, log_slope, _ = evaluate(make_knots(np.zeros((3, 11)), bound=2.0), np.array([-0.7, 1.2, 5.0]))
    >>> y, np.abs(log_slope).max() < 1e-12
    (array([-0.7,  1.2,  5. ]), np.True_)
    """
    found = _find(knots, knots.x, x)
    row = np.arange(len(x))
    xi = np.clip((x - knots.x[row, found.bin]) / found.width, 0.0, 1.0)
    at = found._replace(xi=xi)
    slope, t = at.height / at.width, xi * (1.0 - xi)
    bottom = slope + (at.left_slope + at.right_slope - 2.0 * slope) * t
    y = knots.y[row, at.bin] + at.height * (slope * xi**2 + at.left_slope * t) / bottom
    return np.where(at.inside, y, x), _log_slope(at), at


def invert(knots: Knots, y: Array) -> tuple[Array, Array]:
    """Places x where the splines have the values y, and the log derivatives of the inverse there."""
    found = _find(knots, knots.y, y)
    row = np.arange(len(y))
    slope = found.height / found.width
    rise = np.clip(y - knots.y[row, found.bin], 0.0, found.height)
    bend = rise * (found.left_slope + found.right_slope - 2.0 * slope)
    a = found.height * (slope - found.left_slope) + bend
    b = found.height * found.left_slope - bend
    c = -slope * rise
    # The form of the root that does not cancel; the discriminant is positive for a monotone spline.
    xi = 2.0 * c / (-b - np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0)))
    at = found._replace(xi=np.clip(xi, 0.0, 1.0))
    x = knots.x[row, at.bin] + at.xi * at.width
    return np.where(at.inside, x, y), -_log_slope(at)


def pull_back(knots: Knots, at: Evaluation, grad_y: Array, grad_log_slope: Array, bound: float) -> tuple[Array, Array]:
    """Gradient with respect to x (m,) and to the raw numbers (m, 3 K - 1)."""
    n_bins = knots.width_shares.shape[1]
    row, xi = np.arange(len(grad_y)), at.xi
    # Outside of the box the map is the identity: nothing reaches the knots.
    gy, gl = np.where(at.inside, grad_y, 0.0), np.where(at.inside, grad_log_slope, 0.0)
    s, d0, d1, t = at.height / at.width, at.left_slope, at.right_slope, xi * (1.0 - xi)
    bottom = s + (d0 + d1 - 2.0 * s) * t
    share = (s * xi**2 + d0 * t) / bottom
    grad_share_top = gy * at.height / bottom
    grad_bottom = -grad_share_top * share - 2.0 * gl / bottom
    grad_top = gl / (d1 * xi**2 + 2.0 * s * t + d0 * (1.0 - xi) ** 2)
    grad_s = 2.0 * gl / s + grad_share_top * xi**2 + grad_bottom * (1.0 - 2.0 * t) + 2.0 * grad_top * t
    grad_t = grad_share_top * d0 + grad_bottom * (d0 + d1 - 2.0 * s) + 2.0 * s * grad_top
    grad_xi = 2.0 * grad_share_top * s * xi + 2.0 * grad_top * (d1 * xi - d0 * (1.0 - xi)) + grad_t * (1.0 - 2.0 * xi)
    grad_x = grad_xi / at.width
    grad_width = -grad_s * s / at.width - grad_x * xi
    grad_height = gy * share + grad_s / at.width

    grad_slopes = np.zeros((len(row), n_bins + 1))
    grad_slopes[row, at.bin] = grad_share_top * t + grad_bottom * t + grad_top * (1.0 - xi) ** 2
    grad_slopes[row, at.bin + 1] = grad_bottom * t + grad_top * xi**2
    before = np.arange(n_bins) < at.bin[:, None]  # the left knot is the sum of these
    grad_widths = np.where(before, -grad_x[:, None], 0.0)
    grad_widths[row, at.bin] = grad_width
    grad_heights = np.where(before, gy[:, None], 0.0)
    grad_heights[row, at.bin] = grad_height
    scale = 2.0 * bound * (1.0 - SMALLEST * n_bins)
    grad_raw = np.hstack(
        [
            _softmax_back(knots.width_shares, scale * grad_widths),
            _softmax_back(knots.height_shares, scale * grad_heights),
            grad_slopes[:, 1:-1] * sigmoid(knots.raw_slopes + SLOPE_SHIFT),
        ]
    )
    return np.where(at.inside, grad_x, grad_y), grad_raw


def _softmax_back(shares: Array, gradient: Array) -> Array:
    return shares * (gradient - np.einsum("mk,mk->m", shares, gradient)[:, None])


@dataclass(frozen=True)
class SplineCoupling:
    """Rational-quadratic spline coupling layer; the parameters are those of its network.

    Parameters
    ----------
    passes, changes : tuple of int
        Coordinates that stay, and that change; together all of them. `passes` may be empty.
    hidden : tuple of int
        Sizes of the hidden layers of the network.
    activation : {"tanh", "relu"}
    n_bins : int
        Number of pieces of each spline.
    bound : float
        The splines live on [-bound, bound]; outside the map is the identity.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows import SplineCoupling
    >>> layer, rng = SplineCoupling(passes=(0,), changes=(1,), hidden=(8,)), np.random.default_rng(0)
    >>> parameters, z = layer.initialize(rng, 1.0), rng.normal(size=(5, 2))
    >>> y, log_det, _ = layer.forward(parameters, z)
    >>> bool(np.allclose(layer.inverse(parameters, y)[0], z))
    True
    """

    passes: tuple[int, ...]
    changes: tuple[int, ...]
    hidden: tuple[int, ...] = (32,)
    activation: str = "tanh"
    n_bins: int = 8
    bound: float = 5.0

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.passes) + len(self.changes)

    @property
    def _network(self) -> Conditioner:
        return Conditioner(len(self.passes), (3 * self.n_bins - 1) * len(self.changes), self.hidden, self.activation)

    @property
    def _columns(self) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.passes, dtype=np.intp), np.array(self.changes, dtype=np.intp)

    @property
    def n_parameters(self) -> int:
        """Those of the network."""
        return self._network.n_parameters

    def initialize(self, rng: np.random.Generator, scale: float) -> Array:
        """See `Conditioner.initialize`."""
        return self._network.initialize(rng, scale)

    def _knots(self, parameters: Array, kept: Array) -> tuple[Knots, list[Array]]:
        outputs, inputs = self._network.forward(parameters, kept)
        return make_knots(outputs.reshape(-1, 3 * self.n_bins - 1), self.bound), inputs

    def forward(self, parameters: Array, z: Array) -> tuple[Array, Array, Cache]:
        """See `Layer.forward`."""
        passes, changes = self._columns
        knots, inputs = self._knots(parameters, z[:, passes])
        values, log_slopes, at = evaluate(knots, z[:, changes].ravel())
        y = z.copy()
        y[:, changes] = values.reshape(len(z), -1)
        return y, log_slopes.reshape(len(z), -1).sum(axis=1), (knots, at, inputs)

    def inverse(self, parameters: Array, y: Array) -> tuple[Array, Array]:
        """See `Layer.inverse`."""
        passes, changes = self._columns
        knots, _ = self._knots(parameters, y[:, passes])
        values, log_slopes = invert(knots, y[:, changes].ravel())
        z = y.copy()
        z[:, changes] = values.reshape(len(y), -1)
        return z, log_slopes.reshape(len(y), -1).sum(axis=1)

    def backward(self, parameters: Array, cache: Cache, grad_y: Array, grad_log_det: Array) -> tuple[Array, Array]:
        """See `Layer.backward`."""
        knots, at, inputs = cache
        passes, changes = self._columns
        grad_slope = np.repeat(grad_log_det, len(changes))
        grad_moved, grad_raw = pull_back(knots, at, grad_y[:, changes].ravel(), grad_slope, self.bound)
        grad_kept, grad_parameters = self._network.backward(parameters, inputs, grad_raw.reshape(len(grad_y), -1))
        grad_z = grad_y.copy()
        grad_z[:, passes] += grad_kept
        grad_z[:, changes] = grad_moved.reshape(len(grad_y), -1)
        return grad_z, grad_parameters
