"""Ctrl-C that waits for the end of a piece of work, where half a piece would leave things that do not fit together."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Self


class whole_pieces:
    """A block in which Ctrl-C is heard between pieces of work only: where `pause` is called, and at its end.

    A second Ctrl-C is heard at once, so a piece that hangs can be ended. In other threads than the main one, which
    never get a ``KeyboardInterrupt``, the block changes nothing.

    Examples
    --------
    >>> import signal
    >>> from pluri.validation.interrupt_pauses import whole_pieces
    >>> done = []
    >>> try:
    ...     with whole_pieces() as work:
    ...         while True:
    ...             signal.raise_signal(signal.SIGINT)  # as Ctrl-C would
    ...             done.append("a whole piece")
    ...             work.pause()
    ... except KeyboardInterrupt:
    ...     print(done)
    ['a whole piece']
    """

    def __init__(self) -> None:
        self._before = signal.getsignal(signal.SIGINT)
        self._waits = False

    def __enter__(self) -> Self:
        if callable(self._before) and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._wait)
        return self

    def _wait(self, number: int, frame: FrameType | None) -> None:
        if self._waits:
            self._hear(frame)
        self._waits = True

    def _hear(self, frame: FrameType | None = None) -> None:
        self._waits = False
        assert callable(self._before)
        self._before(signal.SIGINT, frame)

    def pause(self) -> None:
        """End of a piece: Ctrl-C is heard now if it came."""
        if self._waits:
            self._hear()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if signal.getsignal(signal.SIGINT) == self._wait:
            signal.signal(signal.SIGINT, self._before)
        if error is None:
            self.pause()
