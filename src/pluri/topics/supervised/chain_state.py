"""Where a chain of a supervised topic model is: the topic of every token, counts that go with it, and coefficients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine.aligned import aligned_zeros
from pluri.topics.documents import Tokens
from pluri.topics.lda.sampling.topic_assignments import GibbsState

Array = NDArray[np.float64]
Position = Mapping[str, NDArray[Any]]


def document_counts(tokens: Tokens, topics: NDArray[Any], n_topics: int) -> NDArray[np.int64]:
    """Tokens by document and topic."""
    places = tokens.documents.astype(np.int64) * n_topics + topics
    return np.bincount(places, minlength=tokens.n_documents * n_topics).reshape(tokens.n_documents, n_topics)


def topic_shares(tokens: Tokens, topics: NDArray[Any], n_topics: int) -> Array:
    """The zbar of each document, shares of topics among its tokens; zero where it has none.

    Parameters
    ----------
    tokens : Tokens
    topics : int array of shape (n_tokens,)
    n_topics : int

    Returns
    -------
    array of shape (n_documents, n_topics)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.documents import tokens_of
    >>> from pluri.topics.supervised.chain_state import topic_shares
    >>> topic_shares(tokens_of(sparse.csr_matrix([[1, 3], [0, 1]])), np.array([0, 1, 1, 1, 0]), 2)
    array([[0.25, 0.75],
           [1.  , 0.  ]])
    """
    return _shares(document_counts(tokens, topics, n_topics), tokens)


def _shares(counts: NDArray[Any], tokens: Tokens) -> Array:
    shares: Array = counts / np.maximum(np.diff(tokens.offsets), 1)[:, None]
    return shares


class SupervisedState:
    """Where a chain is; sweeps change it in place.

    Attributes
    ----------
    words : GibbsState
        Topics of the tokens, and counts by word.
    in_document : int32 array of shape (n_documents, n_topics rounded up to 16)
        Counts by document.
    coefficients : dict of arrays
        What else is drawn.
    n_sweeps : int
    """

    def __init__(
        self, tokens: Tokens, position: Position, doc_topic_prior: Array, topic_word_prior: float,
        log_response: Callable[[Array, Position], float],
    ) -> None:  # fmt: skip
        topics = np.array(position["topics"], dtype=np.int32)
        self.words = GibbsState(tokens, topics, doc_topic_prior, np.asarray(topic_word_prior))
        self.in_document = aligned_zeros((tokens.n_documents, self.words.word_topic.shape[1]), np.int32)
        self.in_document[:, : self.words.n_topics] = document_counts(tokens, topics, self.words.n_topics)
        self.coefficients = {name: value for name, value in position.items() if name != "topics"}
        self.n_sweeps = 0
        self._log_response = log_response

    @property
    def position(self) -> Position:
        """What determines the state."""
        return {"topics": self.words.topics.copy(), **self.coefficients}

    @property
    def log_density(self) -> float:
        """Log p(words, topics, response, coefficients); computed when it is asked for."""
        return self.words.log_density + self._log_response(self.shares(), self.coefficients)

    def shares(self) -> Array:
        """The zbar of each document."""
        return _shares(self.in_document[:, : self.words.n_topics], self.words.tokens)

    def swept(self) -> None:
        """Forget what no longer holds after a sweep."""
        self.words._log_density = None
        self.n_sweeps += 1
