r"""Tables of gates: what a step makes of a gate at each voltage.

With the voltage held for a step, :math:`x \leftarrow x_\infty + (x - x_\infty) e^{-dt/\tau} = a + b x`. Both numbers
are kept for 20 voltages in each mV from -200 to 200, and interpolated; being convex combinations, gates stay within
[0, 1].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pluri.neurons.library.channels import Channel
from pluri.neurons.library.hodgkin_huxley import POTASSIUM, SODIUM, GateRates, rate
from pluri.neurons.numerics.records import LOWEST, N_NODES, NODES_PER_MV
from pluri.neurons.tree.errors import SimulationError

Array = np.ndarray[Any, Any]


class Kinetics:
    """What channels of one block share: powers, rates or functions of the voltage, and what it is called in errors."""

    def __init__(self, powers: tuple[int, int], rates: tuple[GateRates, ...] | None, channel: Channel | None) -> None:
        self.powers, self.rates, self.channel = powers, rates, channel

    def settled(self, voltage: Array) -> list[tuple[Array, Array]]:
        """Steady state and time constant of each gate at some voltages."""
        found = []
        with np.errstate(all="ignore"):
            if self.rates is not None:
                for gate in self.rates:
                    alpha, beta = rate(gate.alpha, voltage), rate(gate.beta, voltage)
                    found.append((alpha / (alpha + beta), 1.0 / (alpha + beta)))
                return found
            assert self.channel is not None
            for steady, slow in self.channel.kinetics(voltage):
                one = np.broadcast_to(np.asarray(steady, dtype=float), voltage.shape)
                other = np.broadcast_to(np.asarray(slow, dtype=float), voltage.shape)
                found.append((one, other))
        if len(found) < max(k + 1 for k in (-1, 0, 1) if k < 0 or self.powers[k]):
            raise SimulationError(f"kinetics of {self.channel.path} must give a gate for each power that is not 0")
        return found

    def table(self, dt: float) -> Array:
        """A and b of both gates at each node, (N_NODES, 4)."""
        voltage = LOWEST + np.arange(N_NODES) / NODES_PER_MV
        found = np.zeros((N_NODES, 4))
        with np.errstate(all="ignore"):
            for k, (steady, slow) in enumerate(self.settled(voltage)[:2]):
                self._check(steady, slow)
                keep = np.where(slow > 0, np.exp(-dt / np.where(slow > 0, slow, 1.0)), 0.0)
                found[:, 2 * k], found[:, 2 * k + 1] = steady * (1.0 - keep), keep
        return found

    def _check(self, steady: Array, slow: Array) -> None:
        name = self.channel.path if self.channel is not None else "a compartment"
        if not ((steady >= 0) & (steady <= 1)).all():
            raise SimulationError(f"steady states of the gates of {name} must be from 0 to 1 at every voltage")
        if not (slow >= 0).all():
            raise SimulationError(f"time constants of the gates of {name} must be at least 0 at every voltage")


def kinetics_of(channel: Channel) -> Kinetics:
    """The kinetics of a channel element."""
    return Kinetics((channel.p, channel.q), channel.rates(), channel)


HH_SODIUM = Kinetics((3, 1), SODIUM, None)
HH_POTASSIUM = Kinetics((4, 0), POTASSIUM, None)
