"""What was compiled, and how long it took: a record of every function that numba compiles while somebody listens.

A function that is loaded from the cache is not compiled and not recorded. Functions that a function calls are compiled
while it is: `seconds` counts them, `own_seconds` does not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from time import process_time
from typing import Any


@dataclass(frozen=True)
class Compilation:
    """One function compiled for one combination of types.

    Attributes
    ----------
    function : name of the function with its module
    types : types of its arguments
    seconds : CPU seconds, with the functions that were compiled for it
    own_seconds : CPU seconds without those
    depth : 0 if Python called it, 1 if it was compiled for such a function, and so on
    """

    function: str
    types: str
    seconds: float
    own_seconds: float
    depth: int


@contextmanager
def record_compilations() -> Iterator[list[Compilation]]:
    """Gather what is compiled inside the block, in the order in which it was finished.

    Examples
    --------
    >>> from pluri.engine.compile_record import record_compilations
    >>> from pluri.engine.compiled import compiled
    >>> @compiled(cache=False)
    ... def double(x):
    ...     return 2 * x
    >>> with record_compilations() as found:
    ...     double(1), double(2), double(1.5)
    (2, 4, 3.0)
    >>> [one.types for one in found]
    ['int64', 'float64']
    """
    found: list[Compilation] = []
    open_functions: list[list[float]] = []  # when each began, and the seconds of what was compiled for it

    def begin(data: dict[str, Any]) -> None:
        open_functions.append([process_time(), 0.0])

    def end(data: dict[str, Any]) -> None:
        began, inner = open_functions.pop()
        seconds = process_time() - began
        if open_functions:
            open_functions[-1][1] += seconds
        function = data["dispatcher"].py_func
        name = f"{function.__module__}.{function.__qualname__}"
        types = ", ".join(map(str, data["args"]))
        found.append(Compilation(name, types, seconds, seconds - inner, len(open_functions)))

    with listening(begin, end):
        yield found


Told = Callable[[dict[str, Any]], None]
#: Pairs of functions, told of the beginning and the end of each compilation.
_listeners: list[tuple[Told, Told]] = []


def listen(begin: Told, end: Told) -> tuple[Told, Told]:
    """Call `begin` and `end` around each compilation from now on, with numba's description of it."""
    _listeners.append((begin, end))
    if "numba" in sys.modules:  # otherwise it is attached when it is imported, which takes half a second
        attach()
    return begin, end


@contextmanager
def listening(begin: Told, end: Told) -> Iterator[None]:
    """Call `begin` and `end` around each compilation inside the block."""
    listener = listen(begin, end)
    try:
        yield
    finally:
        _listeners.remove(listener)


@cache
def attach() -> None:
    """Have numba tell us of compilations."""
    from numba.core import event

    numbas: Any = event

    class Listener(numbas.Listener):
        def on_start(self, event: Any) -> None:
            for begin, _ in list(_listeners):
                begin(event.data)

        def on_end(self, event: Any) -> None:
            for _, end in list(_listeners):
                end(event.data)

    numbas.register("numba:compile", Listener())
