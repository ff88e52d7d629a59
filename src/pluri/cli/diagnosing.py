"""``pluri diagnose``: can the draws in a file be trusted?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import FAILED, note, print_json, reporting, show
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from pluri.inference.mcmc import Trace

FIGURES = (".png", ".pdf", ".svg")


def diagnose(
    trace: Annotated[Path, typer.Argument(metavar="TRACE.npz", help="File written by [bold]Trace.save[/].")],
    names: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Variables to show; the first fifty numbers by default.")
    ] = None,
    mass: Annotated[float, typer.Option(help="Share of the draws inside the interval.")] = 0.94,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw paths and distributions into a .png, .pdf or .svg file.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End with code 1 if there is any problem.")] = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Say whether the chains in a trace file agree, and print what they found.

    Means, intervals, Monte Carlo errors, R-hat and effective sample sizes; then each problem in a sentence.
    """
    with reporting():
        from pluri.inference.mcmc import Trace

        if not 0 < mass < 1:
            raise UsageError(f"--mass must lie between 0 and 1, got {mass}")
        check_output(figure, force, FIGURES, "--figure")
        if not trace.is_file():
            raise FileNotFoundError(f"TRACE must name an existing file, got {str(trace)!r}")
        draws = Trace.load(trace)
        problems = draws.diagnose()
        chosen = _chosen(draws, names)
        summary = chosen.summary(mass)
        if as_json:
            print_json(
                {
                    "n_chains": draws.n_chains,
                    "n_draws": draws.n_draws,
                    "n_warmup": draws.n_warmup,
                    "interrupted": draws.interrupted,
                    "problems": problems,
                    "summary": {name: dict(zip(summary, summary[name])) for name in summary.names},
                }
            )
        else:
            show(f"{draws.n_chains} chains x {draws.n_draws} draws after {draws.n_warmup} steps of warm-up")
            show(summary)
            show()
            show("\n".join(problems) if problems else "No problem found.")
        if figure is not None:
            _draw(chosen, figure)
            note(f"figure written to {figure}")
        if strict and problems:
            raise typer.Exit(FAILED)


def _chosen(trace: Trace, names: str | None) -> Any:
    """The variables asked for, as a trace."""
    from pluri.inference.mcmc import Trace
    from pluri.plotting.chains.chain_panels import chosen_numbers

    wanted = None if names is None else [name.strip() for name in names.split(",") if name.strip()]
    try:
        return Trace(chosen_numbers(trace, wanted, most=50), trace.stats)
    except ValueError as error:
        raise UsageError(f"--names: {error}") from error


def _draw(trace: Trace, path: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    from pluri.plotting import TraceDisplay
    from pluri.validation import replacing

    display = TraceDisplay.from_trace(trace)
    with replacing(path, "--figure") as file:
        display.figure_.savefig(file, format=path.suffix[1:].lower(), dpi=150)
