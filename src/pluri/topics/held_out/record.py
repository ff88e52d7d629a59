"""The record of a held-out evaluation: how probable each document is, and how many words of it were scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False, repr=False)
class HeldOut:
    """Log likelihoods of documents that a model has not seen.

    Attributes
    ----------
    log_likelihood : ndarray of shape (n_documents,)
        Log probability of the scored words of each document, in nats and in the order in which they stand: without
        the multinomial coefficient. It is 0 for a document without scored words.
    n_tokens : ndarray of shape (n_documents,)
        Number of scored words of each document.
    method : str
        How they were computed.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.held_out import HeldOut
    >>> score = HeldOut(np.array([-8.0, -4.0]), np.array([4, 2]), "completion")
    >>> score.total, score.per_word, round(score.perplexity, 3)
    (-12.0, -2.0, 7.389)
    >>> score
    HeldOut(method='completion', documents=2, tokens=6, per_word=-2.0000)
    """

    log_likelihood: NDArray[np.float64]
    n_tokens: NDArray[np.int64]
    method: str

    @property
    def total(self) -> float:
        """Log likelihood of all documents."""
        return float(self.log_likelihood.sum())

    @property
    def per_word(self) -> float:
        """Log likelihood per scored word; NaN if no word was scored."""
        n_tokens = int(self.n_tokens.sum())
        return self.total / n_tokens if n_tokens else float("nan")

    @property
    def perplexity(self) -> float:
        """``exp(-per_word)``: how many equally probable words would be as hard to guess."""
        return float(np.exp(-self.per_word))

    def __repr__(self) -> str:
        """Method, sizes and the log likelihood per word."""
        return (
            f"HeldOut(method={self.method!r}, documents={self.n_tokens.size}, tokens={int(self.n_tokens.sum())}, "
            f"per_word={self.per_word:.4f})"
        )


def mean_over_draws(scores: Sequence[HeldOut]) -> HeldOut:
    r"""Average the likelihood of each document over posterior draws of the model.

    ``log p(x_d | training data) = log mean_s p(x_d | draw s)``, document by document; never the mean of the logs.

    Parameters
    ----------
    scores : sequence of HeldOut
        The same documents, with the same scored words, under one draw after the other.

    Returns
    -------
    HeldOut

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.held_out import HeldOut, mean_over_draws
    >>> draws = [HeldOut(np.log([p]), np.array([3]), "left_to_right") for p in (0.01, 0.03)]
    >>> np.exp(mean_over_draws(draws).log_likelihood).round(6)
    array([0.02])
    """
    draws = list(scores)
    if not draws:
        raise ValueError("scores must hold at least one HeldOut, got none")
    first = draws[0]
    for score in draws[1:]:
        if not np.array_equal(score.n_tokens, first.n_tokens):
            raise ValueError("scores must all be of the same documents with equally many scored words, got others")
    total = np.logaddexp.reduce(np.stack([score.log_likelihood for score in draws]), axis=0)
    return HeldOut(total - np.log(len(draws)), first.n_tokens, first.method)
