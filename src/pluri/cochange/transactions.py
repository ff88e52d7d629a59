"""All transactions of a history before rare files are dropped: which files changed together, and when.

Logs that know single files only (CVS) are turned into transactions by grouping: changes by the same author with the
same message belong together as long as each follows the one before within a short time, 200 seconds by custom [1]_.

A file that was renamed keeps its history, under its latest name. Commits are followed from the oldest to the newest. A
name leads to a file (a number); renaming gives the file a new name and keeps the old one as an alias, because commits
of parallel branches may still use it. A file that is added under a name that another has left is a new file; one that
comes back after it was deleted is the same.

References
----------
.. [1] Zimmermann, T. & Weissgerber, P. (2004). Preprocessing CVS data for fine-grained analysis. MSR.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.cochange.repository.git_log import Change, Commit

WINDOW = 200.0


class FileIdentities:
    """Numbers for files, whatever they are called at the time.

    Examples
    --------
    >>> from pluri.cochange.repository.git_log import Change
    >>> from pluri.cochange.transactions import FileIdentities
    >>> files = FileIdentities()
    >>> files.apply([Change("A", "old.py"), Change("A", "other.py")])
    [0, 1]
    >>> files.apply([Change("R", "new.py", "old.py")])
    [0]
    >>> files.names(), files.alive()
    (['new.py', 'other.py'], [True, True])
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._alive: list[bool] = []
        self._merged: dict[int, int] = {}

    def apply(self, changes: Iterable[Change]) -> list[int]:
        """Follow the changes of one commit; return the files that it touched, each once."""
        changes = list(changes)
        moved = [(change.path, self._number(change.old)) for change in changes if change.kind == "R" and change.old]
        sources = {change.old for change in changes if change.kind == "R"}
        touched = [self._rename(path, number, sources) for path, number in moved]
        for change in changes:
            if change.kind == "R" and change.old:
                continue
            number = self._added(change.path) if change.kind in "AC" else self._number(change.path)
            self._alive[number] = change.kind != "D"
            touched.append(number)
        return list(dict.fromkeys(self._root(number) for number in touched))

    def names(self) -> list[str]:
        """The latest name of each file; of files that became one, the same."""
        return [self._names[self._root(number)] for number in range(len(self._names))]

    def alive(self) -> list[bool]:
        """Whether each file still exists."""
        return [self._alive[self._root(number)] for number in range(len(self._names))]

    def root(self, number: int) -> int:
        """The file that a file has become: two are one when a rename ends at a name that was taken before."""
        return self._root(number)

    def _number(self, path: str) -> int:
        if path not in self._numbers:
            self._numbers[path] = len(self._names)
            self._names.append(path)
            self._alive.append(True)
        return self._root(self._numbers[path])

    def _added(self, path: str) -> int:
        number = self._number(path)
        if self._names[number] != path:  # only an alias: that file has moved on
            del self._numbers[path]
            number = self._number(path)
        return number

    def _rename(self, path: str, number: int, sources: set[str | None]) -> int:
        taken = self._numbers.get(path)
        if taken is not None and path not in sources and self._names[self._root(taken)] == path:
            other = self._root(taken)
            if other != self._root(number):
                self._merged[other] = self._root(number)
        number = self._root(number)
        self._numbers[path] = number
        self._names[number] = path
        self._alive[number] = True
        return number

    def _root(self, number: int) -> int:
        while number in self._merged:
            number = self._merged[number]
        return number


@dataclass(frozen=True, eq=False)
class Transactions:
    """Rows are transactions in the order of time, columns are files.

    Attributes
    ----------
    matrix : csr_array of shape (n_transactions, n_files)
        Ones where a file changed.
    files, alive : ndarray of shape (n_files,)
        Latest name of each file, and whether it still exists.
    times, authors, ids : ndarray of shape (n_transactions,)
    """

    matrix: Any
    files: NDArray[np.str_]
    alive: NDArray[np.bool_]
    times: NDArray[np.int64]
    authors: NDArray[np.str_]
    ids: NDArray[np.str_]

    def select(self, rows: Any = slice(None), columns: Any = slice(None)) -> Transactions:
        """Some rows and columns."""
        matrix = self.matrix[rows][:, columns]
        return Transactions(
            matrix, self.files[columns], self.alive[columns], self.times[rows], self.authors[rows], self.ids[rows]
        )

    def without_empty(self) -> Transactions:
        """Only rows with a file."""
        return self.select(rows=np.flatnonzero(np.diff(self.matrix.indptr)))


