"""Questions with known answers, made from commits: some files are shown, the rest is to be found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
Places = NDArray[np.int64]
#: Ranks that are kept of each answer: no commit has as many files, and nobody reads as many suggestions.
DEPTH = 1000
BATCH = 256


@dataclass(frozen=True, eq=False)
class Queries:
    """Commits divided into starters and the files to be found.

    Attributes
    ----------
    commits : ndarray of shape (n_queries,)
        Row of the commit that each query was made from.
    starters, labels : tuple of ndarray
        Columns of the files shown, and of those to be found.
    n_features : int
        Number of files.
    """

    commits: Places
    starters: tuple[Places, ...]
    labels: tuple[Places, ...]
    n_features: int

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.starters)

    def matrix(self, start: int, stop: int) -> Any:
        """Starters of some queries as rows of a sparse matrix of ones."""
        chosen = self.starters[start:stop]
        indptr = np.concatenate([[0], np.cumsum([len(row) for row in chosen])])
        indices = np.concatenate([np.empty(0, dtype=np.int64), *chosen])
        return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(chosen), self.n_features))


def make_queries(X: Any, n_start: int, rng: np.random.Generator, seen: NDArray[np.bool_] | None = None) -> Queries:
    """A query from each commit that has more than `n_start` files.

    Parameters
    ----------
    X : csr_array of shape (n_commits, n_files)
    n_start : int
        Number of files shown, chosen at random.
    rng : Generator
    seen : ndarray of bool, optional
        Files that occur in the training part; a query needs at least one of these among the files to be found.

    Returns
    -------
    Queries

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.cochange.queries import make_queries
    >>> X = sparse.csr_array(np.array([[1, 1, 1], [1, 0, 0], [0, 1, 1]]))
    >>> queries = make_queries(X, 2, np.random.default_rng(0))
    >>> len(queries), queries.commits.tolist(), [len(labels) for labels in queries.labels]
    (1, [0], [1])
    """
    if n_start < 1:
        raise ValueError(f"n_start must be at least 1, got {n_start!r}")
    return _divide(X, lambda size: n_start if size > n_start else None, rng, seen)


def make_part_queries(X: Any, rng: np.random.Generator, seen: NDArray[np.bool_] | None = None) -> Queries:
    """A query from each commit of two files or more that shows a part of it: from one file to all but one.

    How many are shown is as likely to be one number as another, and which is chosen at random: what is known of a
    commit may be its first file, or nearly all of it.

    Parameters
    ----------
    X, rng, seen
        As for `make_queries`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.cochange.queries import make_part_queries
    >>> queries = make_part_queries(sparse.csr_array(np.ones((500, 4))), np.random.default_rng(0))
    >>> sorted({len(shown) for shown in queries.starters})
    [1, 2, 3]
    """
    return _divide(X, lambda size: int(rng.integers(1, size)) if size > 1 else None, rng, seen)


def take_one_out(X: Any, rng: np.random.Generator) -> Queries:
    """A query from each commit of two files or more that shows all of them but one, chosen at random."""
    return _divide(X, lambda size: size - 1 if size > 1 else None, rng, None)


def _divide(
    X: Any, n_shown: Callable[[int], int | None], rng: np.random.Generator, seen: NDArray[np.bool_] | None
) -> Queries:
    commits, starters, labels = [], [], []
    for row, (begin, end) in enumerate(zip(X.indptr[:-1], X.indptr[1:])):
        shown = n_shown(int(end - begin))
        if shown is None:
            continue
        files = rng.permutation(X.indices[begin:end].astype(np.int64))
        hidden = np.sort(files[shown:])
        if seen is None or seen[hidden].any():
            commits.append(row)
            starters.append(np.sort(files[:shown]))
            labels.append(hidden)
    return Queries(np.array(commits, dtype=np.int64), tuple(starters), tuple(labels), int(X.shape[1]))


@dataclass(frozen=True, eq=False)
class Answers:
    """Files in the order in which a model would suggest them, as far as scores and hits go.

    Attributes
    ----------
    scores : ndarray of shape (n_queries, depth)
        From the best down; minus infinity where nothing is left to suggest.
    hits : ndarray of shape (n_queries, depth), dtype bool
        Whether the file at this place was to be found.
    n_labels : ndarray of shape (n_queries,)
        Number of files to be found.
    """

    scores: Array
    hits: NDArray[np.bool_]
    n_labels: Places

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.n_labels)


def answer(score: Callable[[Any], Array], queries: Queries, popularity: Array, depth: int = DEPTH) -> Answers:
    """Ask all queries; equal scores are ranked by popularity, then by column.

    Parameters
    ----------
    score : callable
        Scores ``(n, n_files)`` of all files for a sparse matrix of starters.
    queries : Queries
    popularity : ndarray of shape (n_files,)
    depth : int, default=1000
        Number of places to keep.

    Returns
    -------
    Answers
    """
    popular = np.argsort(-popularity, kind="stable")
    depth = min(depth, queries.n_features)
    scores = np.empty((len(queries), depth))
    hits = np.zeros((len(queries), depth), dtype=np.bool_)
    for start, stop in _spans(len(queries)):
        found = np.array(score(queries.matrix(start, stop)), dtype=np.float64)
        truth = np.zeros(found.shape, dtype=np.bool_)
        for place, number in enumerate(range(start, stop)):
            found[place, queries.starters[number]] = -np.inf
            truth[place, queries.labels[number]] = True
        if np.isnan(found).any():
            raise ValueError("model must give a score to every file, got NaN")
        order = np.argsort(-found[:, popular], axis=1, kind="stable")[:, :depth]
        ranked = popular[order]
        scores[start:stop] = np.take_along_axis(found, ranked, axis=1)
        hits[start:stop] = np.take_along_axis(truth, ranked, axis=1)
    return Answers(scores, hits, np.array([len(labels) for labels in queries.labels], dtype=np.int64))


def _spans(n_rows: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n_rows, BATCH):
        yield start, min(start + BATCH, n_rows)
