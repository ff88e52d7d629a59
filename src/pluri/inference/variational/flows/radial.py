r"""Radial layer: contracts or expands space around a centre.

``f(z) = z + beta (z - c) / (alpha + r)`` with ``r = |z - c|`` and
``det = (1 + beta / (alpha + r))^(d - 1) (1 + alpha beta / (alpha + r)^2)``. It is invertible if and only if
``beta >= -alpha``, which ``alpha = softplus(a)``, ``beta = softplus(b) - alpha`` ensures; ``a = b`` is the identity.

The inverse is in closed form: with ``rho = |y - c|``, r is the positive root of
``r^2 - (rho - alpha - beta) r - alpha rho = 0``.

References
----------
Rezende and Mohamed (2015), Variational inference with normalizing flows, ICML, appendix A.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pluri.inference.variational.flows.layer import Array, Cache, sigmoid, softplus


@dataclass(frozen=True)
class Radial:
    """Radial layer; parameters are the centre (dim), a (1), b (1).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows import Radial
    >>> layer, parameters = Radial(2), np.array([0.0, 0.0, 1.0, 3.0])
    >>> y, log_det, _ = layer.forward(parameters, np.array([[3.0, 4.0]]))
    >>> y, log_det
    (array([[3.825, 5.099]]), array([0.2984]))
    >>> layer.inverse(parameters, y)[0]
    array([[3., 4.]])
    """

    dim: int

    @property
    def n_parameters(self) -> int:
        """A centre and two numbers."""
        return self.dim + 2

    def initialize(self, rng: np.random.Generator, scale: float) -> Array:
        """All parameters from a normal distribution."""
        return scale * rng.standard_normal(self.n_parameters)

    def _unpack(self, parameters: Array) -> tuple[Array, float, float]:
        alpha = float(softplus(parameters[-2]))
        return parameters[: self.dim], alpha, float(softplus(parameters[-1])) - alpha

    def forward(self, parameters: Array, z: Array) -> tuple[Array, Array, Cache]:
        """See `Layer.forward`."""
        center, alpha, beta = self._unpack(parameters)
        difference = z - center
        radius = np.sqrt(np.einsum("nd,nd->n", difference, difference))
        h = 1.0 / (alpha + radius)
        around, along = _stretches(alpha, beta, h)
        log_det = (self.dim - 1) * np.log(around) + np.log(along)
        return center + around[:, None] * difference, log_det, (difference, radius, h, around, along)

    def inverse(self, parameters: Array, y: Array) -> tuple[Array, Array]:
        """See `Layer.inverse`."""
        center, alpha, beta = self._unpack(parameters)
        difference = y - center
        rho = np.sqrt(np.einsum("nd,nd->n", difference, difference))
        half = 0.5 * (rho - alpha - beta)
        root = np.sqrt(half**2 + alpha * rho)
        # Of the two forms of the root, the one without a cancellation.
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = np.where(half >= 0, half + root, np.where(root > half, alpha * rho / (root - half), 0.0))
        around, along = _stretches(alpha, beta, 1.0 / (alpha + radius))
        return center + difference / around[:, None], -(self.dim - 1) * np.log(around) - np.log(along)

    def backward(self, parameters: Array, cache: Cache, grad_y: Array, grad_log_det: Array) -> tuple[Array, Array]:
        """See `Layer.backward`."""
        difference, radius, h, around, along = cache
        _, alpha, beta = self._unpack(parameters)
        inner = np.einsum("nd,nd->n", grad_y, difference)
        grad_around = inner + grad_log_det * (self.dim - 1) / around  # around = 1 + beta h
        grad_along = grad_log_det / along  # along = 1 + alpha beta h^2
        grad_h = beta * grad_around + 2.0 * alpha * beta * h * grad_along
        grad_beta = float(h @ grad_around + alpha * (h * h) @ grad_along)
        grad_total = -h * h * grad_h  # of alpha + radius
        grad_alpha = float(beta * (h * h) @ grad_along + grad_total.sum())
        safe = np.where(radius > 0, radius, 1.0)
        grad_difference = around[:, None] * grad_y + (grad_total / safe)[:, None] * difference
        grad_center = (grad_y - grad_difference).sum(axis=0)
        slopes = sigmoid(parameters[-2:])
        return grad_difference, np.concatenate(
            [grad_center, [(grad_alpha - grad_beta) * slopes[0], grad_beta * slopes[1]]]
        )


def _stretches(alpha: float, beta: float, h: Array) -> tuple[Array, Array]:
    """Factors by which lengths grow around the centre and along the radius; positive, as beta > -alpha."""
    tiny = np.finfo(float).tiny
    return np.maximum(1.0 + beta * h, tiny), np.maximum(1.0 + alpha * beta * h * h, tiny)
