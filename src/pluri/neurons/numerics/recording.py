"""What is kept of a run: fields at each tick of a clock, and spikes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pluri.neurons.library.stimuli import Recorder
from pluri.neurons.numerics.records import Array, Watch
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError

if TYPE_CHECKING:
    from pluri.neurons.numerics.network import Network
    from pluri.neurons.numerics.wires import Values
    from pluri.neurons.simulation import Simulation

#: Numbers that the buffer of recordings holds at most, and rows.
MOST_NUMBERS, MOST_ROWS = 1_000_000, 4096


class Request(NamedTuple):
    """A field to record of all elements that a pattern matches, at the ticks of a clock."""

    pattern: str
    field: str
    clock: int


class Group:
    """Recordings at the same steps, between two compilations: what, from which step on, and the rows so far."""

    def __init__(self, columns: list[tuple[str, str, int]], ticks: int) -> None:
        self.columns = [(path, field) for path, field, _ in columns]
        self.addresses = [address for _, _, address in columns]
        self.ticks = ticks
        self.first_step = -1
        self.rows: list[Array] = []

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(len(rows) for rows in self.rows)


class Recording:
    """All that was recorded since the last reset."""

    def __init__(self) -> None:
        self.groups: list[Group] = []
        self.active: list[Group] = []
        self.spike_times: list[Array] = []
        self.spike_paths: list[Array] = []
        self.paths: list[str] = []  # of spike sources; spikes name them by their place in this list
        self.place: dict[str, int] = {}
        self.room = MOST_ROWS

    def begin(self, simulation: Simulation, network: Network, step: int) -> None:
        """Begin new groups: the network was compiled anew."""
        self.active = [
            Group(columns, ticks) for ticks, columns in sorted(_columns(simulation, network).items()) if columns
        ]
        for group in self.active:
            # The row of the moment itself, if none was kept of it yet.
            group.first_step = -(-(step + 1) // group.ticks) * group.ticks
        self.groups += self.active
        width = max([len(group.columns) for group in self.active], default=1)
        self.room = int(np.clip(MOST_NUMBERS // width, 16, MOST_ROWS))

    def add_first_row(self, state: Array) -> None:
        """Keep the values before the first step."""
        for group in self.active:
            group.first_step = 0
            group.rows.append(state[group.addresses][None, :])

    def collect(self, watch: Watch) -> None:
        """Take rows out of the buffer."""
        for k, group in enumerate(self.active):
            n, width = int(watch.n_rows[k]), len(group.columns)
            if n:
                begin = int(watch.buffer_begin[k])
                group.rows.append(watch.buffer[begin : begin + n * width].reshape(n, width).copy())
                watch.n_rows[k] = 0

    def forget(self, most_numbers: int) -> None:
        """Let the oldest rows and spikes go, if there are more numbers than this: for runs that have no end."""
        if sum(group.n_rows * len(group.columns) for group in self.groups) > most_numbers:
            for group in self.groups:
                gone = len(group.rows) // 2 if group in self.active else len(group.rows)
                group.first_step += group.ticks * sum(map(len, group.rows[:gone]))
                del group.rows[:gone]
            self.groups = [group for group in self.groups if group.rows or group in self.active]
        if sum(map(len, self.spike_times)) > most_numbers:
            half = len(self.spike_times) // 2
            del self.spike_times[:half], self.spike_paths[:half]

    def add_spikes(self, sources: Iterable[Any], times: Any, names: dict[int, Element]) -> None:
        """Keep spikes."""
        found = []
        known: dict[int, int] = {}
        for source in np.asarray(sources).tolist():
            if source not in known:
                path = names[source].path
                if path not in self.place:
                    self.place[path] = len(self.paths)
                    self.paths.append(path)
                known[source] = self.place[path]
            found.append(known[source])
        self.spike_paths.append(np.array(found, dtype=np.int64))
        self.spike_times.append(np.array(times, dtype=float))


def _columns(simulation: Simulation, network: Network) -> dict[int, list[tuple[str, str, int]]]:
    """For each number of steps between ticks: path, field and address of what is recorded.

    What was asked for at the ticks of two clocks is one series, at those of the faster.
    """
    fastest: dict[tuple[str, str], tuple[int, int]] = {}

    def add(element: Element, field: str, ticks: int) -> None:
        address = network.address(element, field)
        if address is not None:
            key = element.path, field
            fastest[key] = min(fastest.get(key, (ticks, address)), (ticks, address))

    for request in simulation.requests:
        for element in simulation.find(request.pattern):
            add(element, request.field, simulation.ticks_of_clock(request.clock))
    linked: dict[int, list[Element]] = {}
    for link in simulation.links:
        if isinstance(link.destination, Recorder):
            linked.setdefault(id(link.destination), []).append(link.source)
    for element in network.assembly.elements:
        if isinstance(element, Recorder):
            watched = linked.get(id(element), []) + (simulation.find(element.source) if element.source else [])
            for one in watched:
                if element.variable not in one.addresses:
                    raise SimulationError(f"{element.path} cannot record {element.variable} of {one.path}")
                add(one, element.variable, simulation.ticks_of(element))
    found: dict[int, list[tuple[str, str, int]]] = {}
    for key, (ticks, address) in fastest.items():
        found.setdefault(ticks, []).append((*key, address))
    return found


def make_watch(recording: Recording, values: Values, state: Array) -> Watch:
    """Arrays of what is recorded and of past values."""
    widths = [len(group.columns) for group in recording.active]
    # One row more than steps in a call: the first step of a call may tick.
    sizes = [width * (recording.room // group.ticks + 2) for width, group in zip(widths, recording.active)]
    past_address = np.array(list(values.columns), dtype=np.int64)
    depth = max(values.deepest + 1, 2)
    return Watch(
        np.array([one for group in recording.active for one in group.addresses], dtype=np.int64),
        np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
        np.array([group.ticks for group in recording.active], dtype=np.int64),
        np.zeros(sum(sizes)),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.zeros(len(recording.active), dtype=np.int64),
        past_address,
        np.tile(state[past_address], (depth, 1)),
    )
