"""When compiled code on disk is out of date.

Numba looks only at the file of the function itself. Its code also holds what it calls, the constants it reads and the
places of the fields of its records, all of which may stand in other files: after a change there, the old code would be
run without a word. And a list of what was compiled that names a record which was moved since cannot be read at all.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

#: Name of the attribute of a compiled function that tells what its code depends on.
DEPENDS = "__pluri_depends__"


def watch_sources(loop: Any, function: Callable[..., Any]) -> Any:
    """Compile `loop` anew when anything has changed that its code is made of; gives `loop`."""
    setattr(loop, DEPENDS, _dependencies(function))
    file = getattr(getattr(loop, "_cache", None), "_cache_file", None)
    if file is not None:
        file._source_stamp = (file._source_stamp, *sorted(getattr(loop, DEPENDS)))
        file._load_index = _readable_or_empty(file._load_index)
    return loop


def _dependencies(function: Callable[..., Any]) -> frozenset[str]:
    """Files with their age and size, and constants with their values."""
    found = {_stamp(function.__code__.co_filename)}
    for name, value in list(function.__globals__.items()):
        if hasattr(value, DEPENDS):
            found |= getattr(value, DEPENDS)
        elif isinstance(value, type):
            found.add(_stamp(getattr(sys.modules.get(value.__module__), "__file__", None)))
        elif isinstance(value, int | float | str | tuple) and name in function.__code__.co_names:
            found.add(f"{name} = {value!r}")
    return frozenset(found)


@cache
def _stamp(path: str | None) -> str:
    try:
        state = os.stat(path or "")
    except OSError:  # built in, or in an archive
        return str(path)
    return f"{path}: {state.st_mtime_ns}, {state.st_size}"


def _readable_or_empty(load: Callable[[], dict[Any, Any]]) -> Callable[[], dict[Any, Any]]:
    def load_or_forget() -> dict[Any, Any]:
        try:
            return load()
        except (AttributeError, ImportError, EOFError, pickle.UnpicklingError):
            return {}

    return load_or_forget
