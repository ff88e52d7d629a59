"""Files that are being changed now: staged, in the work tree, or in one commit."""

from __future__ import annotations

import os

from pluri.cochange.git import GitError, Repository, ask, paths_of

#: Both names of a renamed file are listed: the history knows the old one.
LISTED = ("-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")


def staged_files(repository: Repository) -> list[str]:
    """Paths that the next commit would change.

    Inside a hook, git names the index that is being committed by the variable ``GIT_INDEX_FILE``.
    """
    index = os.environ.get("GIT_INDEX_FILE")
    return paths_of(
        ask(
            repository.path,
            *("diff-index", "--cached", "--name-only", *LISTED, "HEAD", "--"),
            index=os.path.abspath(index) if index else None,
        )
    )


def changed_files(repository: Repository) -> list[str]:
    """Paths that differ from the last commit, staged or not, and new ones that are not ignored."""
    if repository.top is None:
        raise GitError(f"repository must have a work tree, got the bare {str(repository.path)!r}")
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
        repository.top,
        *("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"),
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
