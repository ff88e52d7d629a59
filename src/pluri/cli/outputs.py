"""Result files: never replaced by accident, never half-written."""

from __future__ import annotations

import csv
import os
import sys
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray


def check_output(path: Path | None, force: bool, suffixes: Sequence[str] = (), option: str = "--output") -> None:
    """Refuse a place that cannot be written, or a file that is there already; called before the work is done."""
    if path is None:
        return
    if path.is_dir():
        raise UsageError(f"{option} must name a file, got the folder {str(path)!r}")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{option} must lie in an existing folder, got {str(path)!r}")
    if path.exists() and not force:
        raise UsageError(f"{option} must name a new file, got {str(path)!r}, which exists: add --force to replace it")
    if suffixes and path.suffix.lower() not in suffixes:
        raise UsageError(f"{option} must be a file of type {', '.join(suffixes)}, got {path.name!r}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its place at the end, if nothing went wrong."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_table(path: Path | None, names: Sequence[str], blocks: Iterable[Sequence[NDArray[Any]]]) -> int:
    """Write columns, block by block, as ``.csv`` (stdout if there is no path) or ``.npy``; return the number of rows.

    A column of a block may have two axes; it then stands for several names.
    """
    if path is None:
        return _write_csv(sys.stdout, names, blocks)
    with replacing(path) as temporary:
        if path.suffix.lower() == ".npy":
            import numpy as np

            rows = [np.column_stack(list(block)) for block in blocks]
            table = np.concatenate(rows) if rows else np.empty((0, len(names)))
            with open(temporary, "wb") as file:
                np.save(file, table.astype(str) if table.dtype == object else table, allow_pickle=False)
            return len(table)
        with open(temporary, "w", newline="", encoding="utf-8") as text:
            return _write_csv(text, names, blocks)


def _write_csv(file: TextIO, names: Sequence[str], blocks: Iterable[Sequence[NDArray[Any]]]) -> int:
    writer = csv.writer(file, lineterminator="\n")
    n_rows = 0
    for block in blocks:
        if n_rows == 0:  # not before there is something to write: the first block may fail
            writer.writerow(names)
        columns = [column for part in block for column in (part.T if part.ndim == 2 else [part])]
        writer.writerows(zip(*(column.tolist() for column in columns)))
        n_rows += len(columns[0])
    return n_rows
