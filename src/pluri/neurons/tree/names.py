"""Elements by their names: create and find them, set and read their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pluri.neurons.tree import paths
from pluri.neurons.tree.element import Element, class_named, identity_of
from pluri.neurons.tree.errors import SimulationError

if TYPE_CHECKING:
    from pluri.neurons.tree.structure import ElementTree

#: A path, or the element itself.
Place = str | Element


class _Root(Element):
    class_name = "root"
    __slots__ = ()


class Names:
    """A tree of elements by their names, with a place that relative paths begin at."""

    def __init__(self) -> None:
        self.root: Element = _Root("", None, cast("ElementTree", self))
        self._current: Element = self.root
        self._left: dict[str, int] = {}  # paths that moved elements were created at

    # What the numerics add --------------------------------------------------------------------------------------

    def changed(self, element: Element | None, name: str | None = None) -> None:
        """Note that the network is not what it was when it was compiled."""

    def place(self, block: str, number: int) -> tuple[np.ndarray[Any, Any], int] | None:
        """Where a number of a block lives in the compiled arrays."""
        return None

    def deliver(self, element: Element, slot: str, value: Any) -> None:
        """Have a value arrive at a slot."""
        raise NotImplementedError  # abstract

    def received(self, element: Element, slot: str) -> float:
        """What arrives at a slot in this step."""
        raise NotImplementedError  # abstract

    def sent(self, element: Element, slot: str, value: Any) -> None:
        """Have a slot give out a value."""
        raise NotImplementedError  # abstract

    # Finding ----------------------------------------------------------------------------------------------------

    @property
    def current(self) -> str:
        """The path that relative paths begin at."""
        return self._current.path

    def change_element(self, path: Place) -> Element:
        """Have relative paths begin at another element."""
        self._current = self.element(path)
        return self._current

    def _start(self, path: str) -> Element:
        if isinstance(path, str) and path.startswith("/"):
            return self.root
        return self._current

    def element(self, path: Place) -> Element:
        """The one element of a path without wildcards."""
        if isinstance(path, Element):
            if path._tree is not self or (path._parent is None and path is not self.root):
                raise SimulationError(f"{path!r} is no element of this simulation (any more)")
            return path
        return paths.walk(self._start(path), path)

    def find(self, pattern: Place) -> list[Element]:
        """Elements that a path or a pattern matches, in the order of the tree; an empty list if there are none.

        Parameters
        ----------
        pattern : str
            Absolute, or relative to the current element. ``*`` stands for any part of a name, ``**`` for any number of
            levels.

        Returns
        -------
        list of Element
        """
        if isinstance(pattern, Element):
            return [self.element(pattern)]
        return paths.matching(self._start(pattern), pattern)

    def exists(self, path: str) -> bool:
        """Whether a path leads to an element."""
        return bool(self.find(path))

    def _targets(self, pattern: Place) -> list[Element]:
        """Elements of a path, which must exist, or of a pattern, which must match something."""
        if isinstance(pattern, Element) or not paths.has_wildcard(pattern):
            return [self.element(pattern)]
        found = self.find(pattern)
        if not found:
            raise SimulationError(f"no element matches {pattern}")
        return found

    # Creating ---------------------------------------------------------------------------------------------------

    def create(self, class_name: str, path: str, **fields: Any) -> Element:
        """Create an element.

        Parameters
        ----------
        class_name : str
            What it is, such as "active_compartment".
        path : str
            Where: the parent must exist, and nothing may be there yet.
        **fields
            Values of fields.

        Returns
        -------
        Element
        """
        kind = class_named(class_name)
        above, name = paths.split(path)
        remedy = ": create it first"
        parent = paths.walk(self._start(path), above, remedy) if above != "." else self._current
        element = self._added(kind, parent, name)
        try:
            for field_name, value in fields.items():
                element[field_name] = value
        except BaseException:
            self._detach(element)
            raise
        self.changed(None)
        return element

    def _added(self, kind: type[Element], parent: Element, name: str) -> Element:
        if parent._children is None:
            parent._children = {}
        if name in parent._children:
            raise SimulationError(f"{parent._children[name].path} already exists")
        element = kind(name, parent, cast("ElementTree", self))
        parent._children[name] = element
        path = element.path
        times = self._left.get(path, 0)
        element._identity = identity_of(f"{path}#{times}" if times else path)
        return element

    def _detach(self, element: Element) -> None:
        assert element._parent is not None
        del (element._parent._children or {})[element.name]
        element._parent = None

    # Fields -----------------------------------------------------------------------------------------------------

    def set(self, pattern: Place, field: str, value: Any) -> None:
        """Set a field of an element, or of all elements that a pattern matches and that have such a field.

        Parameters
        ----------
        pattern : str or Element
            Where.
        field : str
            Name of the field.
        value : float, int, bool, str or sequence of floats
            Its new value.
        """
        targets = self._targets(pattern)
        having = [one for one in targets if field in one.declared()] or targets[:1]
        declarations = [one.field_named(field) for one in having]
        for one, declaration in zip(having, declarations):
            declaration.checked(one, value)  # all are checked before the first is changed
        for one, declaration in zip(having, declarations):
            declaration.__set__(one, value)

    def get(self, path: Place, field: str) -> Any:
        """The value of a field of one element."""
        return self.element(path)[field]
