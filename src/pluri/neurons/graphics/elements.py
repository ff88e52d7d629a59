"""Classes of graphical elements: what they show, and what happens when somebody uses them."""

from __future__ import annotations

import os
from typing import Any

from pluri.neurons.tree.element import Element, register_element
from pluri.neurons.tree.errors import SimulationError
from pluri.neurons.tree.fields import field

#: The group that graphical elements are created in.
OUTPUT = "/output"


class Graphical(Element):
    """What graphical elements have: changing them does not touch the network."""

    __slots__ = ()

    def keep(self, name: str, value: Any) -> None:
        """Keep a value; nothing is compiled anew."""
        if self._values is None:
            self._values = {}
        self._values[name] = value


@register_element
class Form(Graphical):
    """A control panel: a box with a title that holds dialogs, toggles and buttons."""

    class_name = "form"
    __slots__ = ()
    title = field("", "", "Heading of the form; its name if empty.")


class Widget(Graphical):
    """What can be used: it has a label and a command, a line of a script."""

    __slots__ = ()
    label = field("", "", "What is written beside it; its name if empty.")
    command = field("", "", "Line of a script that runs when it is used; {value} is its value.")

    def used(self, given: Any) -> float | str | None:
        """Take the value that somebody gave, and tell what the command sees as {value}."""
        return None


@register_element
class Dialog(Widget):
    """A named value that can be changed."""

    class_name = "dialog"
    __slots__ = ()
    value = field("0", "", "What it shows: a number or a text.")
    unit = field("", "", "Unit that is written after the value.")

    def used(self, given: Any) -> float | str | None:
        """Keep the value; one that was a number must stay one."""
        text = str(given).strip()
        number = as_number(text)
        if number is None and as_number(self.value) is not None:
            raise SimulationError(f"{self.label or self.name} must be a number, got {text[:60]!r}")
        if len(text) > 1000:
            raise SimulationError(f"{self.label or self.name} must have at most 1000 characters")
        self.value = text
        return text if number is None else number


@register_element
class Toggle(Widget):
    """A switch: on or off."""

    class_name = "toggle"
    __slots__ = ()
    value = field(False, "", "Whether it is on.")

    def used(self, given: Any) -> float | str | None:
        """Keep whether it is on."""
        if given not in (0, 1):
            raise SimulationError(f"{self.label or self.name} must be 0 or 1, got {given!r}")
        self.value = bool(given)
        return float(self.value)


@register_element
class Button(Widget):
    """Something to press."""

    class_name = "button"
    __slots__ = ()


class View(Graphical):
    """What shows something of the network."""

    __slots__ = ()
    title = field("", "", "Heading; what is shown if empty.")


@register_element
class Graph(View):
    """Fields of elements against time: several traces in one picture, scaled to what there is.

    Examples
    --------
    >>> from pluri.neurons import Simulation
    >>> sim = Simulation()
    >>> soma = sim.create("active_compartment", "/soma", length=20, diameter=20, inject=0.1)
    >>> graph = sim.graph("/soma", "Vm")
    >>> result = sim.run(10.0)
    >>> times, values = graph.data()["/soma", "Vm"]
    >>> bool((values == result["/soma", "Vm"]).all())
    True
    """

    class_name = "graph"
    __slots__ = ()
    traces = field("", "", "A line for each trace: path and field, with a blank between.")

    def pairs(self) -> list[tuple[str, str]]:
        """Path and field of each trace."""
        return [(path, name) for path, _, name in (line.rpartition(" ") for line in self.traces.splitlines()) if path]

    def add(self, path: str, variable: str) -> None:
        """Add a trace."""
        if (path, variable) not in self.pairs():
            self.traces = "\n".join([*self.traces.splitlines(), f"{path} {variable}"])

    def data(self) -> dict[tuple[str, str], tuple[Any, Any]]:
        """Times and values of each trace, recorded since the reset."""
        from pluri.neurons.graphics.film import recorded

        return recorded(self._tree, self.pairs())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Draw the traces into a file (.png, .pdf, .svg) with matplotlib."""
        from pluri.neurons.graphics.figure import save_graph

        save_graph(self, path)


@register_element
class CellView(View):
    """The shape of a cell, each compartment in the colour of its voltage."""

    class_name = "cell_view"
    __slots__ = ()
    cell = field("", "", "Path of the cell: the compartments below it are drawn.")
    shows = field("Vm", "", "Name of the field that gives the colour.")
    low = field(-90.0, "", "Value at the dark end of the colours.")
    high = field(40.0, "", "Value at the bright end.")


@register_element
class NetworkView(View):
    """Spikes of a population: a dot for each, a row for each cell."""

    class_name = "network_view"
    __slots__ = ()
    units = field("", "", "Pattern of the axons or other sources of spikes that are shown.")


def as_number(text: str) -> float | None:
    """The finite number that a text is, if it is one."""
    from pluri.neurons.language.lexer import as_number as parsed

    return parsed(text.strip())
