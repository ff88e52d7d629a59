"""The history of a repository as a stream of commits: one ``git log``, read as it comes, nothing checked out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import IO, NamedTuple

from pluri.cochange.repository.git import SUBMODULES, GitError, PathLike, ask, running

HEADER, FIELD = b"\x1e", b"\x1f"
FORMAT = "--format=%x1e%H%x1f%ct%x1f%aE"
#: Pairs of changed files that git compares at most to find a rename; identical contents are always found.
RENAME_LIMIT = 400
CHUNK = 1 << 20
#: What git may be told instead of a date to mean the present.
PRESENT = ("now", "today")


class Change(NamedTuple):
    """One line of a commit: ``kind`` is a letter of git (A, M, D, R, T), ``old`` the former name of a renamed file."""

    kind: str
    path: str
    old: str | None = None


@dataclass(frozen=True)
class Commit:
    """A commit: identifier, time of the committer in seconds since 1970, address of the author, changes."""

    id: str
    time: int
    author: str
    changes: tuple[Change, ...]


def read_commits(
    path: PathLike,
    *,
    since: str | date | float | None = None,
    until: str | date | float | None = None,
    revision: str = "HEAD",
    renames: bool = True,
    first_parent: bool = False,
) -> Iterator[Commit]:
    """Commits from the oldest to the newest.

    Parameters
    ----------
    path : path
        A folder of the repository.
    since, until : str, date, datetime or seconds since 1970, optional
        Anything git takes as a date, such as ``"2 years ago"``.
    revision : str, default="HEAD"
        Where to start.
    renames : bool, default=True
        Tell renamed files from those that are deleted and added.
    first_parent : bool, default=False
        Walk the main line only, where each merge counts as one commit with all that its branch changed. By default
        merges are left out and the commits of branches are read.

    Yields
    ------
    Commit
    """
    arguments = ["log", "-z", "--reverse", "--date-order", "--name-status", "--no-ext-diff", "--no-textconv"]
    arguments += [SUBMODULES, FORMAT]
    arguments += ["-M", f"-l{RENAME_LIMIT}"] if renames else ["--no-renames"]
    arguments += ["--first-parent", "-m"] if first_parent else ["--no-merges"]
    for name, value in (("since", since), ("until", until)):
        if isinstance(value, str) and not is_date(path, value):
            raise GitError(f"{name} must be a date that git understands, got {value!r}")
        arguments += [f"--{name}={_moment(value)}"] if value else []
    with running(path, [*arguments, "--end-of-options", revision, "--"]) as output:
        yield from parse_log(output)


def is_date(path: PathLike, text: str) -> bool:
    """Whether git finds a date in a text; if it does not, it takes the present for it without a word."""
    if not text or text.strip().lower() in PRESENT:
        return True
    meant, present = ask(path, "rev-parse", f"--since={text}", "--since=now").split()
    return meant != present


def parse_log(output: IO[bytes]) -> Iterator[Commit]:
    """Commits from what ``git log`` printed.

    Examples
    --------
    >>> import io
    >>> from pluri.cochange.repository.git_log import parse_log
    >>> text = "|abc;7;me@here~#M~a b~R90~old~new~|def;8;you@there~"
    >>> for mark, byte in (("|", 30), (";", 31), ("~", 0), ("#", 10)):
    ...     text = text.replace(mark, chr(byte))
    >>> for commit in parse_log(io.BytesIO(text.encode())):
    ...     print(commit.id, commit.time, [tuple(change) for change in commit.changes])
    abc 7 [('M', 'a b', None), ('R', 'new', 'old')]
    def 8 []
    """
    header: list[bytes] = []
    changes: list[Change] = []
    tokens = _tokens(output)
    for token in tokens:
        if token.startswith(HEADER):
            if header:
                yield _commit(header, changes)
            header, changes = token[1:].split(FIELD, 2), []
            continue
        kind = token.lstrip(b"\n")[:1].decode("ascii", "replace")
        if not kind:
            continue
        path = os.fsdecode(next(tokens, b""))
        if kind in "RC":
            changes.append(Change(kind, os.fsdecode(next(tokens, b"")), path))
        else:
            changes.append(Change(kind, path))
    if header:
        yield _commit(header, changes)


def _commit(header: Sequence[bytes], changes: list[Change]) -> Commit:
    name, time, author = header
    return Commit(name.decode("ascii"), int(time), author.decode("utf-8", "replace"), tuple(changes))


def _tokens(output: IO[bytes]) -> Iterator[bytes]:
    """Pieces between NUL bytes."""
    rest = b""
    while chunk := output.read(CHUNK):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole
    if rest.strip():
        yield rest


def _moment(value: str | date | float) -> str:
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    return value if isinstance(value, str) else str(int(value))
