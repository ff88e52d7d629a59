"""A data file as what models take: observations, lengths of sequences, labels.

``.npy`` files are memory-mapped, Parquet files are streamed where the model allows it; both may be larger than memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.cli.tables import Columns, csv_names, read_csv

SUFFIXES = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".npy": "npy", ".parquet": "parquet", ".pq": "parquet"}

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Selection:
    """Which columns of a file play which part; None is the default.

    Attributes
    ----------
    columns : the features; all other columns by default
    sequence : column whose value changes where a new sequence begins
    lengths : file with the lengths of the sequences
    label : column with known labels
    header : whether a text file begins with names; told from its first line by default
    text : whether features are words even if all of them could be numbers
    """

    columns: Sequence[str] | None = None
    sequence: str | None = None
    lengths: Path | None = None
    label: str | None = None
    header: bool | None = None
    text: bool = False


@dataclass(frozen=True)
class Observations:
    """Data in the form of `fit`: an array (or a source of batches), and what belongs to its rows."""

    X: Any
    columns: list[str]
    lengths: Integers | None = None
    labels: NDArray[Any] | None = None
    streamed: bool = False

    @property
    def is_text(self) -> bool:
        return not self.streamed and self.X.dtype.kind in "OU"

    def batches(self) -> Iterator[Observations]:
        """The data in pieces that fit in memory: whole sequences."""
        if not self.streamed:
            yield self
            return
        for lazy in self.X.batches():
            batch = lazy.load()
            yield replace(self, X=batch.X, lengths=batch.lengths, labels=batch.labels, streamed=False)


def read_observations(path: Path, selection: Selection, *, stream: bool = True) -> Observations:
    """Open a data file.

    Parameters
    ----------
    path : Path
        Its suffix tells the format; a folder is read as Parquet.
    selection : Selection
        The columns to use.
    stream : bool, default=True
        Whether a Parquet file may be read in batches, which needs numbers and a column of sequences.
    """
    if not path.exists():
        raise FileNotFoundError(f"data must name an existing file, got {str(path)!r}")
    if selection.sequence is not None and selection.lengths is not None:
        raise ValueError("--sequence and --lengths must not be given together")
    kind = "parquet" if path.is_dir() else SUFFIXES.get(path.suffix.lower())
    if kind == "npy":
        return _from_npy(path, selection)
    if kind == "parquet":
        return _from_parquet(path, selection, stream)
    if kind == "csv":
        text = [] if selection.sequence is None else [selection.sequence]
        columns = read_csv(path, header=selection.header, text=text)
        chosen = _choose(list(columns), selection, path)
        if selection.text or len({columns[name].dtype for name in chosen}) > 1:
            # Words in some of the columns: what looks like a number in the others is a word too, as it is written.
            columns = read_csv(path, header=selection.header, text=[*text, *chosen])
        return _from_columns(columns, selection, path)
    raise ValueError(f"data must be a file of type {', '.join(SUFFIXES)}, got {path.name!r}")


def column_names(path: Path, header: bool | None = None) -> list[str]:
    """Names of the columns of a data file, as far as they can be told without reading it all; none if they cannot."""
    kind = "parquet" if path.is_dir() else SUFFIXES.get(path.suffix.lower())
    if not path.exists() or kind is None:
        return []
    if kind == "csv":
        return csv_names(path, header)
    if kind == "npy":
        return [str(place) for place in range(_open_npy(path).shape[1])]
    return list(_open_parquet(path).schema.names)


def _open_npy(path: Path) -> NDArray[Any]:
    try:
        X = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} must be a .npy file with numbers or text, got something else") from error
    if not isinstance(X, np.ndarray) or X.ndim not in (1, 2):
        raise ValueError(f"{path} must hold one array with one or two axes, got {getattr(X, 'shape', 'an archive')}")
    return X.reshape(-1, 1) if X.ndim == 1 else X


def _open_parquet(path: Path) -> Any:
    from pluri.engine.extras import import_extra

    if path.is_dir() and not _holds_parquet(path):
        raise ValueError(f"data must name a file or a folder of Parquet files, got {str(path)!r}, a folder without any")
    arrow = import_extra("pyarrow.dataset", "Reading Parquet files", extra="dask")
    try:
        return arrow.dataset(str(path), format="parquet", partitioning="hive")
    except (ValueError, OSError) as error:
        raise ValueError(f"{path} must be a Parquet file or a folder of them, got something else") from error


def _holds_parquet(folder: Path) -> bool:
    """Whether any file below is by its name a Parquet file, or may be one that has no suffix."""
    return any(
        SUFFIXES.get(path.suffix.lower(), "parquet" if not path.suffix else "") == "parquet"
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith((".", "_"))
    )


def _from_npy(path: Path, selection: Selection) -> Observations:
    X = _open_npy(path)
    names = [str(place) for place in range(X.shape[1])]
    chosen = _choose(names, selection, path)
    places = [names.index(name) for name in chosen]
    first, last = places[0], places[-1]
    # A slice stays in the file, a list of places is copied into memory.
    X_chosen = X[:, first : last + 1] if places == list(range(first, last + 1)) else X[:, places]
    part = {name: np.array(X[:, names.index(name)]) for name in (selection.sequence, selection.label) if name}
    return Observations(X_chosen, chosen, _lengths(part, selection, len(X)), _labels(part, selection))


def _from_parquet(path: Path, selection: Selection, stream: bool) -> Observations:
    from pluri.engine import ParquetSource

    dataset = _open_parquet(path)
    import pyarrow.types as kinds

    schema = dataset.schema
    chosen = _choose(schema.names, selection, path)
    types = [schema.field(name).type for name in chosen]
    numeric = [kinds.is_integer(kind) or kinds.is_floating(kind) for kind in types]
    whole = selection.label is None or kinds.is_integer(schema.field(selection.label).type)
    if stream and selection.sequence is not None and all(numeric) and whole and not selection.text:
        source = ParquetSource(dataset, chosen, selection.sequence, label=selection.label)
        return Observations(source, chosen, streamed=True)
    wanted = dict.fromkeys([*chosen, *(name for name in (selection.sequence, selection.label) if name)])
    table = dataset.to_table(columns=list(wanted))
    return _from_columns({name: _from_arrow(table.column(name)) for name in wanted}, selection, path)


def _from_arrow(column: Any) -> NDArray[Any]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
    cells = np.empty(len(column), dtype=object)
    cells[:] = [None if cell is None else str(cell) for cell in column.to_pylist()]
    return cells


def _from_columns(columns: Columns, selection: Selection, path: Path) -> Observations:
    chosen = _choose(list(columns), selection, path)
    parts = [columns[name] for name in chosen]
    if selection.text or any(part.dtype == object for part in parts):
        X: NDArray[Any] = np.empty((len(parts[0]), len(parts)), dtype=object)
        for place, part in enumerate(parts):
            X[:, place] = part if part.dtype == object else [None if cell != cell else _word(cell) for cell in part]
    else:
        X = np.column_stack(parts)
    return Observations(X, chosen, _lengths(columns, selection, len(X)), _labels(columns, selection))


def _word(number: float) -> str:
    return str(int(number)) if number == int(number) else str(number)


def _choose(names: list[str], selection: Selection, path: Path) -> list[str]:
    """Names of the features, after a check that every column asked for is there."""
    wanted = [*(selection.columns or ()), *(name for name in (selection.sequence, selection.label) if name)]
    for name in wanted:
        if name not in names:
            raise ValueError(f"{path} must have a column {name!r}, got {', '.join(names)}")
    chosen = list(selection.columns or (name for name in names if name not in wanted))
    if not chosen:
        raise ValueError(f"{path} must have a column of observations besides {', '.join(wanted)}, got none")
    return chosen


def _lengths(columns: Columns, selection: Selection, n_rows: int) -> Integers | None:
    if selection.lengths is not None:
        return _read_lengths(selection.lengths, n_rows)
    if selection.sequence is None:
        return None
    cells = columns[selection.sequence]
    absent = np.array([cell is None or cell != cell for cell in cells], dtype=bool)
    if absent.any():
        raise ValueError(
            f"column {selection.sequence!r} must have no missing cell, got one in row {absent.argmax() + 1}"
        )
    begins = np.flatnonzero(np.append(True, cells[1:] != cells[:-1]))
    identifiers = cells[begins].tolist()
    if len(set(identifiers)) != len(identifiers):
        again = next(item for place, item in enumerate(identifiers) if item in identifiers[:place])
        raise ValueError(
            f"rows of a sequence must follow each other, got {selection.sequence} = {again} again after another "
            f"sequence: sort the file by {selection.sequence!r}"
        )
    return np.diff(begins, append=n_rows).astype(np.int64)


def _read_lengths(path: Path, n_rows: int) -> Integers:
    if not path.is_file():
        raise FileNotFoundError(f"--lengths must name an existing file, got {str(path)!r}")
    try:
        if path.suffix == ".npy":
            lengths = np.load(path, allow_pickle=False)
            if lengths.dtype.kind not in "iu":
                raise ValueError("not integers")
        else:
            lengths = np.array([int(word) for word in path.read_text().replace(",", " ").split()], dtype=np.int64)
    except ValueError as error:
        raise ValueError(f"--lengths must name a file of integers, got something else in {str(path)!r}") from error
    if int(lengths.sum()) != n_rows:
        raise ValueError(f"--lengths must sum to the number of rows ({n_rows}), got the sum {int(lengths.sum())}")
    return lengths.astype(np.int64)


def _labels(columns: Columns, selection: Selection) -> NDArray[Any] | None:
    """Labels as whole numbers or text; a missing one is None, which models read as unknown."""
    if selection.label is None:
        return None
    cells = columns[selection.label]
    if cells.dtype.kind in "iuU":
        return cells
    if cells.dtype.kind == "f":
        absent = np.isnan(cells)
        if not np.array_equal(cells[~absent], np.floor(cells[~absent])):
            raise ValueError(f"column {selection.label!r} must hold labels (whole numbers or text), got other numbers")
        whole = np.where(absent, 0, cells).astype(np.int64)
        if not absent.any():
            return whole
        cells = whole.astype(object)
        cells[absent] = None
    return cells
