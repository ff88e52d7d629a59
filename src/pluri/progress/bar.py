"""Progress of a fit on stderr: a bar in a terminal or notebook, plain lines in a pipe, nothing by default."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol


class Iteration(Protocol):
    """What is shown; :class:`pluri.inference.IterationState` has it all."""

    @property
    def restart(self) -> int: ...
    @property
    def n_init(self) -> int: ...
    @property
    def iteration(self) -> int: ...
    @property
    def max_iter(self) -> int: ...
    @property
    def objective(self) -> float: ...
    @property
    def gain(self) -> float: ...
    @property
    def reason(self) -> str | None: ...


@dataclass(frozen=True)
class Step:
    """One pass of a loop that keeps no other record: something to give to the display."""

    iteration: int
    max_iter: int
    objective: float
    gain: float = math.nan
    reason: str | None = None
    restart: int = 0
    n_init: int = 1


Report = Callable[[Iteration], None]


@contextmanager
def open_progress(verbose: int = 0, console: Any = None) -> Iterator[Report]:
    """Open a display; give it each iteration as it comes.

    Parameters
    ----------
    verbose : int, default=0
        0 shows nothing. 1 shows a bar; where stderr is no terminal, the first, every tenth and the last iteration of
        a run as a line each. 2 or more shows a line for every iteration.
    console : rich.console.Console, optional
        Where to draw; stderr if not given.

    Yields
    ------
    callable
        To be called with each iteration.

    Examples
    --------
    >>> from pluri.progress import open_progress
    >>> with open_progress(verbose=0) as report:
    ...     pass
    """
    if not verbose:
        yield lambda state: None
        return

    from rich.console import Console

    console = console if console is not None else Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield _line_printer(every=1 if verbose > 1 else 10)
        return

    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("run {task.fields[run]}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("objective {task.fields[objective]}"),
        TextColumn("gain {task.fields[gain]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    started = perf_counter()
    with Progress(*columns, console=console) as progress:
        tasks: dict[int, Any] = {}

        def report(state: Iteration) -> None:
            fields: dict[str, Any] = {
                "run": f"{state.restart + 1}/{state.n_init}",
                "objective": f"{state.objective:.4f}",
                "gain": _gain(state),
            }
            if state.restart not in tasks:
                tasks[state.restart] = progress.add_task("fit", total=state.max_iter, **fields)
            # A run that ends early is complete: the bar is full at the number of iterations it took.
            total = state.iteration if state.reason else state.max_iter
            progress.update(tasks[state.restart], completed=state.iteration, total=total, **fields)
            if verbose > 1:
                progress.console.print(_line(state, perf_counter() - started), highlight=False)

        yield report


def _line_printer(every: int) -> Report:
    started = perf_counter()

    def report(state: Iteration) -> None:
        if state.iteration == 1 or state.iteration % every == 0 or state.reason:
            print(_line(state, perf_counter() - started), file=sys.stderr, flush=True)

    return report


def _gain(state: Iteration) -> str:
    return f"{state.gain:+.2e}" if state.gain == state.gain else "-"  # there is none at the first iteration


def _line(state: Iteration, seconds: float) -> str:
    width = len(str(state.max_iter))
    return (
        f"run {state.restart + 1}/{state.n_init}  iteration {state.iteration:>{width}}/{state.max_iter}  "
        f"objective {state.objective:.4f}  gain {_gain(state)}  {seconds:.1f} s"
        f"{f'  {state.reason}' if state.reason else ''}"
    )
