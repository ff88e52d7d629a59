"""``pluri select``: rows of a data file that are good and different."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from pluri.cli import options
from pluri.cli.console import json_text, note, printable, reporting
from pluri.cli.outputs import check_output
from pluri.cli.registry import UsageError, parse_value

METHODS = ("exact", "map", "mcmc")
KERNELS = ("rbf", "cosine", "linear", "exponential_cosine")

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="File of type .csv, .tsv, .txt, .jsonl, .npy or .parquet; - for the standard input."
    ),
]
Size = Annotated[
    str, typer.Option("--size", "-k", help="Number of rows, a share between 0 and 1, or auto for a random number.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter of the kernel, such as length_scale=0.5."),
]
Text = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column of text, compared by its words (TF-IDF).")]
Quality = Annotated[str | None, typer.Option(metavar="COLUMN", help="Column with a non-negative factor for each row.")]
Identifier = Annotated[
    str | None, typer.Option("--id", metavar="COLUMN", help="Column to print; row numbers from 0 by default.")
]


def select(
    data: Data,
    size: Size = "10",
    method: Annotated[
        str, typer.Option(help="exact (a random draw), map (the most probable rows, always the same) or mcmc.")
    ] = "exact",
    kernel: Annotated[
        str | None,
        typer.Option(help=f"Similarity: {', '.join(KERNELS)}; rbf for numbers and cosine for text by default."),
    ] = None,
    settings: Settings = None,
    columns: options.Columns = None,
    text: Text = None,
    quality: Quality = None,
    identifier: Identifier = None,
    standardize: Annotated[
        bool, typer.Option("--standardize", help="Scale each column of numbers to mean 0 and variance 1 first.")
    ] = False,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed; a new draw every time by default.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the result; - or none for the terminal.")
    ] = None,
    header: options.Header = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Choose rows of a data file that are good and different.

    Prints one id a line: in the order of choice for the method map, in the order of the file for others.
    """
    with reporting():
        place = None if output is None or str(output) == "-" else output
        check_output(place, force)
        if text is not None and (columns is not None or standardize):
            raise UsageError("--text must not be given together with --columns or --standardize")
        from pluri.cli.candidates import Roles, read_candidates

        chosen_kernel = kernel or ("rbf" if text is None else "cosine")
        selector = _selector(_number(size), method, chosen_kernel, settings or [], seed, text is not None)
        names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
        items = read_candidates(data, Roles(names, text, quality, identifier, header))
        rows = _words(items.rows) if text is not None else _standardized(items.rows) if standardize else items.rows
        try:
            found = selector.select(rows, ids=items.ids, quality=items.quality)
        except ValueError as error:
            raise ValueError(re.sub(r"^(give )?size\b", r"\1--size", str(error))) from error
        report = {
            "selected": found,
            "indices": selector.selected_indices_,
            "n_rows": len(items.ids),
            "kernel": chosen_kernel,
            "method": method,
            "log_prob": selector.log_prob_,
        }
        _write(place, f"{json_text(report)}\n" if as_json else "".join(f"{name}\n" for name in found))
        if place is not None:
            note(f"{len(found)} of {len(items.ids)} ids written to {place}")


def _number(size: str) -> int | float | None:
    """The number of rows as the selector takes it."""
    if size == "auto":
        return None
    value = parse_value(size)
    if (type(value) is int and value >= 1) or (type(value) is float and 0 < value < 1):
        number: int | float = value
        return number
    raise UsageError(f"--size must be a whole number of at least 1, a share between 0 and 1, or auto, got {size!r}")


def _selector(
    size: int | float | None, method: str, kernel: str, settings: list[str], seed: int | None, text: bool
) -> Any:
    if method not in METHODS:
        raise UsageError(f"--method must be one of {', '.join(METHODS)}, got {method!r}")
    if kernel not in KERNELS:
        raise UsageError(f"--kernel must be one of {', '.join(KERNELS)}, got {kernel!r}")
    if text and kernel == "rbf":
        raise UsageError("--kernel must be cosine, linear or exponential_cosine for --text, got 'rbf'")
    parameters = {}
    for setting in settings:
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or not name:
            raise UsageError(f"--set must have the form name=value, got {setting!r}")
        parameters[name] = parse_value(value)
    from pluri.processes.dpp.selection.selector import DPPSelector
    from pluri.processes.dpp.similarity import as_similarity

    try:
        as_similarity(kernel, **parameters)
    except ValueError as error:
        raise UsageError(f"--set: {error}") from error
    return DPPSelector(size, kernel=kernel, method=method, kernel_params=parameters, random_state=seed)


def _standardized(rows: Any) -> Any:
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(rows)


def _words(texts: list[str]) -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        return TfidfVectorizer().fit_transform(texts)
    except ValueError as error:
        raise ValueError(f"--text must name a column with words, got none: {error}") from error


def _write(place: Path | None, text: str) -> None:
    if place is None:
        sys.stdout.write(printable(text, lines=True) if sys.stdout.isatty() else text)
        return
    from pluri.validation import replacing

    with replacing(place, "--output") as file:
        file.write(text.encode("utf-8"))
