"""Fields of elements: declared on a class with default, unit and meaning, and read and written like attributes.

While a network is compiled, the fields that change in each step live in one array of numbers, and reading or writing
them reads or writes that array; all others are kept with the element.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from pluri.neurons.tree.errors import SimulationError
from pluri.validation import Allowed, Flag, Number, Whole

if TYPE_CHECKING:
    from pluri.neurons.tree.element import Element

#: What a field is: a setting (a change has the network compiled anew), something that each step reads (`input`) or
#: changes (`state`), or something worked out from the others, in each step or when it is asked for (`output`).
Role = Literal["parameter", "input", "state", "output"]


class Field(NamedTuple):
    """One field of an element, as `Element.fields` shows it.

    Attributes
    ----------
    value : float, int, bool, str or tuple
        What it is now.
    unit : str
        Its unit, such as "mV"; empty for a plain number.
    writable : bool
        Whether it can be set.
    doc : str
        What it means.
    """

    value: Any
    unit: str
    writable: bool
    doc: str


class field:
    """Declare a field of a class of elements.

    Parameters
    ----------
    default : float, int, bool, str or tuple of floats
        Value of a new element. Its type is the type of the field.
    unit : str, default=""
        Unit of the value.
    doc : str, default=""
        What the field means, in a sentence.
    allowed : object or None, default=None
        What the value may be, such as ``pluri.validation.Number(above=0)``; None allows every value of the type.
    role : {"parameter", "input", "state", "output"}, default="parameter"
        A setting; what each step reads; what each step changes; what is worked out, by `compute` or in each step,
        and cannot be set.
    compute : callable or None, default=None
        Of an output: the element to the value.
    initial : callable or None, default=None
        Of a state: the element to the value that `reset` goes back to; None for the default.

    Examples
    --------
    >>> from pluri.neurons import Element, field
    >>> class Ramp(Element):
    ...     slope = field(1.0, "nA/ms", "How fast the current rises.")
    >>> Ramp.slope.unit, Ramp.declared()["slope"].default
    ('nA/ms', 1.0)
    """

    def __init__(
        self,
        default: Any = 0.0,
        unit: str = "",
        doc: str = "",
        *,
        allowed: Allowed | None = None,
        role: Role = "parameter",
        compute: Callable[[Any], Any] | None = None,
        initial: Callable[[Any], Any] | None = None,
    ) -> None:
        self.default, self.unit, self.doc, self.role, self.compute = default, unit, doc, role, compute
        self.name, self.initial = "", initial
        if allowed is None and isinstance(default, bool):
            allowed = Flag()
        elif allowed is None and isinstance(default, int):
            allowed = Whole()
        elif allowed is None and isinstance(default, float):
            allowed = Number()
        self.allowed = allowed
        self.writable = role != "output"

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, element: Element | None, owner: type | None = None) -> Any:
        if element is None:
            return self
        self._present(element)
        if self.compute is not None:
            return self.compute(element)
        place = element.address(self.name)
        if place is not None:
            value = place[0][place[1]]
            return int(value) if isinstance(self.default, int) else float(value)
        value = element.kept(self.name, None)
        return self.start(element) if value is None else value

    def _present(self, element: Element) -> None:
        if element._parent is None and element._tree.root is not element:
            raise SimulationError(f"{element.name} ({element.class_name}) was deleted, and has no {self.name} any more")

    def __set__(self, element: Element, value: Any) -> None:
        self._present(element)
        value = self.checked(element, value)
        place = element.address(self.name)
        if place is not None:
            place[0][place[1]] = value
        else:
            element.keep(self.name, value)

    def start(self, element: Element) -> Any:
        """The value of a new element, and of one that was reset."""
        return self.default if self.initial is None else self.initial(element)

    def checked(self, element: Element, value: Any) -> Any:
        """The value in the type of the field; a sentence says what is wrong with it."""
        if not self.writable:
            how = "in each step" if self.compute is None else "from other fields"
            raise SimulationError(f"{self.name} of {element.path} is worked out {how} and cannot be set")
        try:
            converted = _converted(value, self.default)
        except (TypeError, ValueError, OverflowError):
            converted = None
        if converted is None or (self.allowed is not None and not self.allowed.holds(converted)):
            said = self.allowed or ("a string" if isinstance(self.default, str) else "finite numbers")
            raise SimulationError(f"{self.name} of {element.path} must be {said}, got {value!r}")
        return converted


def _converted(value: Any, default: Any) -> Any:
    """A value in the type of the default; None if it is of another type."""
    if isinstance(default, str):
        return value if isinstance(value, str) else None
    if isinstance(default, tuple):
        return _numbers(value)
    if isinstance(value, str):  # a word of a script
        value = {"true": True, "false": False}.get(value.lower()) if isinstance(default, bool) else float(value)
    if isinstance(default, bool):
        if isinstance(value, bool | np.bool_) or value in (0, 1):
            return bool(value)
        return None
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(default, int):
        return int(value) if float(value).is_integer() else None
    return float(value)


def _numbers(value: Any) -> tuple[float, ...] | None:
    """Finite numbers from a sequence, an array, or a string with blanks or commas between them."""
    if isinstance(value, str):
        value = [part for part in re.split(r"[\s,]+", value.strip()) if part]
    array = np.asarray(value, dtype=float)
    if array.ndim == 0:
        array = array[None]
    return tuple(array.tolist()) if array.ndim == 1 and np.isfinite(array).all() else None
