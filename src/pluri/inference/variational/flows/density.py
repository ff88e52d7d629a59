"""Fit a flow to data by maximum likelihood.

Here the flow runs from data to noise, ``z = f(x)``, with ``log p(x) = log N(f(x); 0, I) + log |det df/dx|``: so that
the likelihood and its gradient need `forward` and `backward` only, for every layer, and draws need `inverse`.
Minibatches, a part of the data held out to stop in time, and a learning rate that halves when that part stops
improving.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pluri.inference.variational.adam import Adam, descend
from pluri.inference.variational.flows.flow import Flow, log_standard_normal
from pluri.inference.variational.flows.layer import Array
from pluri.validation.interruption import interruptible

#: Weight of the past in the running mean of the parameters, which generalises better than the last ones.
AVERAGING = 0.99


class DensityModel(Protocol):
    """A flow between data and noise, whoever computes it."""

    def initialize(self, rng: np.random.Generator) -> Array:
        """First parameters, near the identity."""

    def loss_and_gradient(self, parameters: Array, X: Array, weights: Array) -> tuple[float, Array]:
        """``-sum(weights * log p(X)) / len(X)`` and its gradient."""

    def encode(self, parameters: Array, X: Array) -> tuple[Array, Array]:
        """Noise of the rows of X, and log p(X)."""

    def decode(self, parameters: Array, Z: Array) -> Array:
        """Data of rows of noise."""


@dataclass(frozen=True)
class NumpyDensity:
    """A `Flow` from data to noise.

    Parameters
    ----------
    flow : Flow
    start : float
        Size of the random start.
    """

    flow: Flow
    start: float = 0.1

    def initialize(self, rng: np.random.Generator) -> Array:
        """See `DensityModel.initialize`."""
        return self.flow.initialize(rng, self.start)

    def loss_and_gradient(self, parameters: Array, X: Array, weights: Array) -> tuple[float, Array]:
        """See `DensityModel.loss_and_gradient`."""
        Z, log_det, cache = self.flow.forward(parameters, X)
        shares = weights / len(X)
        _, gradient = self.flow.backward(parameters, cache, shares[:, None] * Z, -shares)
        return -float(shares @ (log_standard_normal(Z) + log_det)), gradient

    def encode(self, parameters: Array, X: Array) -> tuple[Array, Array]:
        """See `DensityModel.encode`."""
        Z, log_det, _ = self.flow.forward(parameters, X)
        return Z, log_standard_normal(Z) + log_det

    def decode(self, parameters: Array, Z: Array) -> Array:
        """See `DensityModel.decode`."""
        return self.flow.inverse(parameters, Z)[0]


@dataclass(frozen=True)
class DensityFit:
    """What a fit gives back.

    Attributes
    ----------
    parameters : (n_parameters,): those with the lowest loss on the held-out part, or on all data without one
    loss : mean negative log-likelihood of each epoch on the data it learned from
    validation_loss : the same on the held-out part; empty without one
    n_iter : number of epochs
    converged, interrupted : how the fit ended
    """

    parameters: Array
    loss: list[float]
    validation_loss: list[float]
    n_iter: int
    converged: bool
    interrupted: bool


@interruptible
def fit_density(
    model: DensityModel,
    X: Array,
    weights: Array,
    rng: np.random.Generator,
    *,
    learning_rate: float = 5e-3,
    batch_size: int = 256,
    max_iter: int = 500,
    validation_fraction: float = 0.1,
    n_iter_no_change: int = 20,
    tol: float = 1e-4,
    verbose: int = 0,
) -> DensityFit:
    """Maximise the likelihood of standardised data.

    Parameters
    ----------
    model : DensityModel
    X : array of shape (n_samples, dim)
    weights : array of shape (n_samples,)
        Positive, with mean 1.
    rng : numpy.random.Generator
    learning_rate : float
        Of Adam; halves when half of `n_iter_no_change` epochs bring no improvement.
    batch_size, max_iter : int
        Rows of a step, and largest number of epochs.
    validation_fraction : float
        Share of the rows to hold out; 0, or fewer than 50 rows, for none.
    n_iter_no_change, tol
        The fit ends when that many epochs in a row lower the loss by less than `tol`.
    verbose : int

    Returns
    -------
    DensityFit

    Raises
    ------
    FloatingPointError
        If the loss is not finite at the start.
    """
    state = _Epochs(model, X, weights, rng, learning_rate, batch_size, validation_fraction, n_iter_no_change, tol)
    run = descend(
        state.epoch, max_iter, settled=state.settled, kept="the best parameters so far are kept", verbose=verbose
    )
    return DensityFit(state.best, state.losses, state.held_losses, len(state.losses), run.converged, run.interrupted)


class _Epochs:
    """A fit on its way: where it is, the best so far, and how long nothing was gained."""

    def __init__(
        self, model: DensityModel, X: Array, weights: Array, rng: np.random.Generator, learning_rate: float,
        batch_size: int, validation_fraction: float, n_iter_no_change: int, tol: float,
    ) -> None:  # fmt: skip
        self.model, self.X, self.weights, self.rng = model, X, weights, rng
        self.rate, self.batch_size, self.patience, self.tol = learning_rate, batch_size, n_iter_no_change, tol
        start = model.initialize(rng)  # first, so that it does not depend on the number of rows
        order = rng.permutation(len(X))
        n_held = int(validation_fraction * len(X)) if len(X) >= 50 else 0
        self.held, self.kept = order[:n_held], np.sort(order[n_held:])
        self.adam, self.average = Adam(start), start
        self.best, self.lowest, self.fruitless, self.since_halved = start, math.inf, 0, 0
        self.losses: list[float] = []
        self.held_losses: list[float] = []

    def epoch(self, number: int) -> float:
        """A pass over the data; gives the loss that the fit is judged by."""
        first = self.adam.parameters
        loss = self._learn()
        if not math.isfinite(loss):
            # Too long a step: from the best state once more, with shorter ones.
            if not self.losses:
                raise FloatingPointError("the loss is not finite at the start: look for extreme values in X")
            self.adam, self.average, self.rate, first = Adam(self.best), self.best, 0.25 * self.rate, self.best
        self.losses.append(loss)
        if not len(self.held):
            # The loss of a single batch is that of the parameters before the step.
            return self._judge(loss, first)
        self.held_losses.append(_loss(self.model, self.average, self.X[self.held], self.weights[self.held]))
        return self._judge(self.held_losses[-1], self.average)

    def _learn(self) -> float:
        """Steps on all minibatches; their mean loss, infinite if one of them or its gradient is not finite."""
        rows = self.kept if len(self.kept) <= self.batch_size else self.rng.permutation(self.kept)
        total = 0.0
        for begin in range(0, len(rows), self.batch_size):
            batch = rows[begin : begin + self.batch_size]
            loss, gradient = self.model.loss_and_gradient(self.adam.parameters, self.X[batch], self.weights[batch])
            if not (math.isfinite(loss) and np.isfinite(gradient).all()):
                return math.inf
            total += loss * len(batch)
            self.adam.move(gradient, self.rate)
            n_seen = self.adam.moments.n_seen
            decay = min(AVERAGING, n_seen / (n_seen + 9.0))
            self.average = decay * self.average + (1.0 - decay) * self.adam.parameters
        return total / len(rows)

    def _judge(self, loss: float, at: Array) -> float:
        """Keep the best, and halve the rate where nothing was gained for long."""
        gained = loss < self.lowest - self.tol
        self.fruitless = 0 if gained else self.fruitless + 1
        self.since_halved = 0 if gained else self.since_halved + 1
        if loss < self.lowest:
            self.best, self.lowest = at, loss
        if self.since_halved > self.patience // 2:
            self.rate, self.since_halved = 0.5 * self.rate, 0
        return loss

    def settled(self, losses: list[float]) -> bool:
        """Whether too many epochs in a row gained nothing."""
        return self.fruitless >= self.patience


def _loss(model: DensityModel, parameters: Array, X: Array, weights: Array) -> float:
    log_prob = model.encode(parameters, X)[1]
    loss = -float(weights @ log_prob) / float(weights.sum())
    return loss if math.isfinite(loss) else math.inf
