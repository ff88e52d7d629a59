"""Packages whose names are imported when they are first used.

A package of many models would otherwise import all of them, and what they need, for whoever wants one: a second or two
that a command at the prompt, or a hook before each commit, cannot spare.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    homes : dict
        Modules of the package, and the names that each of them has to give.

    Examples
    --------
    >>> from pluri.lazy_names import lazy_names
    >>> get, names = lazy_names("pluri.metrics", {"partition_posterior": ["PointPartition"]})
    >>> get("PointPartition").__name__, "PointPartition" in names()
    ('PointPartition', True)
    """
    home = {name: f"{package}.{module}" for module, names in homes.items() for name in names}

    def find(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)  # found without asking from now on
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return find, names
