"""The tree itself: elements joined by links and connections; copied, moved and deleted with what joins them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from pluri.neurons.tree import paths
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError
from pluri.neurons.tree.messages import Connection, Link, check_wire, ends_of, matching_slots, number
from pluri.neurons.tree.names import Names, Place
from pluri.validation import Whole


class ElementTree(Names):
    """Elements with their names, links and connections: what a `Simulation` is made of, without the numerics.

    Attributes
    ----------
    root : Element
        The element "/".
    current : str
        Path that relative paths begin at.
    links, connections : list
        All of them, in the order of creation.
    """

    def __init__(self, *, verbose: int = 0) -> None:
        super().__init__()
        self.verbose = verbose
        self.links: list[Link] = []
        self.connections: list[Connection] = []
        self._joined: set[frozenset[Any]] = set()  # ends of links that may stand once only

    # Messages ---------------------------------------------------------------------------------------------------

    def _end(self, place: Place) -> tuple[Element, str | None]:
        """An element and, if one is named after a dot, its slot."""
        if isinstance(place, Element):
            return self.element(place), None
        path, dot, slot = place.rpartition(".") if isinstance(place, str) else (place, "", "")
        if dot and path and slot and "/" not in slot and not path.endswith("."):
            return self.element(path), slot
        return self.element(place), None

    def link(self, source: Place, destination: Place) -> None:
        """Join two elements so that values pass between them within a step.

        Parameters
        ----------
        source, destination : str or Element
            Two compartments, a channel and its compartment, a compartment and its axon, a stimulus and what it drives.
            A slot is named after a dot, "/cell/synapse.presynaptic", where an element has several that would do.
        """
        start, end = self._end(source), self._end(destination)
        if start[0] is end[0]:
            raise SimulationError(f"{start[0].path} cannot be linked to itself")
        slots = None
        try:
            slots = matching_slots(start, end, wire=False)
        except SimulationError:
            # A channel may be linked to its compartment or the compartment to its channel: it is the same thing.
            with suppress(SimulationError):
                slots = matching_slots(end, start, wire=False)
            if slots is None or end[0].slots[slots[0]].kind not in ("conductance", "axial"):
                raise
            start, end = end, start
        self._add_link(Link(start[0], slots[0], end[0], slots[1]))

    def _add_link(self, link: Link) -> None:
        if link.kind != "conductance":  # two of those are found when the network is compiled
            ends = ends_of(link)
            if ends in self._joined:
                raise SimulationError(f"{link.source.path} and {link.destination.path} are linked already")
            self._joined.add(ends)
        self.links.append(link)
        self.changed(None)

    def connect(
        self, source: Place, destination: Place, delay: float = 0.0, weight: float = 1.0, exact_delay: bool = False
    ) -> None:
        """Wire two elements, with a delay.

        Parameters
        ----------
        source, destination : str or Element
            An axon (or another source of spikes) and a synapse, or two units.
        delay : float, default=0.0
            In ms. A spike never arrives in the step that it is sent in.
        weight : float, default=1.0
            Factor of what arrives.
        exact_delay : bool, default=False
            Whether the time of arrival is kept between two steps; else it is rounded to the nearest step.
        """
        start, end = self._end(source), self._end(destination)
        slots = matching_slots(start, end, wire=True)
        check_wire(end[0], slots[1])
        delay, weight = number("delay", delay), number("weight", weight)
        if delay < 0:
            raise SimulationError(f"delay must be a number of at least 0, got {delay:g}")
        self.connections.append(Connection(start[0], slots[0], end[0], slots[1], delay, weight, bool(exact_delay)))
        self.changed(None)

    def connect_all(
        self,
        sources: Sequence[Place] | str,
        destinations: Sequence[Place] | str,
        delay: float | Sequence[float] | np.ndarray[Any, Any] = 0.0,
        weight: float | Sequence[float] | np.ndarray[Any, Any] = 1.0,
        exact_delay: bool = False,
    ) -> None:
        """Wire pairs of elements: the first source and the first destination, the second and the second, and so on.

        Parameters
        ----------
        sources, destinations : list of Element or of str, or str
            Elements, or a pattern; a single one is paired with all of the others.
        delay, weight : float or array-like of shape (n_pairs,)
            As in `connect`.
        exact_delay : bool, default=False
            As in `connect`.
        """
        starts, ends = self._several(sources), self._several(destinations)
        n = max(len(starts), len(ends)) if starts and ends else 0
        for name, elements in (("sources", starts), ("destinations", ends)):
            if len(elements) not in (1, n):
                raise SimulationError(f"{name} must be one element or {n}, got {len(elements)}")
        try:
            delays = np.broadcast_to(np.asarray(delay, dtype=float), n).tolist()
            weights = np.broadcast_to(np.asarray(weight, dtype=float), n).tolist()
        except (TypeError, ValueError):
            raise SimulationError(f"delay and weight must be numbers, or {n} numbers each") from None
        if n and not (np.isfinite(delays).all() and np.isfinite(weights).all() and min(delays) >= 0):
            raise SimulationError("delay must be finite and at least 0, and weight finite")
        known: dict[tuple[type, type], tuple[str, str]] = {}
        made = []
        for i in range(n):
            a, b = starts[i % len(starts)], ends[i % len(ends)]
            kinds = type(a), type(b)
            if kinds not in known:
                known[kinds] = matching_slots((a, None), (b, None), wire=True)
                check_wire(b, known[kinds][1])
            slots = known[kinds]
            made.append(Connection(a, slots[0], b, slots[1], delays[i], weights[i], bool(exact_delay)))
        self.connections.extend(made)
        self.changed(None)

    def _several(self, places: Sequence[Place] | str) -> list[Element]:
        if isinstance(places, str | Element):
            return self._targets(places)
        return [self.element(place) for place in places]

    # Copy, move, delete -----------------------------------------------------------------------------------------

    def copy(self, source: Place, destination: str, n: int | None = None) -> Any:
        """Copy an element with all below it; links and connections among them are copied, those to others are not.

        In the middle of a run a copy begins at the voltages, gates and weights of its original, with closed synapses
        and without the spikes that are on their way.

        Parameters
        ----------
        source : str or Element
            What to copy.
        destination : str
            Path of the copy; its parent must exist.
        n : int or None, default=None
            Number of copies, which are then called ``destination[0]`` and so on.

        Returns
        -------
        Element or list of Element
            The copy, or the copies.
        """
        original = self.element(source)
        if original is self.root:
            raise SimulationError("the root cannot be copied")
        above, name = paths.split(destination)
        parent = paths.walk(self._start(destination), above) if above != "." else self._current
        if n is not None:
            if not Whole(1).holds(n):
                raise SimulationError(f"n must be {Whole(1)}, got {n!r}")
            if name.endswith("]"):
                raise SimulationError(f"{destination} has a number already: leave it out, or leave out n")
        names = [name] if n is None else [f"{name}[{i}]" for i in range(n)]
        for one in names:
            if one in (parent._children or {}):
                raise SimulationError(f"{(parent._children or {})[one].path} already exists")
        inside = original.below()
        links, wires = self._among(inside)
        copies = [self._copied(inside, links, wires, parent, one) for one in names]
        self.changed(None)
        return copies[0] if n is None else copies

    def _among(self, inside: Iterable[Element]) -> tuple[list[Link], list[Connection]]:
        """Links and connections with both ends among some elements; those with one end are listed if asked for."""
        ids = {id(element) for element in inside}
        links = [one for one in self.links if id(one.source) in ids and id(one.destination) in ids]
        wires = [one for one in self.connections if id(one.source) in ids and id(one.destination) in ids]
        if self.verbose >= 1:
            either: list[Link | Connection] = [*self.links, *self.connections]
            for one in either:
                if (id(one.source) in ids) != (id(one.destination) in ids):
                    print(f"not copied: {one.source.path} to {one.destination.path}")
        return links, wires

    def _copied(
        self, inside: list[Element], links: list[Link], wires: list[Connection], parent: Element, name: str
    ) -> Element:
        new: dict[int, Element] = {}
        for old in inside:
            above = parent if old is inside[0] else new[id(old._parent)]
            element = self._added(type(old), above, name if old is inside[0] else old.name)
            for field_name in {*(old._values or {}), *(old.addresses if old._numbers is not None else ())}:
                declaration = old.declared().get(field_name)
                if declaration is not None and declaration.writable and field_name not in element.own:
                    element.keep(field_name, old[field_name])
            new[id(old)] = element
        for one in links:
            self._add_link(Link(new[id(one.source)], one.source_slot, new[id(one.destination)], one.destination_slot))
        self.connections += [
            Connection(
                new[id(one.source)],
                one.source_slot,
                new[id(one.destination)],
                one.destination_slot,
                one.delay,
                one.weight,
                one.exact_delay,
            )
            for one in wires
        ]
        return new[id(inside[0])]

    def move(self, source: Place, destination: str) -> Element:
        """Give an element, with all below it, another name or another parent; its messages stay.

        Parameters
        ----------
        source : str or Element
            What to move.
        destination : str
            Its new path; the parent must exist, and nothing may be there yet.

        Returns
        -------
        Element
        """
        element = self.element(source)
        if element is self.root:
            raise SimulationError("the root cannot be moved")
        above, name = paths.split(destination)
        parent = paths.walk(self._start(destination), above) if above != "." else self._current
        if name in (parent._children or {}):
            raise SimulationError(f"{(parent._children or {})[name].path} already exists")
        if any(one is parent for one in element.below()):
            raise SimulationError(f"{element.path} cannot be moved below itself")
        for one in element.below():
            self._left[one.path] = self._left.get(one.path, 0) + 1
        self._detach(element)
        if parent._children is None:
            parent._children = {}
        element._parent, element._name = parent, name
        parent._children[name] = element
        self.changed(None)
        return element

    def delete(self, pattern: Place) -> None:
        """Delete elements with all below them, and every link and connection that ends or begins there."""
        tops = self._targets(pattern)
        if any(one is self.root for one in tops):
            raise SimulationError("the root cannot be deleted")
        gone = {id(one): one for top in tops for one in top.below()}
        at = self._current
        while at is not self.root and id(at) in gone:
            at = at.parent or self.root
        self._current = at
        self.links = [one for one in self.links if id(one.source) not in gone and id(one.destination) not in gone]
        self.connections = [
            one for one in self.connections if id(one.source) not in gone and id(one.destination) not in gone
        ]
        self._joined = {ends_of(one) for one in self.links if one.kind != "conductance"}
        for one in gone.values():
            if one._parent is not None:
                self._detach(one)
        self.changed(None)
