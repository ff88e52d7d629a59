"""What a layer of a normalizing flow is: an invertible map with a known log-determinant and its pull-backs.

A flow is ``z_K = f_K(... f_1(z_0))`` with ``log q_K(z_K) = log q_0(z_0) - sum_k log |det df_k / dz_(k-1)|``. A layer
is a frozen record of its shape and settings; its parameters are one flat array beside it, so that an optimiser sees a
vector and a layer stays a few pure functions.

References
----------
Rezende and Mohamed (2015), Variational inference with normalizing flows, ICML.
Papamakarios, Nalisnick, Rezende, Mohamed and Lakshminarayanan (2021), Normalizing flows for probabilistic modeling and
inference, JMLR 22.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

#: Whatever a layer wants to remember from `forward` for `backward`.
Cache = Any


class Layer(Protocol):
    """An invertible map of the rows of an array."""

    @property
    def dim(self) -> int:
        """Number of columns of the rows."""

    @property
    def n_parameters(self) -> int:
        """Length of the parameter array."""

    def initialize(self, rng: np.random.Generator, scale: float) -> Array:
        """Random parameters; with ``scale=0`` the map is the identity."""

    def forward(self, parameters: Array, z: Array) -> tuple[Array, Array, Cache]:
        """Map z of shape (n, dim) to y; gives y, log |det dy/dz| of shape (n,), and what `backward` needs."""

    def inverse(self, parameters: Array, y: Array) -> tuple[Array, Array]:
        """Map y back to z; gives z and log |det dz/dy|, minus the one of `forward` at z."""

    def backward(self, parameters: Array, cache: Cache, grad_y: Array, grad_log_det: Array) -> tuple[Array, Array]:
        """Pull back the gradient of a loss L: from dL/dy (n, dim) and dL/dlog_det (n,) to dL/dz and dL/dparameters."""


def softplus(x: Any) -> Any:
    """log(1 + exp(x)) without overflow."""
    return np.logaddexp(0.0, x)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))
