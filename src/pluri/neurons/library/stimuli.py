"""Stimuli: pulses, tables, and clamps of current and voltage; and recorders, which watch."""

from __future__ import annotations

from typing import ClassVar

from pluri.neurons.library.compartments import NOT_NEGATIVE, POSITIVE, VOLTAGE
from pluri.neurons.tree.element import Element, Slot, register_element
from pluri.neurons.tree.fields import field

#: Longer than any simulation (ms).
FOR_EVER = 1e9


class Pulses(Element):
    """What has a level during pulses, and another one outside."""

    __slots__ = ()
    addresses: ClassVar[dict[str, tuple[str, int]]] = {
        "output": ("stimulus", 0),
        "level": ("pulse_level", 1),
        "base": ("pulse_base", 1),
    }
    slots: ClassVar[dict[str, Slot]] = {"output": Slot("current|value", "out")}
    delay = field(0.0, "ms", "Time of the first pulse.", allowed=NOT_NEGATIVE)
    width = field(FOR_EVER, "ms", "How long a pulse lasts.", allowed=NOT_NEGATIVE)
    level = field(0.0, "nA", "Output during a pulse.", role="input")
    base = field(0.0, "nA", "Output between pulses.", role="input")
    output = field(0.0, "nA", "Output of now.", role="output")


@register_element
class PulseGenerator(Pulses):
    """Pulses of a current, or of any value: from `delay` on, for `width`, again after each `period`."""

    class_name = "pulse_generator"
    __slots__ = ()
    period = field(0.0, "ms", "Time from one pulse to the next; 0 for one pulse only.", allowed=NOT_NEGATIVE)


@register_element
class CurrentClamp(Pulses):
    """One step of current into a compartment."""

    class_name = "current_clamp"
    __slots__ = ()


@register_element
class VoltageClamp(Pulses):
    """Holds a compartment near a voltage, through a resistance: at `level` during the pulse, else at `base`."""

    class_name = "voltage_clamp"
    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {"command": Slot("value", "in"), "clamp": Slot("conductance", "out")}
    links_only: ClassVar[frozenset[str]] = frozenset({"command"})
    addresses: ClassVar[dict[str, tuple[str, int]]] = {**Pulses.addresses, "I": ("clamp_current", 2)}
    level = field(-65.0, "mV", "Command during the pulse.", allowed=VOLTAGE, role="input")
    base = field(-65.0, "mV", "Command outside the pulse.", allowed=VOLTAGE, role="input")
    output = field(-65.0, "mV", "Command of now.", role="output")
    resistance = field(1.0, "MOhm", "Series resistance.", allowed=POSITIVE)
    I = field(0.0, "nA", "Current of the clamp into the cell.", role="output")


@register_element
class TimeTable(Element):
    """Values at given times, or, without values, spikes at given times."""

    class_name = "time_table"
    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {"output": Slot("current|value", "out"), "spikes": Slot("spike", "out")}
    addresses: ClassVar[dict[str, tuple[str, int]]] = {"output": ("stimulus", 0), "last_spike": ("last_spike", 1)}
    times = field((), "ms", "Times, rising.")
    values = field((), "nA", "Values at these times, one for each, or none.")
    interpolate = field(True, "", "Whether values between two times are interpolated; else the earlier one holds.")
    output = field(0.0, "nA", "Output of now.", role="output")
    last_spike = field(-1e9, "ms", "Time of the last spike.", role="state")

    def check(self) -> list[str]:
        """Times must rise, and there must be a value for each or none."""
        found = []
        if any(second <= first for first, second in zip(self.times, self.times[1:])):
            found.append(f"times of {self.path} must rise")
        if self.values and len(self.values) != len(self.times):
            found.append(f"values of {self.path} must be {len(self.times)}, one for each time, got {len(self.values)}")
        if self.times and self.times[0] < 0:
            found.append(f"times of {self.path} must be at least 0")
        return found


@register_element
class Recorder(Element):
    """Keeps a field of the elements that are linked to it, or that its pattern matches, at each tick of its clock."""

    class_name = "recorder"
    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {"input": Slot("voltage|value|current|spike|conductance", "in")}
    links_only: ClassVar[frozenset[str]] = frozenset({"input"})
    source = field("", "", "Path or pattern of what is recorded.")
    variable = field("Vm", "", "Name of the field that is recorded.")
