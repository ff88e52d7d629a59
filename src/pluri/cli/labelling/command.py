"""``pluri label``: serve a page on which the rows of a file are labelled by keyboard."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import note, reporting, show
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError

#: What a model with probabilities can be asked.
STRATEGIES = ("margin", "entropy", "least_confident", "random")

Pool = Annotated[Path, typer.Argument(metavar="POOL.csv", help="Rows to label: a table of texts, numbers or pixels.")]
Classes = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Names of the classes; by default those in the column of labels.")
]
LabelColumn = Annotated[
    str, typer.Option("--label-column", metavar="COLUMN", help="Column of labels: of those known, and of the export.")
]
Text = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column of text; by default the longest, if no column has numbers.")
]
Picture = Annotated[
    str | None,
    typer.Option(metavar="WIDTHxHEIGHT", help="Show the columns of numbers as the pixels of a grey picture."),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File of labels to go on with or make; POOL.labels.jsonl by default."),
]
Export = Annotated[
    Path | None, typer.Option(metavar="FILE.csv", help="Write the rows with the labels so far, and end.")
]


def label(
    pool: Pool,
    classes: Classes = None,
    label_column: LabelColumn = "label",
    text: Text = None,
    picture: Picture = None,
    strategy: Annotated[str, typer.Option(help=f"Which items come first: {', '.join(STRATEGIES)}.")] = "margin",
    output: Output = None,
    export: Export = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of 127.0.0.1; 0 for any that is free.")] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of random choices.")] = 0,
    header: options.Header = None,
    force: options.Force = False,
) -> None:
    """Label the rows of a file on a page, by keyboard, those first that teach a model most.

    The page is served to this computer alone (127.0.0.1). Every label is on the disk before the next item is shown; end
    with Ctrl-C, and begin again with the same command. A model learns in the background: logistic regression of words
    (TF-IDF) or of standardised numbers.
    """
    with reporting():
        if strategy not in STRATEGIES:
            raise UsageError(f"--strategy must be one of {', '.join(STRATEGIES)}, got {strategy!r}")
        check_output(export, force, (".csv",), "--export")
        from pluri.cli.labelling.reading import read_items
        from pluri.decisions.labelling.journal import LabelJournal

        items = read_items(pool, label_column, text, _size(picture), header)
        names = _classes(classes, items.known)
        place = output or pool.with_name(pool.stem + ".labels.jsonl")
        journal = LabelJournal(place, items.pool.digest, names)
        if export is not None:
            from pluri.cli.labelling.reading import write_labelled

            write_labelled(export, pool, header, label_column, items.known | journal.labels())
            note(f"{len(items.pool)} rows, {len(items.known | journal.labels())} with labels, written to {export}")
            journal.close()
            return
        _serve(items, names, journal, pool.name, strategy=strategy, seed=seed, port=port, browser=browser)


def _size(picture: str | None) -> tuple[int, int] | None:
    if picture is None:
        return None
    found = re.fullmatch(r"([1-9]\d{0,3})[xX]([1-9]\d{0,3})", picture)
    if found is None:
        raise UsageError(f"--picture must be of the form WIDTHxHEIGHT, such as 28x28, got {picture!r}")
    return int(found[1]), int(found[2])


def _classes(given: str | None, known: dict[int, str]) -> list[str]:
    from pluri.report.labelling.page import check_classes

    seen = sorted(set(known.values()))
    names = [name.strip() for name in given.split(",")] if given is not None else seen
    unknown = [name for name in seen if name not in names]
    if unknown:
        raise UsageError(f"--classes must have all labels of the file, got none named {', '.join(unknown)}")
    if not names:
        raise UsageError("--classes must name the classes, such as --classes yes,no, since no row has a label yet")
    try:
        check_classes(names)
    except ValueError as error:
        raise UsageError(f"--{error}") from error
    return names


def _serve(items: Any, names: list[str], journal: Any, title: str, **settings: Any) -> None:
    """Serve the page until Ctrl-C."""
    from pluri.decisions.labelling.session import LabelSession
    from pluri.report.labelling.server import LabelServer

    session = LabelSession(
        items.pool, names, journal, known=items.known, strategy=settings["strategy"], random_state=settings["seed"]
    )
    with session:
        try:
            server = LabelServer(session, title, settings["port"])
        except OSError as error:
            raise UsageError(f"--port must be free, got {settings['port']}: {error.strerror}") from error
        show(server.url)
        note(f"labels are kept in {journal.path}; end with Ctrl-C")
        if settings["browser"]:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            pass  # the usual end
        finally:
            server.server_close()
    state = session.state()
    note(f"{state['n_labels']} of {state['n_items']} rows have labels, in {journal.path}")
