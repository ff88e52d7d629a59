"""Commit histories as binary matrices: a row for each commit, a column for each file.

Commits with very many files (imports, reformatting) and files that hardly ever change say little about what belongs
together, and are dropped. To judge a recommendation as it would have been at the time, a history is split by date, and
the support of a file is counted in the earlier part only.

References
----------
.. [1] Hu, D., van der Maaten, L., Cho, Y., Saul, L. & Lerner, S. (2010). Latent variable models for predicting file
   dependencies in large-scale software development. NIPS 23.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.cochange.repository.git import GitError, PathLike, find_repository
from pluri.cochange.repository.git_log import read_commits
from pluri.cochange.transactions import WINDOW, Transactions, from_commits, from_records, group_changes
from pluri.validation import Number, Only, check_value

TRAIN_SHARE = 2 / 3
Patterns = str | Iterable[str] | None


def path_filter(include: str | Iterable[str] | None, exclude: str | Iterable[str] | None) -> Callable[[str], bool]:
    """A function that tells whether a path is wanted.

    Parameters
    ----------
    include, exclude : str or list of str, optional
        ``*`` and ``?`` stand for anything but ``/``, ``**`` for anything. A pattern without ``/`` is compared with
        every part of the path, one with ``/`` with the whole path; either also takes what lies in a folder it names.

    Examples
    --------
    >>> from pluri.cochange.history import path_filter
    >>> wanted = path_filter(["src/", "*.md"], "src/**/generated")
    >>> [wanted(path) for path in ("src/a.py", "docs/b.md", "docs/b.txt", "src/x/generated/c.py")]
    [True, True, False, False]
    """
    kept, dropped = _expression(include, "include"), _expression(exclude, "exclude")

    def wanted(path: str) -> bool:
        return (kept is None or kept.match(path) is not None) and (dropped is None or dropped.match(path) is None)

    return wanted


def _expression(patterns: str | Iterable[str] | None, name: str) -> re.Pattern[str] | None:
    given = [patterns] if isinstance(patterns, str) else list(patterns or ())
    for pattern in given:
        if not isinstance(pattern, str) or not pattern.strip("/"):
            raise ValueError(f"{name} must hold patterns such as '*.py' or 'docs/', got {pattern!r}")
    return re.compile("|".join(_translate(pattern) for pattern in given), re.DOTALL) if given else None


def _translate(pattern: str) -> str:
    body = pattern.rstrip("/")
    anchored = "/" in body
    body = body.lstrip("/")
    pieces = []
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|.", body, re.DOTALL):
        match piece:
            case "**/":
                pieces.append("(?:.*/)?")
            case "**":
                pieces.append(".*")
            case "*":
                pieces.append("[^/]*")
            case "?":
                pieces.append("[^/]")
            case _:
                pieces.append(re.escape(piece))
    return f"{'' if anchored else '(?:.*/)?'}{''.join(pieces)}(?:/.*)?\\Z"


@dataclass(frozen=True)
class Support:
    """How often a file must occur, and where that is counted."""

    minimum: int = 10
    counted_on: str = "train"

    def columns(self, matrix: Any, n_train: int) -> NDArray[np.int64]:
        """Files that occur often enough, in all rows or in the first `n_train`."""
        counted = matrix[:n_train] if self.counted_on == "train" else matrix
        occurrences = np.bincount(counted.indices, minlength=matrix.shape[1])
        return np.flatnonzero(occurrences >= self.minimum)


class CommitHistory:
    """Commits by files, in the order of time. Made by `from_git`, `from_records` or `from_changes`.

    Attributes
    ----------
    X_ : csr_array of shape (n_commits, n_files)
        Ones where a commit changed a file.
    files_ : ndarray of shape (n_files,)
        Paths from the top of the repository, under their latest names.
    times_ : ndarray of shape (n_commits,), dtype int64
        Seconds since 1970.
    authors_, ids_ : ndarray of shape (n_commits,)
        Address of the author and identifier of each commit.
    alive_ : ndarray of shape (n_files,), dtype bool
        Whether a file still exists at the end.

    Examples
    --------
    >>> from pluri.cochange import CommitHistory
    >>> commits = [{"time": t, "files": ["a.c", "a.h"] if t % 3 else ["b.c"]} for t in range(30)]
    >>> history = CommitHistory.from_records(commits)
    >>> history
    CommitHistory(20 commits, 2 files, 1970-01-01 to 1970-01-01)
    >>> train, test = history.split()
    >>> train.X_.shape, test.X_.shape, train.files_.tolist()
    ((13, 2), (7, 2), ['a.c', 'a.h'])
    """

    def __init__(self, transactions: Transactions, source: Transactions, support: Support) -> None:
        self._kept = transactions
        self._source = source
        self._support = support
        self.X_: Any = transactions.matrix
        self.files_ = transactions.files
        self.alive_ = transactions.alive
        self.times_ = transactions.times
        self.authors_ = transactions.authors
        self.ids_ = transactions.ids

    @classmethod
    def from_git(
        cls,
        path: PathLike = ".",
        since: str | date | float | None = None,
        until: str | date | float | None = None,
        *,
        max_files: int = 100,
        min_support: int = 10,
        support_on: str = "train",
        follow_renames: bool = True,
        include: Patterns = None,
        exclude: Patterns = None,
        first_parent: bool = False,
        revision: str = "HEAD",
    ) -> CommitHistory:
        """Read the history of a git repository: one pass over ``git log``, nothing is checked out or run.

        Parameters
        ----------
        path : path, default="."
            A folder of the repository.
        since, until : str, date, datetime or seconds since 1970, optional
            Only commits of this period; anything git takes as a date.
        max_files : int, default=100
            Commits with more files are dropped.
        min_support : int, default=10
            Files that occur in fewer commits are dropped, and then commits without files.
        support_on : {"train", "all"}, default="train"
            Whether occurrences are counted in the part that `split` trains on, so that nothing of the test part is
            known, or in the whole history.
        follow_renames : bool, default=True
            Count what happened to a file under former names as its own history.
        include, exclude : str or list of str, optional
            Patterns of paths, as in a ``.gitignore``.
        first_parent : bool, default=False
            Read the main line only, with each merge as one commit that holds what its branch changed. By default
            merges are ignored and the commits of branches are read.
        revision : str, default="HEAD"
            The commit to start from.

        Returns
        -------
        CommitHistory
        """
        _check(max_files, min_support, support_on)
        wanted = path_filter(include, exclude)
        repository = find_repository(path)
        commits = read_commits(
            path, since=since, until=until, revision=revision, renames=follow_renames, first_parent=first_parent
        )
        try:
            transactions = from_commits(commits, wanted)
        except GitError as error:
            if any(text in str(error) for text in ("does not have any commits", "bad revision 'HEAD'")):
                raise GitError(f"path must be a repository with commits, got {str(path)!r} without any") from error
            raise
        if repository.shallow:
            warnings.warn(
                f"the history of {str(path)!r} is shallow, so only {len(transactions.ids)} commits are seen; "
                "git fetch --unshallow gets the rest",
                stacklevel=2,
            )
        return cls._filtered(transactions, max_files, Support(min_support, support_on))

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        *,
        max_files: int = 100,
        min_support: int = 10,
        support_on: str = "train",
        include: Patterns = None,
        exclude: Patterns = None,
    ) -> CommitHistory:
        """Take transactions as they are: mappings with ``time`` and ``files``, and maybe ``author`` and ``id``.

        Parameters
        ----------
        records : iterable of mappings
            Times are seconds since 1970, datetimes or text in ISO format; in any order.
        max_files, min_support, support_on, include, exclude
            As for `from_git`.

        Returns
        -------
        CommitHistory
        """
        _check(max_files, min_support, support_on)
        transactions = from_records(records, path_filter(include, exclude))
        return cls._filtered(transactions, max_files, Support(min_support, support_on))

    @classmethod
    def from_changes(
        cls, changes: Iterable[Mapping[str, Any]], *, window: float = WINDOW, **options: Any
    ) -> CommitHistory:
        """Group changes of single files, as CVS logs them, into transactions; see :func:`group_changes`.

        Parameters
        ----------
        changes : iterable of mappings
            With ``time``, ``author``, ``message`` and ``file``.
        window : float, default=200
            Seconds between a change and the next one of the same transaction.
        **options
            As for `from_records`.

        Returns
        -------
        CommitHistory
        """
        return cls.from_records(group_changes(changes, window), **options)

    @classmethod
    def _filtered(cls, transactions: Transactions, max_files: int, support: Support) -> CommitHistory:
        sizes = np.diff(transactions.matrix.indptr)
        source = transactions.select(rows=np.flatnonzero((sizes > 0) & (sizes <= max_files)))
        columns = support.columns(source.matrix, _cut(len(source.ids), TRAIN_SHARE))
        return cls(source.select(columns=columns).without_empty(), source, support)

    def split(self, fraction: float = TRAIN_SHARE) -> tuple[CommitHistory, CommitHistory]:
        """Earlier and later commits.

        Parameters
        ----------
        fraction : float, default=2/3
            Share of the commits that come first. With ``support_on="train"`` the files are chosen anew by their
            support in this part.

        Returns
        -------
        train, test : CommitHistory
            With the same files; commits without any of them are dropped.
        """
        check_value(fraction, "fraction", Number(above=0, below=1))
        whole = self._source if self._support.counted_on == "train" else self._kept
        cut = _cut(len(whole.ids), fraction)
        columns = self._support.columns(whole.matrix, cut)
        parts = (whole.select(np.arange(cut), columns), whole.select(np.arange(cut, len(whole.ids)), columns))
        # Both keep the files they have: what is cut off them later is for tuning only.
        fixed = Support(0, "all")
        train, test = (CommitHistory(part.without_empty(), part, fixed) for part in parts)
        return train, test

    def with_support(self, min_support: int, support_on: str | None = None) -> CommitHistory:
        """The same commits with another minimal support, without reading them again."""
        chosen = Support(min_support, support_on or self._support.counted_on)
        _check(1, chosen.minimum, chosen.counted_on)
        columns = chosen.columns(self._source.matrix, _cut(len(self._source.ids), TRAIN_SHARE))
        return CommitHistory(self._source.select(columns=columns).without_empty(), self._source, chosen)

    def __len__(self) -> int:
        """Number of commits."""
        return int(self.X_.shape[0])

    def __repr__(self) -> str:
        """Commits, files and the period."""
        n_commits, n_files = self.X_.shape
        days = self.times_.astype("datetime64[s]").astype("datetime64[D]")
        period = f", {days[0]} to {days[-1]}" if n_commits else ""
        return f"CommitHistory({n_commits} commits, {n_files} files{period})"


def _cut(n_rows: int, fraction: float) -> int:
    # Not round(): 2/3 of 30 must be 20 however 2/3 is spelled.
    return math.floor(n_rows * fraction + 1e-9)


def _check(max_files: int, min_support: int, support_on: str) -> None:
    for name, value, least in (("max_files", max_files, 1), ("min_support", min_support, 0)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    check_value(support_on, "support_on", Only("train", "all"))
