"""A small network that gives a coupling layer its parameters, with its gradient by hand.

``a_0 = x``, ``a_l = activation(a_(l-1) W_l + b_l)``, and the last layer is linear. Its weights start near zero, so
that a coupling layer starts near the identity.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pluri.inference.variational.flows.layer import Array

ACTIVATIONS = ("tanh", "relu")


@dataclass(frozen=True)
class Conditioner:
    """Multilayer perceptron on a flat parameter array.

    Parameters
    ----------
    n_inputs, n_outputs : int
        With no inputs the outputs are constants that can be learned.
    hidden : tuple of int
        Sizes of the hidden layers.
    activation : {"tanh", "relu"}

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.variational.flows.conditioner import Conditioner
    >>> network = Conditioner(1, 1, hidden=(2,), activation="relu")
    >>> weights = np.array([1.0, -1.0, 0.0, 0.0, 1.0, 1.0, 0.5])  # |x| + 1/2
    >>> network.forward(weights, np.array([[-3.0], [2.0]]))[0].ravel()
    array([3.5, 2.5])
    """

    n_inputs: int
    n_outputs: int
    hidden: tuple[int, ...] = (32,)
    activation: str = "tanh"

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        return list(pairwise((self.n_inputs, *self.hidden, self.n_outputs)))

    @property
    def n_parameters(self) -> int:
        """Weights and offsets of all layers."""
        return sum((rows + 1) * columns for rows, columns in self._shapes)

    def initialize(self, rng: np.random.Generator, scale: float) -> Array:
        """Weights of variance 1 / n_inputs; those of the last layer are smaller by `scale`, and offsets are zero."""
        parts = []
        shapes = self._shapes
        for index, (rows, columns) in enumerate(shapes):
            size = scale if index == len(shapes) - 1 else 1.0
            weights = rng.standard_normal(rows * columns) * size / np.sqrt(max(rows, 1))
            parts += [weights, np.zeros(columns)]
        return np.concatenate(parts)

    def _unpack(self, parameters: Array) -> list[tuple[Array, Array]]:
        layers, start = [], 0
        for rows, columns in self._shapes:
            middle, end = start + rows * columns, start + (rows + 1) * columns
            layers.append((parameters[start:middle].reshape(rows, columns), parameters[middle:end]))
            start = end
        return layers

    def forward(self, parameters: Array, x: Array) -> tuple[Array, list[Array]]:
        """Outputs (n, n_outputs), and the input of each layer for `backward`."""
        inputs = [x]
        layers = self._unpack(parameters)
        for weights, offset in layers[:-1]:
            total = inputs[-1] @ weights + offset
            inputs.append(np.tanh(total) if self.activation == "tanh" else np.maximum(total, 0.0))
        weights, offset = layers[-1]
        return inputs[-1] @ weights + offset, inputs

    def backward(self, parameters: Array, inputs: list[Array], gradient: Array) -> tuple[Array, Array]:
        """Gradient with respect to x and to the parameters, from that with respect to the outputs."""
        parts: list[Array] = []
        for (weights, _), values in zip(reversed(self._unpack(parameters)), reversed(inputs)):
            parts = [(values.T @ gradient).ravel(), gradient.sum(axis=0), *parts]
            gradient = gradient @ weights.T
            if values is not inputs[0]:
                gradient = gradient * (1.0 - values * values if self.activation == "tanh" else values > 0)
        return gradient, np.concatenate(parts)
