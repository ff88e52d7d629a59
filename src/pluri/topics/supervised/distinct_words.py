"""The distinct words of documents and how often each occurs, document after document."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class DistinctWords(NamedTuple):
    """Pairs of a document and a word that it has, which compiled functions take as they are.

    Attributes
    ----------
    words : int32 array of shape (n_pairs,)
        Column of each pair.
    counts : array of shape (n_pairs,)
        How often the document has the word.
    offsets : int64 array of shape (n_documents + 1,)
        Document d has pairs ``offsets[d] : offsets[d + 1]``.
    lengths : array of shape (n_documents,)
        Tokens of each document.
    n_words : int
        Size of the vocabulary.
    """

    words: NDArray[np.int32]
    counts: Array
    offsets: NDArray[np.int64]
    lengths: Array
    n_words: int

    @property
    def n_documents(self) -> int:
        """Number of documents, empty ones included."""
        return int(self.offsets.size - 1)

    @property
    def documents(self) -> NDArray[np.int64]:
        """Row of each pair."""
        return np.repeat(np.arange(self.n_documents), np.diff(self.offsets))

    def by_document(self, values: Array) -> Array:
        """Sum over the tokens of each document of what stands in the rows of `values`, one for each pair."""
        sums = np.zeros((self.n_documents, values.shape[1]))
        filled = np.flatnonzero(np.diff(self.offsets))
        if filled.size:
            sums[filled] = np.add.reduceat(self.counts[:, None] * values, self.offsets[filled], axis=0)
        return sums


def distinct_words_of(X: Any) -> DistinctWords:
    """The same as :func:`pluri.topics.documents.tokens_of`, but every word of a document once.

    Parameters
    ----------
    X : csr matrix of shape (n_documents, n_words)
        Counts, without stored zeros or repeated entries.

    Examples
    --------
    >>> from scipy import sparse
    >>> from pluri.topics.supervised.distinct_words import distinct_words_of
    >>> distinct_words_of(sparse.csr_matrix([[2, 0, 1], [0, 1, 0]])).counts
    array([2., 1., 1.])
    """
    lengths = np.asarray(X.sum(axis=1), dtype=np.float64).ravel()
    words, counts = X.indices.astype(np.int32), X.data.astype(np.float64)
    return DistinctWords(words, counts, X.indptr.astype(np.int64), lengths, int(X.shape[1]))
