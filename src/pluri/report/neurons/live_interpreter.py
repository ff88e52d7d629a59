"""An interpreter for scripts whose runs are watched."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pluri.neurons import Simulation
from pluri.neurons.language import Interpreter, Limits, Place

if TYPE_CHECKING:
    from pluri.report.neurons.session import LiveSession


class Halted(Exception):
    """Somebody paused what a command was running."""


class LiveInterpreter(Interpreter):
    """An interpreter whose steps are taken in pieces, each of which is seen."""

    def __init__(
        self, simulation: Simulation, output: Callable[[str], None], session: LiveSession, limits: Limits | None
    ) -> None:
        super().__init__(simulation, output=output, limits=limits)
        self.session = session

    def count(self, place: Place) -> None:
        """Also an endless loop can be paused."""
        super().count(place)
        if self.session.is_halted():
            raise Halted

    def step(self, n_steps: int) -> None:
        """Go on by so many time steps."""
        self.count_steps(n_steps)
        self.session.go_on(n_steps)
