r"""Subjects that the topics do not have, found without looking at the dates: a few documents that share their words.

A document of length :math:`n_d` may have a part :math:`\omega_d` of a further topic :math:`\psi` beside what the model
says of it, :math:`b_{dw} = \sum_k \theta_{dk} \beta_{kw}`,

.. math::

   p(w \mid d) = (1 - \omega_d) b_{dw} + \omega_d \psi^{(-d)}_w , \qquad
   g_d = \sum_w n_{dw} \log \frac{p(w \mid d)}{b_{dw}} ,

where :math:`\psi^{(-d)}` is the topic without the words of document d itself: one strange document is no subject, and
several that have nothing in common are none. The steps of EM begin with each of the most surprising documents; kept are
the subjects by which documents gain most. The parts :math:`\omega_d` of documents with :math:`g_d > 2` are then shares
like those of the topics. As dates have no part in this, they may change places among the documents as before, and the
rate of false alarms stays what it is.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

Array = NDArray[np.float64]

#: Subjects at most, and documents that they begin with.
MOST_SUBJECTS, SEEDS = 6, 60
#: Share of the documents, the most surprising ones, in which subjects are looked for, and their number.
SURPRISING, LEAST_DOCUMENTS, MOST_DOCUMENTS = 0.1, 300, 2000
#: Steps of EM.
STEPS = 12
#: Tokens with the frequencies of all documents that each subject has beforehand; tokens that speak for no subject in
#: each document.
PRIOR_TOKENS, AGAINST = 20.0, 2.0
#: Nats by which a document must gain to be one of a subject, and documents that a subject has at least.
LEAST_GAIN, FEWEST = 2.0, 3
#: Subjects are the same if so large a share of the documents of one are those of the other.
SAME = 0.5
#: Numbers in memory at a time.
BLOCK = 1 << 21


class Entries(NamedTuple):
    """Counts that are not zero: documents, words, numbers, what the topics say of each; and matrices that sum them."""

    rows: NDArray[np.int64]
    words: NDArray[np.int64]
    counts: Array
    base: Array
    by_word: Any
    by_document: Any
    lengths: Array

    @classmethod
    def of(cls, counts: Any, shares: Array, topic_word: Array) -> Self:
        """Of documents (documents x words) with shares (documents x topics)."""
        matrix = sparse.csr_matrix(counts)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        words, numbers = matrix.indices.astype(np.int64), np.asarray(matrix.data, dtype=np.float64)
        base = np.empty(len(rows))
        step = max(1, BLOCK // len(topic_word))
        for begin in range(0, len(rows), step):
            part = slice(begin, begin + step)
            base[part] = np.einsum("ij,ij->i", shares[rows[part]], topic_word.T[words[part]])
        places = np.arange(len(rows))
        one = np.ones(len(rows))
        return cls(
            rows, words, numbers, np.maximum(base, 1e-300),
            sparse.csr_matrix((one, (words, places)), shape=(matrix.shape[1], len(rows))),
            sparse.csr_matrix((one, (rows, places)), shape=(matrix.shape[0], len(rows))),
            np.asarray(np.bincount(rows, numbers, minlength=matrix.shape[0]), dtype=np.float64),
        )  # fmt: skip


class Parts(NamedTuple):
    """Part of each subject in each document, nats that the document gains by it, and tokens of each entry in it."""

    part: Array
    gain: Array
    tokens: Array


def parts_of(entries: Entries, ratio: Array, part: Array) -> Parts:
    """One step: parts of documents given how much likelier each entry is in the subject (entries x subjects)."""
    here = part[entries.rows]
    mixed = 1.0 - here + here * ratio
    tokens = entries.counts[:, None] * here * ratio / mixed
    gain = entries.by_document @ (entries.counts[:, None] * np.log(mixed))
    found = (entries.by_document @ tokens) / (entries.lengths + AGAINST)[:, None]
    return Parts(found, gain, tokens)


def with_usual(entries: Entries, usual: Array) -> Entries:
    """The same, where documents may have a part of the usual words too: those are no subject of their own."""
    ratio = usual[entries.words, None] / entries.base[:, None]
    part = np.full((len(entries.lengths), 1), 0.3)
    for _ in range(STEPS):
        part = parts_of(entries, ratio, part).part
    here = part[entries.rows]
    return entries._replace(base=entries.base * (1.0 - here + here * ratio).ravel())


def without_own(entries: Entries, tokens: Array, usual: Array) -> Array:
    """How much likelier each entry is in the subjects without its own document than by the topics."""
    in_words, in_documents = entries.by_word @ tokens, entries.by_document @ tokens
    # What a word has in other entries of the same document there is not: words of a document are different.
    others = in_words[entries.words] - tokens + PRIOR_TOKENS * usual[entries.words, None]
    whole = tokens.sum(axis=0) - in_documents[entries.rows] + PRIOR_TOKENS
    ratio: Array = others / np.maximum(whole, 1e-300) / entries.base[:, None]
    return ratio


def grow(entries: Entries, seeds: NDArray[np.int64], usual: Array) -> Parts:
    """Subjects that begin with one document each; a document adds its tokens by its chance of being one of them."""
    tokens = np.where(entries.rows[:, None] == seeds, entries.counts[:, None], 0.0)
    found = Parts(np.full((len(entries.lengths), len(seeds)), 0.5), np.zeros(0), tokens)
    for _ in range(STEPS):
        found = parts_of(entries, without_own(entries, found.tokens, usual), found.part)
        found = found._replace(tokens=found.tokens * expit(found.gain - LEAST_GAIN)[entries.rows])
    return found


class Subjects:
    """Topics beside those of a model, each of a few documents.

    Parameters
    ----------
    topic_word : array of shape (n_topics, n_words)

    Attributes
    ----------
    word : array of shape (n_subjects, n_words)
        Distributions of words.
    """

    def __init__(self, topic_word: Array) -> None:
        self._topic_word = np.asarray(topic_word, dtype=np.float64)
        self._usual = np.full(self._topic_word.shape[1], 1.0 / self._topic_word.shape[1])
        self.word = np.zeros((0, self._topic_word.shape[1]))

    def find(self, counts: Any, shares: Array, surprise: Array) -> Self:
        """Look for subjects among the documents that are most surprising."""
        counts = sparse.csr_matrix(counts)
        n_documents = counts.shape[0]
        frequency = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel() + 0.5
        self._usual = frequency / frequency.sum()
        n_kept = int(np.clip(SURPRISING * n_documents, LEAST_DOCUMENTS, MOST_DOCUMENTS))
        rows = np.argsort(-surprise, kind="stable")[:n_kept]
        rows = rows[np.asarray(counts[rows].sum(axis=1)).ravel() > 0]
        if len(rows) < FEWEST:
            return self
        entries = with_usual(Entries.of(counts[rows], shares[rows], self._topic_word), self._usual)
        seeds = np.arange(min(SEEDS, len(rows)))
        step = max(1, BLOCK // max(len(entries.rows), 1))
        blocks = [grow(entries, seeds[begin : begin + step], self._usual) for begin in range(0, len(seeds), step)]
        gain = np.concatenate([block.gain for block in blocks], axis=1)
        part = np.concatenate([block.part for block in blocks], axis=1)
        in_words = np.concatenate([entries.by_word @ block.tokens for block in blocks], axis=1)
        kept = _different(np.where(gain > LEAST_GAIN, gain - LEAST_GAIN, 0.0), part)
        word = in_words[:, kept].T + PRIOR_TOKENS * self._usual
        self.word = word / word.sum(axis=1, keepdims=True)
        return self

    def columns(self, counts: Any, shares: Array) -> Array:
        """Part of each subject in each document (documents x `MOST_SUBJECTS`); zero where it gains too little."""
        found = np.zeros((counts.shape[0], MOST_SUBJECTS))
        if not len(self.word) or not counts.shape[0]:
            return found
        counts = sparse.csr_matrix(counts)
        per_document = max(1.0, counts.nnz / counts.shape[0] * MOST_SUBJECTS)
        step = max(1, int(BLOCK / per_document))
        for begin in range(0, counts.shape[0], step):
            rows = slice(begin, begin + step)
            entries = with_usual(Entries.of(counts[rows], shares[rows], self._topic_word), self._usual)
            ratio = self.word.T[entries.words] / entries.base[:, None]
            parts = Parts(np.full((len(entries.lengths), len(self.word)), 0.3), np.zeros(0), np.zeros(0))
            for _ in range(STEPS):
                parts = parts_of(entries, ratio, parts.part)
            found[rows, : len(self.word)] = np.where(parts.gain > LEAST_GAIN, parts.part, 0.0)
        return found

    def words(self, subject: int, n_words: int = 8) -> list[int]:
        """Columns of the words that a subject has more of than all documents do."""
        own = self.word[subject]
        gain = np.where(own > self._usual, own * np.log(np.maximum(own, 1e-300) / self._usual), 0.0)
        return [int(column) for column in np.argsort(-gain, kind="stable")[:n_words] if gain[column] > 0]


def _different(gain: Array, part: Array) -> list[int]:
    """Subjects by which documents gain most (documents x subjects), without those that are like a better one."""
    kept: list[int] = []
    members = gain > 0
    for subject in np.argsort(-gain.sum(axis=0), kind="stable"):
        own = members[:, subject]
        if len(kept) == MOST_SUBJECTS or own.sum() < FEWEST:
            continue
        shared = [(own & members[:, other]).sum() / min(own.sum(), members[:, other].sum()) for other in kept]
        if max(shared, default=0.0) <= SAME:
            kept.append(int(subject))
    return kept
