"""Morphologies from SWC files: one line for each point of a traced cell, with the number of the point before it."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import NamedTuple

from pluri.neurons.simulation import Simulation
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError

#: What the second column of a line means.
STRUCTURES = {1: "soma", 2: "axon", 3: "dendrite", 4: "apical"}


class Point(NamedTuple):
    """A point of a traced cell: number, structure, place and radius in um, and number of the point before it."""

    number: int
    structure: int
    x: float
    y: float
    z: float
    radius: float
    parent: int


def read_swc(path: str | Path) -> list[Point]:
    """Points of an SWC file, each after the one before it; a sentence names a line that is wrong.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    list of Point
    """
    points: dict[int, Point] = {}
    text = Path(path).read_text(encoding="utf-8", errors="replace")
    for n, line in enumerate(text.splitlines(), start=1):
        words = re.split(r"[\s,]+", line.partition("#")[0].strip())
        if words == [""]:
            continue
        try:
            numbers = [float(word) for word in words[:7]]
            x, y, z, radius = numbers[2:6]
            point = Point(int(numbers[0]), int(numbers[1]), x, y, z, radius, int(numbers[6]))
        except (ValueError, IndexError, OverflowError):
            raise SimulationError(f"line {n} of {path} must be seven numbers, got {line.strip()!r}") from None
        if point.number in points:
            raise SimulationError(f"line {n} of {path}: there is a point {point.number} already")
        if not (all(math.isfinite(value) for value in numbers) and point.radius > 0):
            raise SimulationError(f"line {n} of {path}: places must be finite and the radius positive")
        points[point.number] = point
    if not points:
        raise SimulationError(f"{path} has no points")
    return _parents_first(points, path)


def _parents_first(points: dict[int, Point], path: str | Path) -> list[Point]:
    after: dict[int, list[Point]] = {}
    for point in points.values():
        if point.parent not in points and point.parent != -1:
            raise SimulationError(f"point {point.number} of {path} follows point {point.parent}, which is not there")
        after.setdefault(point.parent, []).append(point)
    found: list[Point] = []
    waiting = list(reversed(after.get(-1, [])))
    while waiting:
        point = waiting.pop()
        found.append(point)
        waiting.extend(reversed(after.get(point.number, [])))
    if len(found) < len(points):
        lost = next(number for number in points if number not in {one.number for one in found})
        raise SimulationError(f"point {lost} of {path} leads back to itself and not to a root")
    return found


def load_morphology(
    simulation: Simulation,
    file: str | Path,
    path: str,
    *,
    max_length: float = 50.0,
    active: tuple[str, ...] = ("soma",),
) -> Element:
    r"""Create the compartments of a traced cell.

    Each point is joined to the one before it by a cylinder, which is cut into pieces of at most `max_length`. A soma of
    one point (or of three, as some archives have it) is a cylinder with the area of the sphere.

    Parameters
    ----------
    simulation : Simulation
        Where.
    file : str or Path
        An SWC file.
    path : str
        Of the group that is created for the cell.
    max_length : float, default=50.0
        In um.
    active : tuple of str, default=("soma",)
        Structures with Hodgkin and Huxley's channels: "soma", "axon", "dendrite", "apical".

    Returns
    -------
    Element
        The group, with ``soma[0]``, ``dendrite[0]`` and so on below it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pluri.neurons import Simulation
    >>> from pluri.neurons.models import load_morphology
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "cell.swc"
    >>> _ = file.write_text("1 1 0 0 0 10 -1\n2 3 10 0 0 1 1\n3 3 110 0 0 1 2\n")
    >>> sim = Simulation(method="crank_nicolson")
    >>> cell = load_morphology(sim, file, "/cell")
    >>> list(cell.children)
    ['soma[0]', 'dendrite[0]', 'dendrite[1]']
    """
    points = read_swc(file)
    unknown = set(active) - set(STRUCTURES.values())
    if unknown or not max_length > 0:
        raise SimulationError(
            f"active must be of {', '.join(STRUCTURES.values())} and max_length positive, got {active}, {max_length}"
        )
    group = simulation.create("group", path)
    by_number = {point.number: point for point in points}
    ends: dict[int, Element] = {}
    counts: dict[str, int] = {}

    def add(
        structure: int, length: float, diameter: float, middle: tuple[float, ...], above: Element | None
    ) -> Element:
        name = STRUCTURES.get(structure, "dendrite")
        k = counts[name] = counts.get(name, -1) + 1
        kind = "active_compartment" if name in active else "passive_compartment"
        place = dict(zip("xyz", middle))
        one = simulation.create(kind, f"{group.path}/{name}[{k}]", length=length, diameter=diameter, **place)
        if above is not None:
            simulation.link(above, one)
        return one

    for point in points:
        before = by_number.get(point.parent)
        if before is None:
            ends[point.number] = add(point.structure, 2 * point.radius, 2 * point.radius, point[2:5], None)
            continue
        above, distance = ends[before.number], math.dist(point[2:5], before[2:5])
        in_root = before.parent == -1
        # Points of a soma beside its root describe the same sphere; where a branch leaves it, it begins at its edge.
        if (
            distance < 1e-6
            or (in_root and point.structure == before.structure == 1)
            or (in_root and before.structure == 1 and distance <= before.radius * 1.01)
        ):
            ends[point.number] = above
            continue
        start = before.radius / distance if in_root and before.structure == 1 else 0.0
        length = distance * (1 - start)
        n_pieces = max(1, math.ceil(length / max_length))
        first = point.radius if in_root and before.structure == 1 else before.radius
        for k in range(n_pieces):
            part = (k + 0.5) / n_pieces
            middle = tuple(a + (b - a) * (start + (1 - start) * part) for a, b in zip(before[2:5], point[2:5]))
            diameter = 2 * (first + (point.radius - first) * part)
            above = add(point.structure, length / n_pieces, diameter, middle, above)
        ends[point.number] = above
    return group
