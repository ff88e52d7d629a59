"""From the tree to arrays: every element gets its numbers, and links and connections become lists of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.neurons.library.channels import Channel
from pluri.neurons.library.compartments import ActiveCompartment, IntegrateAndFire, Membrane
from pluri.neurons.library.sources import Axon, RandomSpikes
from pluri.neurons.library.stimuli import Pulses, TimeTable, VoltageClamp
from pluri.neurons.library.synapses import EventSynapse, GradedSynapse, HebbianSynapse
from pluri.neurons.library.units import BinaryUnit, RateUnit
from pluri.neurons.numerics.canonical_order import canonical_ranks, digest
from pluri.neurons.numerics.forest import forest_of
from pluri.neurons.numerics.numbering import Layout, is_python, of_kind
from pluri.neurons.numerics.tables import HH_POTASSIUM, HH_SODIUM, Kinetics, kinetics_of
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError

if TYPE_CHECKING:
    from pluri.neurons.simulation import Simulation

Array = np.ndarray[Any, Any]


class Assembly:
    """What is known of a network while its arrays are made; the parts are made in `parts.py` and `wires.py`.

    Attributes
    ----------
    numbers : dict
        Id of an element of the library to its numbers, one for each of its families.
    outlets : dict
        Id of an element written in Python and name of a slot, to the family and number that the slot gives out by, or
        that messages to it arrive at.
    """

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.elements = simulation.root.below()[1:]
        self.links, self.connections = simulation.links, simulation.connections
        self.rank = canonical_ranks(self.elements, self.links, self.connections)
        self.forest = forest_of(of_kind(self.elements, Membrane), self.links, self.rank)
        self.compartment = {id(one): i for i, one in enumerate(self.forest.members)}
        self.host = self._hosts()
        self.numbers: dict[int, tuple[int, ...]] = {}
        self.outlets: dict[tuple[int, str], tuple[str, int]] = {}
        self.kinetics: list[Kinetics] = []
        self._number_all()
        self.layout = Layout(self.counts)
        self.state = np.zeros(self.layout.size)

    def sorted(self, kind: Any) -> list[Any]:
        """Elements of a class in canonical order."""
        return sorted(of_kind(self.elements, kind), key=lambda one: self.rank[id(one)])

    def ticks(self, element: Element) -> int:
        """Steps from one tick of the clock of an element to the next."""
        return self.simulation.ticks_of(element)

    def _hosts(self) -> dict[int, int]:
        """Compartment of each channel, synapse, clamp and axon, by the id of the element."""
        found: dict[int, int] = {}
        for link in self.links:
            if link.kind == "conductance":
                child, place = link.source, link.destination
            elif isinstance(link.destination, Axon):
                child, place = link.destination, link.source
            else:
                continue
            if id(child) in found:
                raise SimulationError(f"{child.path} is linked to two compartments; make a copy for each")
            if id(place) in self.compartment:
                found[id(child)] = self.compartment[id(place)]
        return found

    # Numbers ----------------------------------------------------------------------------------------------------

    def _number_all(self) -> None:
        self.channel_list = self._channels()
        channel_numbers: dict[tuple[int, int], int] = {
            (id(element), which): j for j, (element, which, *_) in enumerate(self.channel_list)
        }
        axons = [one for one in self.sorted(Axon) if id(one) in self.host]
        firing = self.sorted(IntegrateAndFire)
        self.detectors: list[Any] = [*axons, *firing]
        self.randoms, self.tables = self.sorted(RandomSpikes), self.sorted(TimeTable)
        sources = [*self.detectors, *self.randoms, *self.tables]
        source = {id(one): i for i, one in enumerate(sources)}
        clamps = [one for one in self.sorted(VoltageClamp) if id(one) in self.host]
        plain = [one for one in self.sorted(Pulses) if not isinstance(one, VoltageClamp)]
        self.clamps, self.pulses = clamps, [*clamps, *plain]
        stimuli = [*self.pulses, *self.tables]
        self.synapses = self._synapses()
        self.graded = [one for one in self.sorted(GradedSynapse) if id(one) in self.host]
        self.units = [*self._rate_units(), *self.sorted(BinaryUnit)]
        for one in self.forest.members:
            at = self.compartment[id(one)]
            if isinstance(one, ActiveCompartment):
                self.numbers[id(one)] = (at, channel_numbers[id(one), 0], channel_numbers[id(one), 1])
            elif isinstance(one, IntegrateAndFire):
                self.numbers[id(one)] = (at, source[id(one)])
            else:
                self.numbers[id(one)] = (at,)
        for element, _, *_ in self.channel_list:
            if isinstance(element, Channel):
                self.numbers[id(element)] = (channel_numbers[id(element), 0],)
        for i, one in enumerate(axons):
            self.numbers[id(one)] = (i,)
        for i, one in enumerate(self.randoms):
            self.numbers[id(one)] = (source[id(one)], i)
        for i, one in enumerate(self.pulses):
            self.numbers[id(one)] = (i, i, i) if isinstance(one, VoltageClamp) else (i, i)
        for i, one in enumerate(self.tables):
            self.numbers[id(one)] = (len(self.pulses) + i, source[id(one)])
        self.plastic = [one for one in self.synapses if isinstance(one, HebbianSynapse)]
        for group in (self.synapses, self.graded, self.units):
            for i, one in enumerate(group):
                self.numbers[id(one)] = (i,)
        for i, learning in enumerate(self.plastic):
            self.numbers[id(learning)] = (*self.numbers[id(learning)], i)
        self.counts = {
            "compartment": len(self.forest.members),
            "channel": len(self.channel_list),
            "synapse": len(self.synapses),
            "plastic": len(self.plastic),
            "graded": len(self.graded),
            "stimulus": len(stimuli),
            "pulse": len(self.pulses),
            "clamp": len(clamps),
            "source": len(sources),
            "random": len(self.randoms),
            "unit": len(self.units),
        }
        self._number_python()

    def _channels(self) -> list[tuple[Element, int, str, int, float, float, int, Kinetics]]:
        """(element, which, key of the block, compartment, largest conductance, reversal, ticks, kinetics)."""
        found: list[tuple[Element, int, str, int, float, float, int, Kinetics]] = []
        for at, one in enumerate(self.forest.members):
            if isinstance(one, ActiveCompartment):
                area, ticks = 1e3 * 1e-8 * one.area, self.ticks(one)
                found.append((one, 0, f"0 sodium {ticks:09d}", at, one.gNa * area, one.ENa, ticks, HH_SODIUM))
                found.append((one, 1, f"1 potassium {ticks:09d}", at, one.gK * area, one.EK, ticks, HH_POTASSIUM))
        known: dict[Any, tuple[str, Kinetics]] = {}
        for one in of_kind(self.elements, Channel):
            if id(one) not in self.host:
                continue
            at = self.host[id(one)]
            key = (*one.kinetic_key(), self.ticks(one))
            if key not in known:
                known[key] = (f"{digest(*key):020d}", kinetics_of(one))
            area = getattr(self.forest.members[at], "area", None)
            if area is None and one.density and not one.gbar:
                raise SimulationError(
                    f"density of {one.path} needs an area, which {self.forest.members[at].path} does not have: set gbar"
                )
            largest = one.gbar + (0.0 if area is None else 1e-5 * one.density * area)
            found.append((one, 0, known[key][0], at, largest, one.E, self.ticks(one), known[key][1]))
        return sorted(found, key=lambda row: (row[2], row[3], self.rank[id(row[0])]))

    def _synapses(self) -> list[Any]:
        linked = [one for one in of_kind(self.elements, EventSynapse) if id(one) in self.host]
        return sorted(
            linked,
            key=lambda one: (one.time_constants(), one.magnesium(), self.host[id(one)], self.rank[id(one)]),
        )

    def _rate_units(self) -> list[Any]:
        """Rate units so that those that are linked come after what they are linked from."""
        waiting = self.sorted(RateUnit)
        before: dict[int, set[int]] = {id(one): set() for one in waiting}
        for link in self.links:
            if id(link.destination) in before and id(link.source) in before:
                before[id(link.destination)].add(id(link.source))
        found: list[Any] = []
        done: set[int] = set()
        while waiting:
            ready = [one for one in waiting if before[id(one)] <= done]
            if not ready:
                names = ", ".join(one.path for one in waiting[:3])
                raise SimulationError(f"links of rate units form a cycle ({names}): connect them, with a delay")
            found += ready
            done |= {id(one) for one in ready}
            waiting = [one for one in waiting if id(one) not in done]
        return found

    def _number_python(self) -> None:
        """Slots of Python elements: what they give out is a stimulus or a source; events wait for them in a synapse."""
        self.python = [one for one in self.elements if is_python(one)]
        self.n_mailboxes = 0
        for one in sorted(self.python, key=lambda each: self.rank[id(each)]):
            if id(one) in self.numbers:
                continue
            for name, slot in one.slots.items():
                kinds = set(slot.kind.split("|"))
                if slot.direction == "out" and "spike" in kinds:
                    family = "source"
                elif slot.direction == "out" and kinds & {"current", "value", "voltage"}:
                    family = "stimulus"
                elif slot.direction == "in" and "spike" in kinds:
                    family = "synapse"
                    self.n_mailboxes += 1
                else:
                    continue
                self.outlets[id(one), name] = (family, self.counts[family])
                self.counts[family] += 1
