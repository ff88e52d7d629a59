"""Graphical elements by one call each: what the commands ``graph``, ``form``, ``dialog`` and the others do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pluri.neurons.graphics.elements import OUTPUT, Button, CellView, Dialog, Form, Graph, NetworkView, Toggle
from pluri.neurons.tree.errors import SimulationError

if TYPE_CHECKING:
    from pluri.neurons.simulation import Simulation


class GraphicsCommands:
    """Methods of `Simulation` that make graphical elements under ``/output``."""

    def graph(self, path: str, field: str, *, name: str | None = None, title: str = "") -> Any:
        """Draw a field of an element, or of all that a pattern matches, against time.

        Parameters
        ----------
        path : str
            Of the element, or a pattern.
        field : str
            Name of the field.
        name : str, optional
            Of the graph, ``/output/NAME``; the name of the field by default. A name that is there already gets one more
            trace.
        title : str, default=""
            Heading.

        Returns
        -------
        Graph
            With ``data()`` and ``save(path)``.
        """
        simulation = _checked(self)
        found = [one for one in simulation.find(path) if field in one.declared()]
        if not found:
            simulation.get(path, field)  # says what is missing
            raise SimulationError(f"no element matches {path} and has a field {field}")
        for one in found:
            simulation.record(one.path, field)
        graph = _named(simulation, Graph, name or field, {"title": title} if title else {})
        for one in found:
            graph.add(one.path, field)
        return graph

    def cell_view(
        self,
        path: str,
        *,
        field: str = "Vm",
        name: str | None = None,
        title: str = "",
        low: float = -90.0,
        high: float = 40.0,
    ) -> Any:
        """Draw the shape of a cell, each compartment in the colour of a field.

        Parameters
        ----------
        path : str
            Of the cell: the compartments below it, or those that a pattern matches.
        field : str, default="Vm"
            What gives the colour.
        name, title : str, optional
            Of the view.
        low, high : float, default=-90 and 40
            Values at the ends of the colours.

        Returns
        -------
        CellView
        """
        simulation = _checked(self)
        from pluri.neurons.graphics.layout import compartments_of

        found = compartments_of(simulation, path, field)
        if not found:
            simulation.find(path) or simulation.get(path, field)
            raise SimulationError(f"no compartment with a field {field} is at {path} or below it")
        if not low < high:
            raise SimulationError(f"low must be below high, got {low:g} and {high:g}")
        path = _absolute(simulation, path)
        settings = {"cell": path, "shows": field, "low": low, "high": high} | ({"title": title} if title else {})
        view = _named(simulation, CellView, name or "cell_" + re.sub(r"[^A-Za-z0-9_]", "_", path.strip("/")), settings)
        for one in found:
            simulation.record(one.path, field)
        return view

    def network_view(self, pattern: str, *, name: str | None = None, title: str = "") -> Any:
        """Draw the spikes of a population.

        Parameters
        ----------
        pattern : str
            Of axons, integrate-and-fire neurons, or other sources of spikes.
        name, title : str, optional
            Of the view.

        Returns
        -------
        NetworkView
        """
        simulation = _checked(self)
        from pluri.neurons.graphics.layout import sources_of

        if not sources_of(simulation, pattern):
            raise SimulationError(f"no source of spikes matches {pattern}: an axon, for example")
        return _named(
            simulation,
            NetworkView,
            name or "network",
            {"units": _absolute(simulation, pattern)} | ({"title": title} if title else {}),
        )

    def form(self, name: str, *, title: str = "") -> Any:
        """Make a control panel; dialogs, toggles and buttons that follow are put into it.

        Parameters
        ----------
        name : str
            Of the form, ``/output/NAME``.
        title : str, default=""
            Heading.

        Returns
        -------
        Form
        """
        return _named(_checked(self), Form, name, {"title": title} if title else {}, new=True)

    def dialog(
        self,
        name: str,
        *,
        form: str | None = None,
        label: str = "",
        value: float | str = 0.0,
        unit: str = "",
        command: str = "",
    ) -> Any:
        """Make a value that can be changed.

        Parameters
        ----------
        name : str
            Of the dialog.
        form : str, optional
            Name of its form; the latest one by default.
        label, unit : str
            Written before and after the value.
        value : float or str, default=0
            What it shows first.
        command : str
            Line of a script that runs when the value is changed; ``{value}`` is the new one.

        Returns
        -------
        Dialog
        """
        from pluri.neurons.language.evaluation import as_text

        text = value if isinstance(value, str) else as_text(float(value))
        return _in_form(self, Dialog, name, form, {"label": label, "value": text, "unit": unit, "command": command})

    def toggle(
        self, name: str, *, form: str | None = None, label: str = "", value: bool | float = False, command: str = ""
    ) -> Any:
        """Make a switch; parameters as of `dialog`, and ``{value}`` is 1 or 0."""
        return _in_form(self, Toggle, name, form, {"label": label, "value": value, "command": command})

    def button(self, name: str, *, form: str | None = None, label: str = "", command: str = "") -> Any:
        """Make something to press; parameters as of `dialog`."""
        return _in_form(self, Button, name, form, {"label": label, "command": command})


def _checked(simulation: Any) -> Simulation:
    if not simulation.find(OUTPUT):
        simulation.create("group", OUTPUT)
    return simulation


def _absolute(simulation: Simulation, path: str) -> str:
    return path if path.startswith("/") else f"{simulation.current.rstrip('/')}/{path}"


def _path(name: str) -> str:
    return name if name.startswith("/") else f"{OUTPUT}/{name}"


def _named(simulation: Simulation, kind: type, name: str, settings: dict[str, Any], *, new: bool = False) -> Any:
    """An element under /output: the one of that name, if it is of that class, or a new one."""
    path = _path(name)
    found = simulation.find(path)
    if found and (new or type(found[0]) is not kind):
        raise SimulationError(f"{path} already exists")
    if not found:
        return simulation.create(kind.class_name, path, **settings)  # type: ignore[attr-defined]
    for field, value in settings.items():
        found[0][field] = value
    return found[0]


def _in_form(simulation: Any, kind: type, name: str, form: str | None, settings: dict[str, Any]) -> Any:
    simulation = _checked(simulation)
    forms = [one for one in simulation.element(OUTPUT).children.values() if isinstance(one, Form)]
    if form is not None:
        forms = [one for one in simulation.find(_path(form)) if isinstance(one, Form)]
        if not forms:
            raise SimulationError(f"there is no form {_path(form)}")
    above = forms[-1].path if forms else OUTPUT
    if not forms:
        above = simulation.form("controls", title="Controls").path
    return simulation.create(kind.class_name, name if name.startswith("/") else f"{above}/{name}", **settings)  # type: ignore[attr-defined]