def assemble(
    rows: Sequence[Sequence[int]],
    files: Sequence[str],
    alive: Sequence[bool],
    times: Sequence[float],
    authors: Sequence[str],
    ids: Sequence[str],
) -> Transactions:
    """Transactions in the order of time from lists of file numbers; files of the same name are one."""
    names, place = np.unique(np.array(files, dtype=str), return_inverse=True)
    exists = np.zeros(len(names), dtype=np.bool_)
    exists[place[np.array(alive, dtype=np.bool_)]] = True
    when = np.array(times, dtype=np.float64)
    if not np.isfinite(when).all():
        raise ValueError(f"times must be finite, got {when[~np.isfinite(when)][0]}")
    order = np.argsort(when, kind="stable")
    indptr = np.concatenate([[0], np.cumsum([len(rows[number]) for number in order])]).astype(np.int64)
    indices = place[np.fromiter((file for number in order for file in rows[number]), np.int64, int(indptr[-1]))]
    matrix = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(rows), len(names)))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0
    return Transactions(
        matrix,
        names,
        exists,
        when[order].astype(np.int64),
        np.array(authors, dtype=str)[order],
        np.array(ids, dtype=str)[order],
    )


def from_commits(commits: Iterable[Commit], wanted: Callable[[str], bool]) -> Transactions:
    """Transactions of commits, whose files go by their latest names."""
    identities = FileIdentities()
    rows: list[list[int]] = []
    times: list[float] = []
    authors, ids = [], []
    for commit in commits:
        rows.append(identities.apply(commit.changes))
        times.append(commit.time)
        authors.append(commit.author)
        ids.append(commit.id)
    names, alive = identities.names(), identities.alive()
    kept = [number for number, name in enumerate(names) if wanted(name)]
    place = {number: column for column, number in enumerate(kept)}
    # Two files become one where a rename ended at a name that was taken; `assemble` joins columns of one name.
    rows = [[place[number] for number in row if number in place] for row in rows]
    return assemble(rows, [names[number] for number in kept], [alive[number] for number in kept], times, authors, ids)


def from_records(records: Iterable[Mapping[str, Any]], wanted: Callable[[str], bool]) -> Transactions:
    """Transactions of mappings with ``time`` and ``files``, and maybe ``author`` and ``id``."""
    columns: dict[str, int] = {}
    rows: list[list[int]] = []
    times, authors, ids = [], [], []
    for number, record in enumerate(records):
        try:
            time, files = record["time"], record["files"]
        except (KeyError, TypeError) as error:
            raise ValueError(f"records must have time and files, got {record!r} at place {number}") from error
        if isinstance(files, str) or not all(isinstance(file, str) for file in files):
            raise ValueError(f"records must have a list of paths as files, got {files!r} at place {number}")
        rows.append([columns.setdefault(file, len(columns)) for file in files if wanted(file)])
        times.append(as_seconds(time))
        authors.append(str(record.get("author", "")))
        ids.append(str(record.get("id", number)))
    return assemble(rows, list(columns), [True] * len(columns), times, authors, ids)


def group_changes(changes: Iterable[Mapping[str, Any]], window: float = WINDOW) -> Iterator[dict[str, Any]]:
    """Changes of single files as transactions: same author and message, each within `window` seconds of the last.

    Parameters
    ----------
    changes : iterable of mappings
        With ``time``, ``author``, ``message`` and ``file``, in any order.
    window : float, default=200
        Seconds between a change and the next one of the same transaction.

    Yields
    ------
    dict
        With ``time`` (of the last change), ``author``, ``message`` and ``files``.

    Examples
    --------
    >>> from pluri.cochange import group_changes
    >>> log = [(0, "a.c"), (150, "b.c"), (300, "a.h"), (600, "a.c")]
    >>> changes = [{"time": t, "author": "me", "message": "fix", "file": f} for t, f in log]
    >>> [(group["time"], group["files"]) for group in group_changes(changes)]
    [(300.0, ['a.c', 'b.c', 'a.h']), (600.0, ['a.c'])]
    """
    if not window >= 0:
        raise ValueError(f"window must be a non-negative number of seconds, got {window!r}")
    kept: list[tuple[float, tuple[str, str], str]] = []
    for number, change in enumerate(changes):
        try:
            key = (str(change["author"]), str(change["message"]))
            kept.append((as_seconds(change["time"]), key, str(change["file"])))
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"changes must have time, author, message and file, got {change!r} at place {number}"
            ) from error
    groups: list[dict[str, Any]] = []
    latest: dict[tuple[str, str], dict[str, Any]] = {}
    for time, key, file in sorted(kept, key=lambda item: item[0]):
        group = latest.get(key)
        if group is None or time - group["time"] > window:
            group = latest[key] = {"time": time, "author": key[0], "message": key[1], "files": []}
            groups.append(group)
        group["time"] = time
        if file not in group["files"]:
            group["files"].append(file)
    yield from sorted(groups, key=lambda item: item["time"])


def as_seconds(time: Any) -> float:
    """Seconds since 1970 of a number, a datetime, a ``datetime64`` or text in ISO format (UTC if no zone is given)."""
    if isinstance(time, np.datetime64):
        return float(time.astype("datetime64[ms]").astype(np.int64)) / 1000
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time)
        except ValueError as error:
            raise ValueError(f"time must be a number of seconds or a date in ISO format, got {time!r}") from error
    if isinstance(time, datetime):
        from datetime import UTC

        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    try:
        return float(time)
    except (TypeError, ValueError) as error:
        raise ValueError(f"time must be a number of seconds or a date in ISO format, got {time!r}") from error
