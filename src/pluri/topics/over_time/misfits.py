r"""Documents that no topic explains: a subject that the model has no topic for shows by them.

The surprise of a document is minus the standardised log likelihood of its words under its own shares of the topics,

.. math::

   r_d = - \frac{\sum_w n_{dw} (\log \sum_k \theta_{dk} \beta_{kw} - \mu)}{\sigma \sqrt{n_d}} ,

with mean and standard deviation of all tokens. The documents of the largest 0.3 %, 1 % and 3 % of it are counted as if
they were shares of three more topics, and scanned with the others: the rate of false alarms is that of all together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]

#: Shares of the documents that count as surprising.
LEVELS = (0.003, 0.01, 0.03)
#: Surprising documents whose words are kept.
MOST_KEPT = 5_000
#: Numbers in memory at a time.
BLOCK = 1 << 21


def log_likelihoods(counts: Any, shares: Array, topic_word: Array) -> tuple[Array, Array, Array]:
    """Of each document the sum of the log probabilities of its tokens, the sum of their squares, and their number."""
    counts = sparse.csr_matrix(counts)
    found = np.zeros((3, counts.shape[0]))
    step = max(1, BLOCK // max(1, int(counts.nnz / max(counts.shape[0], 1) + 1) * len(topic_word)))
    for begin in range(0, counts.shape[0], step):
        part = counts[begin : begin + step]
        rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        chance = np.einsum("ij,ij->i", shares[begin : begin + step][rows], topic_word.T[part.indices])
        logs = np.log(np.maximum(chance, 1e-300))
        for place, values in enumerate((logs, logs**2, np.ones_like(logs))):
            found[place, begin : begin + part.shape[0]] = np.bincount(rows, values * part.data, minlength=part.shape[0])
    return found[0], found[1], found[2]


class Misfits:
    """Finds surprising documents, and keeps the words of some.

    Parameters
    ----------
    topic_word : array of shape (n_topics, n_words)
    """

    def __init__(self, topic_word: Array) -> None:
        self._topic_word = np.asarray(topic_word, dtype=np.float64)
        self._scale: tuple[float, float] | None = None
        self._bars = np.full(len(LEVELS), np.inf)
        self._words = np.zeros(self._topic_word.shape[1])
        self._kept: list[Any] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._n_kept = 0

    def calibrate(self, sums: Array, squares: Array, lengths: Array) -> None:
        """Learn what is usual, from the sums of :func:`log_likelihoods` of documents."""
        total = max(lengths.sum(), 1.0)
        mean = sums.sum() / total
        self._scale = float(mean), float(np.sqrt(max(squares.sum() / total - mean**2, 1e-12)))
        surprise = self.surprise(sums, lengths)
        self._bars = np.array([np.quantile(surprise, 1 - level, method="higher") for level in LEVELS])

    def surprise(self, sums: Array, lengths: Array) -> Array:
        """How surprising documents are, from the sums of :func:`log_likelihoods`."""
        assert self._scale is not None
        mean, deviation = self._scale
        found: Array = -(sums - mean * lengths) / (deviation * np.sqrt(np.maximum(lengths, 1.0)))
        return found

    def columns(self, counts: Any, shares: Array, numbers: NDArray[np.int64]) -> Array:
        """Whether each document is surprising (documents x levels); the first that come say what is usual."""
        sums, squares, lengths = log_likelihoods(counts, shares, self._topic_word)
        if not len(sums):
            return np.zeros((0, len(LEVELS)))
        if self._scale is None:
            self.calibrate(sums, squares, lengths)
        surprise = self.surprise(sums, lengths)
        found = (surprise[:, None] >= self._bars).astype(np.float64)
        self._words += np.asarray(counts.sum(axis=0)).ravel()
        rows = np.flatnonzero(found[:, 1])[: max(0, MOST_KEPT - self._n_kept)]
        if len(rows):
            self._kept.append(sparse.csr_matrix(counts)[rows])
            self._numbers.append(numbers[rows])
            self._n_kept += len(rows)
        return found

    def words(self, first: int, last: int, n_words: int = 8) -> list[int]:
        """Columns of words that surprising documents of some periods have more of than all documents do."""
        if not self._kept:
            return []
        rows = np.flatnonzero((np.concatenate(self._numbers) >= first) & (np.concatenate(self._numbers) <= last))
        own = np.asarray(sparse.vstack(self._kept, format="csr")[rows].sum(axis=0)).ravel().astype(np.float64)
        usual = (self._words + 0.5) / (self._words + 0.5).sum() * max(own.sum(), 1.0)
        gain = np.where(own > usual, own * np.log(np.maximum(own, 1e-300) / usual), 0.0)
        order = np.argsort(-gain, kind="stable")[:n_words]
        return [int(column) for column in order if gain[column] > 0]
