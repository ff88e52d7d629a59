"""What the compiled functions of supervised topic models take of responses, tokens and priors, and room to work in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.aligned import aligned_zeros, padded_width
from pluri.topics.lda.aligned_arrays import BLOCK

Array = NDArray[np.float64]
Singles = NDArray[np.float32]


class Ratings(NamedTuple):
    """Rating of each document (0 where there is none), whether it has one, coefficients of topics, and precision."""

    rating: Array
    rated: NDArray[np.bool_]
    coefficients: Array
    precision: float

    @classmethod
    def of(cls, response: NDArray[Any], coefficients: Array, precision: float) -> Ratings:
        """From ratings with NaN where there is none."""
        rated = np.isfinite(response)
        return cls(np.where(rated, response, 0.0), rated, coefficients, float(precision))


class Classes(NamedTuple):
    """Class of each document (-1 where there is none), and coefficients by class and topic.

    Where a token adds more than `largest_product` to the score of a class, logarithms are taken.
    """

    label: NDArray[np.int64]
    coefficients: Array
    largest_product: float


class Seated(NamedTuple):
    """Topic of each token; counts by word and topic, by topic, and by document and topic."""

    topics: NDArray[np.int32]
    word_topic: NDArray[np.int32]
    totals: NDArray[np.int32]
    in_documents: NDArray[np.int32]


class TopicPriors(NamedTuple):
    """Prior counts of topics in a document, of a word in a topic, and of all words in a topic."""

    alpha: Singles
    eta: np.float32
    prior_total: np.float32


class TopicRoom(NamedTuple):
    """Room for a number of every topic, in whole blocks: shares, what the response says, and running sums."""

    share: Singles
    push: Singles
    work: Singles

    @classmethod
    def of(cls, width: int) -> TopicRoom:
        """Zeros."""
        return cls(*(aligned_zeros(width, np.float32) for _ in range(3)))


class ClassRoom(NamedTuple):
    """Room for the scores of classes, and for what a token of each topic adds to them."""

    scores: Array
    pull: Array
    single_pull: Singles
    tables: Singles
    level: Singles
    odds: Singles

    @classmethod
    def of(cls, n_topics: int, n_classes: int) -> ClassRoom:
        """Zeros."""
        width, classes = padded_width(n_topics, BLOCK), padded_width(n_classes, BLOCK)
        shapes = (n_topics, classes), (n_classes, width)
        single_pull, tables = (aligned_zeros(shape, np.float32) for shape in shapes)
        level, odds = aligned_zeros((2, classes), np.float32)
        return cls(np.zeros(n_classes), np.zeros((n_topics, n_classes)), single_pull, tables, level, odds)
