"""What looks wrong with a network, in sentences; some of it keeps the network from running."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from pluri.neurons.library.channels import Channel
from pluri.neurons.library.compartments import ActiveCompartment, Membrane
from pluri.neurons.library.sources import Axon
from pluri.neurons.library.stimuli import Pulses, Recorder, TimeTable, VoltageClamp
from pluri.neurons.library.synapses import EventSynapse, GradedSynapse
from pluri.neurons.library.units import RateUnit
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationWarning

if TYPE_CHECKING:
    from pluri.neurons.simulation import Simulation


class Problem(NamedTuple):
    """A sentence, and whether the network can run in spite of it."""

    text: str
    fatal: bool


def problems_of(simulation: Simulation) -> list[Problem]:
    """All problems of a network, the fatal ones first."""
    found = [
        *_unlinked(simulation),
        *_clocks(simulation),
        *_islands(simulation),
        *_cycles(simulation),
        *_weights(simulation),
        *_tables(simulation),
        *_pulses(simulation),
    ]
    found += [
        Problem(f"nothing matches {one.pattern}, whose {one.field} was to be recorded", False)
        for one in simulation.requests
        if not simulation.find(one.pattern)
    ]
    for one in simulation.root.below():
        fatal = not isinstance(one, Channel)  # a channel without conductance only does nothing
        found += [Problem(text, fatal) for text in one.check()]
    return sorted(found, key=lambda one: not one.fatal)


def warn_of_large_steps(simulation: Simulation) -> None:
    """Warn of a step in which gates would move too far."""
    clocks = {one.clock for one in simulation.root.below() if isinstance(one, Channel | ActiveCompartment)}
    step = max((simulation.clocks[one] for one in clocks), default=0.0)
    if step > 0.1:
        warnings.warn(
            f"dt = {step:g} ms is long for voltage-gated channels, whose gates move within 0.1 ms",
            SimulationWarning,
            stacklevel=5,
        )


def _unlinked(simulation: Simulation) -> Iterator[Problem]:
    inside = {id(one.source) for one in simulation.links if one.kind == "conductance"}
    watched = {id(one.destination) for one in simulation.links}
    used = {id(one.source) for one in simulation.links} | {id(one.source) for one in simulation.connections}
    for one in simulation.root.below():
        if isinstance(one, Channel | EventSynapse | GradedSynapse | VoltageClamp) and id(one) not in inside:
            yield Problem(f"{one.path} ({one.class_name}) is linked to no compartment", True)
        elif isinstance(one, Axon) and id(one) not in watched:
            yield Problem(f"{one.path} (axon) is linked to no compartment", True)
        elif isinstance(one, Recorder) and id(one) not in watched and not (one.source and simulation.find(one.source)):
            yield Problem(f"{one.path} (recorder) records nothing", False)
        elif isinstance(one, Pulses | TimeTable) and not isinstance(one, VoltageClamp) and id(one) not in used:
            yield Problem(f"{one.path} ({one.class_name}) drives nothing", False)


def _clocks(simulation: Simulation) -> Iterator[Problem]:
    for one in simulation.root.below():
        if one.clock not in simulation.clocks:
            yield Problem(f"clock {one.clock} of {one.path} was not set", True)
        elif one.clock != 0 and isinstance(one, EventSynapse | GradedSynapse | Axon):
            yield Problem(f"{one.path} ({one.class_name}) must be on clock 0: its events come in any step", True)
    for link in simulation.links:
        if link.kind == "axial" and link.source.clock != link.destination.clock:
            yield Problem(f"{link.source.path} and {link.destination.path} are coupled, and on different clocks", True)


def _weights(simulation: Simulation) -> Iterator[Problem]:
    """Wires that would open a synapse by less than nothing."""
    for wire in simulation.connections:
        if wire.weight < 0 and isinstance(wire.destination, EventSynapse):
            yield Problem(
                f"the weight of {wire.source.path} to {wire.destination.path} must be at least 0, got {wire.weight:g}: "
                "a conductance cannot be negative, and what inhibits is a reversal potential E below the threshold",
                True,
            )
            return


def _tables(simulation: Simulation) -> Iterator[Problem]:
    """Lists of times that are to give values and have none, or have values and are to give spikes."""
    for one in simulation.links:
        empty = isinstance(one.source, TimeTable) and one.source_slot == "output" and not one.source.values
        if empty and not isinstance(one.destination, Recorder):
            yield Problem(f"{one.source.path} is linked to {one.destination.path}, and has no values", True)
    for wire in simulation.connections:
        if isinstance(wire.source, TimeTable) and (wire.source_slot == "spikes") == bool(wire.source.values):
            wrong = "values, and so no spikes" if wire.source.values else "no values"
            yield Problem(f"{wire.source.path} is connected to {wire.destination.path}, and has {wrong}", True)


def _pulses(simulation: Simulation) -> Iterator[Problem]:
    """Pulses that never end, and those that fall between two steps."""
    for one in simulation.root.below():
        if not isinstance(one, Pulses) or one.clock not in simulation.clocks:
            continue
        period = getattr(one, "period", 0.0)
        if 0 < period <= one.width:
            yield Problem(
                f"width of {one.path} ({one.width:g} ms) is not below its period ({period:g} ms): it never ends",
                False,
            )
        step = simulation.clocks[one.clock]
        if 0 < one.width < step * (1 - 1e-9):
            yield Problem(f"width of {one.path} ({one.width:g} ms) must be at least a step ({step:g} ms)", True)


def _islands(simulation: Simulation) -> Iterator[Problem]:
    """Compartments beside others that are coupled, but coupled to none themselves."""
    coupled = {id(end) for one in simulation.links if one.kind == "axial" for end in (one.source, one.destination)}
    for parent in simulation.root.below():
        siblings = [one for one in parent.children.values() if isinstance(one, Membrane)]
        if len(siblings) > 1 and any(id(one) in coupled for one in siblings):
            for one in siblings:
                if id(one) not in coupled:
                    yield Problem(f"{one.path} is coupled to no other compartment of {parent.path}", False)


def _cycles(simulation: Simulation) -> Iterator[Problem]:
    """Rate units whose links lead back to themselves."""
    after: dict[int, list[Element]] = {}
    units = {id(one): one for one in simulation.root.below() if isinstance(one, RateUnit)}
    for link in simulation.links:
        if id(link.source) in units and id(link.destination) in units:
            after.setdefault(id(link.source), []).append(link.destination)
    done: set[int] = set()
    for start in units.values():
        waiting: list[tuple[Element, bool]] = [(start, False)]
        on_path: set[int] = set()
        while waiting:
            one, leaving = waiting.pop()
            if leaving:
                on_path.discard(id(one))
                done.add(id(one))
                continue
            if id(one) in on_path:
                yield Problem(f"links of rate units form a cycle at {one.path}: connect them, with a delay", True)
                return
            if id(one) in done:
                continue
            on_path.add(id(one))
            waiting.append((one, True))
            waiting += [(other, False) for other in after.get(id(one), [])]
