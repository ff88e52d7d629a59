"""Links, which pass values within a step, and connections, which pass them with a delay and a weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pluri.neurons.tree.element import Element, Slot
from pluri.neurons.tree.errors import SimulationError, nearest

#: What a slot that takes one kind of message can also be given.
ALSO_TAKES = {"value": {"voltage", "current"}, "current": {"value"}}


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """Two slots that are one in the same step: a channel and its compartment, two halves of a cable."""

    source: Element
    source_slot: str
    destination: Element
    destination_slot: str

    @property
    def kind(self) -> str:
        """What passes, as the destination calls it."""
        return self.destination.slots[self.destination_slot].kind


@dataclass(slots=True, eq=False)
class Connection:
    """A wire with a delay (ms) and a weight: an axon and a synapse, two units of a network."""

    source: Element
    source_slot: str
    destination: Element
    destination_slot: str
    delay: float
    weight: float
    exact_delay: bool


def matching_slots(
    source: tuple[Element, str | None], destination: tuple[Element, str | None], *, wire: bool
) -> tuple[str, str]:
    """Names of the slots that a link (or, if `wire`, a connection) joins; a sentence if there is not just one pair.

    Axial and conductance messages go both ways within a step, so that no connection can carry them.
    """
    starts, ends = _candidates(*source, ("out", "both")), _candidates(*destination, ("in", "both"))
    pairs = [
        (a, b, exact)
        for a, one in starts.items()
        for b, other in ends.items()
        if (exact := _passes(one, other, wire=wire)) is not None
    ]
    best = [(a, b) for a, b, exact in pairs if exact] or [(a, b) for a, b, _ in pairs]
    word = "connect" if wire else "link"
    names = f"{source[0].path} ({source[0].class_name})", f"{destination[0].path} ({destination[0].class_name})"
    if not best:
        raise SimulationError(
            f"cannot {word} {names[0]} to {names[1]}: {_said(starts, 'gives')}, {_said(ends, 'takes')}"
        )
    if len(best) > 1:
        choices = ", ".join(sorted({f"{source[0].path}.{a} to {destination[0].path}.{b}" for a, b in best}))
        raise SimulationError(f"{word} {names[0]} to {names[1]} could mean several slots; name one of: {choices}")
    return best[0]


def _candidates(element: Element, name: str | None, directions: tuple[str, str]) -> dict[str, Slot]:
    if name is not None and name not in element.slots:
        raise SimulationError(f"{element.path} has no slot {name}{nearest(name, element.slots)}")
    return {one: slot for one, slot in element.slots.items() if slot.direction in directions and name in (None, one)}


def _passes(start: Slot, end: Slot, *, wire: bool) -> bool | None:
    """Whether a message passes in the very kind that is taken; None if it does not pass at all."""
    gives, takes = set(start.kind.split("|")), set(end.kind.split("|"))
    if wire:
        gives -= {"axial", "conductance"}
    elif "spike" in gives and "spike" in takes:
        gives -= {"spike"}  # a spike is an event on a wire
    if gives & takes:
        return True
    also = set().union(*(ALSO_TAKES.get(kind, set()) for kind in takes))
    return False if gives & also else None


def _said(slots: dict[str, Slot], verb: str) -> str:
    kinds = sorted({kind for slot in slots.values() for kind in slot.kind.split("|")})
    return f"the {'first' if verb == 'gives' else 'second'} {verb} {' or '.join(kinds) if kinds else 'nothing'}"


def check_wire(destination: Element, slot: str) -> None:
    """Complain of a connection to a slot that takes links only."""
    if slot in destination.links_only:
        raise SimulationError(
            f"{destination.path}.{slot} takes links only: connections, which have a delay, end at synapses, units and "
            "elements of your own"
        )


def ends_of(link: Link) -> frozenset[Any]:
    """What two links must share to be the same; a coupling has no direction."""
    if link.kind == "axial":
        return frozenset((id(link.source), id(link.destination)))
    return frozenset(((id(link.source), link.source_slot, 0), (id(link.destination), link.destination_slot, 1)))


def number(name: str, value: Any) -> float:
    """A finite number; a sentence if it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if isinstance(value, bool) or not np.isfinite(number):
        raise SimulationError(f"{name} must be a finite number, got {value!r}")
    return number
