"""An element: a named node of the tree with fields and typed slots, and the register of classes of elements."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar

import numpy as np

from pluri.neurons.tree.errors import SimulationError, nearest
from pluri.neurons.tree.fields import Field, field

if TYPE_CHECKING:
    from pluri.neurons.tree.structure import ElementTree

Kind = TypeVar("Kind", bound="type[Element]")

#: Names of classes, and the classes.
REGISTER: dict[str, type[Element]] = {}


class Slot(NamedTuple):
    """Where links and connections begin or end.

    Attributes
    ----------
    kind : str
        What passes: "axial", "voltage", "conductance", "current", "spike" or "value"; several joined by "|".
    direction : {"in", "out", "both"}
        Whether messages end or begin here, or join two equals.
    """

    kind: str
    direction: Literal["in", "out", "both"]


class Element:
    """A node of the tree: a compartment, a channel, a synapse, a stimulus, a group of others, or something of yours.

    A class of your own declares fields and slots, and has a method `process` that each tick of its clock calls; with
    the decorator `register_element` it can be created by name.

    Attributes
    ----------
    name, path : str
        Its name, and the names from the root to it.
    parent : Element or None
        The element above it.
    children : dict
        Names and elements below it.
    fields : dict
        Names and `Field` records: value, unit, whether it can be set, and what it means.

    Examples
    --------
    >>> from pluri.neurons import Simulation
    >>> sim = Simulation()
    >>> soma = sim.create("active_compartment", "/soma", length=20, diameter=20)
    >>> soma.length, soma["Vm"], soma.fields["length"].unit
    (20.0, -65.0, 'um')
    """

    __slots__ = ("__weakref__", "_children", "_identity", "_name", "_numbers", "_parent", "_tree", "_values")

    #: Name by which the class is created; the name of the Python class in lower case with underscores if empty.
    class_name: ClassVar[str] = ""
    #: Names of slots, and what passes there.
    slots: ClassVar[dict[str, Slot]] = {}
    #: Fields that live in the array of a compiled network: name of the block, and which number of the element counts.
    addresses: ClassVar[dict[str, tuple[str, int]]] = {}
    #: Fields that a copy does not take over.
    own: ClassVar[frozenset[str]] = frozenset()
    #: Slots that no connection can end at: what arrives there acts within the step.
    links_only: ClassVar[frozenset[str]] = frozenset()
    #: When `process` runs in a step: 0 stimuli, 1 conductances, 3 spikes, 5 recorders and displays.
    phase: ClassVar[int] = 0

    clock = field(0, "", "Number of the clock whose ticks move it on.")

    def __init__(self, name: str, parent: Element | None, tree: ElementTree) -> None:
        self._name, self._parent, self._tree = name, parent, tree
        self._children: dict[str, Element] | None = None
        self._values: dict[str, Any] | None = None
        self._numbers: tuple[int, ...] | None = None
        self._identity = 0

    def forget_state(self) -> None:
        """Leave the arrays of a network, and keep only what was set by hand."""
        states = {name for name, each in self.declared().items() if each.role in ("state", "output")}
        inputs = {name for name, each in self.declared().items() if each.role == "input" and name in self.addresses}
        kept = {name: self[name] for name in inputs} if self._numbers else {}
        self._numbers = None
        values = {name: value for name, value in (self._values or {}).items() if name not in states}
        values |= {name: value for name, value in kept.items() if value != self.declared()[name].default}
        self._values = values or None

    # What a class of one's own may define -----------------------------------------------------------------------

    def reset(self) -> None:
        """Go back to the initial values; called by `Simulation.reset`."""

    def process(self, t: float, dt: float) -> None:
        """Move on from time `t` by `dt`; `receive` tells what has arrived, and `send` what goes out."""

    def check(self) -> list[str]:
        """Sentences about what is wrong with the element."""
        return []

    def deliver(self, slot: str, value: Any) -> None:
        """Have a value arrive at a slot, as a message would, in the next step."""
        self._tree.deliver(self, self._slot_named(slot), value)

    # Messages of Python elements --------------------------------------------------------------------------------

    def receive(self, slot: str) -> float:
        """What arrives at a slot in this step: the sum over links and connections, and over `deliver`."""
        return self._tree.received(self, self._slot_named(slot))

    def send(self, slot: str, value: Any) -> None:
        """Have a slot give out a value: a current, a number, True for a spike, or a conductance and its reversal."""
        self._tree.sent(self, self._slot_named(slot), value)

    def _slot_named(self, slot: str) -> str:
        if slot not in self.slots:
            raise SimulationError(f"{self.path} has no slot {slot}{nearest(slot, self.slots)}")
        return slot

    # Names ------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self._name

    @property
    def path(self) -> str:
        """Names from the root to the element, joined by "/"."""
        parts: list[str] = []
        element: Element | None = self
        while element is not None and element._parent is not None:
            parts.append(element._name)
            element = element._parent
        return "/" + "/".join(reversed(parts))

    @property
    def parent(self) -> Element | None:
        """The element above; None for the root."""
        return self._parent

    @property
    def children(self) -> dict[str, Element]:
        """Names and elements directly below, in the order of creation."""
        return dict(self._children or {})

    def below(self) -> list[Element]:
        """The element and all below it, in the order of the tree."""
        found, waiting = [], [self]
        while waiting:
            element = waiting.pop()
            found.append(element)
            if element._children:
                waiting.extend(reversed(element._children.values()))
        return found

    # Fields -----------------------------------------------------------------------------------------------------

    @classmethod
    def declared(cls) -> dict[str, field]:
        """Names and declarations of the fields of the class, those of its bases first."""
        if "_declared" not in cls.__dict__:
            found: dict[str, field] = {}
            for base in reversed(cls.__mro__):
                found |= {name: value for name, value in vars(base).items() if isinstance(value, field)}
            cls._declared = found  # type: ignore[attr-defined]
        return cls._declared  # type: ignore[attr-defined]

    @property
    def fields(self) -> dict[str, Field]:
        """Names and `Field` records, with the values of now."""
        return {
            name: Field(getattr(self, name), one.unit, one.writable, one.doc) for name, one in self.declared().items()
        }

    def field_named(self, name: str) -> field:
        """The declaration of a field; a sentence if there is none of that name."""
        known = self.declared()
        if name not in known:
            near = nearest(name, known)
            raise SimulationError(f"{self.path} ({self.class_name}) has no field {name}{near}")
        return known[name]

    def __getitem__(self, name: str) -> Any:
        return self.field_named(name).__get__(self)

    def __setitem__(self, name: str, value: Any) -> None:
        self.field_named(name).__set__(self, value)

    def kept(self, name: str, default: Any) -> Any:
        """The value kept with the element, or the default."""
        return default if self._values is None else self._values.get(name, default)

    def keep(self, name: str, value: Any) -> None:
        """Keep a value with the element; a network that is compiled will be compiled anew."""
        if self._values is None:
            self._values = {}
        self._values[name] = value
        self._tree.changed(self, name)

    def address(self, name: str) -> tuple[np.ndarray[Any, Any], int] | None:
        """Where a field lives in the arrays of the compiled network; None if it is kept with the element."""
        if self._numbers is None or name not in self.addresses:
            return None
        block, which = self.addresses[name]
        return self._tree.place(block, self._numbers[which])

    @property
    def identity(self) -> int:
        """A number that an element gets from its path when it is created, and keeps when it is moved.

        Random numbers and the order of sums follow it, so that neither depends on the order of creation.
        """
        return self._identity

    def __repr__(self) -> str:
        return f"<{self.class_name} {self.path}>"


def identity_of(path: str) -> int:
    """A number from a path."""
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "little")


def register_element(kind: Kind) -> Kind:
    """Make a class of elements known to `Simulation.create` and to scripts; a decorator.

    Parameters
    ----------
    kind : type
        A subclass of `Element` with fields and slots. Its name is the attribute ``class_name``, or the name of the
        class in lower case with underscores.

    Returns
    -------
    type
        The same class.

    Examples
    --------
    >>> from pluri.neurons import Element, Simulation, Slot, field, register_element
    >>> @register_element
    ... class RampCurrent(Element):
    ...     slope = field(0.01, "nA/ms", "How fast the current rises.")
    ...     slots = {"output": Slot("current", "out")}
    ...     def process(self, t, dt):
    ...         self.send("output", self.slope * t)
    >>> sim = Simulation(dt=0.1)
    >>> cell, ramp = sim.create("passive_compartment", "/cell"), sim.create("ramp_current", "/ramp")
    >>> sim.link(ramp, cell)
    >>> _ = sim.run(1.0)
    >>> cell.Vm > -65
    True
    """
    if not (isinstance(kind, type) and issubclass(kind, Element)):
        raise SimulationError(f"register_element needs a subclass of Element, got {kind!r}")
    if not kind.__dict__.get("class_name"):
        kind.class_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind.__name__).lower()
    taken = {name for name in dir(Element) if name not in Element.declared()}
    wrong = sorted(taken & set(kind.declared()))
    if wrong:
        raise SimulationError(
            f"{wrong[0]} cannot be a field of {kind.class_name}: every element has an attribute of it"
        )
    REGISTER[kind.class_name] = kind
    return kind


def class_named(name: str) -> type[Element]:
    """The class of elements of that name; a sentence if there is none."""
    import pluri.neurons.library  # noqa: F401  (registers the classes of the library)

    if name not in REGISTER:
        known = nearest(name, REGISTER) or f"; there are {', '.join(sorted(REGISTER))}"
        raise SimulationError(f"{name} is no class of elements{known}")
    return REGISTER[name]
