"""Compartments and their couplings as trees, each after its parent; couplings that close a cycle are apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pluri.neurons.library.compartments import Electrical, Membrane
from pluri.neurons.tree.messages import Link

Array = np.ndarray[Any, Any]


class Forest(NamedTuple):
    """Compartments in order, with what the equation of each needs; parent -1 at roots."""

    members: list[Membrane]
    electrical: list[Electrical]
    parent: Array
    axial: Array
    loops: list[tuple[int, int, float]]


def forest_of(members: list[Membrane], links: list[Link], rank: dict[int, int]) -> Forest:
    """Number compartments from the root of each tree, which is the first of them in canonical order."""
    ordered = sorted(members, key=lambda one: rank[id(one)])
    electrical = {id(one): one.electrical() for one in ordered}
    neighbours: dict[int, list[Any]] = {id(one): [] for one in ordered}
    for link in links:
        if link.kind == "axial":
            neighbours[id(link.source)].append(link.destination)
            neighbours[id(link.destination)].append(link.source)
    number: dict[int, int] = {}
    found: list[Any] = []
    parent: list[int] = []
    axial: list[float] = []
    loops: list[tuple[int, int, float]] = []
    for root in ordered:
        if id(root) in number:
            continue
        waiting: list[tuple[Any, int]] = [(root, -1)]
        while waiting:
            one, above = waiting.pop()
            if id(one) in number:
                if above != parent[number[id(one)]]:
                    loops.append((number[id(one)], above, _coupling(electrical, one, found[above])))
                continue
            number[id(one)] = len(found)
            found.append(one)
            parent.append(above)
            axial.append(0.0 if above < 0 else _coupling(electrical, one, found[above]))
            for other in sorted(neighbours[id(one)], key=lambda each: rank[id(each)], reverse=True):
                if id(other) not in number:
                    waiting.append((other, number[id(one)]))
    return Forest(
        found,
        [electrical[id(one)] for one in found],
        np.array(parent, dtype=np.int64),
        np.array(axial, dtype=float),
        sorted(loops),
    )


def _coupling(electrical: dict[int, Electrical], one: Any, other: Any) -> float:
    return 1.0 / (electrical[id(one)].half_axial + electrical[id(other)].half_axial)
