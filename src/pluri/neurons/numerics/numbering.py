"""Which number an element has in each family of arrays, and where its values live in the state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pluri.neurons.library.channels import Channel
from pluri.neurons.library.compartments import ActiveCompartment, IntegrateAndFire, Membrane
from pluri.neurons.library.sources import Axon, RandomSpikes
from pluri.neurons.library.stimuli import Pulses, TimeTable, VoltageClamp
from pluri.neurons.library.synapses import EventSynapse, GradedSynapse, HebbianSynapse
from pluri.neurons.library.units import Unit
from pluri.neurons.numerics.records import FAMILIES
from pluri.neurons.tree.element import Element

Array = np.ndarray[Any, Any]

#: Families of the numbers of an element, in their order.
NUMBERED: list[tuple[type[Element], tuple[str, ...]]] = [
    (ActiveCompartment, ("compartment", "channel", "channel")),
    (IntegrateAndFire, ("compartment", "source")),
    (Membrane, ("compartment",)),
    (Channel, ("channel",)),
    (HebbianSynapse, ("synapse", "plastic")),
    (EventSynapse, ("synapse",)),
    (GradedSynapse, ("graded",)),
    (Axon, ("source",)),
    (RandomSpikes, ("source", "random")),
    (VoltageClamp, ("stimulus", "pulse", "clamp")),
    (Pulses, ("stimulus", "pulse")),
    (TimeTable, ("stimulus", "source")),
    (Unit, ("unit",)),
]


def families_of(element: Element) -> tuple[str, ...]:
    """Families in which an element of the library has numbers; none for those written in Python."""
    for kind, families in NUMBERED:
        if isinstance(element, kind):
            return families
    return ()


class Layout:
    """Blocks of the state: where each begins."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts
        self.offset: dict[str, int] = {}
        size = 0
        for family, blocks in FAMILIES.items():
            for block in blocks:
                self.offset[block] = size
                size += counts.get(family, 0)
        self.size = size
        self.family = {block: family for family, blocks in FAMILIES.items() for block in blocks}

    def block(self, state: Array, name: str) -> Array:
        """The part of a state that is a block."""
        start = self.offset[name]
        return state[start : start + self.counts.get(self.family[name], 0)]


def is_python(element: Element) -> bool:
    """Whether an element has a `process` of its own, which runs in Python."""
    return type(element).process is not Element.process


def of_kind(elements: Iterable[Element], kind: Any) -> list[Any]:
    """Those of one class."""
    return [one for one in elements if isinstance(one, kind)]
