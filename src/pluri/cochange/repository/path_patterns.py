"""Which paths a list of patterns means: shell wildcards, read as in a ``.gitignore``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable


def path_filter(include: str | Iterable[str] | None, exclude: str | Iterable[str] | None) -> Callable[[str], bool]:
    """A function that tells whether a path is wanted.

    Parameters
    ----------
    include, exclude : str or list of str, optional
        ``*`` and ``?`` stand for anything but ``/``, ``**`` for anything. A pattern without ``/`` is compared with
        every part of the path, one with ``/`` with the whole path; either also takes what lies in a folder it names.

    Examples
    --------
    >>> from pluri.cochange.repository.path_patterns import path_filter
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
