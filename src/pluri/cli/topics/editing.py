"""``pluri edit-topics``: names, mergers and fewer topics for a saved model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import note, print_json, reporting, show
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError

Model = Annotated[Path, typer.Argument(metavar="MODEL.skops", help="File of a topic model, as pluri topics writes it.")]
Edits = Annotated[
    Path | None,
    typer.Argument(metavar="EDITS.json", help="File of edits, as the page about the model exports it."),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="File for the edited model; none is written without it.")
]
Report = Annotated[Path | None, typer.Option("--report", "-r", help="File for a page about the edited model.")]
Reduce = Annotated[
    int | None,
    typer.Option(min=1, help="Then merge topics, always the two that lose least, until so many are left."),
]
Undo = Annotated[int, typer.Option(min=0, help="Before all else, take back so many edits that the model has.")]
Tree = Annotated[bool, typer.Option("--tree", help="Print the topics as a tree: branches with names, shares, words.")]


def edit_topics(
    model: Model,
    edits: Edits = None,
    output: Output = None,
    report: Report = None,
    reduce: Reduce = None,
    undo: Undo = 0,
    tree: Tree = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Edit the topics of a saved model: names, mergers, fewer of them, or a tree to read.

    [bold]pluri edit-topics letters.skops edits.json -o edited.skops -r edited.html[/] applies what the page exported.

    [bold]pluri edit-topics letters.skops --reduce 12 --tree[/] merges topics until 12 are left, and prints a tree.

    The file of edits is JSON: [bold]{"edits": [{"edit": "rename", "topic": 3, "name": "hockey"},
    {"edit": "merge", "topics": [1, 4]}, {"edit": "drop", "topic": 2}]}[/], with topics counted as in the model.
    """
    with reporting():
        check_output(output, force, (".skops",))
        check_output(report, force, (".html", ".htm"), "--report")
        from pluri.cli.own_process import load_skops
        from pluri.io import load, read_info

        load_skops()
        notes = read_info(model).notes
        estimator = load(model)
        if not hasattr(estimator, "topic_graph"):
            raise UsageError(f"MODEL.skops must be a topic model, got {type(estimator).__name__}")
        n_before = len(getattr(estimator, "edits_", []))
        try:
            _edit(estimator, edits, reduce, undo)
        except (TypeError, ValueError) as error:
            raise UsageError(str(error)) from error
        _tell(estimator, tree, as_json)
        changed = len(getattr(estimator, "edits_", [])) != n_before or undo > 0
        _write(estimator, output, report, _notes_left(notes, changed))
        if output is None and report is None and changed:
            note("nothing was written: -o keeps the edited model, -r writes a page about it")


def _edit(estimator: Any, edits: Path | None, reduce: int | None, undo: int) -> None:
    for _ in range(undo):
        estimator.undo()
    if edits is not None:
        from pluri.topics import apply_edits

        apply_edits(estimator, edits)
    if reduce is not None:
        if not hasattr(estimator, "reduce"):
            raise TypeError(f"--reduce must be given for flat topics (lda, hdp), got {type(estimator).__name__}")
        estimator.reduce(reduce)


def _tell(estimator: Any, tree: bool, as_json: bool) -> None:
    from pluri.cli.topics.telling import topic_lines

    if as_json:
        rows = estimator.topic_table()
        told = {"model": type(estimator).__name__, "edits": getattr(estimator, "edits_", []), "topics": rows}
        if tree:
            told["tree"] = _tree_of(estimator).to_dict()
        print_json(told)
        return
    show(_tree_of(estimator).summary() if tree else topic_lines(estimator))


def _tree_of(estimator: Any) -> Any:
    from pluri.topics import TopicTree

    try:
        return TopicTree.of(estimator)
    except ValueError as error:
        raise UsageError(f"--tree: {error}") from error


def _notes_left(notes: Mapping[str, Any], changed: bool) -> dict[str, Any]:
    """What is still true of the edited model: not the coherence of topics that were."""
    return {name: value for name, value in notes.items() if not (changed and name == "coherence")}


def _write(estimator: Any, output: Path | None, report: Path | None, notes: dict[str, Any]) -> None:
    if output is not None:
        from pluri.io import save

        save(estimator, output, notes=notes)
        note(f"model written to {output}")
    if report is not None:
        from pluri.report import topic_report

        facts = {name: value for name, value in notes.items() if isinstance(value, int | float | str)}
        title = f"Topics of {notes['corpus']}" if "corpus" in notes else None
        topic_report(estimator, report, title=title, facts=facts)
        note(f"page written to {report}")
