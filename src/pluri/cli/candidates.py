"""What ``pluri select`` chooses among: rows of numbers or texts of a data file, their qualities and their names.

Files of JSON objects, one in each line, are read as columns: numbers where all values are numbers, text otherwise. A
value that is a list of numbers (an embedding) becomes one column for each of its places: ``name.0``, ``name.1``, ... A
name that an object lacks, and null, are missing (NaN, or None among text).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.cli import options
from pluri.cli.observations import SUFFIXES, Observations, Selection, column_names, read_observations

JSON_LINES = (".jsonl", ".ndjson")
STDIN = Path("-")


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


@dataclass(frozen=True)
class Roles:
    """Which columns play which part.

    Attributes
    ----------
    columns : the numbers to compare; all columns that play no other part by default
    text : the text to compare, instead of numbers; a missing one is empty
    quality : a non-negative factor for each row
    id : the names of the rows; their numbers by default
    header : whether a text file begins with names; told from its first line by default
    """

    columns: list[str] | None = None
    text: str | None = None
    quality: str | None = None
    id: str | None = None
    header: bool | None = None

    @property
    def special(self) -> list[str]:
        """Columns that are compared only if they are asked for by name."""
        return [name for name in (self.text, self.quality, self.id) if name is not None]


@dataclass(frozen=True)
class Candidates:
    """Rows (an array of numbers, or a list of texts), and what belongs to them.

    Attributes
    ----------
    rows : what is compared
    columns : the names of the columns of the rows
    quality : one number for each row, or None
    ids : the names of the rows
    """

    rows: Any
    columns: list[str]
    quality: NDArray[np.float64] | None
    ids: list[Any]


def read_candidates(data: Path, roles: Roles) -> Candidates:
    """The rows of a file, or of the standard input if it is called "-"; what cannot be compared is refused."""
    with _opened(data) as path:
        if not path.exists():
            raise FileNotFoundError(f"data must name an existing file, got {str(path)!r}")
        suffix = path.suffix.lower()
        if not path.is_dir() and suffix not in SUFFIXES and suffix not in JSON_LINES:
            raise ValueError(f"data must be a file of type {', '.join([*SUFFIXES, *JSON_LINES])}, got {path.name!r}")
        found = _read_json_lines(path, roles) if suffix in JSON_LINES else _read_table(path, roles)
    if roles.text is None:
        refuse_missing(found.rows, found.columns)
    if None in found.ids:
        raise ValueError(f"column {roles.id!r} must have no missing cell, got one in row {_first(found.ids)}")
    if found.quality is not None:
        wrong = ~(np.isfinite(found.quality) & (found.quality >= 0))
        if wrong.any():
            row = int(wrong.argmax())
            raise _bad_quality(roles, f"{found.quality[row]:g}", row)
    return found


def _read_table(path: Path, roles: Roles) -> Candidates:
    """Rows of a table, which is read once for each part that columns play."""

    def read(names: list[str] | None, as_text: bool = False) -> Observations:
        return read_observations(path, Selection(names, header=roles.header, text=as_text), stream=False)

    chosen = [roles.text] if roles.text is not None else roles.columns
    if chosen is None and roles.special:
        chosen = [name for name in column_names(path, roles.header) if name not in roles.special]
        if not chosen:
            read(roles.special)  # says if one of them is not there
            raise _nothing_to_compare(path, roles)
    features = read(chosen, as_text=roles.text is not None)
    quality = None
    if roles.quality is not None:
        values = read([roles.quality]).X[:, 0]
        if values.dtype.kind in "OU":
            row = next(row for row, value in enumerate(values) if value is not None and not _is_number(value))
            raise _bad_quality(roles, repr(str(values[row])), row)
        quality = np.array(values, dtype=np.float64)
    ids: list[Any] = list(range(len(features.X)))
    if roles.id is not None:
        column = read([roles.id], as_text=True)
        is_parquet = path.is_dir() or SUFFIXES[path.suffix.lower()] == "parquet"
        ids = _parquet_ids(path, roles.id) if is_parquet else [_word(cell) for cell in column.X[:, 0].tolist()]
    if roles.text is not None:
        rows: Any = ["" if cell is None else str(cell) for cell in features.X[:, 0].tolist()]
        return Candidates(rows, features.columns, quality, ids)
    if features.is_text:
        options.refuse_text(features, "select without --text")
    return Candidates(np.array(features.X, dtype=np.float64), features.columns, quality, ids)


def _read_json_lines(path: Path, roles: Roles) -> Candidates:
    records = read_json_lines(path)
    names = names_of(records)
    for name in [*(roles.columns or ()), *roles.special]:
        if name not in names:
            raise ValueError(f"{path} must have a column {name!r}, got {', '.join(names)}")
    quality = None
    if roles.quality is not None:
        values = values_of(records, roles.quality)
        for row, value in enumerate(values):
            if not is_number(value):
                raise _bad_quality(roles, repr(value), row)
        quality = np.array(values, dtype=np.float64)
    ids = list(range(len(records))) if roles.id is None else values_of(records, roles.id)
    if roles.text is not None:
        texts = ["" if value is None else str(value) for value in values_of(records, roles.text)]
        return Candidates(texts, [roles.text], quality, ids)
    chosen = roles.columns or [name for name in names if name not in roles.special]
    if not chosen:
        raise _nothing_to_compare(path, roles)
    return Candidates(*numeric_columns(records, chosen), quality, ids)


def _parquet_ids(path: Path, name: str) -> list[Any]:
    """Ids as they are: as floating-point numbers large ones would change."""
    from pluri.cli.observations import _open_parquet

    cells: list[Any] = _open_parquet(path).to_table(columns=[name]).column(name).to_pylist()
    return cells


def refuse_missing(rows: NDArray[np.float64], columns: list[str]) -> None:
    wrong = ~np.isfinite(rows)
    if wrong.any():
        row, column = (int(place) for place in np.argwhere(wrong)[0])
        raise ValueError(
            f"rows must be complete to be compared, got {rows[row, column]:g} in row {row + 1} of column "
            f"{columns[column]!r}, and {int(wrong.any(axis=1).sum())} such rows in all: pluri impute fills empty cells"
        )


def _bad_quality(roles: Roles, got: str, row: int) -> ValueError:
    return ValueError(f"column {roles.quality!r} must hold finite, non-negative numbers, got {got} in row {row + 1}")


def _nothing_to_compare(path: Path, roles: Roles) -> ValueError:
    return ValueError(f"{path} must have a column to compare besides {', '.join(roles.special)}, got none")


def _first(cells: list[Any]) -> int:
    """Number of the first row without a value, from 1."""
    return cells.index(None) + 1


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _word(cell: Any) -> Any:
    """An id of an array, without the point of whole floats."""
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


@contextmanager
def _opened(data: Path) -> Iterator[Path]:
    """The file; what comes from the standard input is kept in a temporary one, whose beginning tells its format."""
    if data != STDIN:
        yield data
        return
    content = sys.stdin.buffer.read()
    is_json = content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    suffix = ".npy" if content.startswith(b"\x93NUMPY") else ".jsonl" if is_json else ".csv"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"input{suffix}"
        path.write_bytes(content)
        try:
            yield path
        except ValueError as error:
            raise ValueError(str(error).replace(str(path), "the standard input")) from error
