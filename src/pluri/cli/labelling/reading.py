"""A table as items to label, and a table with labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pluri.cli.registry import UsageError
from pluri.cli.tables import Columns, csv_names, read_csv
from pluri.decisions.labelling.pool import LabelPool


class Items(NamedTuple):
    """Rows to label, and the labels that are known."""

    pool: LabelPool
    known: dict[int, str]


def read_items(
    path: Path, label_column: str, text: str | None, size: tuple[int, int] | None, header: bool | None
) -> Items:
    """Read a table; labels are text, also if they look like numbers."""
    as_text = [name for name in (label_column, text) if name is not None]
    columns = read_csv(path, header=header, text=[name for name in as_text if name in csv_names(path, header)])
    labels = columns.get(label_column)
    known = {} if labels is None else {row: str(one).strip() for row, one in enumerate(labels) if one is not None}
    known = {row: one for row, one in known.items() if one}
    rest = {name: column for name, column in columns.items() if name != label_column}
    if text is not None and text not in rest:
        raise UsageError(f"--text must be one of the columns {', '.join(rest)}, got {text!r}")
    if text is not None and size is not None:
        raise UsageError("--picture must not be given together with --text")
    numbers = {name: column for name, column in rest.items() if column.dtype.kind == "f"}
    if size is not None:
        if len(numbers) != size[0] * size[1]:
            raise UsageError(
                f"--picture {size[0]}x{size[1]} must be the number of columns of numbers, got {len(numbers)} of them"
            )
        return Items(LabelPool.of_pictures(np.column_stack([*numbers.values()]), *size), known)
    if text is None and not numbers:
        text = max(rest, key=lambda name: sum(len(one or "") for one in rest[name]), default=None)
    if text is not None:
        beside = {name: column for name, column in rest.items() if name != text}
        return Items(LabelPool.of_texts(rest[text].tolist(), _plain(beside)), known)
    if not rest:
        raise ValueError(f"{path} must have columns beside {label_column}, got none")
    return Items(LabelPool.of_columns(_plain(rest)), known)


def _plain(columns: Columns) -> dict[str, Any]:
    return {name: column.tolist() if column.dtype.kind == "O" else column for name, column in columns.items()}


def write_labelled(
    path: Path, pool: Path, header: bool | None, label_column: str, labels: dict[int, str]
) -> None:  # fmt: skip
    """Write the table with a column of labels at its end, empty where there is none; other cells as they were."""
    import csv
    import io

    from pluri.validation import replacing

    # As text: an identifier with leading zeros, or too long for a float, stays what it is.
    columns = read_csv(pool, header=header, text=csv_names(pool, header))
    n_rows = len(next(iter(columns.values())))
    rest = {name: column for name, column in columns.items() if name != label_column}
    with replacing(path, "--export") as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        writer = csv.writer(text)
        writer.writerow([*rest, label_column])
        for row in range(n_rows):
            cells = ["" if column[row] is None else column[row] for column in rest.values()]
            writer.writerow([*cells, labels.get(row, "")])
        text.detach()
