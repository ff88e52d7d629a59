"""Elements written in Python, which run beside the compiled loops: one step of these for each step of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pluri.neurons.numerics.records import STEP
from pluri.neurons.numerics.wires import source_number
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError

if TYPE_CHECKING:
    from pluri.neurons.numerics.network import Network


class PythonElements:
    """What arrives at elements written in Python, and what they give out."""

    def __init__(self, network: Network, inputs: dict[tuple[int, str], list[Any]]) -> None:
        self.network, self.inputs = network, inputs
        assembly = network.assembly
        rank = assembly.rank
        self.members = sorted(assembly.python, key=lambda one: (type(one).phase, rank[id(one)]))
        self.ticks = [assembly.ticks(one) for one in self.members]
        self.delivered: dict[tuple[int, str], float] = {}
        self.pending: dict[tuple[int, str], tuple[int, float, float]] = {}
        cells = network.arrays.cells
        self.conductance, self.drive = cells.conductance.copy(), cells.drive.copy()

    def idle_steps(self) -> int:
        """Steps that can be made before the next one in which an element has to run."""
        step, found = self.network.step, 1 << 30
        for one, ticks in zip(self.members, self.ticks):
            at = step if type(one).phase <= 1 else step + 1
            found = min(found, -at % ticks)
        return found

    def step(self, move: Callable[[], None]) -> None:
        """One step: stimuli and conductances, the compiled part, then spikes, recorders and displays."""
        network = self.network
        n, dt = network.step, network.dt
        for one in self.members:
            if type(one).phase <= 1:
                self._process(one, n, n * dt)
        cells = network.arrays.cells
        if self.pending:
            cells.conductance[:], cells.drive[:] = self.conductance, self.drive
            for at, g, reversal in self.pending.values():
                cells.conductance[at] += g
                cells.drive[at] += g * reversal
        move()
        for one in self.members:
            if type(one).phase > 1:
                self._process(one, n + 1, (n + 1) * dt)

    def _process(self, element: Element, step: int, t: float) -> None:
        ticks = self.network.assembly.ticks(element)
        if step % ticks == 0:
            element.process(t, ticks * self.network.dt)

    def received(self, element: Element, slot: str) -> float:
        """Sum of what arrives at a slot in this step."""
        network = self.network
        arrays, step = network.arrays, network.step
        if element.slots[slot].kind == "conductance":
            return float(arrays.cells.voltage[self._host(element)])
        total = self.delivered.pop((id(element), slot), 0.0)
        for (address, lag, share, column), weight in self.inputs.get((id(element), slot), ()):
            past = arrays.watch.past
            value = float(network.state[address])
            if lag:
                value = float(past[(step - lag) % len(past), column])
                value += share * (float(past[(step - lag - 1) % len(past), column]) - value)
            total += weight * value
        outlet = network.assembly.outlets.get((id(element), slot))
        if outlet is not None and outlet[0] == "synapse" and arrays.synapses is not None:
            total += float(arrays.synapses.rising[outlet[1]])
            arrays.synapses.rising[outlet[1]] = 0.0
        return total

    def deliver(self, element: Element, slot: str, value: float) -> None:
        """Have a value arrive at a slot in the next step, beside what links bring."""
        key = id(element), slot
        self.delivered[key] = self.delivered.get(key, 0.0) + float(value)

    def sent(self, element: Element, slot: str, value: Any) -> None:
        """Have a slot give out a value."""
        network = self.network
        kind = element.slots[slot].kind
        if kind == "conductance":
            g, reversal = value
            self.pending[id(element), slot] = (self._host(element), float(g), float(reversal))
        elif "spike" in kind.split("|"):
            if value:
                self._send_spike(source_number(network.assembly, element, slot))
        else:
            family, number = network.assembly.outlets[id(element), slot]
            network.state[network.layout.offset[family] + number] = float(value)

    def _host(self, element: Element) -> int:
        host = self.network.assembly.host
        if id(element) not in host:
            raise SimulationError(f"{element.path} is linked to no compartment")
        return host[id(element)]

    def _send_spike(self, source: int) -> None:
        network = self.network
        progress, sources = network.arrays.progress, network.arrays.sources
        step = int(progress[STEP])
        sources.last[source] = step * network.dt
        network.recording.add_spikes([source], [step * network.dt], network.sources_by_number)
        network.add_flight(source, float(step))
