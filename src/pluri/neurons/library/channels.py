r"""Voltage-gated channels: a conductance :math:`g = \bar g\, m^p h^q` whose gates follow the voltage.

A class of your own overrides `Channel.kinetics`, the steady states and time constants of its gates at given voltages;
they are put into a table when a network is compiled, so that it runs as fast as the channels of the library.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from pluri.neurons.library.compartments import NOT_NEGATIVE, SHARE, START, VOLTAGE
from pluri.neurons.library.hodgkin_huxley import POTASSIUM, SODIUM, GateRates, rate
from pluri.neurons.tree.element import Element, Slot, register_element
from pluri.neurons.tree.errors import SimulationError
from pluri.neurons.tree.fields import field
from pluri.validation import Whole

#: Steady state and time constant (ms) of a gate at some voltages.
Gate = tuple[Any, Any]


@register_element
class Channel(Element):
    """A channel with up to two gates, given by their rates ``(A + B V)/(C + exp((V + D)/F))``."""

    class_name = "channel"
    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {"conductance": Slot("conductance", "out")}
    addresses: ClassVar[dict[str, tuple[str, int]]] = {
        "m": ("first_gate", 0),
        "h": ("second_gate", 0),
        "g": ("channel_conductance", 0),
        "I": ("channel_current", 0),
    }
    #: Fields on which `kinetics` does not depend.
    not_kinetic: ClassVar[frozenset[str]] = frozenset({"gbar", "density", "E", "initial_m", "initial_h"})

    gbar = field(0.0, "uS", "Largest conductance, in total.", allowed=NOT_NEGATIVE)
    density = field(0.0, "mS/cm^2", "Largest conductance of an area, added to gbar.", allowed=NOT_NEGATIVE)
    E = field(0.0, "mV", "Reversal potential.", allowed=VOLTAGE)
    p = field(1, "", "Power of the first gate.", allowed=Whole(0, 8))
    q = field(0, "", "Power of the second gate.", allowed=Whole(0, 8))
    m_alpha = field((0.0, 0.0, 1.0, 0.0, 1.0), "", "A, B, C, D, F of the rate of opening of the first gate.")
    m_beta = field((0.0, 0.0, 1.0, 0.0, 1.0), "", "A, B, C, D, F of its rate of closing.")
    h_alpha = field((0.0, 0.0, 1.0, 0.0, 1.0), "", "A, B, C, D, F of the rate of opening of the second gate.")
    h_beta = field((0.0, 0.0, 1.0, 0.0, 1.0), "", "A, B, C, D, F of its rate of closing.")
    initial_m = field(-1.0, "", "First gate at reset; negative for its steady state.", allowed=START)
    initial_h = field(-1.0, "", "Second gate at reset; negative for its steady state.", allowed=START)
    m = field(0.0, "", "First gate.", allowed=SHARE, role="state")
    h = field(0.0, "", "Second gate.", allowed=SHARE, role="state")
    g = field(0.0, "uS", "Conductance.", role="output")
    I = field(0.0, "nA", "Current into the cell.", role="output")

    def rates(self) -> tuple[GateRates, ...] | None:
        """Rates of the gates in the general form; None if the class has `kinetics` of its own."""
        if type(self).kinetics is not Channel.kinetics:
            return None
        both = GateRates(self.m_alpha, self.m_beta), GateRates(self.h_alpha, self.h_beta)
        for gate in both:
            for one in gate:
                if len(one) != 5:
                    raise SimulationError(f"a rate of {self.path} must be five numbers A, B, C, D, F, got {len(one)}")
                if one[4] == 0:
                    raise SimulationError(f"F of a rate of {self.path} must not be 0")
        return both[: self.n_gates]

    @property
    def n_gates(self) -> int:
        """Number of gates that count: 0, 1 or 2."""
        return 2 if self.q else 1 if self.p else 0

    def kinetics(self, voltage: np.ndarray[Any, Any]) -> list[Gate]:
        """Steady state and time constant (ms) of each gate at each voltage; a time constant of 0 follows at once."""
        found = []
        for gate in self.rates() or ():
            alpha, beta = rate(gate.alpha, voltage), rate(gate.beta, voltage)
            with np.errstate(divide="ignore", invalid="ignore"):
                found.append((alpha / (alpha + beta), 1.0 / (alpha + beta)))
        return found

    def kinetic_key(self) -> tuple[Any, ...]:
        """What two channels must share to share a table."""
        names = [
            name for name, one in self.declared().items() if one.role == "parameter" and name not in self.not_kinetic
        ]
        return (self.class_name, *(self[name] for name in names))

    def check(self) -> list[str]:
        """A channel without conductance does nothing."""
        nothing = self.gbar == 0 and self.density == 0
        return [f"gbar and density of {self.path} are both 0: it does nothing"] if nothing else []


@register_element
class HHSodiumChannel(Channel):
    """The sodium channel of the squid axon, m^3 h."""

    class_name = "hh_sodium_channel"
    __slots__ = ()
    density = field(120.0, "mS/cm^2", "Largest conductance of an area, added to gbar.", allowed=NOT_NEGATIVE)
    E = field(50.0, "mV", "Reversal potential.", allowed=VOLTAGE)
    p = field(3, "", "Power of the first gate.", allowed=Whole(0, 8))
    q = field(1, "", "Power of the second gate.", allowed=Whole(0, 8))
    m_alpha = field(SODIUM[0].alpha, "", "A, B, C, D, F of the rate of opening of the first gate.")
    m_beta = field(SODIUM[0].beta, "", "A, B, C, D, F of its rate of closing.")
    h_alpha = field(SODIUM[1].alpha, "", "A, B, C, D, F of the rate of opening of the second gate.")
    h_beta = field(SODIUM[1].beta, "", "A, B, C, D, F of its rate of closing.")


@register_element
class HHPotassiumChannel(Channel):
    """The delayed-rectifier potassium channel of the squid axon, n^4 (the gate n is the field m)."""

    class_name = "hh_potassium_channel"
    __slots__ = ()
    density = field(36.0, "mS/cm^2", "Largest conductance of an area, added to gbar.", allowed=NOT_NEGATIVE)
    E = field(-77.0, "mV", "Reversal potential.", allowed=VOLTAGE)
    p = field(4, "", "Power of the first gate.", allowed=Whole(0, 8))
    m_alpha = field(POTASSIUM[0].alpha, "", "A, B, C, D, F of the rate of opening of the first gate.")
    m_beta = field(POTASSIUM[0].beta, "", "A, B, C, D, F of its rate of closing.")


@register_element
class ReboundChannel(Channel):
    """Post-inhibitory rebound after Wang and Rinzel (1992): a current that inhibition makes ready and release fires.

    X.-J. Wang and J. Rinzel (1992). Alternating and synchronous rhythms in reciprocally inhibitory model neurons.
    Neural Computation 4, 84-97.
    """

    class_name = "rebound_channel"
    __slots__ = ()
    E = field(120.0, "mV", "Reversal potential.", allowed=VOLTAGE)
    p = field(3, "", "Power of the first gate.", allowed=Whole(0, 8))
    q = field(1, "", "Power of the second gate.", allowed=Whole(0, 8))
    phi = field(3.0, "", "How much faster than the published time constant the second gate is.")

    def kinetics(self, voltage: np.ndarray[Any, Any]) -> list[Gate]:
        """See `Channel.kinetics`."""
        opened = 1.0 / (1.0 + np.exp(-(voltage + 65.0) / 7.8))
        ready = 1.0 / (1.0 + np.exp((voltage + 81.0) / 11.0))
        return [(opened, 0.0 * voltage), (ready, ready * np.exp((voltage + 162.3) / 17.8) / self.phi)]
