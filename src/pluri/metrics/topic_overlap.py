"""How much topics resemble each other: within one model, and between two.

Topics that repeat each other are waste; topics that two fits agree on can be trusted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.metrics.coherence import top_columns
from pluri.metrics.contingency import assignment
from pluri.validation import check_count

Kind = Literal["cosine", "jaccard", "bhattacharyya"]
Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TopicOverlap:
    """Likeness of the topics of a model.

    Attributes
    ----------
    matrix : ndarray of shape (n_topics, n_topics)
        Likeness of each pair, from 0 to 1; ones on the diagonal.
    kind : str
    """

    matrix: Array
    kind: str

    @property
    def mean(self) -> float:
        """Mean over the pairs of different topics; NaN for a single topic."""
        pairs = self.matrix[np.tril_indices(len(self.matrix), -1)]
        return float(pairs.mean()) if pairs.size else float("nan")


@dataclass(frozen=True, eq=False)
class TopicMatch:
    """Which topic of one model is which of another.

    Attributes
    ----------
    pairs : ndarray of int64, shape (n_pairs, 2)
        Topic of the first model and its partner in the second, in the order of the first; as many as the smaller
        model has topics.
    similarity : ndarray of shape (n_pairs,)
        Likeness of the partners.
    kind : str
    """

    pairs: NDArray[np.int64]
    similarity: Array
    kind: str

    @property
    def mean(self) -> float:
        """Mean likeness of the partners."""
        return float(self.similarity.mean())

    def n_above(self, threshold: float) -> int:
        """Number of partners that are more alike than `threshold`."""
        return int((self.similarity > threshold).sum())


def topic_overlap(topic_word: ArrayLike, kind: Kind = "cosine", *, n_words: int = 10) -> TopicOverlap:
    """Measure the likeness of all pairs of topics.

    Parameters
    ----------
    topic_word : array-like of shape (n_topics, n_vocabulary)
        Probabilities (or other non-negative weights, for cosine and Jaccard) of the words in each topic.
    kind : {"cosine", "jaccard", "bhattacharyya"}, default="cosine"
        Cosine of the probabilities; share of common words among the top words of both; or sum over words of
        ``sqrt(p q)``.
    n_words : int, default=10
        Number of top words, for Jaccard.

    Returns
    -------
    TopicOverlap

    Examples
    --------
    >>> from pluri.metrics import topic_overlap
    >>> topic_overlap([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.5, 0.0]]).matrix.round(2)
    array([[1. , 0.5, 1. ],
           [0.5, 1. , 0.5],
           [1. , 0.5, 1. ]])
    """
    topics = _topics("topic_word", topic_word)
    matrix = _similarity(topics, topics, kind, n_words)
    np.fill_diagonal(matrix, 1.0)
    return TopicOverlap(matrix, kind)


def topic_uniqueness(topics: Any, *, n_words: int = 10) -> float:
    """Share of distinct words among the top words of all topics: 1 if no word leads two topics.

    Parameters
    ----------
    topics : array-like of shape (n_topics, n_vocabulary), or lists of top words
        As for :func:`topic_coherence`.
    n_words : int, default=10
        Number of top words of each topic.

    Returns
    -------
    float
        Between ``1 / n_topics`` and 1; also called topic diversity.

    Examples
    --------
    >>> from pluri.metrics import topic_uniqueness
    >>> topic_uniqueness([["cat", "dog"], ["dog", "car"]])
    0.75
    """
    check_count(n_words, "n_words")
    words = sorted({str(word) for row in topics for word in row if isinstance(word, str)})
    numbers = {word: number for number, word in enumerate(words)} if words else None
    chosen = np.concatenate(top_columns(topics, int(n_words), numbers, least=1))
    return float(np.unique(chosen).size / chosen.size)


def match_topics(a: ArrayLike, b: ArrayLike, kind: Kind = "cosine", *, n_words: int = 10) -> TopicMatch:
    """Pair the topics of two models so that the sum of their likenesses is largest (Hungarian algorithm).

    Parameters
    ----------
    a, b : array-like of shapes (n_topics_a, n_vocabulary) and (n_topics_b, n_vocabulary)
        Words of the topics of both models; they may have different numbers of topics.
    kind : {"cosine", "jaccard", "bhattacharyya"}, default="cosine"
        As for :func:`topic_overlap`.
    n_words : int, default=10
        Number of top words, for Jaccard.

    Returns
    -------
    TopicMatch

    Examples
    --------
    >>> from pluri.metrics import match_topics
    >>> match = match_topics([[0.9, 0.1, 0.0], [0.0, 0.2, 0.8]], [[0.1, 0.1, 0.8], [0.8, 0.2, 0.0], [0.3, 0.3, 0.4]])
    >>> match.pairs.tolist(), match.similarity.round(2).tolist()
    ([[0, 1], [1, 0]], [0.99, 0.99])
    """
    first, second = _topics("a", a), _topics("b", b)
    if first.shape[1] != second.shape[1]:
        raise ValueError(f"a and b must have equally many words, got {first.shape[1]} and {second.shape[1]}")
    similarity = _similarity(first, second, kind, n_words)
    rows, columns = assignment(similarity)
    order = np.argsort(rows)
    pairs = np.column_stack([rows[order], columns[order]]).astype(np.int64)
    return TopicMatch(pairs, similarity[pairs[:, 0], pairs[:, 1]], kind)


def _topics(name: str, values: ArrayLike) -> Array:
    topics = np.asarray(values, dtype=np.float64)
    if topics.ndim != 2 or not topics.size:
        raise ValueError(f"{name} must have two axes, topics and words, got shape {topics.shape}")
    if not np.isfinite(topics).all() or (topics < 0).any():
        raise ValueError(f"{name} must be finite and non-negative")
    return topics


def _similarity(a: Array, b: Array, kind: str, n_words: int) -> Array:
    if kind == "cosine":
        lengths = np.outer(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
        return np.divide(a @ b.T, lengths, out=np.zeros(lengths.shape), where=lengths > 0)
    if kind == "bhattacharyya":
        for topics in (a, b):
            if not np.allclose(topics.sum(axis=1), 1.0):
                raise ValueError("topics must be rows that sum to 1 for kind='bhattacharyya', got others")
        return np.asarray(np.sqrt(a) @ np.sqrt(b).T)
    if kind == "jaccard":
        check_count(n_words, "n_words")
        tops = []
        for topics in (a, b):
            table = np.zeros(topics.shape)
            best = np.argsort(-topics, axis=1, kind="stable")[:, : int(n_words)]
            np.put_along_axis(table, best, 1.0, axis=1)
            tops.append(table)
        common = tops[0] @ tops[1].T
        return common / (tops[0].sum(axis=1)[:, None] + tops[1].sum(axis=1)[None, :] - common)
    raise ValueError(f"kind must be 'cosine', 'jaccard' or 'bhattacharyya', got {kind!r}")
