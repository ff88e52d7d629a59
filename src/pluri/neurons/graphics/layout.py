"""What is to be seen, as plain data: forms with their widgets, graphs with their traces, and the shapes of cells.

Cells whose compartments have coordinates are drawn there. Others are laid out as trees: the thickest compartment in the
middle, its branches around it, each in a sector as wide as it has tips.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pluri.neurons.graphics.elements import (
    OUTPUT,
    Button,
    CellView,
    Dialog,
    Form,
    Graph,
    NetworkView,
    Toggle,
    Widget,
    as_number,
)

if TYPE_CHECKING:
    from pluri.neurons.tree.element import Element
    from pluri.neurons.tree.structure import ElementTree

#: Start, end and diameter of a stroke, in um; equal start and end for a disc.
Segment = tuple[float, float, float, float, float]


def output_layout(simulation: ElementTree) -> dict[str, Any]:
    """All that is under ``/output``, in the order of creation."""
    found = simulation.find(f"{OUTPUT}/**") if simulation.find(OUTPUT) else []
    return {
        "forms": [_form(one) for one in found if isinstance(one, Form)],
        "graphs": [_graph(simulation, one) for one in found if isinstance(one, Graph) and one.pairs()],
        "cells": [_cell(simulation, one) for one in found if isinstance(one, CellView)],
        "networks": [_network(simulation, one) for one in found if isinstance(one, NetworkView)],
    }


def _form(form: Form) -> dict[str, Any]:
    widgets = [_widget(one) for one in form.children.values() if isinstance(one, Widget)]
    return {"path": form.path, "title": form.title or form.name, "widgets": widgets}


def _widget(widget: Widget) -> dict[str, Any]:
    found: dict[str, Any] = {"path": widget.path, "kind": widget.class_name, "label": widget.label or widget.name}
    if isinstance(widget, Dialog):
        found |= {"value": widget.value, "unit": widget.unit, "numeric": as_number(widget.value) is not None}
    elif isinstance(widget, Toggle):
        found |= {"value": int(widget.value)}
    return found


def widget_values(simulation: ElementTree) -> dict[str, Any]:
    """What dialogs and toggles show now, by path."""
    found = simulation.find(f"{OUTPUT}/**") if simulation.find(OUTPUT) else []
    return {
        one.path: one.value if isinstance(one, Dialog) else int(one["value"])
        for one in found
        if isinstance(one, Widget) and not isinstance(one, Button)
    }


def shape_of(layout: dict[str, Any]) -> Any:
    """A layout without the values of widgets, to be compared with another."""
    forms = [
        (form["path"], form["title"], [{**one, "value": None} for one in form["widgets"]])
        for form in layout.get("forms", ())
    ]
    return [forms, *(layout.get(name) for name in ("graphs", "cells", "networks"))]


def with_values(forms: list[dict[str, Any]], values: dict[str, Any]) -> list[dict[str, Any]]:
    """Forms whose widgets show given values."""
    return [
        {**form, "widgets": [{**one, "value": values.get(one["path"], one.get("value"))} for one in form["widgets"]]}
        for form in forms
    ]


def _graph(simulation: ElementTree, graph: Graph) -> dict[str, Any]:
    pairs = graph.pairs()
    units = [simulation.element(path).field_named(name).unit for path, name in pairs if simulation.find(path)]
    names = short_names([path for path, _ in pairs])
    fields = {name for _, name in pairs}
    traces = [
        {"name": short if len(fields) == 1 else f"{short} {name}", "path": path, "field": name}
        for short, (path, name) in zip(names, pairs)
    ]
    title = graph.title or (pairs[0][1] if len(fields) == 1 else graph.name)
    return {"path": graph.path, "title": title, "unit": units[0] if len(set(units)) == 1 else "", "traces": traces}


def short_names(paths: list[str]) -> list[str]:
    """Paths without the groups that all of them begin with.

    Examples
    --------
    >>> from pluri.neurons.graphics.layout import short_names
    >>> short_names(["/net/a/soma", "/net/b/soma"])
    ['a/soma', 'b/soma']
    """
    parts = [path.strip("/").split("/") for path in paths]
    common = 0
    while all(len(one) > common + 1 for one in parts) and len({one[common] for one in parts}) == 1:
        common += 1
    return ["/".join(one[common:]) for one in parts]


def sources_of(simulation: ElementTree, pattern: str) -> list[Element]:
    """Elements that send spikes, of a pattern."""
    return [
        one
        for one in simulation.find(pattern)
        if any(slot.kind == "spike" and slot.direction == "out" for slot in one.slots.values())
    ]


def _network(simulation: ElementTree, view: NetworkView) -> dict[str, Any]:
    paths = [one.path for one in sources_of(simulation, view.units)]
    return {"path": view.path, "title": view.title or view.units, "paths": paths, "names": short_names(paths)}


# Cells ----------------------------------------------------------------------------------------------------------


def compartments_of(simulation: ElementTree, path: str, variable: str = "Vm") -> list[Element]:
    """Compartments at a path or pattern, and below it."""
    found: dict[int, Element] = {}
    for top in simulation.find(path):
        for one in top.below():
            if variable in one.declared() and "axial" in one.slots:
                found[id(one)] = one
    return list(found.values())


def _cell(simulation: ElementTree, view: CellView) -> dict[str, Any]:
    found = compartments_of(simulation, view.cell, view.shows)
    unit = found[0].field_named(view.shows).unit if found else ""
    return {
        "path": view.path,
        "title": view.title or view.cell,
        "low": view.low,
        "high": view.high,
        "unit": unit,
        "field": view.shows,
        "paths": [one.path for one in found],
        "segments": [list(map(float, one)) for one in segments_of(simulation, found)],
    }


def segments_of(simulation: ElementTree, compartments: list[Element]) -> list[Segment]:
    """A stroke for each compartment, in um."""
    number = {id(one): place for place, one in enumerate(compartments)}
    neighbours: list[list[int]] = [[] for _ in compartments]
    for link in simulation.links:
        a, b = number.get(id(link.source)), number.get(id(link.destination))
        if link.kind == "axial" and a is not None and b is not None:
            neighbours[a].append(b)
            neighbours[b].append(a)
    sizes = [_size(one) for one in compartments]
    places = [(float(getattr(one, "x", 0.0)), float(getattr(one, "y", 0.0))) for one in compartments]
    found: list[Segment] = [(0.0, 0.0, 0.0, 0.0, 1.0)] * len(compartments)
    seen: set[int] = set()
    below = 0.0
    for root in sorted(range(len(compartments)), key=lambda place: (-sizes[place][1], place)):
        if root in seen:
            continue
        order, parent = _spanning_tree(root, neighbours, seen)
        if len(order) > 1 and any(places[one] != (0.0, 0.0) for one in order):
            _placed(order, parent, places, sizes, found)
        else:
            _laid_out(order, parent, sizes, found)
            below = _moved_below(order, found, below)
    return found


def _size(compartment: Element) -> tuple[float, float]:
    length, diameter = getattr(compartment, "length", None), getattr(compartment, "diameter", None)
    return (20.0, 20.0) if length is None or diameter is None else (float(length), float(diameter))


def _spanning_tree(root: int, neighbours: list[list[int]], seen: set[int]) -> tuple[list[int], dict[int, int]]:
    """Compartments from the root outwards, and the one before each."""
    order, parent = [root], {root: -1}
    seen.add(root)
    for one in order:  # grows while it is gone through
        for other in neighbours[one]:
            if other not in seen:
                seen.add(other)
                parent[other] = one
                order.append(other)
    return order, parent


def _placed(
    order: list[int],
    parent: dict[int, int],
    places: list[tuple[float, float]],
    sizes: list[tuple[float, float]],
    found: list[Segment],
) -> None:
    """Strokes through given middles, in the direction of the neighbour nearer to the root; changes `found`."""
    for one in order:
        x, y = places[one]
        length, diameter = sizes[one]
        if parent[one] < 0:
            found[one] = (x, y, x, y, max(diameter, min(length, 2 * diameter)))
            continue
        away = (x - places[parent[one]][0], y - places[parent[one]][1])
        norm = math.hypot(*away) or 1.0
        half = min(length / 2, norm / 2) / norm
        found[one] = (x - half * away[0], y - half * away[1], x + half * away[0], y + half * away[1], diameter)


def _laid_out(order: list[int], parent: dict[int, int], sizes: list[tuple[float, float]], found: list[Segment]) -> None:
    """A tree around its root; changes `found`."""
    children: dict[int, list[int]] = {one: [] for one in order}
    for one in order[1:]:
        children[parent[one]].append(one)
    tips: dict[int, int] = {}
    for one in reversed(order):
        tips[one] = sum(tips[child] for child in children[one]) or 1
    root = order[0]
    length, diameter = sizes[root]
    round_soma = length <= 3 * diameter
    found[root] = (0.0, 0.0, 0.0, 0.0, diameter) if round_soma else (0.0, 0.0, length, 0.0, diameter)
    # Sector of each: its middle and its width, in radians; and the point that it begins at.
    whole = 2 * math.pi if round_soma and len(children[root]) > 1 else 0.9 * math.pi
    sector = {root: (0.0, whole)}
    for one in order:
        middle, wide = sector[one]
        at = middle - wide / 2
        if one == root and len(children[one]) > 1:
            at -= wide * tips[children[one][0]] / tips[one] / 2  # the first branch to the right
        for child in children[one]:
            share = wide * tips[child] / tips[one]
            # An unbranched stretch goes straight on.
            angle = middle if len(children[one]) == 1 else at + share / 2
            sector[child] = (angle, share if len(children[one]) > 1 else wide)
            at += share
            x, y, size = found[one][2], found[one][3], found[one][4]
            if found[one][:2] == (x, y):  # from the edge of a disc
                x, y = x + size / 2 * math.cos(angle), y + size / 2 * math.sin(angle)
            length, diameter = sizes[child]
            end = (x + length * math.cos(angle), y + length * math.sin(angle))
            if length == diameter:  # another soma, a little apart: as far as a gap junction can be seen
                found[child] = (*end, *end, diameter)
            else:
                found[child] = (x, y, *end, diameter)


def _moved_below(order: list[int], found: list[Segment], below: float) -> float:
    """Put a cell below those before it; changes `found`, and tells where the next may begin."""
    low = min(min(found[one][1], found[one][3]) - found[one][4] / 2 for one in order)
    high = max(max(found[one][1], found[one][3]) + found[one][4] / 2 for one in order)
    shift = below - low
    for one in order:
        x0, y0, x1, y1, wide = found[one]
        found[one] = (x0, y0 + shift, x1, y1 + shift, wide)
    return below + (high - low) + 40.0
