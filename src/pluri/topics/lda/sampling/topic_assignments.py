"""The topic of every token of a corpus, the counts that go with it, and the priors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.engine.aligned import aligned_zeros, padded_width
from pluri.topics.documents import Tokens
from pluri.topics.lda.aligned_arrays import BLOCK

Array = NDArray[np.float64]
Integers = NDArray[np.int32]

#: Prior counts lie between these, so that products of two of them are float32 numbers.
SMALLEST_PRIOR, LARGEST_PRIOR = 1e-12, 1e9


class TokenTopics(NamedTuple):
    """Word and topic of each token; those of document d are ``offsets[d]``, ..., ``offsets[d + 1] - 1``."""

    words: Integers
    offsets: NDArray[np.int64]
    topics: Integers


class Part(NamedTuple):
    """Tokens ``begins[d]``, ..., ``ends[d] - 1`` of documents `first`, ..., `stop` - 1."""

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    first: int
    stop: int


class Counts(NamedTuple):
    """Tokens by word and topic (n_words, width), and by topic (width,): n_topics, rounded up to 16."""

    word_topic: Integers
    totals: Integers


class Priors(NamedTuple):
    """a (n_topics,); e, for each word or, if `by_topic`, of the shape of the counts, flat; and E (width,); float32."""

    alpha: NDArray[np.float32]
    word: NDArray[np.float32]
    by_topic: bool
    word_totals: NDArray[np.float32]


class Room(NamedTuple):
    """Room for a document: counts, shares and cumulated weights of topics; sums of shares, and a list, of blocks."""

    in_document: Integers
    share: NDArray[np.float32]
    work: NDArray[np.float32]
    block_share: NDArray[np.float32]
    listed: NDArray[np.uint64]

    @classmethod
    def of(cls, width: int) -> Room:
        """Room for so many topics, rounded up to 16."""
        n_blocks = width // BLOCK
        shares = aligned_zeros(width, np.float32), aligned_zeros(max(width, padded_width(n_blocks, BLOCK)), np.float32)
        sums = aligned_zeros(padded_width(n_blocks, BLOCK), np.float32)
        return cls(aligned_zeros(width, np.int32), *shares, sums, np.zeros(n_blocks, dtype=np.uint64))


class GibbsState:
    """Where a chain is: the topic of every token, counts that go with it, and the priors. Sweeps change it in place.

    Attributes
    ----------
    tokens : Tokens
    topics : int32 array of shape (n_tokens,)
    word_topic : int32 array of shape (n_words, n_topics rounded up to 16)
        Tokens by word and topic.
    topic_totals : int32 array of shape (n_topics rounded up to 16,)
    doc_topic_prior : array of shape (n_topics,)
    topic_word_prior : array of shape (), (n_words,) or (n_topics, n_words)
    room : Room
        For a sweep of one thread over the documents.
    n_sweeps : int
    means : dict of arrays, or None
        Means over `n_averaged` sweeps after the warm-up, if the kernel keeps them: ``topic_word``, the estimates of the
        topics (n_topics, n_words), ``totals``, the tokens of each topic (n_topics,), and both priors.
    """

    def __init__(self, tokens: Tokens, topics: Integers, doc_topic_prior: Array, topic_word_prior: Array) -> None:
        from pluri.topics.lda.sampling._gibbs_kernels import count_tokens

        width = padded_width(len(doc_topic_prior), BLOCK)
        self.tokens = tokens
        self.topics = topics
        self.word_topic = aligned_zeros((tokens.n_words, width), np.int32)
        self.topic_totals = aligned_zeros(width, np.int32)
        count_tokens(tokens.words, topics, self.word_topic, self.topic_totals)
        self.room = Room.of(width)
        self.active = np.zeros((0, 0), dtype=np.uint64)
        self.n_sweeps = 0
        self.n_averaged = 0
        self.means: dict[str, Array] | None = None
        self.set_priors(doc_topic_prior, topic_word_prior)

    def set_priors(self, doc_topic_prior: Array, topic_word_prior: Array) -> None:
        """Use other priors from now on."""
        self.doc_topic_prior = np.array(doc_topic_prior, dtype=np.float64)
        self.topic_word_prior = np.array(topic_word_prior, dtype=np.float64)
        self._log_density: float | None = None
        n_topics, n_words = len(self.doc_topic_prior), self.tokens.n_words
        eta, width = self.topic_word_prior, padded_width(len(self.doc_topic_prior), BLOCK)
        self._alpha = self.doc_topic_prior.astype(np.float32)
        self._prior_totals = np.ones(width)
        self._prior_totals[:n_topics] = eta.sum(axis=1) if eta.ndim == 2 else np.broadcast_to(eta, n_words).sum()
        if eta.ndim == 2:
            by_topic = aligned_zeros((n_words, width), np.float32)
            by_topic[:, :n_topics] = eta.T
            prior = by_topic.reshape(-1)
        else:
            prior = np.broadcast_to(eta, n_words).astype(np.float32)
        self.priors = Priors(self._alpha, prior, eta.ndim == 2, self._prior_totals.astype(np.float32))

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return len(self.doc_topic_prior)

    @property
    def token_topics(self) -> TokenTopics:
        """Words and topics of the tokens, which sweeps change."""
        return TokenTopics(self.tokens.words, self.tokens.offsets, self.topics)

    @property
    def position(self) -> dict[str, NDArray[Any]]:
        """What determines the state, as copies."""
        return {
            "topics": self.topics.copy(), "doc_topic_prior": self.doc_topic_prior.copy(),
            "topic_word_prior": self.topic_word_prior.copy(),
        }  # fmt: skip

    @property
    def log_density(self) -> float:
        """Log p(w, z) given the priors; computed when it is asked for."""
        if self._log_density is None:
            self._log_density = self._log_joint()
        return self._log_density

    def _log_joint(self) -> float:
        from pluri.topics.lda.sampling._gibbs_kernels import log_topics, log_words

        eta, by_topic = self.topic_word_prior, self.topic_word_prior.ndim == 2
        prior = np.ascontiguousarray(eta.T) if by_topic else np.broadcast_to(eta, self.tokens.n_words).reshape(-1, 1)
        words = log_words(
            self.word_topic, self.topic_totals, np.ascontiguousarray(prior), by_topic, self._prior_totals,
            self.n_topics,
        )  # fmt: skip
        alpha = self.doc_topic_prior
        in_document = np.zeros(len(alpha), dtype=np.int32)
        return float(words + log_topics(self.tokens.offsets, self.topics, alpha, float(alpha.sum()), in_document))

    def active_blocks(self) -> NDArray[np.uint64]:
        """Bits of blocks of topics in which each word has tokens; sparse sweeps keep them up to date."""
        from pluri.topics.lda.sampling._sparse_kernels import mark_active

        if not self.active.size:
            n_blocks = self.word_topic.shape[1] // BLOCK
            self.active = np.zeros((self.tokens.n_words, -(-n_blocks // 64)), dtype=np.uint64)
            mark_active(self.word_topic, self.active)
        return self.active

    def topic_counts(self) -> Integers:
        """Tokens by topic and word, (n_topics, n_words)."""
        return self.word_topic[:, : self.n_topics].T

    def topic_word(self) -> Array:
        """Expected probabilities of words given the topics of tokens, (n_topics, n_words)."""
        unnormalised = self.topic_counts() + np.broadcast_to(
            self.topic_word_prior, (self.n_topics, self.tokens.n_words)
        )
        return np.asarray(unnormalised / unnormalised.sum(axis=1, keepdims=True))

    def now(self) -> dict[str, Array]:
        """What is averaged, at this sweep."""
        return {
            "topic_word": self.topic_word(), "totals": self.topic_totals[: self.n_topics].astype(np.float64),
            "doc_topic_prior": self.doc_topic_prior.copy(), "topic_word_prior": self.topic_word_prior.copy(),
        }  # fmt: skip

    def average(self) -> None:
        """Add what there is now to the means."""
        now, before = self.now(), self.means
        self.n_averaged += 1
        if before is not None:
            now = {name: mean + (now[name] - mean) / self.n_averaged for name, mean in before.items()}
        self.means = now  # in one go, so that Ctrl-C leaves whole means

    def document_counts(self) -> sparse.csr_matrix:
        """Tokens by document and topic, (n_documents, n_topics)."""
        from pluri.topics.lda.sampling._gibbs_kernels import count_documents

        offsets = self.tokens.offsets
        indptr = np.zeros(len(offsets), dtype=np.int64)
        indices, counts = np.empty_like(self.topics), np.empty_like(self.topics)
        n = count_documents(offsets, self.topics, self.n_topics, indptr, indices, counts)
        shape = (len(offsets) - 1, self.n_topics)
        return sparse.csr_matrix((counts[:n], indices[:n], indptr), shape=shape)

    def doc_topic(self, first: int = 0, stop: int | None = None) -> Array:
        """Expected proportions of topics in documents `first`, ..., `stop` - 1, given the topics of their tokens."""
        rows = self.document_counts()[first:stop]
        unnormalised = rows.toarray() + self.doc_topic_prior
        return np.asarray(unnormalised / unnormalised.sum(axis=1, keepdims=True))

    def topic_weight(self) -> Array:
        """Share of each topic in the tokens, (n_topics,); that of the prior if there are none."""
        totals = self.topic_totals[: self.n_topics].astype(np.float64)
        return totals / totals.sum() if totals.sum() > 0 else self.doc_topic_prior / self.doc_topic_prior.sum()


def checked_priors(doc_topic_prior: Any, topic_word_prior: Any, n_topics: int, n_words: int) -> tuple[Array, Array]:
    """Both priors as arrays: of shape (n_topics,), and (), (n_words,) or (n_topics, n_words)."""
    alpha = np.asarray(doc_topic_prior, dtype=np.float64)
    if alpha.shape not in ((), (n_topics,)):
        raise ValueError(f"doc_topic_prior must be a number or have shape {(n_topics,)}, got shape {alpha.shape}")
    eta = np.asarray(topic_word_prior, dtype=np.float64)
    if eta.shape not in ((), (n_words,), (n_topics, n_words)):
        raise ValueError(
            f"topic_word_prior must be a number or have shape {(n_words,)} or {(n_topics, n_words)}, got shape "
            f"{eta.shape}"
        )
    for name, values in (("doc_topic_prior", alpha), ("topic_word_prior", eta)):
        if values.size and not (values.min() >= SMALLEST_PRIOR and values.max() <= LARGEST_PRIOR):
            worst = values.min() if not values.min() >= SMALLEST_PRIOR else values.max()
            raise ValueError(f"{name} must lie between {SMALLEST_PRIOR:g} and {LARGEST_PRIOR:g}, got {worst:g}")
    return np.broadcast_to(alpha, n_topics).copy(), eta


def check_counts(state: GibbsState) -> None:
    """Raise an AssertionError if the counts of a state are not those of its tokens."""
    from pluri.topics.lda.sampling._sparse_kernels import mark_active

    anew = GibbsState(state.tokens, state.topics, state.doc_topic_prior, state.topic_word_prior)
    np.testing.assert_array_equal(state.word_topic, anew.word_topic)
    np.testing.assert_array_equal(state.topic_totals, anew.topic_totals)
    if state.active.size:
        active = np.empty_like(state.active)
        mark_active(state.word_topic, active)
        np.testing.assert_array_equal(state.active, active)
