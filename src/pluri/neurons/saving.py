"""Simulations in files: arrays (npz) and a JSON text in one archive, read without running any code."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.neurons.numerics.numbering import families_of
from pluri.neurons.numerics.recording import Group, Request
from pluri.neurons.numerics.records import FAMILIES
from pluri.neurons.tree.element import REGISTER, class_named
from pluri.neurons.tree.errors import SimulationError
from pluri.neurons.tree.messages import Connection, Link
from pluri.validation import replacing

if TYPE_CHECKING:
    from pluri.neurons.simulation import Simulation

FORMAT = "pluri neurons 1"


def save_simulation(simulation: Simulation, path: str | Path) -> None:
    """Write a simulation; an earlier file of that name is replaced only when all is written."""
    elements = simulation.root.below()[1:]
    number = {id(one): i for i, one in enumerate(elements)}
    text = {
        "format": FORMAT,
        "seed": simulation.seed,
        "method": simulation.method,
        "rate_tables": simulation.rate_tables,
        "clocks": {str(index): period for index, period in simulation.clocks.items()},
        "current": simulation.current,
        "n_steps": simulation.n_steps,
        "requests": [list(request) for request in simulation.requests],
        "elements": [
            {"class": one.class_name, "path": one.path, "identity": one.identity, "fields": _kept_fields(one)}
            for one in elements
        ],
        "links": [
            [number[id(one.source)], one.source_slot, number[id(one.destination)], one.destination_slot]
            for one in simulation.links
        ],
        "slots": [[one.source_slot, one.destination_slot] for one in simulation.connections],
        "recorded": [[group.columns, group.ticks, group.first_step] for group in simulation.recording.groups],
        "spike_paths": simulation.recording.paths,
        "left": simulation._left,
    }
    wires = [
        (number[id(one.source)], number[id(one.destination)], one.delay, one.weight, one.exact_delay)
        for one in simulation.connections
    ]
    arrays = {"connections": np.array(wires, dtype=float).reshape(-1, 5)}
    recording = simulation.recording
    arrays["spike_times"] = np.concatenate([np.zeros(0), *recording.spike_times])
    arrays["spike_places"] = np.concatenate([np.zeros(0, dtype=np.int64), *recording.spike_paths])
    for k, group in enumerate(recording.groups):
        arrays[f"rows{k}"] = np.concatenate([np.zeros((0, len(group.columns))), *group.rows])
    if simulation.network is not None:
        if simulation._stale:
            simulation.compile()
        arrays |= _state(simulation, number)
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("network.json", json.dumps(text))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


def _kept_fields(element: Any) -> dict[str, Any]:
    # Not what lives in the arrays: from the same fields the network is compiled in the same order, bit for bit.
    return {name: value for name, value in (element._values or {}).items() if name in element.declared()}


def _state(simulation: Simulation, number: dict[int, int]) -> dict[str, Any]:
    """State by element: which elements have which numbers, the state, and what is on its way."""
    network = simulation.network
    assert network is not None
    rows = []
    for one in network.assembly.elements:
        for which, (family, own) in enumerate(zip(families_of(one), network.assembly.numbers.get(id(one), ()))):
            rows.append((number[id(one)], which, list(FAMILIES).index(family), own))
    places = {k: number[id(one)] for k, one in network.sources_by_number.items()}
    return {
        "numbers": np.array(rows, dtype=np.int64).reshape(-1, 4),
        "state": network.state.copy(),
        "flights": np.array([(places[k], at) for k, at in network.flights()], dtype=float).reshape(-1, 2),
        "past": network.arrays.watch.past.copy(),
    }


def restore_simulation(kind: type[Simulation], path: str | Path) -> Simulation:
    """Read a simulation."""
    text, arrays = _read(path)
    try:
        simulation = kind(
            dt=text["clocks"]["0"], method=text["method"], random_state=0, rate_tables=text["rate_tables"]
        )
        _restore_tree(simulation, text, arrays)
        _restore_state(simulation, text, arrays)
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise SimulationError(f"{path} is damaged: {error!r}") from error
    return simulation


def _read(path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            text = json.loads(archive.read("network.json").decode("utf-8"))
            arrays = {}
            for name in archive.namelist():
                if name.endswith(".npy"):
                    with archive.open(name) as entry:
                        arrays[name.removesuffix(".npy")] = np.lib.format.read_array(entry, allow_pickle=False)
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise SimulationError(f"{path} is no saved simulation: {error}") from error
    if not isinstance(text, dict) or text.get("format") != FORMAT:
        raise SimulationError(f"{path} is no saved simulation of this version ({FORMAT})")
    return text, arrays


def _restore_tree(simulation: Simulation, text: dict[str, Any], arrays: dict[str, Any]) -> None:
    simulation.seed = int(text["seed"])
    for index, period in text["clocks"].items():
        simulation.set_clock(int(index), period)
    elements = []
    for one in text["elements"]:
        class_named("group")
        if one["class"] not in REGISTER:
            raise SimulationError(f"the class {one['class']} is not known: register it before the file is restored")
        element = simulation.create(one["class"], one["path"])
        element._identity = int(one["identity"])
        for name, value in one["fields"].items():
            element[name] = value
        elements.append(element)
    for start, slot, end, end_slot in text["links"]:
        source, destination = elements[start], elements[end]
        if slot not in source.slots or end_slot not in destination.slots:
            raise SimulationError(f"a link of {source.path} names a slot that is not there")
        simulation._add_link(Link(source, slot, destination, end_slot))
    for row, (slot, end_slot) in zip(arrays["connections"].tolist(), text["slots"]):
        source, destination = elements[int(row[0])], elements[int(row[1])]
        if (
            slot not in source.slots
            or end_slot not in destination.slots
            or not (np.isfinite(row).all() and row[2] >= 0)
        ):
            raise SimulationError(f"a connection of {source.path} is damaged")
        simulation.connections.append(Connection(source, slot, destination, end_slot, row[2], row[3], bool(row[4])))
    simulation.requests = [Request(str(a), str(b), int(c)) for a, b, c in text["requests"]]
    for request in simulation.requests:
        simulation.ticks_of_clock(request.clock)
    simulation.change_element(text["current"])
    simulation._left = {str(name): int(n) for name, n in text["left"].items()}
    simulation._n_steps = int(text["n_steps"])


def _restore_state(simulation: Simulation, text: dict[str, Any], arrays: dict[str, Any]) -> None:
    recording = simulation.recording
    earlier = []
    for k, (columns, ticks, first_step) in enumerate(text["recorded"]):
        group = Group([(str(path), str(field), 0) for path, field in columns], int(ticks))
        group.first_step = int(first_step)
        group.rows = [np.asarray(arrays[f"rows{k}"], dtype=float).reshape(-1, len(columns))]
        earlier.append(group)
    recording.paths = [str(one) for one in text["spike_paths"]]
    recording.place = {one: k for k, one in enumerate(recording.paths)}
    recording.spike_times = [np.asarray(arrays["spike_times"], dtype=float)]
    recording.spike_paths = [np.asarray(arrays["spike_places"], dtype=np.int64)]
    recording.groups = earlier
    if "state" not in arrays:
        return
    n_steps = simulation._n_steps
    simulation.compile()
    if n_steps == 0:  # compiling has kept a first row of its own
        recording.groups = earlier + [group for group in recording.groups if not earlier]
        if earlier:
            for new, old in zip(recording.active, earlier):
                new.rows, new.first_step = old.rows, old.first_step
            recording.groups = list(recording.active)
    network = simulation.network
    assert network is not None
    elements = {one["path"]: k for k, one in enumerate(text["elements"])}
    found = []
    for one in network.assembly.elements:
        for which, (family, own) in enumerate(zip(families_of(one), network.assembly.numbers.get(id(one), ()))):
            found.append((elements[one.path], which, list(FAMILIES).index(family), own))
    mine = np.array(sorted(found), dtype=np.int64).reshape(-1, 4)
    theirs = arrays["numbers"][np.lexsort(arrays["numbers"].T[::-1])]
    state = np.asarray(arrays["state"], dtype=float)
    if state.shape != network.state.shape or not np.array_equal(mine, theirs):
        raise SimulationError("the state does not fit the network: the file is damaged, or a class has changed")
    network.state[:] = state
    simulation.network._check_range(network.arrays.cells.voltage)  # type: ignore[union-attr]
    if arrays["past"].shape == network.arrays.watch.past.shape:
        network.arrays.watch.past[:] = arrays["past"]
    by_element = {id(one): k for k, one in network.sources_by_number.items()}
    ordered = [simulation.element(one["path"]) for one in text["elements"]]
    for place, at in arrays["flights"].tolist():
        network.add_flight(by_element[id(ordered[int(place)])], at)
