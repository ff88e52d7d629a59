"""The one training loop of all networks: minibatches, clipping, the best epoch, progress, Ctrl-C and checkpoints.

A loss is a pure function ``loss(params, batch, key) -> number`` of arrays that JAX can trace. It is compared by value
(make it a frozen dataclass with ``__call__``): two fits with equal losses and shapes share one compiled program. A
validation error that is to be lowered says which epoch is kept; it is computed outside, in any way.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from pluri.inference import checkpoint as storage
from pluri.inference.checkpoint import Checkpoint
from pluri.inference.variational.adam import descend
from pluri.networks.backend import jax, jnp, optax, ravel_pytree
from pluri.validation.interruption import interruptible

#: Names of the optimisers.
OPTIMIZERS = ("adam", "rmsprop", "sgd")

Loss = Callable[[Any, Any, Any], Any]
#: From parameters to the error that is to be lowered, or to several numbers of which the first is that.
Validate = Callable[[Any], float | tuple[float, ...]]
#: From the number of the epoch, that of its first minibatch, and a generator, to the minibatches of the epoch.
Epoch = Callable[[int, int, np.random.Generator], Iterable[Any]]


@dataclass(frozen=True)
class Optimizer:
    """How the parameters move.

    Parameters
    ----------
    name : {"adam", "rmsprop", "sgd"}, default="adam"
    clip_norm : float or None, default=1.0
        Longest gradient, over all parameters; a longer one is shortened.
    weight_decay : float, default=0.0
        Share of each parameter, times the learning rate, that a step takes away.
    """

    name: str = "adam"
    clip_norm: float | None = 1.0
    weight_decay: float = 0.0

    def transform(self) -> Any:
        """The transformation of gradients, before the learning rate."""
        scale = {"adam": optax.scale_by_adam, "rmsprop": optax.scale_by_rms, "sgd": optax.identity}[self.name]
        parts = [] if self.clip_norm is None else [optax.clip_by_global_norm(self.clip_norm)]
        parts.append(scale())
        if self.weight_decay:
            parts.append(optax.add_decayed_weights(self.weight_decay))
        return optax.chain(*parts)

    def start(self, params: Any) -> Any:
        """State of the transformation before the first step, of all parameters as one vector."""
        # All of these optimisers begin with zeros; so nothing is compiled for it.
        shapes = jax.eval_shape(lambda tree: self.transform().init(ravel_pytree(tree)[0]), params)
        return jax.tree.map(lambda one: np.zeros(one.shape, one.dtype), shapes)


@partial(jax.jit, static_argnames=("loss", "optimizer"))
def _step(
    loss: Loss, optimizer: Optimizer, params: Any, state: Any, batch: Any, key: Any, rate: Any
) -> tuple[Any, Any, Any]:
    """One minibatch: new parameters and state of the optimiser, and the loss before the step."""
    value, gradient = jax.value_and_grad(loss)(params, batch, key)
    # As one vector: a loop for each array and moment would be a quarter of what is compiled.
    flat, apart = ravel_pytree(params)
    updates, state = optimizer.transform().update(ravel_pytree(gradient)[0], state, flat)
    return apart(flat - rate * updates), state, value


class Training(NamedTuple):
    """What a training gives back.

    Attributes
    ----------
    params : of the best epoch, or of the last one if nothing was validated
    losses : mean training loss of each epoch
    errors : validation error of each epoch; empty without validation
    details : all that `validate` gave, of each epoch
    best_epoch : from 1
    n_steps : minibatches seen
    converged, interrupted : whether patience or Ctrl-C ended it
    """

    params: Any
    losses: list[float]
    errors: list[float]
    details: list[tuple[float, ...]]
    best_epoch: int
    n_steps: int
    converged: bool
    interrupted: bool


@interruptible
def train(
    params: Any,
    loss: Loss,
    epoch: Epoch,
    *,
    rng: np.random.Generator,
    validate: Validate | None = None,
    optimizer: Optimizer | None = None,
    learning_rate: float = 1e-3,
    max_epochs: int = 50,
    min_epochs: int = 1,
    n_iter_no_change: int = 10,
    checkpoint: Checkpoint | None = None,
    verbose: int = 0,
) -> Training:
    """Train a network.

    Parameters
    ----------
    params : equinox module or other tree of arrays
        Where to begin.
    loss : callable
        ``loss(params, batch, key)``, hashable and compared by value.
    epoch : callable
        ``epoch(number, first, rng)`` gives the minibatches of an epoch: trees of arrays of few different shapes.
        `number` is that of the epoch, `first` that of its first minibatch, both from 0. What is not learned, such as
        frozen embeddings, is part of the batch.
    rng : numpy.random.Generator
        The only source of randomness.
    validate : callable, optional
        ``validate(params)`` gives the error of the epoch; the parameters of the lowest are kept. It may give more
        numbers after that one, which are kept in `details`.
    optimizer : Optimizer, optional
        Adam with gradients of length 1 at most by default.
    learning_rate : float
    max_epochs : int
    min_epochs : int
        The first epoch that may be kept; patience counts from there.
    n_iter_no_change : int
        Epochs in a row without a lower error after which the training ends.
    checkpoint : Checkpoint, optional
        From which the training goes on bit for bit if the file is there.
    verbose : int
        1 shows a progress bar; the objective is the negative error (or loss).

    Returns
    -------
    Training
        After Ctrl-C with the best so far; the interrupt goes on when the estimator that called is complete.

    Raises
    ------
    FloatingPointError
        If the loss is not finite.
    """
    run = _Run(loss, epoch, rng, validate, optimizer or Optimizer(), learning_rate, min_epochs, checkpoint)
    run.begin(params)
    end = descend(
        run.advance,
        max_epochs,
        settled=partial(run.settled, patience=n_iter_no_change),
        kept="the best epoch so far is kept",
        verbose=verbose,
        before=run.shown,
    )
    run.save()
    at = run.at
    return Training(
        at.best, at.losses, at.errors, at.details, run.best_epoch(), at.n_steps, end.converged, end.interrupted
    )


class _Point(NamedTuple):
    """Where a training stands between two epochs."""

    params: Any
    best: Any
    state: Any
    losses: list[float]
    details: list[tuple[float, ...]]
    n_steps: int
    rng_state: Any

    @property
    def errors(self) -> list[float]:
        """What the epochs are judged by."""
        return [row[0] for row in self.details]


@dataclass
class _Run:
    """A training on its way; `at` is replaced as a whole, so that Ctrl-C in an epoch leaves the epochs before it."""

    loss: Loss
    epoch: Epoch
    rng: np.random.Generator
    validate: Validate | None
    optimizer: Optimizer
    rate: float
    min_epochs: int
    checkpoint: Checkpoint | None

    @property
    def shown(self) -> list[float]:
        """What the training is judged by, of each epoch."""
        return list(self.at.losses if self.validate is None else self.at.errors)

    def begin(self, params: Any) -> None:
        """Start, or go on from the checkpoint if there is one."""
        state = self.optimizer.start(params)
        self.at = _Point(params, params, state, [], [], 0, self.rng.bit_generator.state)
        if self.checkpoint is not None and self.checkpoint.exists():
            self._resume(self.checkpoint)

    def advance(self, number: int) -> float:
        """One epoch; gives what it is judged by."""
        at, values = self.at, []
        params, state, n_steps = at.params, at.state, at.n_steps
        for batch in self.epoch(number, n_steps, self.rng):
            params, state, value = _step(
                self.loss, self.optimizer, params, state, batch, self._key(), np.float32(self.rate)
            )
            values.append(value)
            n_steps += 1
        loss = float(np.mean(jax.device_get(values)))
        if not math.isfinite(loss):
            raise FloatingPointError(f"the fit diverged in epoch {number + 1}: lower learning_rate")
        found = () if self.validate is None else tuple(np.atleast_1d(self.validate(params)).astype(float).tolist())
        lowest = min(at.errors[self.min_epochs - 1 :], default=math.inf)
        is_best = not found or number + 1 < self.min_epochs or found[0] < lowest
        details = [*at.details, found] if found else at.details
        self.at = _Point(
            params, params if is_best else at.best, state, [*at.losses, loss], details, n_steps,
            self.rng.bit_generator.state,
        )  # fmt: skip
        if self.checkpoint is not None and len(self.at.losses) % self.checkpoint.every == 0:
            self.save()
        return found[0] if found else loss

    def _key(self) -> Any:
        return self.rng.integers(2**32, size=2, dtype=np.uint32)

    def best_epoch(self) -> int:
        """Number of the epoch that is kept, from 1."""
        later = self.at.errors[self.min_epochs - 1 :]
        return int(np.argmin(later)) + self.min_epochs if later else len(self.at.losses)

    def settled(self, shown: list[float], patience: int) -> bool:
        """Whether too many epochs in a row brought nothing."""
        return self.validate is not None and len(shown) - max(self.best_epoch(), self.min_epochs) >= patience

    def save(self) -> None:
        """Write the checkpoint, if there is to be one."""
        if self.checkpoint is None:
            return
        at = self.at
        header = {"fingerprint": self._fingerprint(self.checkpoint), "rng": at.rng_state, "n_steps": at.n_steps}
        numbers = {"losses": np.array(at.losses), "details": np.array(at.details)}
        storage.write(self.checkpoint.path, header, numbers | {"leaves": self._leaves()})

    def _fingerprint(self, checkpoint: Checkpoint) -> str:
        return f"training {checkpoint.fingerprint}"

    def _leaves(self) -> list[Any]:
        return [np.asarray(leaf) for leaf in jax.tree.leaves((self.at.params, self.at.best, self.at.state))]

    def _resume(self, checkpoint: Checkpoint) -> None:
        at, here = self.at, self._leaves()
        stored, leaves = storage.read(checkpoint.path)
        same = stored.get("fingerprint") == self._fingerprint(checkpoint)
        names = [f"leaves.{number}:array" for number in range(len(here))]
        if not same or [leaves[name].shape if name in leaves else None for name in names] != [a.shape for a in here]:
            raise ValueError(
                f"checkpoint {os.fspath(checkpoint.path)!r} belongs to another fit, of other data or settings; give "
                "another path or remove the file"
            )
        structure = jax.tree.structure((at.params, at.best, at.state))
        params, best, state = jax.tree.unflatten(structure, [jnp.asarray(leaves[name]) for name in names])
        losses, details = leaves["losses:array"].tolist(), [tuple(row) for row in leaves["details:array"].tolist()]
        self.rng.bit_generator.state = stored["rng"]
        self.at = _Point(params, best, state, losses, details, int(stored["n_steps"]), stored["rng"])
