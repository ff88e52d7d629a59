"""``pluri report``: a saved model as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import note, reporting
from pluri.cli.outputs import check_output


def report(
    model: Annotated[Path, typer.Argument(metavar="MODEL.skops", help="File of a model of any kind.")],
    data: Annotated[
        Path | None,
        typer.Argument(metavar="[DATA]", help="File of rows to draw as the model sees them: .csv, .npy or Parquet."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the page; that of the model with .html by default."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Show the page in a browser.")] = False,
    columns: options.Columns = None,
    sequence: options.Sequence = None,
    lengths: options.Lengths = None,
    header: options.Header = None,
    force: options.Force = False,
) -> None:
    """Write a page about a saved model: one HTML file that needs nothing else.

    Topic models get a graph or map, an outline, words, documents and a search; embeddings a map; others their summary,
    parameters and tables, and pictures of the rows of DATA. Nothing in the model file is run.
    """
    with reporting():
        target = output if output is not None else model.with_suffix(".html")
        check_output(target, force, (".html", ".htm"))
        from pluri.cli.describing import naming
        from pluri.cli.options import remembered_columns
        from pluri.cli.own_process import load_skops
        from pluri.cli.topics.telling import coherence_of
        from pluri.io import load, read_info
        from pluri.report import model_report, topic_report

        load_skops()
        notes = read_info(model).notes
        estimator = load(model)
        asked = options.selection(columns, sequence, lengths, None, header)
        if data is not None:
            from pluri.cli.querying import lengths_of, opened

            estimator, observations = opened(model, data, asked, "fit")
            first = next(iter(observations.batches()))
            with naming(estimator, observations.columns):
                try:
                    model_report(estimator, target, title=title, X=first.X, **lengths_of(first))
                except ValueError as error:
                    raise ValueError(str(error).replace("X must not be given", "DATA must not be given")) from error
        elif hasattr(estimator, "topic_graph"):
            heading = title or (f"Topics of {notes['corpus']}" if "corpus" in notes else None)
            coherence = coherence_of(notes, estimator)
            scores = None if coherence is None else {"coherence": coherence}
            topic_report(estimator, target, title=heading, facts=_facts(notes), scores=scores)
        else:
            with naming(estimator, remembered_columns(estimator, notes)):
                model_report(estimator, target, title=title)
        note(f"page written to {target}")
        if open_page:
            import webbrowser

            webbrowser.open(target.absolute().as_uri())


def _facts(notes: Mapping[str, Any]) -> dict[str, Any]:
    """What ``pluri topics`` has noted of the documents."""
    return {name: value for name, value in notes.items() if isinstance(value, int | float | str)}
