"""Asking git, and nothing else: no shell, no pager, no hook, no filter, no network.

A repository can name programs in its own configuration (a file-system monitor, external diffs, filters, a program that
checks signatures). Every call here switches them off, so that reading a history never runs anything that came with it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

PathLike = str | os.PathLike[str]

#: Set inside hooks, and by users; they would send a question about one repository to another.
FOREIGN = (
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_NAMESPACE"),
    *("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EDITOR", "GIT_DIFF_OPTS"),
)
#: Settings of a repository that would run a program, or change what a listing means.
SAFE = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.devnull, "-c", "log.showSignature=false"),
    *("-c", "log.showRoot=true", "-c", "diff.relative=false", "-c", "core.quotePath=false"),
)
#: A submodule changes when it points to another commit; what was done inside it is not looked at.
SUBMODULES = "--ignore-submodules=dirty"


class GitError(ValueError):
    """Git is not there, or did not do what was asked."""


@dataclass(frozen=True)
class Repository:
    """Where a repository is.

    Attributes
    ----------
    path : Path
        Where git is run.
    folder : Path
        Its ``.git`` folder; of a linked work tree, that of the main one.
    top : Path or None
        The top of the work tree; None for a bare repository.
    shallow : bool
        Whether the history was cut off when it was cloned.
    """

    path: Path
    folder: Path
    top: Path | None
    shallow: bool


def find_repository(path: PathLike = ".") -> Repository:
    """The repository that a folder lies in, or one sentence that says why there is none.

    Examples
    --------
    >>> import tempfile
    >>> from pluri.cochange.repository.git import find_repository
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     find_repository(folder)
    Traceback (most recent call last):
    ...
    pluri.cochange.repository.git.GitError: path must lie in a git repository, got '...'...
    """
    place = Path(path)
    if not place.is_dir():
        raise GitError(f"path must be the folder of a git repository, got {os.fspath(path)!r}, which is no folder")
    try:
        answer = ask(place, "rev-parse", "--is-bare-repository", "--is-shallow-repository", "--git-common-dir")
    except GitError as error:
        if "not a git repository" in str(error):
            raise GitError(f"path must lie in a git repository, got {os.fspath(path)!r}") from error
        raise
    bare, shallow, folder = os.fsdecode(answer.removesuffix(b"\n")).split("\n", 2)
    top = None
    if bare == "false":
        shown = ask(place, "rev-parse", "--show-toplevel", check=False).removesuffix(b"\n")
        top = Path(os.fsdecode(shown)) if shown else None  # none inside the .git folder itself
    return Repository(place, (place / folder).resolve(), top, shallow == "true")


def ask(
    path: PathLike, *arguments: str, settings: Sequence[str] = (), index: str | None = None, check: bool = True
) -> bytes:
    """What a git command prints."""
    with running(path, arguments, settings=settings, index=index, check=check) as output:
        return output.read()


@contextmanager
def running(
    path: PathLike,
    arguments: Sequence[str],
    *,
    settings: Sequence[str] = (),
    index: str | None = None,
    check: bool = True,
) -> Iterator[IO[bytes]]:
    """The output of a git command as it comes; the command is stopped when the reader leaves early."""
    # stderr goes to a file: a pipe that nobody reads would block git once it is full.
    with TemporaryFile() as complaints:
        try:
            process = subprocess.Popen(
                ["git", "--no-pager", *SAFE, *settings, "-C", os.fspath(path), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                env=environment(index),
            )
        except FileNotFoundError as error:
            raise GitError("git must be installed and on the PATH, got no such program") from error
        assert process.stdout is not None
        with process.stdout as output:
            try:
                yield output
            except BaseException:
                process.kill()
                process.wait()
                raise
        code = process.wait()
        if code and check:
            complaints.seek(0)
            told = os.fsdecode(complaints.read()).strip() or f"exit code {code}"
            raise GitError(f"git {arguments[0]} must succeed in {os.fspath(path)!r}, got: {told}")


def environment(index: str | None = None) -> Mapping[str, str]:
    """The variables that git sees: its answers in English, no transport, and no other repository."""
    kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
    return kept | {
        "LC_ALL": "C",
        "GIT_ALLOW_PROTOCOL": "none",  # objects that a partial clone lacks are not fetched
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        **({} if index is None else {"GIT_INDEX_FILE": index}),
    }


def paths_of(listing: bytes) -> list[str]:
    """Paths separated by NUL, as text; bytes that are not UTF-8 survive as surrogates."""
    return [os.fsdecode(path) for path in listing.split(b"\0") if path]
