"""Topics of new documents, given the topics' words: Gibbs sampling with the word probabilities fixed.

A token of word w has topic k with weight ``(n_dk + a_k) phi_kw``, n_dk without the token itself. Documents do not
depend on each other, so any number of threads gives the same result.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.aligned import aligned_zeros, padded_width
from pluri.topics.documents import Tokens, tokens_of
from pluri.topics.lda.aligned_arrays import BLOCK
from pluri.topics.lda.sampling.topic_assignments import TokenTopics
from pluri.validation import check_count

Array = NDArray[np.float64]
#: Documents whose proportions are held in memory together where only the topics of tokens are wanted.
DOCUMENTS_AT_ONCE = 10_000


class KnownTopics(NamedTuple):
    """Probabilities of words (n_words, width), a (width,), sum_k a_k phi_wk (n_words,), and the number of topics."""

    phi: NDArray[np.float32]
    alpha: NDArray[np.float32]
    smoothing: NDArray[np.float32]
    n_topics: int


class Room(NamedTuple):
    """Room for a document: counts and cumulated weights of topics; a list of blocks, their tokens, bits if any."""

    in_document: NDArray[np.float32]
    work: NDArray[np.float32]
    listed: NDArray[np.uint64]
    held: NDArray[np.int32]
    masks: NDArray[np.uint64]

    @classmethod
    def of(cls, width: int) -> Room:
        """Room for so many topics, rounded up to 16."""
        n_blocks = width // BLOCK
        topics = aligned_zeros(width, np.float32), aligned_zeros(width, np.float32)
        blocks = np.zeros(n_blocks, dtype=np.uint64), np.zeros(n_blocks, dtype=np.int32)
        return cls(*topics, *blocks, np.zeros(-(-n_blocks // 64), dtype=np.uint64))


def fold_in(
    topic_word: Array,
    doc_topic_prior: Array,
    X: Any,
    rng: np.random.Generator,
    *,
    n_sweeps: int = 20,
    n_samples: int = 10,
    n_threads: int = 1,
) -> Array:
    """Proportions of topics in new documents.

    Parameters
    ----------
    topic_word : array of shape (n_topics, n_words)
        Probabilities of words in each topic.
    doc_topic_prior : array of shape (n_topics,)
        Dirichlet prior of the proportions.
    X : csr matrix of shape (n_documents, n_words)
        Whole counts, as `pluri.topics.documents.check_documents` returns them.
    rng : Generator
    n_sweeps : int, default=20
        Sweeps over a document before samples are kept.
    n_samples : int, default=10
        Sweeps whose expected proportions are averaged.
    n_threads : int, default=1
        Documents are shared among threads; the result does not depend on it.

    Returns
    -------
    array of shape (n_documents, n_topics)
        Rows sum to one; that of an empty document is the mean of the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.lda.sampling.fold_in import fold_in
    >>> topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    >>> X = sparse.csr_matrix([[3, 4, 0, 0], [0, 1, 2, 1], [0, 0, 0, 0]])
    >>> fold_in(topics, np.array([0.5, 0.5]), X, np.random.default_rng(0))
    array([[0.9375, 0.0625],
           [0.3   , 0.7   ],
           [0.5   , 0.5   ]])
    """
    phi = np.asarray(topic_word, dtype=np.float64)
    alpha = np.broadcast_to(np.asarray(doc_topic_prior, dtype=np.float64), phi.shape[:1])
    if phi.ndim != 2 or phi.shape[1] != X.shape[1]:
        raise ValueError(f"topic_word must have a column for each of the {X.shape[1]} words, got shape {phi.shape}")
    for name, value, least in (("n_sweeps", n_sweeps, 0), ("n_samples", n_samples, 1), ("n_threads", n_threads, 1)):
        check_count(value, name, least)
    theta, _ = sampled_topics(phi, alpha, tokens_of(X), rng, n_sweeps, n_samples, n_threads)
    return theta


def sampled_topics(
    phi: Array, alpha: Array, tokens: Tokens, rng: np.random.Generator, n_sweeps: int, n_samples: int, n_threads: int
) -> tuple[Array, NDArray[np.int32]]:
    """Mean proportions of documents as :func:`fold_in` gives them, and the topics of their tokens in the last sweep."""
    from pluri.topics.lda.sampling._fold_in_kernels import fold_in_documents

    n_topics, width = phi.shape[0], padded_width(phi.shape[0], BLOCK)
    # Only words that occur: a corpus can have many, a few new documents do not.
    used, words = np.unique(tokens.words, return_inverse=True)
    by_word = aligned_zeros((max(len(used), 1), width), np.float32)
    by_word[: len(used), :n_topics] = phi[:, used].T
    prior = aligned_zeros(width, np.float32)
    prior[:n_topics] = alpha
    known = KnownTopics(by_word, prior, (by_word @ prior).astype(np.float32), n_topics)
    seeds = rng.integers(0, 2**64, size=(tokens.n_documents, 2), dtype=np.uint64)
    topics = np.zeros(tokens.n_tokens, dtype=np.int32)
    seated = TokenTopics(words.astype(np.int32), tokens.offsets, topics)
    theta = np.zeros((tokens.n_documents, n_topics))

    def run(first: int, stop: int) -> None:
        fold_in_documents(seated, first, stop, seeds, known, n_sweeps, n_samples, Room.of(width), theta)

    if n_threads == 1 or tokens.n_documents < 2:
        run(0, tokens.n_documents)
        return theta, topics
    cuts = np.searchsorted(tokens.offsets, tokens.n_tokens * np.arange(1, n_threads) / n_threads)
    bounds = [0, *cuts.clip(0, tokens.n_documents).tolist(), tokens.n_documents]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(run, bounds[:-1], bounds[1:]))
    return theta, topics


def topics_given_words(
    phi: Array, alpha: Array, tokens: Tokens, rng: np.random.Generator, n_threads: int
) -> NDArray[np.int32]:
    """Draw the topics of tokens once, each given those before it in its document."""
    parts = [np.zeros(0, dtype=np.int32)]
    for first in range(0, tokens.n_documents, DOCUMENTS_AT_ONCE):
        offsets = tokens.offsets[first : first + DOCUMENTS_AT_ONCE + 1]
        words = tokens.words[offsets[0] : offsets[-1]]
        some = Tokens(words, np.zeros_like(words), offsets - offsets[0], tokens.n_words)
        parts.append(sampled_topics(phi, alpha, some, rng, 0, 1, n_threads)[1])
    return np.concatenate(parts)
