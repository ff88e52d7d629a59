r"""Words of a topic that drift: they become a larger or smaller part of it over time.

With :math:`n_{dkw}` the expected number of tokens of word w in document d that belong to topic k, :math:`n_{dk}` their
sum over words and :math:`s_d` the time of the document, the score of a linear trend of :math:`p_{kw}` is

.. math::

   z_{kw} = \frac{\sum_d (s_d - \bar s_k) (n_{dkw} - p_{kw} n_{dk})}
   {\sqrt{\sum_d (s_d - \bar s_k)^2 (n_{dkw} - p_{kw} n_{dk})^2}} ,

whose variance counts documents, not tokens: a word that comes ten times in one text says no more than that text. All
sums are of powers of the time, so that documents are looked at once, in batches.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

Array = NDArray[np.float64]

#: Words in fewer documents of a topic are not tested: their z is not normal.
LEAST_DOCUMENTS = 20
#: From this many expected tokens of the topic on a document counts as one that has the word in it.
PRESENT = 0.5
#: Numbers in memory at a time: entries of the counts by topics.
BLOCK = 1 << 21


class WordTrends(NamedTuple):
    """Trends of all words in all topics.

    Attributes
    ----------
    z : array of shape (n_topics, n_words)
        Positive if the word gains; 0 where there are too few documents.
    early, late : arrays of shape (n_topics, n_words)
        Probability at the beginning and at the end, by a straight line.
    n_tested : int
        Pairs of topics and words that were looked at.
    """

    z: Array
    early: Array
    late: Array
    n_tested: int

    def bar(self, false_alarm_rate: float) -> float:
        """The |z| that none of all words in all topics exceeds, but for this rate, if nothing drifts (Bonferroni)."""
        return float(stats.norm.isf(false_alarm_rate / 2 / max(self.n_tested, 1)))


class WordSums:
    """Collects what trends of words need, batch by batch.

    Parameters
    ----------
    topic_word : array of shape (n_topics, n_words)
    """

    def __init__(self, topic_word: Array) -> None:
        self._topic_word = np.asarray(topic_word, dtype=np.float64)
        shape = self._topic_word.shape
        self._first: float | None = None
        self._span = [np.inf, -np.inf]
        self._tokens = np.zeros((2, *shape))
        self._squares = np.zeros((3, *shape))
        self._products = np.zeros((3, *shape))
        self._present = np.zeros(shape)
        self._totals = np.zeros((3, shape[0]))
        self._total_squares = np.zeros((3, shape[0]))

    def add(self, counts: Any, shares: Array, times: NDArray[Any]) -> None:
        """Take counts (documents x words), shares (documents x topics) and times of some documents."""
        counts = sparse.csr_matrix(counts)
        if not counts.shape[0]:
            return
        times = np.asarray(times, dtype=np.float64)
        if self._first is None:
            self._first = float(times.min())
        times = times - self._first
        self._span = [min(self._span[0], times.min()), max(self._span[1], times.max())]
        step = max(1, BLOCK // max(1, int(counts.nnz / counts.shape[0] + 1) * len(self._topic_word)))
        for begin in range(0, counts.shape[0], step):
            rows = slice(begin, begin + step)
            self._add(counts[rows], shares[rows], times[rows])

    def _add(self, counts: Any, shares: Array, times: Array) -> None:
        n_words = counts.shape[1]
        document = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        word = counts.indices
        # Expected tokens of each topic, for each entry of the counts.
        parts = shares[document] * self._topic_word.T[word]
        parts *= (counts.data / np.maximum(parts.sum(axis=1), 1e-300))[:, None]
        powers = np.stack([np.ones_like(times), times, times**2])[:, document]
        for topic, tokens in enumerate(parts.T):
            whole = np.bincount(document, tokens, minlength=counts.shape[0])
            for power, weight in enumerate(powers):
                if power < 2:
                    self._tokens[power, topic] += np.bincount(word, weight * tokens, minlength=n_words)
                self._squares[power, topic] += np.bincount(word, weight * tokens**2, minlength=n_words)
                mixed = weight * tokens * whole[document]
                self._products[power, topic] += np.bincount(word, mixed, minlength=n_words)
                self._totals[power, topic] += (times**power) @ whole
                self._total_squares[power, topic] += (times**power) @ whole**2
            self._present[topic] += np.bincount(word, tokens >= PRESENT, minlength=n_words)

    def trends(self) -> WordTrends:
        """The trend of every word in every topic."""
        total = np.maximum(self._totals[0], 1e-300)[:, None]
        middle = (self._totals[1][:, None]) / total
        share = self._tokens[0] / total
        # Powers of the time since the middle of the topic, from those since the first document.
        weights = (middle**2, -2 * middle, np.ones_like(middle))
        score = self._tokens[1] - middle * self._tokens[0] - share * (self._totals[1][:, None] - middle * total)
        variance = sum(
            weight * (square - 2 * share * product + share**2 * whole[:, None])
            for weight, square, product, whole in zip(
                weights, self._squares, self._products, self._total_squares, strict=True
            )
        )
        tested = self._present >= LEAST_DOCUMENTS
        z = np.where(tested & (variance > 0), score / np.sqrt(np.maximum(variance, 1e-300)), 0.0)
        inertia = self._totals[2][:, None] - middle * self._totals[1][:, None]
        slope = score / np.maximum(inertia, 1e-300)
        low, high = self._span
        early, late = (np.clip(share + slope * (time - middle), 0.0, 1.0) for time in (low, high))
        return WordTrends(z, early, late, int(tested.sum()))
