"""A simulation: the tree of elements with clocks, and (when it is compiled) the arrays that it runs on."""

from __future__ import annotations

from typing import Any

from pluri.neurons.graphics.making import GraphicsCommands
from pluri.neurons.language.twins import ScriptCommands
from pluri.neurons.tree.errors import SimulationError
from pluri.neurons.tree.structure import ElementTree
from pluri.validation import Number, Only, RandomState

METHODS = ("euler", "exp_euler", "backward_euler", "crank_nicolson")


class Simulation(ElementTree, GraphicsCommands, ScriptCommands):
    """A network of elements, and its time.

    Parameters
    ----------
    dt : float, default=0.025
        Time step in ms.
    method : {"exp_euler", "crank_nicolson", "backward_euler", "euler"}, default="exp_euler"
        How voltages are moved on.
    random_state : int, Generator or None, default=None
        Of random spikes and of the order of binary units.
    n_jobs : int or None, default=None
        Threads of repeats.
    """

    def __init__(
        self,
        dt: float = 0.025,
        method: str = "exp_euler",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        *,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose=verbose)
        if not Number(above=0).holds(dt):
            raise SimulationError(f"dt must be a positive number, got {dt!r}")
        if not Only(*METHODS).holds(method):
            raise SimulationError(f"method must be {Only(*METHODS)}, got {method!r}")
        self.method, self.random_state, self.n_jobs = method, random_state, n_jobs
        self.clocks: dict[int, float] = {0: float(dt)}
        self.time = 0.0

    @property
    def dt(self) -> float:
        """The base time step: the period of clock 0."""
        return self.clocks[0]

    def set_clock(self, index: int, period: float) -> None:
        """Set the period of a clock, in ms; those above 0 tick at whole multiples of clock 0."""
        raise NotImplementedError

    def step(self, n_steps: int = 1) -> None:
        """Move on by some steps."""
        raise NotImplementedError

    def run(self, duration: float) -> Any:
        """Move on by a time in ms."""
        raise NotImplementedError
