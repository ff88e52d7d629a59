"""The two simplest layers: a shift and a scale for each coordinate, and a new order of the coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.inference.variational.flows.layer import Array, Cache


@dataclass(frozen=True)
class ElementwiseAffine:
    """``y = shift + exp(log_scale) z``; parameters are shift (dim), log_scale (dim).

    In front of other layers it makes the base distribution N(shift, diag(exp(2 log_scale))).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows import ElementwiseAffine
    >>> y, log_det, _ = ElementwiseAffine(1).forward(np.array([1.0, np.log(2.0)]), np.array([[3.0]]))
    >>> y, log_det
    (array([[7.]]), array([0.693]))
    """

    dim: int

    @property
    def n_parameters(self) -> int:
        """Two for each coordinate."""
        return 2 * self.dim

    def initialize(self, rng: np.random.Generator, scale: float) -> Array:
        """The identity, whatever the scale: there is no symmetry to break."""
        return np.zeros(self.n_parameters)

    def forward(self, parameters: Array, z: Array) -> tuple[Array, Array, Cache]:
        """See `Layer.forward`."""
        shift, log_scale = parameters[: self.dim], parameters[self.dim :]
        scaled = np.exp(log_scale) * z
        return shift + scaled, np.full(len(z), log_scale.sum()), scaled

    def inverse(self, parameters: Array, y: Array) -> tuple[Array, Array]:
        """See `Layer.inverse`."""
        shift, log_scale = parameters[: self.dim], parameters[self.dim :]
        return (y - shift) * np.exp(-log_scale), np.full(len(y), -log_scale.sum())

    def backward(self, parameters: Array, cache: Cache, grad_y: Array, grad_log_det: Array) -> tuple[Array, Array]:
        """See `Layer.backward`."""
        grad_log_scale = (grad_y * cache).sum(axis=0) + grad_log_det.sum()
        return grad_y * np.exp(parameters[self.dim :]), np.concatenate([grad_y.sum(axis=0), grad_log_scale])


@dataclass(frozen=True)
class Permutation:
    """``y[:, i] = z[:, order[i]]``; it has no parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows import Permutation
    >>> layer = Permutation((2, 0, 1))
    >>> y, _, _ = layer.forward(np.zeros(0), np.array([[10.0, 11.0, 12.0]]))
    >>> y, layer.inverse(np.zeros(0), y)[0]
    (array([[12., 10., 11.]]), array([[10., 11., 12.]]))
    """

    order: tuple[int, ...]

    def __post_init__(self) -> None:
        if sorted(self.order) != list(range(len(self.order))):
            raise ValueError(f"order must be a permutation of 0, ..., {len(self.order) - 1}, got {self.order}")

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.order)

    @property
    def n_parameters(self) -> int:
        """None."""
        return 0

    def initialize(self, rng: np.random.Generator, scale: float) -> Array:
        """Nothing to set."""
        return np.zeros(0)

    def forward(self, parameters: Array, z: Array) -> tuple[Array, Array, Cache]:
        """See `Layer.forward`."""
        return z[:, self.order], np.zeros(len(z)), None

    def inverse(self, parameters: Array, y: Array) -> tuple[Array, Array]:
        """See `Layer.inverse`."""
        return y[:, np.argsort(self.order)], np.zeros(len(y))

    def backward(self, parameters: Array, cache: Cache, grad_y: Array, grad_log_det: Array) -> tuple[Array, Array]:
        """See `Layer.backward`."""
        return grad_y[:, np.argsort(self.order)], np.zeros(0)
