"""Where chains run: here one after another, in threads, or in other processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from typing import Any, Literal, Protocol, Self

from pluri.inference.mcmc.chain import Segment

Move = tuple[Any, ...]  # a function and its arguments


class Backend(Protocol):
    """Runs one round of all chains."""

    kind: Literal["serial", "threads", "processes"]

    def __enter__(self) -> Self: ...
    def __exit__(self, *error: object) -> None: ...
    def map(self, moves: Sequence[Move]) -> tuple[list[Segment], bool]:
        """Segments in order, and whether Ctrl-C came."""


class Serial:
    """One chain after another, in this thread."""

    kind: Literal["serial", "threads", "processes"] = "serial"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def map(self, moves: Sequence[Move]) -> tuple[list[Segment], bool]:
        """Segments in order, and whether Ctrl-C came."""
        segments: list[Segment] = []
        for function, chain, *rest in moves:
            stopped = any(segment.interrupted for segment in segments)
            # A chain whose turn had not come makes no step; the driver lets it catch up.
            segments.append(Segment(chain, {}, {}) if stopped else function(chain, *rest))
        return segments, any(segment.interrupted for segment in segments)


class Pool:
    """Chains in the workers of an executor."""

    def __init__(self, kind: Literal["threads", "processes"], executor: Executor):
        self.kind: Literal["serial", "threads", "processes"] = kind
        self._executor = executor

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self.kind == "threads":
            self._executor.shutdown(wait=True)

    def map(self, moves: Sequence[Move]) -> tuple[list[Segment], bool]:
        """Segments in order, and whether Ctrl-C came; then the round under way is finished all the same."""
        run = _deaf if self.kind == "processes" else _plain
        futures = [self._executor.submit(run, *move) for move in moves]
        interrupted = False
        while True:
            try:
                # A wait without a time limit cannot be interrupted on every platform.
                while wait(futures, timeout=0.1).not_done:
                    pass
                break
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
        return [future.result() for future in futures], interrupted


def _plain(function: Callable[..., Segment], *arguments: Any) -> Segment:
    return function(*arguments)


def _deaf(function: Callable[..., Segment], *arguments: Any) -> Segment:
    """In another process: Ctrl-C reaches the whole group, and the parent decides what it means."""
    import signal

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return function(*arguments)
    finally:
        signal.signal(signal.SIGINT, before)


def open_workers(n_jobs: int | None, backend: str, n_chains: int) -> Backend:
    """Workers for chains; `n_jobs` counts as in joblib."""
    if backend not in ("processes", "threads"):
        raise ValueError(f"backend must be 'processes' or 'threads', got {backend!r}")
    if n_jobs is not None and (not isinstance(n_jobs, int) or n_jobs == 0):
        raise ValueError(f"n_jobs must be a whole number other than 0, or None, got {n_jobs!r}")
    processors = os.cpu_count() or 1
    count = 1 if n_jobs is None else n_jobs if n_jobs > 0 else max(1, processors + 1 + n_jobs)
    count = min(count, n_chains)
    if count == 1:
        return Serial()
    if backend == "threads":
        return Pool("threads", ThreadPoolExecutor(count))
    from joblib.externals.loky import get_reusable_executor

    # loky sends functions by value, so that a density defined in a notebook can go to another process.
    return Pool("processes", get_reusable_executor(max_workers=count, timeout=60))
