"""Fit a flow to data by maximum likelihood.

Here the flow runs from data to noise, ``z = f(x)``, with ``log p(x) = log N(f(x); 0, I) + log |det df/dx|``: so that
the likelihood and its gradient need `forward` and `backward` only, for every layer, and draws need `inverse`.
Minibatches, a part of the data held out to stop in time, and a learning rate that halves when that part stops
improving.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np

from pluri.inference.result import IterationState
from pluri.inference.variational.adam import adam_step, no_moments
from pluri.inference.variational.flows.flow import Flow, log_standard_normal
from pluri.inference.variational.flows.layer import Array
from pluri.progress import open_progress
from pluri.validation.interruption import hold, interruptible

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
    parameters = model.initialize(rng)  # first, so that they do not depend on the number of rows
    order = rng.permutation(len(X))
    n_held = int(validation_fraction * len(X)) if len(X) >= 50 else 0
    held, kept = order[:n_held], np.sort(order[n_held:])
    moments, rate, average = no_moments(len(parameters)), learning_rate, parameters
    best, lowest, fruitless, since_halved = parameters, math.inf, 0, 0
    losses: list[float] = []
    held_losses: list[float] = []
    converged = interrupted = False
    started = perf_counter()
    try:
        with open_progress(verbose) as report:
            while len(losses) < max_iter and not converged:
                rows = kept if len(kept) <= batch_size else rng.permutation(kept)
                total, first = 0.0, parameters
                for begin in range(0, len(rows), batch_size):
                    batch = rows[begin : begin + batch_size]
                    loss, gradient = model.loss_and_gradient(parameters, X[batch], weights[batch])
                    if not (math.isfinite(loss) and np.isfinite(gradient).all()):
                        loss = math.inf
                        break
                    total += loss * len(batch)
                    step, moments = adam_step(gradient, moments, rate)
                    parameters = parameters + step
                    decay = min(AVERAGING, moments.n_seen / (moments.n_seen + 9.0))
                    average = decay * average + (1.0 - decay) * parameters
                if not math.isfinite(loss):
                    # Too long a step: from the best state once more, with shorter ones.
                    if not losses:
                        raise FloatingPointError("the loss is not finite at the start: look for extreme values in X")
                    parameters, average, moments, rate = best, best, no_moments(len(best)), 0.25 * rate
                    total, first = math.inf, best
                losses.append(total / len(rows))
                if n_held:
                    held_losses.append(_loss(model, average, X[held], weights[held]))
                # Without a held-out part, the loss of a single batch is that of the parameters before the step.
                current, at = (held_losses[-1], average) if n_held else (losses[-1], first)
                fruitless = 0 if current < lowest - tol else fruitless + 1
                since_halved = 0 if current < lowest - tol else since_halved + 1
                if current < lowest:
                    best, lowest = at, current
                if since_halved > n_iter_no_change // 2:
                    rate, since_halved = 0.5 * rate, 0
                converged = fruitless >= n_iter_no_change
                if verbose:
                    report(_state(losses, current, max_iter, converged, perf_counter() - started))
    except KeyboardInterrupt as stop:
        if not losses:
            raise
        hold(stop, "fit interrupted; the best parameters so far are kept")
        interrupted = True
    return DensityFit(best, losses, held_losses, len(losses), converged, interrupted)


def _loss(model: DensityModel, parameters: Array, X: Array, weights: Array) -> float:
    log_prob = model.encode(parameters, X)[1]
    loss = -float(weights @ log_prob) / float(weights.sum())
    return loss if math.isfinite(loss) else math.inf


def _state(losses: list[float], current: float, max_iter: int, converged: bool, seconds: float) -> IterationState[None]:
    return IterationState(
        params=None,
        restart=0,
        n_init=1,
        iteration=len(losses),
        max_iter=max_iter,
        objective=-current,
        log_likelihood=-current,
        gain=losses[-2] - losses[-1] if len(losses) > 1 and math.isfinite(losses[-2]) else math.nan,
        seconds=seconds,
        accepted=True,
        reason="converged" if converged else "max_iter" if len(losses) == max_iter else None,
    )
