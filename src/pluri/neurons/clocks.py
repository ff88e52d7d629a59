"""Clocks: the time step, and slower ones that tick at whole multiples of it."""

from __future__ import annotations

from pluri.neurons.graphics.making import GraphicsCommands
from pluri.neurons.language.twins import ScriptCommands
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError
from pluri.neurons.tree.structure import ElementTree
from pluri.validation import Number, Whole


class Clocked(ElementTree, GraphicsCommands, ScriptCommands):
    """A tree of elements with clocks, and with the methods that scripts and control panels call."""

    def __init__(self, dt: float, *, verbose: int = 0) -> None:
        super().__init__(verbose=verbose)
        self.clocks: dict[int, float] = {0: float(dt)}

    @property
    def dt(self) -> float:
        """The base time step: the period of clock 0."""
        return self.clocks[0]

    @property
    def n_steps(self) -> int:
        """Steps since the last reset."""
        raise NotImplementedError  # abstract

    def set_clock(self, index: int, period: float) -> None:
        """Set the period of a clock.

        Parameters
        ----------
        index : int
            0 for the time step itself (only before the first step); others tick at whole multiples of it, and are for
            recorders, stimuli, channels, units and elements of your own (field ``clock``).
        period : float
            In ms.
        """
        if not Whole(0, 63).holds(index):
            raise SimulationError(f"a clock must be {Whole(0, 63)}, got {index!r}")
        if not Number(above=0).holds(period):
            raise SimulationError(f"the period of a clock must be a positive number, got {period!r}")
        if index == 0 and self.n_steps > 0 and period != self.dt:
            raise SimulationError("the time step can change only at time 0: reset first")
        clocks = {**self.clocks, index: float(period)}
        for k, each in clocks.items():
            ratio = each / clocks[0]
            if abs(ratio - round(ratio)) > 1e-6 * ratio or round(ratio) < 1:
                raise SimulationError(
                    f"the period of clock {k} must be a whole multiple of the time step ({clocks[0]:g} ms), got "
                    f"{each:g}"
                )
        self.clocks = clocks
        self.changed(None)

    def ticks_of(self, element: Element) -> int:
        """Steps from one tick of the clock of an element to the next."""
        if element.clock not in self.clocks:
            raise SimulationError(f"clock {element.clock} of {element.path} was not set")
        return self.ticks_of_clock(element.clock)

    def ticks_of_clock(self, index: int) -> int:
        """Steps from one tick of a clock to the next."""
        return round(self.clocks[index] / self.dt)
