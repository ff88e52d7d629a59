"""What all scores of flat topics start from: topics of the words that occur, and the documents in their numbering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pluri.topics.documents import tokens_of
from pluri.topics.held_out.counts import as_counts, lengths_of
from pluri.validation import check_distributions

#: About how many draws of a topic one call of a compiled loop makes: between calls Ctrl-C is heard.
DRAWS_PER_CALL = 2e7


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
