r"""Synapses: conductances that open after each event, or that follow the voltage of another cell.

The alpha function :math:`g(t) = g_{max} w\,(t/\tau) e^{1 - t/\tau}` and the difference of two exponentials are moved on
by exact recursions, so that their shape does not depend on the time step.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pluri.neurons.library.compartments import NOT_NEGATIVE, POSITIVE, SHARE, VOLTAGE
from pluri.neurons.tree.element import Element, Slot, register_element
from pluri.neurons.tree.fields import field
from pluri.validation import Number


class EventSynapse(Element):
    """What synapses have that events open."""

    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {"events": Slot("spike", "in"), "conductance": Slot("conductance", "out")}
    addresses: ClassVar[dict[str, tuple[str, int]]] = {"g": ("synapse_conductance", 0)}

    gmax = field(0.001, "uS", "Peak of the conductance after one event of weight 1.", allowed=NOT_NEGATIVE)
    E = field(0.0, "mV", "Reversal potential.", allowed=VOLTAGE)
    facilitation = field(0.0, "", "By what share each event strengthens those that follow.", allowed=Number(least=-1))
    facilitation_tau = field(100.0, "ms", "How long facilitation lasts.", allowed=POSITIVE)
    g = field(0.0, "uS", "Conductance.", role="output")

    def time_constants(self) -> tuple[float, float]:
        """Of the rise and of the decay, in ms; equal for an alpha function."""
        raise NotImplementedError  # abstract

    def magnesium(self) -> float:
        """Magnesium concentration (mM) if it blocks the channel; else 0."""
        return 0.0

    def peak(self) -> float:
        """Largest value of the conductance that grows at rate one after an event; `gmax` is divided by it."""
        rise, decay = self.time_constants()
        if abs(rise - decay) < 1e-6 * decay:
            return decay / math.e
        at = math.log(decay / rise) * rise * decay / (decay - rise)
        return (math.exp(-at / decay) - math.exp(-at / rise)) / (1 / rise - 1 / decay)


@register_element
class Synapse(EventSynapse):
    """A synapse whose conductance is an alpha function of the time after each event."""

    class_name = "synapse"
    __slots__ = ()
    tau = field(2.0, "ms", "Time from the event to the peak.", allowed=POSITIVE)

    def time_constants(self) -> tuple[float, float]:
        """See `EventSynapse`."""
        return self.tau, self.tau


@register_element
class HebbianSynapse(Synapse):
    r"""An alpha synapse whose weight learns from the order of its events and the spikes of its compartment.

    With :math:`x` a trace of events and :math:`y` one of spikes, each raised by 1 and decaying,
    :math:`w \leftarrow w + gain\, x` at a spike and :math:`w \leftarrow w - loss\, y` at an event, within 0 and `w_max`
    (S. Song, K. D. Miller and L. F. Abbott, 2000, Nature Neuroscience 3, 919-926). A spike is the voltage of the
    compartment that it is linked to rising through `spike_threshold`, or that of an integrate-and-fire neuron.
    """

    class_name = "hebbian_synapse"
    __slots__ = ()
    addresses: ClassVar[dict[str, tuple[str, int]]] = {**EventSynapse.addresses, "w": ("hebbian_weight", 1)}
    initial_w = field(1.0, "", "Weight at reset.", allowed=NOT_NEGATIVE)
    w = field(
        1.0,
        "",
        "Weight, a factor of each event.",
        allowed=NOT_NEGATIVE,
        role="state",
        initial=lambda element: element.initial_w,
    )
    w_max = field(2.0, "", "Largest weight.", allowed=NOT_NEGATIVE)
    gain = field(0.01, "", "What a spike right after an event adds to the weight.", allowed=NOT_NEGATIVE)
    loss = field(0.0105, "", "What an event right after a spike takes from the weight.", allowed=NOT_NEGATIVE)
    tau_events = field(20.0, "ms", "How long events are remembered.", allowed=POSITIVE)
    tau_spikes = field(20.0, "ms", "How long spikes are remembered.", allowed=POSITIVE)
    spike_threshold = field(0.0, "mV", "Voltage whose crossing upwards is a spike.", allowed=VOLTAGE)

    def check(self) -> list[str]:
        """A weight cannot begin above the largest."""
        if self.initial_w > self.w_max:
            return [f"initial_w of {self.path} must be at most its w_max ({self.w_max:g}), got {self.initial_w:g}"]
        return []


@register_element
class DualExponentialSynapse(EventSynapse):
    """A synapse whose conductance rises and decays with time constants of their own."""

    class_name = "dual_exponential_synapse"
    __slots__ = ()
    tau_rise = field(0.5, "ms", "Time constant of the rise.", allowed=POSITIVE)
    tau_decay = field(5.0, "ms", "Time constant of the decay.", allowed=POSITIVE)

    def time_constants(self) -> tuple[float, float]:
        """See `EventSynapse`."""
        return self.tau_rise, self.tau_decay


@register_element
class NMDASynapse(DualExponentialSynapse):
    """A slow synapse that magnesium blocks at rest: its conductance has the factor 1/(1 + Mg/3.57 exp(-0.062 V))."""

    class_name = "nmda_synapse"
    __slots__ = ()
    tau_rise = field(5.0, "ms", "Time constant of the rise.", allowed=POSITIVE)
    tau_decay = field(80.0, "ms", "Time constant of the decay.", allowed=POSITIVE)
    Mg = field(1.0, "mM", "Concentration of magnesium outside.", allowed=NOT_NEGATIVE)

    def magnesium(self) -> float:
        """See `EventSynapse`."""
        return float(self.Mg)


@register_element
class GradedSynapse(Element):
    """A synapse that follows the presynaptic voltage: s settles at 1/(1 + exp(-(V_pre - half)/slope))."""

    class_name = "graded_synapse"
    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {
        "presynaptic": Slot("voltage", "in"),
        "conductance": Slot("conductance", "out"),
    }
    addresses: ClassVar[dict[str, tuple[str, int]]] = {"s": ("graded", 0)}
    gmax = field(0.001, "uS", "Largest conductance.", allowed=NOT_NEGATIVE)
    E = field(-80.0, "mV", "Reversal potential.", allowed=VOLTAGE)
    half = field(-44.0, "mV", "Presynaptic voltage of half the conductance.", allowed=VOLTAGE)
    slope = field(2.0, "mV", "How gradual the dependence is; negative for a falling one.")
    tau = field(0.0, "ms", "Time constant; 0 follows at once.", allowed=NOT_NEGATIVE)
    s = field(0.0, "", "Share of the largest conductance.", allowed=SHARE, role="state")

    def check(self) -> list[str]:
        """A slope of zero is none."""
        return [f"slope of {self.path} must not be 0"] if self.slope == 0 else []
