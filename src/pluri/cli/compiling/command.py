"""``pluri compile``: compile everything once, in an image or on the machine of a lab, so that no first call waits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli.console import note, reporting, show
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from pluri.cli.compiling.work import Outcome


def compile_ahead(
    families: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FAMILY]...", help="sequences, mixtures, topics, ...; all by default."),
    ] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Processes; 0 is one for each processor.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Compile all functions ahead of their first use, and keep them in the cache.

    Every model is fitted to a little data, by each way of learning. The cache is beside the source of pluri, in
    NUMBA_CACHE_DIR if that is set, or in the home; it serves programs that use the same one on the same kind of
    processor.
    """
    with reporting():
        from pluri.cli.compiling.tiny_fits import tiny_fits
        from pluri.cli.compiling.work import n_cores, run_all

        wanted = _packages(families or [])
        folder = _writable_folder()
        began = time.perf_counter()
        fits = [fit for fit in tiny_fits(every_setting=True) if fit.package.split(".")[1] in wanted]
        with _progress(len(fits), quiet) as report:
            outcomes = run_all(fits, jobs or n_cores(), report)
        _tell(outcomes, folder, time.perf_counter() - began)


def _packages(families: Sequence[str]) -> tuple[str, ...]:
    from pluri.cli.compiling.tiny_fits import PACKAGES

    for name in families:
        if name not in PACKAGES:
            raise UsageError(f"FAMILY must be one of {', '.join(PACKAGES)}, got {name!r}")
    return tuple(families) or PACKAGES


def _writable_folder() -> str:
    """Where compiled code is going to be; an error if that is nowhere, or not where the user wants it."""
    from numba import config

    from pluri.engine.compiled import cache_folder

    settings: Any = config
    folder, asked = cache_folder(), str(settings.CACHE_DIR)
    if folder is None:
        raise OSError("compiled code can be kept nowhere: set NUMBA_CACHE_DIR to a folder that can be written")
    if asked and Path(folder) != Path(asked):
        raise OSError(f"NUMBA_CACHE_DIR must be a folder that can be written, got {asked}")
    return folder


def _tell(outcomes: Sequence[Outcome], folder: str, seconds: float) -> None:
    failed = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failed:
        note(f"{outcome.title} could not be run: {outcome.failure}")
    unkept = next((outcome.unkept for outcome in outcomes if outcome.unkept), "")
    if unkept:
        raise OSError(unkept)
    functions = {one for outcome in outcomes for one in outcome.compiled}
    n_names = len({name for name, _ in functions})
    show(
        f"{n_names} functions compiled for {len(functions)} combinations of types in {seconds:.0f} s, kept in {folder}"
    )
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(outcomes)} small fits could not be run")


@contextmanager
def _progress(total: int, quiet: bool) -> Iterator[Callable[[Outcome], None]]:
    """A bar in a terminal, a line now and then elsewhere."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet:
        yield lambda outcome: None
    elif console.is_terminal:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        columns: tuple[Any, ...] = (
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=console) as bar:
            task = bar.add_task("", total=total)
            yield lambda outcome: bar.update(task, advance=1, description=outcome.title)
    else:
        n_done = 0

        def line(outcome: Outcome) -> None:
            nonlocal n_done
            n_done += 1
            if n_done == total or n_done % max(total // 10, 1) == 0:
                note(f"{n_done}/{total} {outcome.title}")

        yield line
