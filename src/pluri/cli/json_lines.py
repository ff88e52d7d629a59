"""Files of JSON objects, one in each line, as columns: numbers where all values are numbers, text where they are not.

A value that is a list of numbers (an embedding) becomes one column for each of its places: ``name.0``, ``name.1``, ...
A name that an object lacks, and null, are missing (NaN, or None among text).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Records = list[dict[str, Any]]


def read_json_lines(path: Path) -> Records:
    """The objects of a file in UTF-8; blank lines are skipped."""
    records: Records = []
    try:
        with open(path, encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    records.append(_record(line, number, path))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8, got other bytes at position {error.start}") from error
    if not records:
        raise ValueError(f"{path} must have at least one row, got an empty file")
    return records


def _record(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"line {number} of {path} must be a JSON object, got {line.strip()[:40]!r}") from error
    if not isinstance(record, dict):
        raise ValueError(f"line {number} of {path} must be a JSON object, got {line.strip()[:40]!r}")
    return record


def names_of(records: Records) -> list[str]:
    """All names, in the order of their first appearance."""
    return list(dict.fromkeys(name for record in records for name in record))


def values_of(records: Records, name: str) -> list[Any]:
    """The values of a name as they were written; None where it is absent."""
    return [record.get(name) for record in records]


def is_number(value: Any) -> bool:
    """Whether a value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def numeric_columns(records: Records, names: Iterable[str]) -> tuple[NDArray[np.float64], list[str]]:
    """Columns of numbers side by side, and their names; lists of numbers take several columns."""
    blocks, found = [], []
    for name in names:
        values = values_of(records, name)
        width = _width(values, name)
        rows = [[value] if width is None else [None] * width if value is None else value for value in values]
        for number, row in enumerate(rows, 1):
            for value in row:
                if not (value is None or is_number(value)):
                    raise ValueError(
                        f"column {name!r} must hold numbers, got {value!r} in row {number}: choose others with "
                        "--columns, or give --text"
                    )
        blocks.append(np.array(rows, dtype=np.float64))  # None becomes NaN
        found += [name] if width is None else [f"{name}.{place}" for place in range(width)]
    return np.concatenate(blocks, axis=1), found


def _width(values: list[Any], name: str) -> int | None:
    """Length of the lists of a column; None if it holds none."""
    widths = {len(value) for value in values if isinstance(value, list)}
    if not widths:
        return None
    single = [value for value in values if value is not None and not isinstance(value, list)]
    if len(widths) > 1 or single or 0 in widths:
        got = f"lengths {sorted(widths)}" if not single else f"also {single[0]!r}"
        raise ValueError(f"column {name!r} must hold lists of the same length everywhere, got {got}")
    return widths.pop()
