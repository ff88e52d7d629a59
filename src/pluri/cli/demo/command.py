"""``pluri demo``: six things that pluri does for a person, each with sentences and something to look at."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from pluri.cli import options
from pluri.cli.console import note, print_json, reporting, show
from pluri.cli.demo import index_page
from pluri.cli.demo.part import Part, prepare_folder
from pluri.cli.demo.prior import prior
from pluri.cli.registry import UsageError

#: The parts in order: the module of each (with ``FILE`` and ``show(path, seed)``), and its heading.
PARTS = {
    "collapsed_fits": "Twenty fits of one model to the same data",
    "missing_values": "Three of ten values are missing",
    "number_of_clusters": "How many clusters are there?",
    "series_forecast": "What was in the gap, and what comes next?",
    "diverse_selection": "Ten of many, no two alike",
    "topic_page": "What is a pile of texts about?",
}

demo = typer.Typer(name="demo", invoke_without_command=True)


Output = Annotated[Path, typer.Option("--output", "-o", help="Folder for the figures and the pages.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the data and the fits.")]


@demo.callback()
def all_parts(
    context: typer.Context, output: Output = Path("demo"), seed: Seed = 0, as_json: options.Json = False
) -> None:
    """Show in less than a minute what pluri is for: figures, and a page about topics.

    Fits that have collapsed are found and repaired; missing values are summed out; clusters are counted; a series is
    filled and forecast; a few of many points are chosen, no two alike; texts are sorted by topic. [bold]pluri demo
    NAME[/] shows one of them; [bold]pluri demo prior[/] compares an HMM with a diversified HMM instead.
    """
    with reporting():
        if context.invoked_subcommand is not None:
            _refuse_options(context)
            return
        _show(list(PARTS), output, seed, as_json)


def _show(names: list[str], output: Path, seed: int, as_json: bool) -> None:
    """Show some of the parts; all of them have a page that ties them together."""
    modules = {name: import_module(f"pluri.cli.demo.{name}") for name in names}
    whole = len(names) == len(PARTS)
    prepare_folder(output, [module.FILE for module in modules.values()] + [index_page.FILE] * whole)
    began = time.perf_counter()
    if not as_json:
        note("The first run compiles what it needs; later runs are faster.")
    done: dict[str, Part] = {}
    for number, name in enumerate(names, 1):
        if not as_json:
            show(f"\n{number}. {PARTS[name]}" if whole else f"\n{PARTS[name]}")
        part = done[name] = modules[name].show(output / modules[name].FILE, seed)
        if not as_json:
            show("\n".join(f"   {line}" for line in _wrapped(part.lines)))
            show(f"   -> {part.file}")
    tied = index_page.write_index(done, PARTS, output) if whole else None
    if as_json:
        print_json(
            {name: {**part.numbers, "reading": part.lines, "file": str(part.file)} for name, part in done.items()}
        )
        return
    if tied:
        show(f"\nAll of it on one page:\n   -> {tied}")
    show(f"\nDone in {time.perf_counter() - began:.0f} seconds. Next: the README, or pluri --help.")


def _refuse_options(context: typer.Context) -> None:
    """Options before the name of the comparison would be ignored in silence."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = "--json" if name == "as_json" else f"--{name}"
            raise UsageError(f"{option} must stand after {context.invoked_subcommand!r}, got it before")


def _wrapped(lines: list[str]) -> list[str]:
    """Sentences in lines of at most 76 characters; what has been laid out already (two spaces) stays as it is."""
    import textwrap

    return [piece for line in lines for piece in ([line] if line.startswith("  ") else textwrap.wrap(line, 76))]


def _one_part(name: str) -> Callable[..., None]:
    """The command that shows one part."""

    def command(output: Output = Path("demo"), seed: Seed = 0, as_json: options.Json = False) -> None:
        with reporting():
            _show([name], output, seed, as_json)

    command.__doc__ = PARTS[name]
    return command


for part_name in PARTS:
    demo.command(part_name)(_one_part(part_name))
demo.command("prior")(prior)
