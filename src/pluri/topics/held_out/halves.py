"""Document completion for models whose documents are shares of topics: half of the tokens predict the other half."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.documents import tokens_of
from pluri.topics.held_out.record import HeldOut
from pluri.topics.held_out.splitting import split_documents

Array = NDArray[np.float64]


def halves(X: Any, rng: np.random.Generator, *, observed: Any = None, share: float = 0.5) -> tuple[Any, Any]:
    """The words to learn from and those to score: drawn from `X`, unless the former are given."""
    return split_documents(X, rng, share) if observed is None else (observed, X)


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
    from pluri.topics.held_out._fold_in_kernels import log_mixture

    tokens, totals = tokens_of(scored), np.empty(scored.shape[0])
    by_word, shares = np.ascontiguousarray(topic_word.T), np.ascontiguousarray(shares)
    log_mixture(0, len(totals), tokens.words, tokens.offsets, by_word, shares, totals)
    return HeldOut(totals, np.diff(tokens.offsets), "completion")
