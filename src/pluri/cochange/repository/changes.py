"""Files that are being changed now: staged, in the work tree, or in one commit."""

from __future__ import annotations

import os
from pathlib import Path

from pluri.cochange.repository.git import SUBMODULES, GitError, Repository, ask, paths_of

#: Both names of a renamed file are listed: the history knows the old one. A submodule is listed if it points elsewhere.
LISTED = ("-z", "--no-renames", "--no-ext-diff", "--no-textconv", SUBMODULES)


def staged_files(repository: Repository) -> list[str]:
    """Paths that the next commit would change.

    Inside a hook, git names the index that is being committed by the variable ``GIT_INDEX_FILE``.
    """
    top = _work_tree(repository)
    if not ask(top, "rev-parse", "--verify", "--quiet", "HEAD", check=False):  # the first commit of a branch
        return existing_files(repository)
    return paths_of(ask(top, "diff-index", "--cached", "--name-only", *LISTED, "HEAD", "--", index=_index()))


def changed_files(repository: Repository) -> list[str]:
    """Paths that differ from the last commit, staged or not, and new ones that are not ignored."""
    top = _work_tree(repository)
    # Comparing a file with the index may run its clean filter; without one, git compares the bytes.
    names = paths_of(ask(repository.path, "config", "-z", "--name-only", "--get-regexp", r"^filter\.", check=False))
    drivers = dict.fromkeys(name.removeprefix("filter.").rpartition(".")[0] for name in names)
    settings = [
        part
        for driver in drivers
        for setting in ("clean=", "smudge=", "process=", "required=false")
        for part in ("-c", f"filter.{driver}.{setting}")
    ]
    listing = ask(
        top,
        *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", SUBMODULES),
        settings=settings,
    )
    return [entry[3:] for entry in paths_of(listing)]


def committed_files(repository: Repository, revision: str) -> list[str]:
    """Paths that a commit changed; of a merge, against its first parent."""
    if not revision or revision.startswith("-"):
        raise GitError(f"revision must name a commit, got {revision!r}")
    try:
        listing = ask(
            repository.path,
            *("log", "-1", "--format=", "--name-only", "--first-parent", "-m", *LISTED, revision, "--"),
        )
    except GitError as error:
        if "bad revision" in str(error) or "unknown revision" in str(error):
            raise GitError(f"revision must name a commit, got {revision!r}") from error
        raise
    return [path for path in (entry.lstrip("\n") for entry in paths_of(listing)) if path]


def existing_files(repository: Repository, revision: str | None = None) -> list[str]:
    """All paths that there are in the next commit, or in one that was made."""
    if revision is None:
        return paths_of(ask(_work_tree(repository), "ls-files", "--cached", "-z", index=_index()))
    return paths_of(ask(repository.path, "ls-tree", "-r", "-z", "--name-only", "--full-tree", revision))


def _index() -> str | None:
    given = os.environ.get("GIT_INDEX_FILE")
    return os.path.abspath(given) if given else None


def _work_tree(repository: Repository) -> Path:
    if repository.top is None:
        raise GitError(f"repository must have a work tree, got {str(repository.path)!r} without one")
    return repository.top
