"""Arguments that several commands share."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pluri.cli.console import note
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from pluri.cli.families import Family
    from pluri.cli.observations import Observations, Selection

Data = Annotated[Path, typer.Argument(metavar="DATA", help="File of type .csv, .tsv, .txt, .npy or .parquet.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL.skops", help="File written by [bold]pluri fit[/].")]
Columns = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Columns to use; all others but those below by default.")
]
Sequence = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Column that identifies the sequence of each row.")
]
Lengths = Annotated[
    Path | None, typer.Option(metavar="FILE", help="File with the length of each sequence, instead of --sequence.")
]
Label = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with known labels.")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether a text file begins with names; by default unless all numbers."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output file if it exists.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

#: Numbers as spreadsheets of many countries write them.
COMMA = re.compile(r"[+-]?\d[\d ._'\u00a0]*,\d+([eE][+-]?\d+)?|[+-]?\d{1,3}(,\d{3})+(\.\d+)?")


def selection(
    columns: str | None, sequence: str | None, lengths: Path | None, label: str | None, header: bool | None
) -> Selection:
    """The columns as the reader of data files takes them."""
    from pluri.cli.observations import Selection

    names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
    return Selection(names, sequence, lengths, label, header)


def remembered_columns(estimator: Any, notes: Mapping[str, Any]) -> list[str]:
    """Names of the columns that a saved model was fitted to, by the command or as a data frame; none if unknown."""
    from pluri.cli.registry import fitted_part

    noted = notes.get("columns")
    if isinstance(noted, list):
        return [str(name) for name in noted]
    named: Any = getattr(estimator, "feature_names_in_", getattr(fitted_part(estimator), "feature_names_in_", ()))
    return [str(name) for name in named]


def columns_of_fit(selection: Selection, remembered: list[str], present: list[str]) -> Selection:
    """The selection with the columns of the fit, in their order; an error if a file has only some of them."""
    import warnings
    from dataclasses import replace

    # Columns are matched by name here; the models see arrays.
    warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
    numbered = all(name.isdigit() for name in remembered)
    if selection.columns is not None:
        same = not numbered and set(selection.columns) == set(remembered)
        return replace(selection, columns=remembered) if same else selection
    if not remembered:
        return selection
    missing = [name for name in remembered if name not in present]
    if not missing:
        return replace(selection, columns=remembered)
    if len(missing) < len(remembered) and not numbered:
        raise ValueError(
            f"DATA must have the columns that the model was fitted to ({', '.join(remembered)}), got none named "
            f"{missing[0]!r}; --columns says which to take in their places"
        )
    if not numbered and not all(name.isdigit() for name in present):
        note(f"warning: DATA has none of the columns of the fit ({', '.join(remembered)}): its own are taken, in order")
    return selection


def predicted_columns(n_columns: int, columns: list[str]) -> list[str]:
    """Names of columns that a model predicts: those of the data, if it predicts as many."""
    return list(columns) if n_columns == len(columns) else [f"y{place}" for place in range(n_columns)]


def refuse_sequences(selection: Selection, family: Family, model: str) -> None:
    """Only some families have sequences."""
    for option, given in (("--sequence", selection.sequence), ("--lengths", selection.lengths)):
        if given is not None and not family.ordered:
            raise UsageError(f"{option} must not be given for {model}, whose rows do not depend on each other")


def refuse_text(observations: Observations, model: str) -> None:
    """Say which column is to blame."""
    from pluri.cli.tables import is_number

    for place, name in enumerate(observations.columns):
        column: Any = observations.X[:, place]
        for row, cell in enumerate(column):
            if isinstance(cell, str) and not is_number(cell):
                remedy = "write numbers as 1234.5" if COMMA.fullmatch(cell.strip()) else "choose others with --columns"
                raise ValueError(
                    f"column {name!r} must hold numbers for {model}, got {cell!r} in row {row + 1}: {remedy}"
                )
    raise ValueError(f"the columns must hold numbers for {model}, got text")
