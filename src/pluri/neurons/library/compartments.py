r"""Compartments: pieces of membrane that are short enough to have one voltage.

.. math:: C \dot V = (E_m - V)/R_m + \sum_k g_k (E_k - V) + \sum_{nb} (V_{nb} - V)/R_{nb} + I

Units are mV, ms, nA, uS, nF and MOhm, which fit together; densities are per square centimetre, lengths in micrometres.
A cylinder of length l and diameter d has the area :math:`\pi d l`, and half of it the axial resistance
:math:`R_a (l/2)/(\pi d^2/4)`.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

from pluri.neurons.library.hodgkin_huxley import POTASSIUM, SODIUM, steady_state
from pluri.neurons.tree.element import Element, Slot, register_element
from pluri.neurons.tree.fields import field
from pluri.validation import Number

#: A simulation stops where a voltage leaves this range (mV).
LARGEST_VOLTAGE = 200.0

VOLTAGE = Number(least=-LARGEST_VOLTAGE, most=LARGEST_VOLTAGE)
POSITIVE, NOT_NEGATIVE = Number(above=0), Number(least=0)
SHARE = Number(least=0, most=1)
#: A gate that begins at a value of its own, or (negative) at its steady state.
START = Number(most=1)


class Electrical(NamedTuple):
    """What the equation of a compartment needs: nF, uS, mV and MOhm."""

    capacitance: float
    leak: float
    reversal: float
    half_axial: float


@register_element
class Group(Element):
    """A group of elements, such as a cell or a population; it does nothing itself."""

    class_name = "group"
    __slots__ = ()


class Membrane(Element):
    """What all compartments have."""

    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {
        "axial": Slot("axial", "both"),
        "voltage": Slot("voltage", "out"),
        "channel": Slot("conductance", "in"),
        "injection": Slot("current", "in"),
    }
    links_only: ClassVar[frozenset[str]] = frozenset({"injection"})
    addresses: ClassVar[dict[str, tuple[str, int]]] = {"Vm": ("voltage", 0), "inject": ("inject", 0)}

    Em = field(-65.0, "mV", "Reversal potential of the leak.", allowed=VOLTAGE)
    initial_Vm = field(-65.0, "mV", "Voltage that reset goes back to.", allowed=VOLTAGE)
    inject = field(0.0, "nA", "Current that is injected all the time.", role="input")
    Vm = field(
        -65.0, "mV", "Membrane potential.", allowed=VOLTAGE, role="state", initial=lambda element: element.initial_Vm
    )

    def electrical(self) -> Electrical:
        """Capacitance, leak, its reversal potential, and the axial resistance of half the compartment."""
        raise NotImplementedError  # abstract


class Cylinder(Membrane):
    """What cylinders have."""

    __slots__ = ()
    length = field(100.0, "um", "Length.", allowed=POSITIVE)
    diameter = field(2.0, "um", "Diameter.", allowed=POSITIVE)
    cm = field(1.0, "uF/cm^2", "Specific capacitance of the membrane.", allowed=POSITIVE)
    ra = field(100.0, "Ohm cm", "Specific axial resistance.", allowed=POSITIVE)
    x = field(0.0, "um", "Where its middle is drawn.")
    y = field(0.0, "um", "Where its middle is drawn.")
    z = field(0.0, "um", "Where its middle is drawn.")
    area = field(0.0, "um^2", "Area of the membrane.", role="output", compute=lambda e: math.pi * e.diameter * e.length)
    capacitance = field(
        0.0, "nF", "Capacitance.", role="output", compute=lambda element: element.electrical().capacitance
    )
    resistance = field(
        0.0, "MOhm", "Resistance of the leak.", role="output", compute=lambda element: 1 / element.electrical().leak
    )

    def leak_density(self) -> float:
        """Conductance of the leak in mS/cm^2."""
        raise NotImplementedError  # abstract

    def electrical(self) -> Electrical:
        """See `Membrane`."""
        square_centimetres = 1e-8 * self.area
        section = math.pi * self.diameter**2 / 4  # um^2
        # Ohm cm times um over um^2 is 1e4 Ohm.
        half = self.ra * (self.length / 2) / section * 1e-2
        return Electrical(
            1e3 * self.cm * square_centimetres, 1e3 * self.leak_density() * square_centimetres, self.Em, half
        )


@register_element
class PassiveCompartment(Cylinder):
    """A cylinder with a leak: a piece of dendrite."""

    class_name = "passive_compartment"
    __slots__ = ()
    rm = field(10000.0, "Ohm cm^2", "Specific resistance of the membrane.", allowed=POSITIVE)

    def leak_density(self) -> float:
        """See `Cylinder`."""
        return 1e3 / self.rm


@register_element
class ActiveCompartment(Cylinder):
    """A cylinder with the sodium, potassium and leak conductances of Hodgkin and Huxley's squid axon."""

    class_name = "active_compartment"
    __slots__ = ()
    # Numbers of the element: compartment, sodium channel, potassium channel.
    addresses: ClassVar[dict[str, tuple[str, int]]] = {
        **Membrane.addresses,
        "m": ("first_gate", 1),
        "h": ("second_gate", 1),
        "n": ("first_gate", 2),
        "INa": ("channel_current", 1),
        "IK": ("channel_current", 2),
    }

    Em = field(-54.387, "mV", "Reversal potential of the leak.", allowed=VOLTAGE)
    ENa = field(50.0, "mV", "Reversal potential of sodium.", allowed=VOLTAGE)
    EK = field(-77.0, "mV", "Reversal potential of potassium.", allowed=VOLTAGE)
    gNa = field(120.0, "mS/cm^2", "Largest conductance of sodium.", allowed=NOT_NEGATIVE)
    gK = field(36.0, "mS/cm^2", "Largest conductance of potassium.", allowed=NOT_NEGATIVE)
    gL = field(0.3, "mS/cm^2", "Conductance of the leak.", allowed=POSITIVE)
    initial_m = field(-1.0, "", "Sodium activation at reset; negative for its steady state.", allowed=START)
    initial_h = field(-1.0, "", "Sodium inactivation at reset; negative for its steady state.", allowed=START)
    initial_n = field(-1.0, "", "Potassium activation at reset; negative for its steady state.", allowed=START)
    m = field(0.0, "", "Activation of sodium.", allowed=SHARE, role="state", initial=lambda e: _start(e, "m"))
    h = field(0.0, "", "Inactivation of sodium.", allowed=SHARE, role="state", initial=lambda e: _start(e, "h"))
    n = field(0.0, "", "Activation of potassium.", allowed=SHARE, role="state", initial=lambda e: _start(e, "n"))
    INa = field(0.0, "nA", "Current into the cell through sodium channels.", role="output")
    IK = field(0.0, "nA", "Current into the cell through potassium channels.", role="output")

    def leak_density(self) -> float:
        """See `Cylinder`."""
        return float(self.gL)


