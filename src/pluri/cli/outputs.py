"""Result files: never replaced by accident, never half-written."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluri.cli.console import printable
from pluri.cli.registry import UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite
    from numpy.typing import NDArray


def check_output(path: Path | None, force: bool, suffixes: Sequence[str] = (), option: str = "--output") -> None:
    """Refuse a place that cannot be written, or a file that is there already; called before the work is done."""
    if path is None:
        return
    if suffixes and path.suffix.lower() not in suffixes:
        raise UsageError(f"{option} must be a file of type {', '.join(suffixes)}, got {path.name!r}")
    from pluri.validation import check_target, check_writable

    try:
        if check_target(path, option).exists() and not force:
            raise UsageError(
                f"{option} must name a new file, got {str(path)!r}, which exists: add --force to replace it"
            )
        check_writable(path, option)
    except UsageError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from error


def write_table(path: Path | None, names: Sequence[str], blocks: Iterable[Sequence[NDArray[Any]]]) -> int:
    """Write columns, block by block, as ``.csv`` (stdout if there is no path) or ``.npy``; return the number of rows.

    A column of a block may have two axes; it then stands for several names.
    """
    if path is None:
        return _write_csv(_Terminal() if sys.stdout.isatty() else sys.stdout, names, blocks)
    from pluri.validation import replacing

    with replacing(path, "--output") as file:
        if path.suffix.lower() == ".npy":
            import numpy as np

            rows = [np.column_stack(list(block)) for block in blocks]
            table = np.concatenate(rows) if rows else np.empty((0, len(names)))
            np.save(file, table.astype(str) if table.dtype == object else table, allow_pickle=False)
            return len(table)
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        try:
            return _write_csv(text, names, blocks)
        finally:
            text.detach()  # the file is not ours to close


class _Terminal:
    """Stdout where somebody looks at it: words of a file may not steer the terminal. Programs get them as they are."""

    def write(self, text: str) -> int:
        return sys.stdout.write(printable(text, lines=True))


def _write_csv(file: SupportsWrite[str], names: Sequence[str], blocks: Iterable[Sequence[NDArray[Any]]]) -> int:
    writer = csv.writer(file, lineterminator="\n")
    n_rows = 0
    for block in blocks:
        if n_rows == 0:  # not before there is something to write: the first block may fail
            writer.writerow(names)
        columns = [column for part in block for column in (part.T if part.ndim == 2 else [part])]
        writer.writerows(zip(*(column.tolist() for column in columns)))
        n_rows += len(columns[0])
    return n_rows
