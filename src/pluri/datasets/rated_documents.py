"""Documents with a rating that depends on their topics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.datasets.simulated_topics import TopicDocuments, make_topic_documents
from pluri.validation import Number, RandomState, as_generator, check_value


@dataclass(frozen=True, eq=False, repr=False)
class RatedDocuments(TopicDocuments):
    """Documents as mixtures of topics, with a rating that depends on the topics of their words.

    Attributes
    ----------
    counts, topic_word, topic_counts, doc_topic
        See :class:`TopicDocuments`.
    y : ndarray of shape (n_documents,)
        Ratings: ``coef @ topic_counts / length`` plus Gaussian noise.
    coef : ndarray of shape (n_topics,)
        What each topic adds to the rating.
    noise_scale : float
        Standard deviation of the noise.
    """

    y: NDArray[np.float64]
    coef: NDArray[np.float64]
    noise_scale: float


def make_rated_documents(
    n_documents: int = 200,
    n_words_per_document: int | ArrayLike = 40,
    n_words: int = 60,
    coef: ArrayLike = (-2.0, -0.7, 0.7, 2.0),
    noise_scale: float = 0.3,
    doc_topic_prior: float | ArrayLike = 0.3,
    topic_word_prior: float | ArrayLike = 0.1,
    random_state: RandomState = None,
) -> RatedDocuments:
    """Draw documents from latent Dirichlet allocation, and a rating for each from the topics of its words.

    Parameters
    ----------
    n_documents : int, default=200
    n_words_per_document : int or array-like of shape (n_documents,), default=40
        Length of the documents, at least 1.
    n_words : int, default=60
        Size of the vocabulary.
    coef : array-like of shape (n_topics,), default=(-2, -0.7, 0.7, 2)
        Rating of each topic; also says how many topics there are.
    noise_scale : float, default=0.3
        Standard deviation of the ratings.
    doc_topic_prior, topic_word_prior : float or array-like, default=0.3 and 0.1
        As in :func:`make_topic_documents`.
    random_state : int, Generator or None
        Randomness.

    Returns
    -------
    RatedDocuments

    Examples
    --------
    >>> from pluri.datasets import make_rated_documents
    >>> data = make_rated_documents(random_state=0)
    >>> data.counts.shape, data.y.shape, data.topic_word.shape
    ((200, 60), (200,), (4, 60))
    """
    weights = np.asarray(coef, dtype=np.float64)
    if weights.ndim != 1 or not weights.size or not np.isfinite(weights).all():
        raise ValueError(f"coef must be a finite number for each topic, got {coef!r}")
    check_value(noise_scale, "noise_scale", Number(least=0))
    rng = as_generator(random_state)
    drawn = make_topic_documents(
        n_documents, n_words_per_document, n_words, weights.size, doc_topic_prior, topic_word_prior, rng
    )
    sizes = drawn.topic_counts.sum(axis=1)
    if not sizes.all():
        raise ValueError("n_words_per_document must be at least 1 where documents are rated, got 0")
    y = drawn.topic_counts @ weights / sizes + noise_scale * rng.standard_normal(n_documents)
    return RatedDocuments(
        drawn.counts, drawn.topic_word, drawn.topic_counts, drawn.doc_topic, y, weights, float(noise_scale)
    )
