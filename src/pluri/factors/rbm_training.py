"""Training of a restricted Boltzmann machine, pass after pass, by contrastive divergence with momentum.

The number of Gibbs steps grows from pass to pass, and the learning rate is halved where the error keeps rising.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.factors.rbm_energy import Machine, contrastive_gradient

Array = NDArray[np.float64]

#: The reconstruction error may rise this many passes in a row before the learning rate is halved.
PATIENCE = 5
#: Passes with the low momentum at the beginning, when gradients still change direction.
SLOW_START, LOW_MOMENTUM = 5, 0.5


class Training(NamedTuple):
    """Where training is after a pass.

    `risen` counts passes in a row in which the error rose, `errors` are those of the passes that count.
    """

    number: int
    machine: Machine
    velocity: Machine
    rate: float
    risen: int
    errors: tuple[float, ...]

    @classmethod
    def begun(cls, means: Array, n: int, n_hidden: int, rate: float, rng: np.random.Generator) -> Training:
        """Small weights, and visible units that have the means of the n rows by themselves."""
        share = (n * means + 0.5) / (n + 1.0)
        machine = Machine(
            0.01 * rng.standard_normal((len(means), n_hidden)),
            np.log(share) - np.log1p(-share),
            np.full(n_hidden, -1.0),
        )
        return cls(0, machine, at_rest(machine), rate, 0, ())


class ContrastiveTraining(NamedTuple):
    """Settings of the training; see `pluri.factors.BinaryRBM`."""

    n_iter: int
    cd_start: int
    cd_end: int
    batch_size: int
    momentum: float
    weight_decay: float
    sparsity_target: float | None
    sparsity_cost: float

    def after_pass(self, state: Training, rows: Any, rng: np.random.Generator) -> Training:
        """All batches once; a pass that diverged does not count."""
        number, machine, velocity, rate, risen, errors = state
        n_steps = self.cd_start + (self.cd_end - self.cd_start) * number // max(1, self.n_iter - 1)
        momentum = min(LOW_MOMENTUM, self.momentum) if number < SLOW_START else self.momentum
        after, speed, error = self._pass(machine, velocity, rows, n_steps, rate, momentum, rng)
        risen = risen + 1 if errors and error > errors[-1] else 0
        sound = all(np.isfinite(part).all() for part in after)
        if sound:
            machine, velocity, errors = after, speed, (*errors, error)
        if not sound or risen >= PATIENCE:
            rate, risen, velocity = rate / 2, 0, at_rest(machine)
        return Training(number + 1, machine, velocity, rate, risen, errors)

    def _pass(
        self, machine: Machine, velocity: Machine, rows: Any, n_steps: int, rate: float, momentum: float,
        rng: np.random.Generator,
    ) -> tuple[Machine, Machine, float]:  # fmt: skip
        """All batches once, in random order."""
        n = rows.shape[0]
        order = rng.permutation(n)
        total = 0.0
        with np.errstate(over="ignore", invalid="ignore"):  # what diverges is noticed after the pass
            for first in range(0, n, self.batch_size):
                batch = rows[order[first : first + self.batch_size]]
                gradient, activity, error = contrastive_gradient(machine, batch, n_steps, rng)
                weights, hidden = gradient.weights - self.weight_decay * machine.weights, gradient.hidden
                if self.sparsity_target is not None:
                    pull = self.sparsity_cost * (self.sparsity_target - activity)
                    hidden = hidden + pull
                    weights = weights + np.outer(np.asarray(batch.mean(axis=0)).ravel(), pull)
                steps = (weights, gradient.visible, hidden)
                velocity = Machine(*(momentum * old + rate * new for old, new in zip(velocity, steps)))
                machine = Machine(*(part + change for part, change in zip(machine, velocity)))
                total += error * batch.shape[0]
        return machine, velocity, total / n


def at_rest(machine: Machine) -> Machine:
    """No velocity of any parameter."""
    return Machine(*(np.zeros_like(part) for part in machine))
