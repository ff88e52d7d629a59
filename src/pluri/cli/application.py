"""The command line itself: names of the commands and the options of all of them."""

from __future__ import annotations

from typing import Annotated

import typer

from pluri.cli.cochange.learning import cochange
from pluri.cli.compiling.command import compile_ahead
from pluri.cli.demo import demo
from pluri.cli.describing import inspect, models
from pluri.cli.diagnosing import diagnose
from pluri.cli.fitting import fit
from pluri.cli.querying import predict, sample, score
from pluri.cli.report import report
from pluri.cli.selecting import select
from pluri.cli.topics.command import topics

application = typer.Typer(
    name="pluri",
    help="Latent-variable models whose parts stay distinct.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (models, fit, predict, score, sample, select, inspect, diagnose, topics, report):
    application.command()(command)
application.command("compile")(compile_ahead)
application.add_typer(demo)
application.add_typer(cochange)


def _version(wanted: bool) -> None:
    if wanted:
        from pluri import __version__

        print(f"pluri {__version__}")
        raise typer.Exit()


@application.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Fit, query and inspect latent-variable models.

    Exit codes: 0 done, 1 the data or the fit failed, 2 the command was not understood, 130 interrupted.
    """
