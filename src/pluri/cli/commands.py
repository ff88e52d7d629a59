"""The commands by name, each imported when it is asked for: ``pluri --help`` needs no more than their first lines."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer


class Command(NamedTuple):
    """Where a command lives, what the list of commands says of it, and whether it has commands of its own.

    Its function has the name of the command, unless that is a word of Python.
    """

    module: str
    help: str
    is_group: bool = False
    function: str = ""


#: The help is that of the command itself: `tests/cli/test_process.py` compares them.
COMMANDS = {
    "models": Command("describing", "List the models of each family and their parameters, or explain those of one."),
    "fit": Command("fitting", "Fit a model to a data file and save it."),
    "predict": Command("querying", "Label each row of a data file with its most probable state or component."),
    "transform": Command(
        "querying", "Give each row of a data file its coordinates in a model: factors, weights, places on a map."
    ),
    "score": Command(
        "querying",
        "Tell how well a model fits a data file: log-likelihood (or squared distance), accuracy where labels are "
        "known.",
    ),
    "sample": Command("querying", "Draw rows from a model: a sequence if it is one of sequences."),
    "select": Command("selecting", "Choose rows of a data file that are good and different."),
    "label": Command(
        "labelling.command", "Label the rows of a file on a page, by keyboard, those first that teach a model most."
    ),
    "inspect": Command(
        "describing", "Show what a model file holds: class, versions, parameters, and how the fit went."
    ),
    "diagnose": Command("diagnosing", "Say whether the chains in a trace file agree, and print what they found."),
    "topics": Command(
        "topics.command", "Find the topics of documents; print them, save the model, and write a page about it."
    ),
    "edit-topics": Command(
        "topics.editing",
        "Edit the topics of a saved model: names, mergers, fewer of them, or a tree to read.",
        function="edit_topics",
    ),
    "embed": Command("embedding", "Draw a map of the rows of a data file: a page to move, zoom and search in."),
    "forecast": Command("forecasting", "Forecast the rows that come after those of a data file, with intervals."),
    "impute": Command(
        "forecasting", "Fill the empty cells of a data file whose rows follow each other, or, by a saved model, of any."
    ),
    "denoise": Command("pictures.command", "Take the noise out of a picture; how much there is of it is inferred."),
    "inpaint": Command("pictures.command", "Fill the missing pixels of a picture."),
    "motion": Command(
        "motion", "Play motion capture: BVH files as stick figures on a page, beside a map of their poses."
    ),
    "neurons": Command(
        "neurons.command",
        "Simulate neurons and networks of them: run a script, take commands at a prompt, or serve a page.",
    ),
    "report": Command("report", "Write a page about a saved model: one HTML file that needs nothing else."),
    "compile": Command(
        "compiling.command",
        "Compile all functions ahead of their first use, and keep them in the cache.",
        function="compile_ahead",
    ),
    "doctor": Command("doctor", "Say what is installed here, and check that it computes what it should."),
    "demo": Command("demo", "Show in less than a minute what pluri is for: figures, and a page about topics.", True),
    "cochange": Command(
        "cochange.learning",
        "Which files change together: learnt from a git history, asked before a commit.",
        True,
    ),
}


def asked_for(arguments: list[str]) -> str | None:
    """The command that these arguments name, if any."""
    return next((word for word in arguments if not word.startswith("-")), None)


def build(wanted: set[str]) -> typer.Typer:
    """The command line with the wanted commands; the others are there by their names and first lines only."""
    application = typer.Typer(
        name="pluri",
        help="Latent-variable models for data as they are: with holes, weights and unknown numbers of parts.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, command in COMMANDS.items():
        if name not in wanted:
            application.command(name)(_line(command.help))
            continue
        found: Any = getattr(import_module(f"pluri.cli.{command.module}"), command.function or name)
        if command.is_group:
            application.add_typer(found)
        else:
            application.command(name)(found)
    application.callback()(options)
    return application


def _line(text: str) -> Callable[[], None]:
    def command() -> None: ...

    command.__doc__ = text
    return command


def _version(wanted: bool) -> None:
    if wanted:
        from pluri import __version__

        print(f"pluri {__version__}")
        raise typer.Exit()


def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and leave.")
    ] = False,
) -> None:
    """Fit, query and inspect latent-variable models.

    Exit codes: 0 done, 1 the data or the fit failed, 2 the command was not understood, 130 interrupted.
    """
