"""Document completion for models whose documents are shares of topics: half of the tokens foretell the other half."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.held_out import HeldOut

Array = NDArray[np.float64]
#: Entries of a block of documents x words: 32 MB.
BLOCK = 2**22


def score_words(shares: Array, topic_word: Array, scored: Any) -> HeldOut:
    """Log probability of words under the mixture of topics of each document.

    Parameters
    ----------
    shares : array of shape (n_documents, n_topics)
        Learned from other words of the same documents; rows sum to one.
    topic_word : array of shape (n_topics, n_words)
    scored : csr matrix of shape (n_documents, n_words)

    Returns
    -------
    HeldOut
    """
    n_documents, n_words = scored.shape
    totals = np.zeros(n_documents)
    step = max(1, BLOCK // n_words)
    for begin in range(0, n_documents, step):
        part = scored[begin : begin + step]
        words = shares[begin : begin + step] @ topic_word
        rows = np.repeat(np.arange(part.shape[0]), np.diff(part.indptr))
        logs = part.data * np.log(words[rows, part.indices])
        totals[begin : begin + step] = np.bincount(rows, weights=logs, minlength=part.shape[0])
    return HeldOut(totals, np.asarray(scored.sum(axis=1)).ravel().astype(np.int64), "completion")