def _start(element: ActiveCompartment, gate: str) -> float:
    value = float(element[f"initial_{gate}"])
    if value >= 0:
        return value
    rates = {"m": SODIUM[0], "h": SODIUM[1], "n": POTASSIUM[0]}[gate]
    return float(steady_state(rates, element.initial_Vm))


@register_element
class Compartment(Membrane):
    """A compartment by its total capacitance and resistances, whatever its shape."""

    class_name = "compartment"
    __slots__ = ()
    capacitance = field(0.01, "nF", "Capacitance.", allowed=POSITIVE)
    resistance = field(100.0, "MOhm", "Resistance of the leak.", allowed=POSITIVE)
    axial_resistance = field(10.0, "MOhm", "Axial resistance from its middle to an end.", allowed=POSITIVE)

    def electrical(self) -> Electrical:
        """See `Membrane`."""
        return Electrical(self.capacitance, 1 / self.resistance, self.Em, self.axial_resistance)


@register_element
class IntegrateAndFire(Membrane):
    """A leaky integrate-and-fire neuron: at the threshold it sends a spike, and is held at the reset voltage."""

    class_name = "integrate_and_fire"
    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {**Membrane.slots, "spikes": Slot("spike", "out")}
    addresses: ClassVar[dict[str, tuple[str, int]]] = {**Membrane.addresses, "last_spike": ("last_spike", 1)}
    capacitance = field(0.2, "nF", "Capacitance.", allowed=POSITIVE)
    resistance = field(100.0, "MOhm", "Resistance of the leak.", allowed=POSITIVE)
    threshold = field(-50.0, "mV", "Voltage at which it fires.", allowed=VOLTAGE)
    reset_voltage = field(-65.0, "mV", "Voltage after a spike.", allowed=VOLTAGE)
    refractory = field(2.0, "ms", "How long it is held at the reset voltage.", allowed=NOT_NEGATIVE)
    last_spike = field(-1e9, "ms", "Time of the last spike.", role="state")

    def electrical(self) -> Electrical:
        """See `Membrane`."""
        return Electrical(self.capacitance, 1 / self.resistance, self.Em, 1.0)

    def check(self) -> list[str]:
        """A reset voltage at or above the threshold would have it fire for ever."""
        if self.reset_voltage >= self.threshold:
            return [f"reset_voltage of {self.path} must be below its threshold ({self.threshold:g} mV)"]
        return []
