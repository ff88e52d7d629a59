"""Parameters of the Dirichlet priors of latent Dirichlet allocation, as users give them and as loops want them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

#: Prior parameters below this are raised to it: a document could no more tell topics without words apart.
SMALLEST_PRIOR = 1e-8


@dataclass(frozen=True, eq=False)
class TopicPriors:
    """Parameters of the Dirichlet priors.

    Attributes
    ----------
    doc_topic : (n_topics,) alpha
    topic_word : (n_words or 1, n_topics or 1) eta, word after word; 1 stands for all
    n_words : int
    """

    doc_topic: Array
    topic_word: Array
    n_words: int

    @classmethod
    def checked(
        cls,
        n_topics: int,
        n_words: int,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: ArrayLike | None = None,
    ) -> TopicPriors:
        """Priors as users give them.

        Parameters
        ----------
        n_topics, n_words : int
        doc_topic_prior : float or array of shape (n_topics,), optional
            By default 1 / n_topics.
        topic_word_prior : float or array of shape (n_words,) or (n_topics, n_words), optional
            By default 1 / n_topics.
        """
        alpha = _positive("doc_topic_prior", 1.0 / n_topics if doc_topic_prior is None else doc_topic_prior)
        if alpha.shape not in ((), (1,), (n_topics,)):
            raise ValueError(
                f"doc_topic_prior must be a number or have one for each of {n_topics} topics, got shape {alpha.shape}"
            )
        eta = _positive("topic_word_prior", 1.0 / n_topics if topic_word_prior is None else topic_word_prior)
        if eta.shape not in ((), (1,), (n_words,), (n_topics, 1), (1, n_words), (n_topics, n_words)):
            raise ValueError(
                f"topic_word_prior must be a number or have shape ({n_words},) or ({n_topics}, {n_words}), "
                f"got {eta.shape}"
            )
        return cls(np.broadcast_to(alpha, (n_topics,)).copy(), np.ascontiguousarray(np.atleast_2d(eta).T), n_words)

    def word_totals(self, n_topics: int) -> Array:
        """sum_w eta_kw: (n_topics,)."""
        totals = self.topic_word.sum(axis=0) if self.topic_word.shape[0] > 1 else self.n_words * self.topic_word[0]
        return np.broadcast_to(totals, (n_topics,))


def _positive(name: str, value: ArrayLike) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a positive number or an array of them, got {value!r}") from error
    if not (np.isfinite(array).all() and (array > 0).all()):
        shown = array[~(np.isfinite(array) & (array > 0))].flat[0] if array.ndim else array
        raise ValueError(f"{name} must be positive and finite, got {float(shown)!r}")
    return np.maximum(array, SMALLEST_PRIOR)
