"""Gibbs sampling of a restricted Boltzmann machine with some visible units held fast: a kernel for `mcmc.sample`.

A step draws all hidden units given the visible ones, then all visible units that are free given the hidden ones. A
chain is a batch of rows, each with its own units held fast; what is wanted of it are the means of the visible units,
which its state sums up: their conditional probabilities, which vary less than the units themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from pluri.factors.rbm_energy import Machine
from pluri.inference.mcmc.chain import Logbook
from pluri.inference.mcmc.kernel import CountAfterWarmup

Array = NDArray[np.float64]
#: What a step of Gibbs sampling tells.
ACCEPTED = {"accepted": 1.0, "acceptance": 1.0}


class RowState(NamedTuple):
    """Rows of a chain.

    Attributes
    ----------
    visible : (n, D): zeros and ones
    field : (n, H): what the hidden units get from them
    log_density : log of the unnormalised probability of all rows, hidden units summed over
    total : (n, D): summed conditional probabilities of `n_steps` steps
    """

    visible: Array
    field: Array
    log_density: float
    total: Array
    n_steps: int = 0

    @property
    def position(self) -> dict[str, Array]:
        """The visible units by name."""
        return {"visible": self.visible}


@dataclass(frozen=True, eq=False)
class ClampedGibbs:
    """Gibbs steps of rows of which some units are known.

    Parameters
    ----------
    machine : Machine
    known : (n, D) of True and False
        Units that are held fast, at what they are in the position that a chain begins at.
    counting : bool, default=True
        Whether the state sums up what is seen; not during a warm-up.
    """

    machine: Machine
    known: NDArray[np.bool_]
    counting: bool = True

    def start(self, rng: np.random.Generator, ones: NDArray[np.bool_], chance: Any = 0.5) -> dict[str, Array]:
        """Known units as they are (`ones` says which are on), the others on with a probability of `chance`."""
        drawn = rng.random(self.known.shape) < chance
        return {"visible": np.where(self.known, ones, drawn).astype(np.float64)}

    def init(self, rng: np.random.Generator, position: Mapping[str, Any]) -> RowState:
        """State at rows."""
        visible = np.asarray(position["visible"], dtype=np.float64)
        field = self.machine.field(visible)
        return RowState(visible, field, float(self._log_density(visible, field)), np.zeros(visible.shape))

    def _log_density(self, visible: Array, field: Array) -> Array:
        """Of the rows of each chain together; what comes before the last two axes are chains."""
        return np.asarray((visible @ self.machine.visible).sum(axis=-1) + np.logaddexp(0.0, field).sum(axis=(-2, -1)))

    def step(self, rng: np.random.Generator, state: RowState) -> tuple[RowState, dict[str, float]]:
        """One step of all rows."""
        visible, field, means = self._drawn([rng], state.visible[None], state.field[None])
        total = state.total + means[0] if self.counting else state.total
        value = float(self._log_density(visible, field)[0])
        return RowState(visible[0], field[0], value, total, state.n_steps + self.counting), dict(ACCEPTED)

    def _drawn(
        self, streams: Sequence[np.random.Generator], visible: Array, field: Array
    ) -> tuple[Array, Array, Array]:
        """Visible units of some chains (chains, n, D) after a step, their fields, and what the units were drawn from.

        Each chain draws from its own stream.
        """
        W, b, c = self.machine
        coins = np.empty((len(streams), len(self.known), len(c) + len(b)))
        for rng, own in zip(streams, coins):
            rng.random(out=own)
        hidden = coins[..., : len(c)] < expit(field)
        means = expit(hidden @ W.T + b)
        visible = np.where(self.known, visible, coins[..., len(c) :] < means)
        return visible, visible @ W + c, means

    def advance_together(self, books: list[Logbook], n_steps: int) -> None:
        """Steps of all chains at a time: a chain of few rows by itself would mostly wait for Python."""
        states: list[RowState] = [book.state for book in books]
        streams = [book.rng for book in books]
        visible, field, total = (np.stack(part) for part in zip(*((s.visible, s.field, s.total) for s in states)))
        numbers = [state.n_steps for state in states]
        for _ in range(n_steps):
            visible, field, means = self._drawn(streams, visible, field)
            counting = [book.kernel.counting for book in books]
            if any(counting):
                total = total + np.reshape(counting, (-1, 1, 1)) * means
            numbers = [number + counts for number, counts in zip(numbers, counting)]
            for book, *state in zip(books, visible, field, self._log_density(visible, field).tolist(), total, numbers):
                book.took(RowState(*state), ACCEPTED)

    def adaptation(self, n_warmup: int) -> CountAfterWarmup:
        """What is seen in the warm-up does not count."""
        return CountAfterWarmup()


def share_of_ones(position: Mapping[str, Array]) -> dict[str, Any]:
    """What a trace keeps of rows: how many of their units are on."""
    visible = position["visible"]
    return {"share_of_ones": np.count_nonzero(visible) / visible.size}
