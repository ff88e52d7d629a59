"""What all scores of flat topics start from: topics of the words that occur, and the documents in their numbering."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pluri.topics.documents import tokens_of
from pluri.validation import check_distributions

#: About how many draws of a topic one call of a compiled loop makes: between calls Ctrl-C is heard.
DRAWS_PER_CALL = 2e7


def as_counts(X: Any, n_words: int | None = None, *, whole: bool = True) -> scipy.sparse.csr_matrix:
    """Counts as a canonical CSR matrix of floats: sorted, without stored zeros; the input is left as it is."""
    if scipy.sparse.issparse(X):
        counts = scipy.sparse.csr_matrix(X, dtype=np.float64, copy=True)
    else:
        dense = np.asarray(X, dtype=np.float64)
        if dense.ndim != 2:
            raise ValueError(f"X must have two axes, documents and words, got shape {dense.shape}")
        counts = scipy.sparse.csr_matrix(dense)
    counts.sum_duplicates()
    counts.eliminate_zeros()
    if n_words is not None and counts.shape[1] != n_words:
        raise ValueError(f"X must have {n_words} columns, one for each word of the model, got {counts.shape[1]}")
    if not np.isfinite(counts.data).all():
        raise ValueError("X must be finite, got NaN or infinity")
    if counts.nnz and counts.data.min() < 0:
        raise ValueError(f"X must hold counts, got the negative value {counts.data.min():g}")
    if whole and (counts.data != np.rint(counts.data)).any():
        found = counts.data[counts.data != np.rint(counts.data)][0]
        raise ValueError(f"X must hold whole counts, got {found:g}; give the counts before any weighting")
    return counts


def lengths_of(counts: scipy.sparse.csr_matrix) -> NDArray[np.int64]:
    """Number of words of each document."""
    return np.asarray(counts.sum(axis=1)).ravel().round().astype(np.int64)


def warn_impossible(log_likelihood: NDArray[np.float64], of: str) -> None:
    """Say which documents have probability zero."""
    impossible = np.flatnonzero(np.isneginf(log_likelihood))
    if impossible.size:
        shown = ", ".join(map(str, impossible[:5])) + (", ..." if impossible.size > 5 else "")
        warnings.warn(
            f"{impossible.size} documents ({shown}) hold a word of probability zero under {of}: their log likelihood "
            "is -inf; smooth the topics, or leave those words out of X",
            RuntimeWarning,
            stacklevel=3,
        )


@dataclass(frozen=True, eq=False)
class FlatTopics:
    """Topics in the layout of the compiled loops.

    Attributes
    ----------
    phi : ndarray of shape (n_used_words, n_topics)
        Probability of each word that occurs, in each topic.
    alpha : ndarray of shape (n_topics,)
    ladder : ndarray of shape (n_used_words, n_topics)
        Sums of ``alpha_k phi_wk`` over the topics up to each.
    """

    phi: NDArray[np.float64]
    alpha: NDArray[np.float64]
    ladder: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Documents numbered by the words that occur; those that no topic has are left out of them.

    Attributes
    ----------
    topics : FlatTopics
    counts : csr_matrix of shape (n_documents, n_used_words)
    lengths : ndarray of shape (n_documents,)
        Number of words, impossible ones included.
    impossible : ndarray of bool, shape (n_documents,)
        Whether a document has a word that no topic has.
    """

    topics: FlatTopics
    counts: scipy.sparse.csr_matrix
    lengths: NDArray[np.int64]
    impossible: NDArray[np.bool_]

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return int(self.lengths.size)

    def tokens(self, rng: np.random.Generator | None = None) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Words one by one and where each document starts; shuffled within documents if `rng` is given."""
        tokens = tokens_of(self.counts)
        if rng is None:
            return tokens.words, tokens.offsets
        return tokens.words[np.argsort(tokens.documents + rng.random(tokens.n_tokens))], tokens.offsets

    def entries(self) -> tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.int64]]:
        """Distinct words, how often each occurs, and where each document starts."""
        return self.counts.indices.astype(np.int32), self.counts.data, self.counts.indptr.astype(np.int64)

    def scored(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores, with minus infinity for the impossible documents."""
        return np.where(self.impossible, -np.inf, scores)


def prepare(topic_word: ArrayLike, doc_topic_prior: ArrayLike, *documents: Any) -> list[Prepared]:
    """Check topics and documents; all documents get the same numbering of words."""
    topics = np.asarray(topic_word, dtype=np.float64)
    if topics.ndim != 2 or not topics.size:
        raise ValueError(f"topic_word must have two axes, topics and words, got shape {topics.shape}")
    check_distributions("topic_word", topics)
    given = np.asarray(doc_topic_prior, dtype=np.float64)
    if given.shape not in ((), (len(topics),)) or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(f"doc_topic_prior must be a positive number or {len(topics)} of them, got {doc_topic_prior!r}")
    alpha = np.full(len(topics), given)  # a copy: compiled loops are compiled again for arrays that are read-only
    counts = [as_counts(part, topics.shape[1]) for part in documents]
    if len({part.shape[0] for part in counts}) > 1:
        sizes = " and ".join(str(part.shape[0]) for part in counts)
        raise ValueError(f"observed and X must have equally many documents, got {sizes}")
    possible = topics.max(axis=0) > 0
    occurs = np.zeros(topics.shape[1], dtype=bool)
    for part in counts:
        occurs[part.indices] = True
    used = np.flatnonzero(occurs & possible)
    phi = np.ascontiguousarray(topics[:, used].T)
    flat = FlatTopics(phi, alpha, np.cumsum(phi * alpha, axis=1))
    return [
        Prepared(flat, part[:, used].tocsr(), lengths_of(part), np.asarray(part @ ~possible > 0).ravel())
        for part in counts
    ]


def blocks(work: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """Runs of documents of about equal work, each at least one document."""
    reached = np.cumsum(work)
    first = 0
    while first < work.size:
        done = reached[first - 1] if first else 0.0
        last = max(first + 1, int(np.searchsorted(reached, done + DRAWS_PER_CALL, side="right")))
        yield first, last
        first = last


def check_at_least(name: str, value: int, lowest: int) -> int:
    """Refuse numbers of draws and the like that are no whole numbers, or too few."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < lowest:
        raise ValueError(f"{name} must be a whole number of at least {lowest}, got {value!r}")
    return int(value)
