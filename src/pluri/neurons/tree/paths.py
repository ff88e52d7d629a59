"""Paths: names from the root, like those of files, with ".", "..", numbers in brackets and wildcards."""

from __future__ import annotations

import re
from functools import lru_cache

from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError, nearest

#: A name, with or without a number: soma, cell[3].
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\[\d+\])?")


def parts_of(path: str) -> list[str]:
    """Names between the slashes."""
    if not isinstance(path, str) or not path:
        raise SimulationError(f"a path must be a string that is not empty, got {path!r}")
    return [part for part in path.split("/") if part]


def split(path: str) -> tuple[str, str]:
    """The path of the parent, and the name."""
    parts = parts_of(path)
    if not parts or not NAME.fullmatch(parts[-1]):
        wrong = parts[-1] if parts else path
        raise SimulationError(
            f"{wrong} is no name of an element: letters, digits, _ and -, not beginning with a digit or -; a number in "
            "brackets may follow"
        )
    above = "/".join(parts[:-1])
    return ("/" + above if path.startswith("/") else above or "."), parts[-1]


def walk(start: Element, path: str, remedy: str = "") -> Element:
    """The one element that a path without wildcards leads to; the sentence names the first part that is missing."""
    element = start
    for part in parts_of(path):
        if part == ".":
            continue
        if part == "..":
            element = element.parent or element
            continue
        children = element._children or {}
        if part not in children:
            place = "" if element.parent is None else element.path
            raise SimulationError(f"there is no element {place}/{part}{nearest(part, children) or remedy}")
        element = children[part]
    return element


def matching(start: Element, pattern: str) -> list[Element]:
    """Elements that a pattern matches, in the order of the tree: * any part of one name, ** any number of levels."""
    found, parts = [start], parts_of(pattern)
    for i, part in enumerate(parts):
        if part == ".":
            continue
        if part == "..":
            found = [element.parent or element for element in found]
        elif part == "**":
            last = i + 1 == len(parts)  # /net/** is all below /net, /net/**/soma also /net/soma
            found = [below for element in found for below in element.below() if not (last and below is element)]
        else:
            name = _expression(part)
            found = [
                child
                for element in found
                for child in ((element._children or {}).values())
                if name.fullmatch(child.name)
            ]
        found = list(dict.fromkeys(found))
    return found


def has_wildcard(path: str) -> bool:
    """Whether a path is a pattern."""
    return "*" in path


@lru_cache(maxsize=256)
def _expression(part: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(piece) for piece in part.split("*")))
