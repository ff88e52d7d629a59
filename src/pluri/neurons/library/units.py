r"""Abstract units: rates :math:`y = s(\sum_j w_j y_j + b)`, and binary units of Hopfield's kind."""

from __future__ import annotations

from typing import ClassVar

from pluri.neurons.library.compartments import NOT_NEGATIVE
from pluri.neurons.library.sources import STREAM
from pluri.neurons.tree.element import Element, Slot, register_element
from pluri.neurons.tree.fields import field
from pluri.validation import Number, Only

#: Names of what a rate unit makes of its input, in the order of their numbers.
FUNCTIONS = ("logistic", "tanh", "linear", "rectified", "sign")


class Unit(Element):
    """What units have."""

    __slots__ = ()
    slots: ClassVar[dict[str, Slot]] = {"input": Slot("value", "in"), "output": Slot("value", "out")}
    addresses: ClassVar[dict[str, tuple[str, int]]] = {"y": ("unit", 0), "bias": ("unit_bias", 0)}
    bias = field(0.0, "", "Added to the input.", role="input")
    initial_y = field(0.0, "", "Output at reset.")
    y = field(0.0, "", "Output.", role="state", initial=lambda element: element.initial_y)


@register_element
class RateUnit(Unit):
    """A unit whose output is a function of its weighted input, or follows it with a time constant."""

    class_name = "rate_unit"
    __slots__ = ()
    function = field("logistic", "", "What it makes of its input.", allowed=Only(*FUNCTIONS))
    tau = field(0.0, "ms", "Time constant of the output; 0 follows at once.", allowed=NOT_NEGATIVE)


@register_element
class BinaryUnit(Unit):
    """A unit that is -1 or 1, the sign of its weighted input; units change one after another, in random order.

    Connections without delay give the newest values, so that with symmetric weights the energy never rises.
    """

    class_name = "binary_unit"
    __slots__ = ()
    own: ClassVar[frozenset[str]] = frozenset({"stream"})
    initial_y = field(1.0, "", "Output at reset, -1 or 1.", allowed=Number(least=-1, most=1))
    stream = field(
        0, "", "Number of its random stream; 0 has it follow from the path that it was created at.", allowed=STREAM
    )
