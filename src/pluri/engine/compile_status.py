"""One line on a terminal when a first call takes long because it compiles; nothing in pipes, notebooks and workers.

The environment variable ``PLURI_QUIET`` (any value) silences it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from time import perf_counter
from typing import Any

from pluri.engine.compile_cache import DEPENDS

#: Seconds of compiling, all in all, after which a user wonders what is going on.
PATIENCE = 1.0
QUIET = "PLURI_QUIET"
_silenced = ContextVar("silenced", default=False)


@contextmanager
def silenced(quiet: bool = True) -> Iterator[None]:
    """Show nothing inside the block, if `quiet`."""
    before = _silenced.set(quiet or _silenced.get())
    try:
        yield
    finally:
        _silenced.reset(before)


class CompileStatus:
    """Tells once in a program that functions of ours are being compiled; its methods are called around each of them.

    Parameters
    ----------
    patience : float, default=1.0
        Seconds of compiling before the line is shown.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self.left = patience
        self.told = False
        self._depth = 0
        self._began = 0.0
        self._timer: threading.Timer | None = None

    def begin(self, data: dict[str, Any]) -> None:
        """A function is going to be compiled, maybe for another one that is."""
        self._depth += 1
        function = data["dispatcher"]
        if self._depth == 1 and not self.told and hasattr(function, DEPENDS) and _somebody_watches():
            kept = getattr(getattr(function, "_cache", None), "cache_path", None) is not None
            self._began = perf_counter()
            self._timer = threading.Timer(max(self.left, 0.0), self._tell, [kept])
            self._timer.daemon = True
            self._timer.start()

    def end(self, data: dict[str, Any]) -> None:
        """It was compiled."""
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self.left -= perf_counter() - self._began

    def _tell(self, kept: bool) -> None:
        self.told = True
        with suppress(Exception):  # the terminal may be gone: no reason for a fit to fail
            _write_line("pluri: compiling, once (kept in the cache)" if kept else "pluri: compiling")


def _somebody_watches() -> bool:
    """Whether stderr is a terminal, in the program that the user has started and not in one of its workers."""
    if QUIET in os.environ or _silenced.get() or multiprocessing.current_process().name != "MainProcess":
        return False
    try:
        # Older versions of rich say of what they put in place of a terminal that it is none.
        return bool(getattr(sys.stderr, "rich_proxied_file", sys.stderr).isatty())
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


def _write_line(text: str) -> None:
    """Write a line above whatever progress bar there is.

    While rich shows one, ``sys.stderr`` is its own and puts whole lines above it; tqdm has a function for that.
    """
    bars = getattr(sys.modules.get("tqdm"), "tqdm", None)
    if bars is not None:
        bars.write(text, file=sys.stderr)
    else:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
