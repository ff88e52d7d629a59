"""Comma-separated files as columns: numbers where all cells are numbers, text where they are not.

An empty cell is missing (NaN, or None among text); in a column of numbers so are NA, NaN, null and none. The file is
read in pieces, so that memory holds little more than the finished columns.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none"})
DELIMITERS = ",;\t"
CHUNK = 65_536

Columns = dict[str, NDArray[Any]]


class _TextFound(Exception):
    """A column that began with numbers goes on with text."""

    def __init__(self, name: str) -> None:
        self.name = name


def read_csv(path: Path, *, header: bool | None = None, text: Collection[str] = ()) -> Columns:
    """Columns of a file by name, in order.

    Parameters
    ----------
    path : Path
        File in UTF-8; the delimiter is the most frequent of comma, semicolon and tab in the first line.
    header : bool, optional
        Whether the first line holds names; by default it does unless all its cells are numbers. Without names the
        columns are "0", "1", ...
    text : collection of str
        Columns not to be read as numbers even if they could be.

    Returns
    -------
    dict of str to array of shape (n_rows,)
        float64, or objects (str and None).
    """
    as_text = set(text)
    while True:
        try:
            return _read(path, header, as_text)
        except _TextFound as found:
            as_text.add(found.name)  # begin again: the cells read so far are numbers, not what was written
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be text in UTF-8, got other bytes at position {error.start}") from error
        except csv.Error as error:
            raise ValueError(f"{path} must be a table of comma-separated values: {error}") from error


def csv_names(path: Path, header: bool | None = None) -> list[str]:
    """Names of the columns, from the first line alone; see `read_csv`."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return _begin(file, path, header)[0]
    except (UnicodeDecodeError, csv.Error, ValueError):
        return []  # `read_csv` says what is wrong


def _begin(file: TextIO, path: Path, header: bool | None) -> tuple[list[str], Iterator[list[str]]]:
    """Names of the columns and the rows below them."""
    first_line = file.readline()
    file.seek(0)
    rows = _rows(csv.reader(file, delimiter=max(DELIMITERS, key=first_line.count)), path)
    first = next(rows, None)
    if first is None:
        raise ValueError(f"{path} must have at least one row, got an empty file")
    named = not all(is_number(cell) for cell in first) if header is None else header
    names = [cell.strip() for cell in first] if named else [str(place) for place in range(len(first))]
    if len(set(names)) != len(names):
        raise ValueError(f"{path} must have columns of different names, got {', '.join(names)}")
    return names, rows if named else chain([first], rows)


def _read(path: Path, header: bool | None, as_text: set[str]) -> Columns:
    with open(path, encoding="utf-8-sig", newline="") as file:
        names, rows = _begin(file, path, header)
        parts: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
        while chunk := list(islice(rows, CHUNK)):
            _append(parts, chunk, as_text)
    columns = {name: np.concatenate(arrays) for name, arrays in parts.items() if arrays}
    if not columns:
        raise ValueError(f"{path} must have at least one row, got only the names {', '.join(names)}")
    return columns


def _rows(reader: Any, path: Path) -> Iterator[list[str]]:
    """Rows of equal width; a blank line is a missing cell where there is one column, else (and at the end) nothing."""
    width = 0
    blank = 0
    for row in reader:
        if not row:
            blank += 1
            continue
        if width and len(row) != width:
            raise ValueError(f"line {reader.line_num} of {path} must have {width} cells, got {len(row)}")
        if width == 1:
            yield from [[""]] * blank
        width, blank = len(row), 0
        yield row


def _append(parts: dict[str, list[NDArray[Any]]], rows: list[list[str]], as_text: set[str]) -> None:
    for (name, arrays), cells in zip(parts.items(), zip(*rows)):
        numbers = None if name in as_text else _numbers(cells)
        if numbers is None and name not in as_text:
            raise _TextFound(name)
        if numbers is None:
            numbers = np.empty(len(cells), dtype=object)
            numbers[:] = [cell if cell else None for cell in cells]
        arrays.append(numbers)


def is_number(cell: str) -> bool:
    """Whether a cell is a number, or says that there is none."""
    return _numbers((cell,)) is not None


def _numbers(cells: tuple[str, ...]) -> NDArray[np.float64] | None:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        pass
    try:
        return np.array(["nan" if cell.strip().lower() in MISSING else cell for cell in cells], dtype=np.float64)
    except ValueError:
        return None
