"""Python's garbage collector rests while functions are compiled.

A compiler makes hundreds of thousands of small objects that refer to each other, and most of them stay: each round of
the collector goes through all of them and finds next to nothing, which is a fifth of the time of a first call.
"""

from __future__ import annotations

import gc
from typing import Any


class CollectionPause:
    """Its methods are called around each compilation; the collector runs again after the outermost one.

    Examples
    --------
    >>> import gc
    >>> from pluri.engine.collection_pause import CollectionPause
    >>> pause = CollectionPause()
    >>> pause.begin({}), gc.isenabled()
    (None, False)
    >>> pause.end({}), gc.isenabled()
    (None, True)
    """

    def __init__(self) -> None:
        self._depth = 0
        self._was_on = False

    def begin(self, data: dict[str, Any]) -> None:
        """A function is going to be compiled, maybe for another one that is."""
        self._depth += 1
        if self._depth == 1:
            self._was_on = gc.isenabled()
            gc.disable()

    def end(self, data: dict[str, Any]) -> None:
        """It was compiled, or could not be."""
        self._depth -= 1
        if self._depth == 0 and self._was_on:
            gc.enable()
