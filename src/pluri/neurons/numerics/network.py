"""A compiled network: its arrays, moved on by the loops that all networks share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.neurons.library.sources import Axon
from pluri.neurons.library.stimuli import Recorder
from pluri.neurons.numerics import parts, wires
from pluri.neurons.numerics.assembling import Assembly
from pluri.neurons.numerics.cycles import CyclicSolver
from pluri.neurons.numerics.numbering import families_of
from pluri.neurons.numerics.python_elements import PythonElements
from pluri.neurons.numerics.recording import Recording, make_watch
from pluri.neurons.numerics.records import (
    CRANK_NICOLSON,
    EULER,
    FAMILIES,
    LOWEST,
    N_FLIGHTS,
    N_SPIKES,
    STATUS,
    STEP,
    WHERE,
    Array,
    Arrays,
)
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError
from pluri.validation.interrupt_pauses import whole_pieces

if TYPE_CHECKING:
    from pluri.neurons.simulation import Simulation

#: A call of a compiled loop should take about this long (s), so that Ctrl-C is heard.
CALL = 0.05


class Network:
    """Arrays of a network, and what is needed to move them on and to find elements in them."""

    def __init__(self, simulation: Simulation, recording: Recording, *, step: int) -> None:
        assembly = Assembly(simulation)
        self.assembly, self.layout, self.state = assembly, assembly.layout, assembly.state
        self.dt, self.method = simulation.dt, simulation.method_number
        values = wires.Values(assembly)
        cells = parts.make_cells(assembly)
        channels = parts.make_channels(assembly, cells.voltage, tables=simulation.rate_tables)
        inputs = wires.inputs_of(assembly, values, assembly.python)
        sources = wires.make_sources(assembly)
        stimuli = synapses = lines = graded = units = None
        driven = assembly.synapses or assembly.pulses or assembly.tables or assembly.randoms or assembly.python
        if assembly.graded:
            graded = parts.make_graded(assembly, wires.graded_inputs(assembly, values))
        if assembly.units:
            units = wires.make_units(assembly, values)
        if driven:
            stimuli = parts.make_stimuli(assembly, wires.currents(assembly, values), wires.commands(assembly, values))
            synapses, lines = parts.make_synapses(assembly), wires.make_wires(assembly)
        for one in assembly.elements:
            if isinstance(one, Recorder | Axon):
                assembly.numbers.setdefault(id(one), ())
        self.recording = recording
        recording.begin(simulation, self, step)
        watch = make_watch(recording, values, self.state)
        progress = np.array([step, 0, 0, 0, 0], dtype=np.int64)
        self.arrays = Arrays(
            self.state,
            progress,
            cells,
            channels,
            sources,
            watch,
            stimuli,
            synapses,
            lines,
            graded,
            units,
            parts.make_plastic(assembly),
        )
        self.sources_by_number = self._sources()
        self.python = PythonElements(self, inputs) if assembly.python else None
        self.cycles = CyclicSolver(self) if assembly.forest.loops and self.method > 1 else None
        self.chunk = 64
        if self.method == EULER:
            self._check_stability()

    def _sources(self) -> dict[int, Element]:
        found: dict[int, Element] = {}
        for one in self.assembly.elements:
            for name, slot in one.slots.items():
                if (
                    slot.direction == "out"
                    and "spike" in slot.kind.split("|")
                    and (id(one) in self.assembly.numbers or (id(one), name) in self.assembly.outlets)
                ) and self.assembly.numbers.get(id(one)) != ():
                    found[wires.source_number(self.assembly, one, name)] = one
        return found

    @property
    def step(self) -> int:
        """Number of steps since the reset."""
        return int(self.arrays.progress[STEP])

    def address(self, element: Element, name: str) -> int | None:
        """Where a field of an element lives in the state; None if it does not."""
        where, own = element.addresses.get(name), self.assembly.numbers.get(id(element))
        if where is None or not own:
            return None
        return self.layout.offset[where[0]] + own[where[1]]

    # Moving on --------------------------------------------------------------------------------------------------

    def run(self, n_steps: int) -> None:
        """Move on; whatever was recorded is kept, also if it is interrupted."""
        arrays, left = self.arrays, n_steps
        self._check_range(arrays.cells.voltage)
        with whole_pieces() as work:
            self._collect()
            if left > 0 and arrays.progress[STEP] == 0 and self.method == CRANK_NICOLSON:
                self._shift_gates()
            while left > 0:
                before, started = self.step, time.perf_counter()
                self._advance(min(left, self.chunk, self.recording.room))
                left -= self.step - before
                taken = time.perf_counter() - started
                if taken < CALL / 2:
                    self.chunk = min(2 * self.chunk, 1 << 20)
                elif taken > 2 * CALL:
                    self.chunk = max(self.chunk // 2, 1)
                work.pause()

    def _advance(self, n_steps: int) -> None:
        """At most some steps in one call of a loop; what they recorded is taken out of its buffers."""
        from pluri.neurons.numerics._kernels import advance

        before = self.step
        try:
            idle = n_steps if self.python is None else min(n_steps, self.python.idle_steps())
            if idle == 0 and self.python is not None:
                self.python.step(self._one_step)
            elif self.cycles is not None:
                self._one_step()
            else:
                advance(self.arrays, self.method, self.dt, idle, 0)
        finally:
            self._collect()
        if self.arrays.progress[STATUS]:
            self._complain()
        if self.step == before:
            self._make_room()

    def _one_step(self) -> None:
        from pluri.neurons.numerics._kernels import advance

        self._make_room()
        if self.cycles is None:
            advance(self.arrays, self.method, self.dt, 1, 0)
            return
        advance(self.arrays, self.method, self.dt, 1, 1)
        self.cycles.solve(self.dt / 2 if self.method == CRANK_NICOLSON else self.dt)
        advance(self.arrays, self.method, self.dt, 1, 2)

    def _collect(self) -> None:
        """Take spikes and rows out of the buffers of the loop."""
        progress, sources = self.arrays.progress, self.arrays.sources
        n = int(progress[N_SPIKES])
        if n:
            self.recording.add_spikes(sources.spike_source[:n], sources.spike_time[:n], self.sources_by_number)
            progress[N_SPIKES] = 0
        self.recording.collect(self.arrays.watch)

    def _make_room(self) -> None:
        """Make the lists of spikes longer if they may overflow in the next step."""
        lines, progress = self.arrays.wires, self.arrays.progress
        if lines is None or progress[N_FLIGHTS] + lines.most <= len(lines.flight_time):
            return
        longer: dict[str, Any] = {
            name: np.concatenate([getattr(lines, name), np.zeros_like(getattr(lines, name))])
            for name in ("flight_source", "flight_time", "flight_next")
        }
        self.arrays = self.arrays._replace(wires=lines._replace(**longer))

    # Checks -----------------------------------------------------------------------------------------------------

    def _check_range(self, voltage: Array) -> None:
        wrong = np.flatnonzero(~(np.abs(voltage) <= -LOWEST))
        if len(wrong):
            self.arrays.progress[WHERE] = wrong[0]
            self._complain()

    def _complain(self) -> None:
        at, status = int(self.arrays.progress[WHERE]), int(self.arrays.progress[STATUS])
        self.arrays.progress[STATUS] = 0
        if status == 2:
            one, step = self.assembly.randoms[at], self.dt * self.assembly.ticks(self.assembly.randoms[at])
            raise SimulationError(
                f"rate of {one.path} must be at most one spike in a step ({1e3 / step:g} Hz), got {one.rate:g}: reduce "
                "dt, or share it among several sources"
            )
        value, path = self.arrays.cells.voltage[at], self.assembly.forest.members[at].path
        raise SimulationError(f"V = {value:.4g} mV at {path}, t = {self.step * self.dt:.6g} ms; reduce dt")

    def _check_stability(self) -> None:
        """Forward Euler is stable for dt < 2 C / B, with the conductances of now."""
        cells = self.arrays.cells
        total = cells.conductance.copy()
        channels = self.arrays.channels
        for block in range(len(channels.begin) - 1):
            part = slice(channels.begin[block], channels.begin[block + 1])
            p, q = channels.powers[block]
            open_share = channels.first[part] ** p * channels.second[part] ** q
            np.add.at(total, channels.compartment[part], channels.largest[part] * open_share)
        stimuli = self.arrays.stimuli
        if stimuli is not None:
            np.add.at(total, stimuli.clamp_compartment, stimuli.clamp_conductance)
        limit = 2 * cells.capacitance / total / (1 if cells.period is None else cells.period)
        if len(limit) and limit.min() < self.dt:
            at = int(limit.argmin())
            raise SimulationError(
                f"dt must be below {limit[at]:.3g} ms for the euler method at {self.assembly.forest.members[at].path}, "
                f"got {self.dt:g}: reduce dt, or use another method"
            )

    def _shift_gates(self) -> None:
        """Move gates on by half a step, where Crank and Nicolson's method wants them."""
        channels = self.arrays.channels
        row_of = [self.assembly.channel_list[i] for i in channels.begin[:-1]]
        for block, row in enumerate(row_of):
            part = slice(channels.begin[block], channels.begin[block + 1])
            v = self.arrays.cells.voltage[channels.compartment[part]]
            with np.errstate(all="ignore"):
                for gate, (settled, slow) in zip((channels.first, channels.second), row[-1].settled(v)):
                    keep = np.where(slow > 0, np.exp(-row[-2] * self.dt / 2 / np.where(slow > 0, slow, 1.0)), 0.0)
                    gate[part] = settled + (gate[part] - settled) * keep

    # From one compilation to the next ---------------------------------------------------------------------------

    def take_over(self, old: Network) -> None:
        """Take over the state of the elements that were in an earlier compilation."""
        moved = np.full(old.layout.size + 1, -1, dtype=np.int64)
        for one in self.assembly.elements:
            before, now = old.assembly.numbers.get(id(one)), self.assembly.numbers.get(id(one))
            if before and now:
                self._move(moved, old, list(zip(families_of(one), before, now)))
        for key, (family, number) in self.assembly.outlets.items():
            if key in old.assembly.outlets:
                self._move(moved, old, [(family, old.assembly.outlets[key][1], number)])
        known = np.flatnonzero(moved >= 0)
        self.state[moved[known]] = old.state[known]
        self._take_over_flights(old)
        self._take_over_past(old, moved)

    def _move(self, moved: Array, old: Network, numbers: list[tuple[str, int, int]]) -> None:
        for family, before, now in numbers:
            for block in FAMILIES[family]:
                moved[old.layout.offset[block] + before] = self.layout.offset[block] + now

    def _take_over_flights(self, old: Network) -> None:
        numbers = {id(one): number for number, one in self.sources_by_number.items()}
        for source, at in old.flights():
            element = old.sources_by_number[source]
            if id(element) in numbers:
                self.add_flight(numbers[id(element)], at)

    def flights(self) -> list[tuple[int, float]]:
        """Source and time (in steps) of each spike that is on its way."""
        lines, n = self.arrays.wires, int(self.arrays.progress[N_FLIGHTS])
        return [] if lines is None else list(zip(lines.flight_source[:n].tolist(), lines.flight_time[:n].tolist()))

    def add_flight(self, source: int, at: float) -> None:
        """Have a spike be on its way that was sent at some time (in steps)."""
        self._make_room()
        lines, progress = self.arrays.wires, self.arrays.progress
        if lines is None:
            return
        first, last = lines.begin[source], lines.begin[source + 1]
        arrived = int(np.searchsorted(at + lines.due[first:last], self.step))
        if first + arrived < last:
            n = progress[N_FLIGHTS]
            lines.flight_source[n], lines.flight_time[n] = source, at
            lines.flight_next[n] = first + arrived
            progress[N_FLIGHTS] += 1

    def _take_over_past(self, old: Network, moved: Array) -> None:
        new_watch, old_watch = self.arrays.watch, old.arrays.watch
        new_watch.past[:] = self.state[new_watch.past_address]
        column = {int(address): j for j, address in enumerate(new_watch.past_address)}
        depth, old_depth = len(new_watch.past), len(old_watch.past)
        for j, address in enumerate(old_watch.past_address):
            to: Any = column.get(int(moved[address]))
            if to is not None:
                for back in range(min(depth, old_depth)):
                    step = self.step - back
                    new_watch.past[step % depth, to] = old_watch.past[step % old_depth, j]
