"""Affine coupling layer: some coordinates stay, and say how the others are shifted and scaled.

``y_P = z_P`` and ``y_C = z_C exp(s(z_P)) + t(z_P)`` with ``log det = sum s``. The network behind s and t need not be
invertible. ``s = bound * tanh(raw / bound)``, so that a wild network cannot overflow.

References
----------
Dinh, Sohl-Dickstein and Bengio (2017), Density estimation using Real NVP, ICLR.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.inference.variational.flows.conditioner import Conditioner
from pluri.inference.variational.flows.layer import Array, Cache


@dataclass(frozen=True)
class AffineCoupling:
    """Affine coupling layer; the parameters are those of its network.

    Parameters
    ----------
    passes, changes : tuple of int
        Coordinates that stay, and that change; together all of them. `passes` may be empty.
    hidden : tuple of int
        Sizes of the hidden layers of the network.
    activation : {"tanh", "relu"}
    bound : float
        Largest absolute log scale.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows import AffineCoupling
    >>> layer, rng = AffineCoupling(passes=(0,), changes=(1,), hidden=(8,)), np.random.default_rng(0)
    >>> parameters, z = layer.initialize(rng, 1.0), rng.normal(size=(5, 2))
    >>> y, log_det, _ = layer.forward(parameters, z)
    >>> bool(np.allclose(layer.inverse(parameters, y)[0], z))
    True
    """

    passes: tuple[int, ...]
    changes: tuple[int, ...]
    hidden: tuple[int, ...] = (32,)
    activation: str = "tanh"
    bound: float = 3.0

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.passes) + len(self.changes)

    @property
    def _network(self) -> Conditioner:
        return Conditioner(len(self.passes), 2 * len(self.changes), self.hidden, self.activation)

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

    def _shift_and_scale(self, parameters: Array, kept: Array) -> tuple[Array, Array, list[Array]]:
        outputs, inputs = self._network.forward(parameters, kept)
        half = len(self.changes)
        return outputs[:, :half], np.tanh(outputs[:, half:] / self.bound), inputs

    def forward(self, parameters: Array, z: Array) -> tuple[Array, Array, Cache]:
        """See `Layer.forward`."""
        passes, changes = self._columns
        shift, squashed, inputs = self._shift_and_scale(parameters, z[:, passes])
        scaled = z[:, changes] * np.exp(self.bound * squashed)
        y = z.copy()
        y[:, changes] = scaled + shift
        return y, self.bound * squashed.sum(axis=1), (scaled, squashed, inputs)

    def inverse(self, parameters: Array, y: Array) -> tuple[Array, Array]:
        """See `Layer.inverse`."""
        passes, changes = self._columns
        shift, squashed, _ = self._shift_and_scale(parameters, y[:, passes])
        z = y.copy()
        z[:, changes] = (y[:, changes] - shift) * np.exp(-self.bound * squashed)
        return z, -self.bound * squashed.sum(axis=1)

    def backward(self, parameters: Array, cache: Cache, grad_y: Array, grad_log_det: Array) -> tuple[Array, Array]:
        """See `Layer.backward`."""
        scaled, squashed, inputs = cache
        passes, changes = self._columns
        moved = grad_y[:, changes]
        grad_raw = (moved * scaled + grad_log_det[:, None]) * (1.0 - squashed * squashed)
        grad_kept, grad_parameters = self._network.backward(parameters, inputs, np.hstack([moved, grad_raw]))
        grad_z = grad_y.copy()
        grad_z[:, passes] += grad_kept
        grad_z[:, changes] = moved * np.exp(self.bound * squashed)
        return grad_z, grad_parameters
