"""``pluri models`` and ``pluri inspect``: what there is, and what is in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import plain, print_json, printable, reporting, show
from pluri.cli.families import FAMILIES
from pluri.cli.registry import explained, find_model, fitted_part, parameters, summary_line

#: Entries of a list that are shown.
MOST_NOTED = 50


def models(
    name: Annotated[str | None, typer.Argument(metavar="MODEL", help="Explain the parameters of this one.")] = None,
    as_json: options.Json = False,
) -> None:
    """List the models of each family and their parameters, or explain those of one."""
    with reporting():
        if name is not None:
            _explain(find_model(name), as_json)
            return
        if as_json:
            print_json(
                [
                    {
                        "name": name,
                        "family": family.title,
                        "summary": summary_line(kind),
                        "parameters": parameters(kind),
                    }
                    for family in FAMILIES
                    for name, kind in family.models()
                ]
            )
            return
        from rich.console import Console
        from rich.markup import escape

        console = Console()
        for family in FAMILIES:
            fitted_by = f" (fitted by {family.command})" if family.command else ""
            console.print(f"[bold underline]{family.title}[/]{fitted_by}\n", highlight=False)
            for name, kind in family.models():
                settings = ", ".join(f"{key}={value!r}" for key, value in parameters(kind).items())
                console.print(f"[bold]{name}[/]  {escape(summary_line(kind))}", highlight=False)
                console.print(settings, style="dim", highlight=False, markup=False, soft_wrap=False)
                console.print()


def _explain(kind: type, as_json: bool) -> None:
    """What a model is, and what each of its parameters means."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    given = parameters(kind)
    if as_json:
        meanings = {name: entry.meaning for entry in explained(kind) for name in entry.names}
        told = {name: {"default": value, "meaning": meanings.get(name, "")} for name, value in given.items()}
        print_json({"name": kind.__name__, "summary": summary_line(kind), "parameters": told})
        return
    console = Console()
    console.print(Text.assemble((kind.__name__, "bold"), f"  {summary_line(kind)}\n"))
    for entry in explained(kind):
        names = ", ".join(f"{name}={given[name]!r}" if name in given else name for name in entry.names)
        console.print(Text.assemble((names, "bold"), ("  " + entry.allowed.partition(", default")[0], "dim")))
        console.print(Padding(Text(entry.meaning), (0, 0, 0, 4), expand=False))


def inspect(model: options.ModelFile, as_json: options.Json = False) -> None:
    """Show what a model file holds: class, versions, parameters, and how the fit went."""
    with reporting():
        from pluri.cli.fitting import describe_fit
        from pluri.io import load, read_info

        info = read_info(model)
        estimator = load(model)
        if as_json:
            print_json(
                {
                    "class": info.class_name,
                    "versions": info.versions,
                    "notes": info.notes,
                    "parameters": estimator.get_params(),
                    "fit": describe_fit(estimator),
                }
            )
            return
        saved_by = ", ".join(f"{package} {version}" for package, version in info.versions.items())
        show(f"{printable(model)}: {info.class_name}\nsaved by {printable(saved_by)}")
        is_topics = hasattr(estimator, "topic_graph")
        for name, value in info.notes.items():
            # The coherence of each topic is in the table below.
            if value is not None and not (is_topics and name == "coherence"):
                show(f"{printable(name)}: {printable(_note(value))}")
        show(f"\n{estimator!r}\n")
        if is_topics and hasattr(estimator, "topic_word_"):
            from pluri.cli.topics.telling import coherence_of, topic_lines

            show(topic_lines(estimator, coherence_of(info.notes, estimator)))
        else:
            with naming(estimator, info.notes.get("columns")):
                show(summary(estimator))


@contextmanager
def naming(model: Any, columns: Sequence[str] | None) -> Iterator[None]:
    """Let a model that was fitted to an array know its columns by name, for as long as it is told about."""
    import numpy as np

    described = fitted_part(model)
    known = hasattr(described, "feature_names_in_") or not columns
    if known or getattr(described, "n_features_in_", None) != len(columns or ()):
        yield
        return
    described.feature_names_in_ = np.array(columns, dtype=object)
    try:
        yield
    finally:
        del described.feature_names_in_


def summary(model: Any) -> str:
    """A fitted model on one page: its own account, or else how the fit went."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    from pluri.cli.fitting import describe_fit

    described = fitted_part(model)
    try:
        check_is_fitted(described)
        if hasattr(described, "summary"):
            return str(described.summary())
    except NotFittedError:
        return "not fitted"
    found = {name: plain(value) for name, value in describe_fit(model).items()}
    return "\n".join(f"{name.replace('_', ' '):>16}  {_cell(value)}" for name, value in found.items())


def _note(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_note(item)}" for name, item in value.items())
    if not isinstance(value, list):
        return str(value)
    shown = ", ".join(map(str, value[:MOST_NOTED]))
    return f"{shown}, ... ({len(value)})" if len(value) > MOST_NOTED else shown


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_cell, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
