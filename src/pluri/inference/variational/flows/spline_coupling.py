"""Spline coupling layer: some coordinates stay, and say which monotone spline each of the others goes through.

See `pluri.inference.variational.flows.spline`. One layer can make a density with several modes from one with a single
mode, which an affine coupling layer cannot.

References
----------
Durkan, Bekasov, Murray and Papamakarios (2019), Neural spline flows, NeurIPS.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.inference.variational.flows.conditioner import Conditioner
from pluri.inference.variational.flows.layer import Array, Cache
from pluri.inference.variational.flows.spline import Knots, evaluate, invert, make_knots, pull_back


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
