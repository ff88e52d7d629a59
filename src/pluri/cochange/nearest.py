"""Paths that someone may have meant."""

from __future__ import annotations

import difflib
import posixpath
from collections.abc import Sequence


def nearest_paths(path: str, known: Sequence[str], n: int = 3) -> list[str]:
    """Known paths most like a path: those with the same file name first.

    Examples
    --------
    >>> from pluri.cochange.nearest import nearest_paths
    >>> nearest_paths("source/main.c", ["src/main.c", "src/mail.c", "docs/index.md"])
    ['src/main.c', 'src/mail.c']
    """
    name = posixpath.basename(path)
    same = [other for other in known if posixpath.basename(other) == name]
    same.sort(key=lambda other: -difflib.SequenceMatcher(None, path, other).ratio())
    alike = difflib.get_close_matches(path, known, n=n)
    return list(dict.fromkeys([*same, *alike]))[:n]
