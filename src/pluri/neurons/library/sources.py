"""Sources of spikes: axons, which send one when a voltage rises through a threshold, and random ones."""

from __future__ import annotations

from typing import ClassVar

from pluri.neurons.library.compartments import NOT_NEGATIVE, VOLTAGE
from pluri.neurons.tree.element import Element, Slot, register_element
from pluri.neurons.tree.fields import field
from pluri.validation import Whole

#: The number that random streams are made of.
STREAM = Whole(0, 2**64 - 1)


@register_element
class Axon(Element):
    """A spike generator: the voltage of its compartment rising through a threshold; the time is interpolated."""

    class_name = "axon"
    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {"membrane": Slot("voltage", "in"), "spikes": Slot("spike", "out")}
    links_only: ClassVar[frozenset[str]] = frozenset({"membrane"})
    addresses: ClassVar[dict[str, tuple[str, int]]] = {"last_spike": ("last_spike", 0)}
    threshold = field(0.0, "mV", "Voltage whose crossing upwards is a spike.", allowed=VOLTAGE)
    refractory = field(1.0, "ms", "Shortest time between two spikes.", allowed=NOT_NEGATIVE)
    last_spike = field(-1e9, "ms", "Time of the last spike.", role="state")


@register_element
class RandomSpikes(Element):
    """Spikes of a Poisson process, at most one on average in a step."""

    class_name = "random_spikes"
    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {"spikes": Slot("spike", "out")}
    addresses: ClassVar[dict[str, tuple[str, int]]] = {"last_spike": ("last_spike", 0), "rate": ("spike_rate", 1)}
    own: ClassVar[frozenset[str]] = frozenset({"stream"})
    rate = field(10.0, "Hz", "Spikes in a second, on average.", allowed=NOT_NEGATIVE, role="input")
    stream = field(
        0, "", "Number of its random stream; 0 has it follow from the path that it was created at.", allowed=STREAM
    )
    last_spike = field(-1e9, "ms", "Time of the last spike.", role="state")
