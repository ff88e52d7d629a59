"""Connections as arrays: wires of spikes, inputs of units, and past values for those with a delay."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from pluri.neurons.library.compartments import Membrane
from pluri.neurons.library.sources import Axon, RandomSpikes
from pluri.neurons.library.stimuli import Pulses, TimeTable
from pluri.neurons.library.synapses import EventSynapse, GradedSynapse
from pluri.neurons.library.units import FUNCTIONS, BinaryUnit, Unit
from pluri.neurons.numerics.assembling import Assembly
from pluri.neurons.numerics.canonical_order import digest
from pluri.neurons.numerics.parts import integers, numbers, thresholds, views
from pluri.neurons.numerics.records import MOST_AT_ONCE, Array, Sources, Units, Wires
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError, SimulationWarning
from pluri.neurons.tree.messages import Connection, Link

#: Where a value is found: address in the state, lag in steps, share of the step before that, column of past values.
Input = tuple[int, int, float, int]


class Values:
    """Where the values that pass between elements live, and which of them are kept for delayed connections."""

    def __init__(self, assembly: Assembly) -> None:
        self.assembly = assembly
        self.columns: dict[int, int] = {}
        self.deepest = 0

    def address(self, element: Element, slot: str) -> int:
        """Address in the state of what a slot gives out."""
        assembly = self.assembly
        if (id(element), slot) in assembly.outlets:
            family, number = assembly.outlets[id(element), slot]
            return assembly.layout.offset["stimulus"] + number if family == "stimulus" else -1
        number = assembly.numbers[id(element)][0]
        block = {Membrane: "voltage", Pulses: "stimulus", TimeTable: "stimulus", Unit: "unit"}
        for kind, name in block.items():
            if isinstance(element, kind):
                return assembly.layout.offset[name] + number
        raise SimulationError(f"{element.path} gives out no values")

    def linked(self, link: Link) -> Input:
        """The value of now."""
        return self.address(link.source, link.source_slot), 0, 0.0, 0

    def connected(self, wire: Connection, *, at_once: bool = False) -> Input:
        """A value of the past; if `at_once`, the newest one where there is no delay."""
        address = self.address(wire.source, wire.source_slot)
        steps = wire.delay / self.assembly.simulation.dt
        if at_once and wire.delay == 0:
            return address, 0, 0.0, 0
        lag = max(1, math.floor(steps + 1e-9) if wire.exact_delay else round(steps))
        share = max(0.0, steps - lag) if wire.exact_delay else 0.0
        share = share if share > 1e-9 else 0.0
        column = self.columns.setdefault(address, len(self.columns))
        self.deepest = max(self.deepest, lag + 2)
        return address, lag, share, column


def incoming(assembly: Assembly, element_ids: set[int]) -> dict[int, list[Link | Connection]]:
    """Links and connections that end at some elements, in canonical order of where they begin."""
    found: dict[int, list[Link | Connection]] = {one: [] for one in element_ids}
    either: list[Link | Connection] = [*assembly.links, *assembly.connections]
    for one in either:
        if id(one.destination) in found:
            found[id(one.destination)].append(one)
    for messages in found.values():
        messages.sort(key=lambda one: (assembly.rank[id(one.source)], getattr(one, "delay", -1.0)))
    return found


def graded_inputs(assembly: Assembly, values: Values) -> list[Input]:
    """Where each synapse that follows a voltage finds it."""
    ends = incoming(assembly, {id(one) for one in assembly.graded})
    found = []
    for one in assembly.graded:
        arriving = [each for each in ends[id(one)] if each.destination_slot == "presynaptic"]
        if len(arriving) != 1:
            raise SimulationError(f"{one.path} needs one presynaptic voltage, and has {len(arriving)}")
        first = arriving[0]
        found.append(values.linked(first) if isinstance(first, Link) else values.connected(first))
    return found


def currents(assembly: Assembly, values: Values) -> list[tuple[int, int]]:
    """Addresses of currents and the compartments that they flow into."""
    flows = [one for one in assembly.links if one.kind == "current"]
    flows.sort(key=lambda one: (assembly.compartment[id(one.destination)], assembly.rank[id(one.source)]))
    return [(values.address(one.source, one.source_slot), assembly.compartment[id(one.destination)]) for one in flows]


def commands(assembly: Assembly, values: Values) -> list[int]:
    """Addresses of the commands of clamps: what is linked to a clamp, or its own pulse."""
    linked: set[int] = set()
    own = [assembly.layout.offset["stimulus"] + assembly.numbers[id(one)][0] for one in assembly.clamps]
    number = {id(one): i for i, one in enumerate(assembly.clamps)}
    for link in assembly.links:
        if id(link.destination) in number and link.destination_slot == "command":
            if id(link.destination) in linked:
                raise SimulationError(f"{link.destination.path} has two commands: link one of them only")
            linked.add(id(link.destination))
            own[number[id(link.destination)]] = values.address(link.source, link.source_slot)
    return own


def stream_key(assembly: Assembly, element: Any) -> int:
    """Key of the random stream of an element."""
    return digest(assembly.simulation.seed, element.stream or element.identity)


def make_sources(assembly: Assembly) -> Sources:
    """Arrays of sources of spikes."""
    last, before = views(assembly, "source")
    last[:] = -1e9
    compartment, threshold, refractory, resets, reset_voltage = thresholds(assembly)
    voltage = views(assembly, "compartment")[0]
    before[: len(compartment)] = voltage[compartment]
    room = max(1024, 2 * most_spikes(assembly))
    spikes = np.zeros(room, dtype=np.int64), np.zeros(room)
    return Sources(last, before, compartment, threshold, refractory, resets, reset_voltage, *spikes)


def most_spikes(assembly: Assembly) -> int:
    """How many spikes all sources together can send in a step."""
    found: int = assembly.counts["source"] + len(assembly.randoms) * (MOST_AT_ONCE - 1)
    for one in assembly.tables:
        if not one.values and one.times:
            steps = np.floor(np.asarray(one.times) / assembly.simulation.dt + 1e-9)
            found += int(np.unique(steps, return_counts=True)[1].max()) - 1
    return found


def make_wires(assembly: Assembly) -> Wires:
    """Arrays of random spikes, lists of times, wires, and what is on its way."""
    (rate,) = views(assembly, "random")
    for i, one in enumerate(assembly.randoms):
        rate[i] = one.kept("rate", one.declared()["rate"].default)
    number = {id(one): assembly.numbers[id(one)][1] for one in assembly.tables}
    listed = [one for one in assembly.tables if not one.values]
    dt = assembly.simulation.dt
    begin, target, weight, due, exact = _wires(assembly)
    room = max(1024, 2 * most_spikes(assembly))
    return Wires(
        most_spikes(assembly),
        rate,
        integers([assembly.numbers[id(one)][0] for one in assembly.randoms]),
        np.array([stream_key(assembly, one) for one in assembly.randoms], dtype=np.uint64),
        integers([assembly.ticks(one) for one in assembly.randoms]),
        integers([number[id(one)] for one in listed]),
        integers(np.concatenate([[0], np.cumsum([len(one.times) for one in listed])])),
        numbers([time / dt for one in listed for time in one.times]),
        begin,
        target,
        weight,
        due,
        exact,
        np.zeros(room, dtype=np.int64),
        np.zeros(room),
        np.zeros(room, dtype=np.int64),
    )


def source_number(assembly: Assembly, element: Element, slot: str) -> int:
    """Number of a source of spikes; -1 for an axon that is not linked."""
    if (id(element), slot) in assembly.outlets:
        return assembly.outlets[id(element), slot][1]
    if id(element) not in assembly.numbers:
        return -1
    which = 0 if isinstance(element, Axon | RandomSpikes) else 1
    return assembly.numbers[id(element)][which]


def _wires(assembly: Assembly) -> tuple[Array, Array, Array, Array, Array]:
    """Wires of spikes by source and time of arrival: where those of a source begin, target, weight, due, exact."""
    dt, short = assembly.simulation.dt, 0
    rows = []
    for wire in assembly.connections:
        if isinstance(wire.destination, EventSynapse):
            if id(wire.destination) not in assembly.numbers:
                continue
            end = assembly.numbers[id(wire.destination)][0]
        elif assembly.outlets.get((id(wire.destination), wire.destination_slot), ("", 0))[0] == "synapse":
            end = assembly.outlets[id(wire.destination), wire.destination_slot][1]
        else:
            continue
        start = source_number(assembly, wire.source, wire.source_slot)
        if start < 0:
            continue
        steps = wire.delay / dt
        if steps < 1 - 1e-9:
            short += 1
            steps = 1.0
        steps = round(steps, 9)
        exact = wire.exact_delay
        rows.append((start, steps + (1.0 if exact else 0.5), end, wire.weight, int(exact)))
    if short:
        warnings.warn(
            f"the delay of {short} connection{'s are' if short > 1 else ' is'} shorter than the time step ({dt:g} ms) "
            "and taken to be one step",
            SimulationWarning,
            stacklevel=2,
        )
    rows.sort()
    columns = list(zip(*rows)) or [()] * 5
    begin = np.zeros(assembly.counts["source"] + 1, dtype=np.int64)
    np.add.at(begin, integers(columns[0]) + 1, 1)
    return np.cumsum(begin), integers(columns[2]), numbers(columns[3]), numbers(columns[1]), integers(columns[4])


def make_units(assembly: Assembly, values: Values) -> Units:
    """Arrays of units and their inputs."""
    members, dt = assembly.units, assembly.simulation.dt
    y, bias = views(assembly, "unit")
    rows: list[tuple[Input, float]] = []
    begin = [0]
    ends = incoming(assembly, {id(one) for one in members})
    for i, one in enumerate(members):
        y[i] = one.kept("y", one.initial_y)
        bias[i] = one.kept("bias", 0.0)
        if isinstance(one, BinaryUnit):
            y[i] = 1.0 if y[i] > 0 else -1.0
        for each in ends[id(one)]:
            if isinstance(each, Link):
                rows.append((values.linked(each), 1.0))
            else:
                rows.append((values.connected(each, at_once=isinstance(one, BinaryUnit)), each.weight))
        begin.append(len(rows))
    binary = [isinstance(one, BinaryUnit) for one in members]
    taus = [0.0 if bits else one.tau for one, bits in zip(members, binary)]
    ticks = [assembly.ticks(one) for one in members]
    return Units(
        y,
        bias,
        binary.count(False),
        integers([0 if bits else FUNCTIONS.index(one.function) for one, bits in zip(members, binary)]),
        numbers([math.exp(-dt * n / tau) if tau > 0 else 0.0 for tau, n in zip(taus, ticks)]),
        integers(ticks),
        np.array([stream_key(assembly, one) if bits else 0 for one, bits in zip(members, binary)], dtype=np.uint64),
        integers(begin),
        integers([one[0] for one, _ in rows]),
        numbers([weight for _, weight in rows]),
        integers([one[1] for one, _ in rows]),
        numbers([one[2] for one, _ in rows]),
        integers([one[3] for one, _ in rows]),
        integers(np.zeros(len(members))),
        np.zeros(len(members)),
    )


def inputs_of(assembly: Assembly, values: Values, elements: list[Element]) -> dict[tuple[int, str], list[Any]]:
    """Inputs of elements written in Python: by id and slot, where each value is found and its weight."""
    found: dict[tuple[int, str], list[Any]] = {}
    for one, arriving in ((each, incoming(assembly, {id(each)})[id(each)]) for each in elements):
        for message in arriving:
            spikes = "spike" in one.slots[message.destination_slot].kind.split("|") and isinstance(message, Connection)
            if spikes or isinstance(message.source, GradedSynapse | EventSynapse):
                continue
            if message.source.slots[message.source_slot].kind in ("conductance", "axial"):
                continue
            where = values.linked(message) if isinstance(message, Link) else values.connected(message)
            found.setdefault((id(one), message.destination_slot), []).append((where, getattr(message, "weight", 1.0)))
    return found
