"""What a trained recommender needs to answer: scores, names and commits. NumPy alone, so that a hook starts quickly."""

from __future__ import annotations

import difflib
import posixpath
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.cochange.models.counting import Array, CommitRows, Places

#: Commits named with a suggestion.
N_SHOWN = 3


def nearest_paths(path: str, known: Sequence[str], n: int = 3) -> list[str]:
    """Known paths most like a path: those with the same file name first.

    Examples
    --------
    >>> from pluri.cochange.suggester import nearest_paths
    >>> nearest_paths("source/main.c", ["src/main.c", "src/mail.c", "docs/index.md"])
    ['src/main.c', 'src/mail.c']
    """
    name = posixpath.basename(path)
    same = [other for other in known if posixpath.basename(other) == name]
    same.sort(key=lambda other: -difflib.SequenceMatcher(None, path, other).ratio())
    alike = difflib.get_close_matches(path, known, n=n)
    return list(dict.fromkeys([*same, *alike]))[:n]


@dataclass(frozen=True)
class Suggestion:
    """A file that should change too.

    Attributes
    ----------
    path : str
    probability : float
        That it changes together with the given files, calibrated on later commits; a rank score for models that give
        numbers of commits.
    n_commits : int
        Number of past commits in which it changed with at least one of the given files.
    commits : tuple of str
        Some of these commits: those with most of the given files first, then the latest.
    """

    path: str
    probability: float
    n_commits: int
    commits: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Suggester:
    """A trained recommender, ready to be asked.

    Attributes
    ----------
    score : callable
        Probabilities of all files, given the columns of some.
    rows : CommitRows
        The commits that were learnt from.
    files, alive : ndarray of shape (n_files,)
    commits : ndarray of bytes of shape (n_commits,)
        Identifiers of the commits.
    threshold, hook_threshold : float
        Probabilities above which a file is suggested, and above which a check names it.
    drop_deleted : bool
        Whether files that no longer exist are left out.
    """

    score: Callable[[Places], Array]
    rows: CommitRows
    files: NDArray[np.str_]
    alive: NDArray[np.bool_]
    commits: NDArray[np.bytes_]
    threshold: float
    hook_threshold: float
    drop_deleted: bool

    def recommend(
        self, files: str | Iterable[str], top: int | None = 10, *, threshold: float | None = None
    ) -> list[Suggestion]:
        """Files that should change too, the most probable first; see `FileRecommender.recommend`."""
        if top is not None and top < 1:
            raise ValueError(f"top must be at least 1 or None, got {top!r}")
        present = self.known_columns([files] if isinstance(files, str) else list(files))
        scores = self.score(present)
        wanted = scores > (self.threshold if threshold is None else threshold)
        wanted[present] = False
        if self.drop_deleted:
            wanted &= self.alive
        candidates = np.flatnonzero(wanted)
        frequencies = np.diff(self.rows.column_indptr)
        order = np.lexsort((-frequencies[candidates], -scores[candidates]))
        shared = np.zeros(self.rows.n_rows, dtype=np.int64)
        for column in present:
            shared[self.rows.rows_with(int(column))] += 1
        return [self._suggestion(int(column), scores, shared) for column in candidates[order[:top]]]

    def count_commits(self, files: Sequence[str]) -> int:
        """Number of past commits that changed at least one of some known files."""
        found = [self.rows.rows_with(int(column)) for column in self.known_columns(files)]
        return len(np.unique(np.concatenate(found)))

    def known_columns(self, files: Sequence[str]) -> Places:
        """Columns of paths; unknown ones are dropped with a warning, or refused if no other is left."""
        place = {path: column for column, path in enumerate(self.files.tolist())}
        known = sorted({place[path] for path in files if path in place})
        unknown = [path for path in dict.fromkeys(files) if path not in place]
        if not known:
            if not unknown:
                raise ValueError("files must hold at least one path, got none")
            raise ValueError(f"files must hold a path that the history knows, got {self._unknown(unknown[0])}")
        for path in unknown:
            warnings.warn(f"files should be known to the history, dropped {self._unknown(path)}", stacklevel=4)
        return np.array(known, dtype=np.int64)

    def _unknown(self, path: str) -> str:
        near = nearest_paths(path, self.files.tolist())
        return f"{path!r}" + (f"; nearest known: {', '.join(map(repr, near))}" if near else "")

    def _suggestion(self, column: int, scores: Array, shared: Places) -> Suggestion:
        rows = self.rows.rows_with(column)
        rows = rows[shared[rows] > 0]
        best = rows[np.lexsort((-rows, -shared[rows]))][:N_SHOWN]
        names = tuple(name.decode("utf-8") for name in self.commits[best].tolist())
        return Suggestion(str(self.files[column]), float(scores[column]), len(rows), names)
