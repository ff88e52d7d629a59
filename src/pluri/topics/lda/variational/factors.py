"""The factors of q in variational Bayes, of topics and of documents, and the arrays that the compiled loop takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import digamma, gammaln

from pluri.topics.lda.aligned_arrays import LANES, aligned, padded_to_lanes
from pluri.topics.lda.topic_priors import TopicPriors

Array = NDArray[np.float64]

#: Factors of topics lie within exp of this, above and below.
LARGEST_LOG = 600.0


class TopicArrays(NamedTuple):
    """Fields of `Topics`, as the compiled loop over documents reads them."""

    word_topic: Array
    psi_totals: Array
    table: Array
    top: Array
    inverse_top: Array


@dataclass(frozen=True, eq=False)
class Topics:
    """q of the topics, and what documents ask of it.

    Attributes
    ----------
    word_topic : (n_words, n_topics) lambda
    psi_totals : (n_topics,) psi(sum_w lambda_kw)
    table : (n_words, n_topics, padded) exp(E[log beta_kw] - top_w)
    top : (n_words,) largest of E[log beta_kw] over the topics
    """

    word_topic: Array
    psi_totals: Array
    table: Array
    top: Array

    @classmethod
    def of(cls, word_topic: Array) -> Topics:
        """Prepare lambda, word after word."""
        from pluri.topics.lda.variational._topic_kernels import topic_table

        lambdas = np.ascontiguousarray(word_topic, dtype=np.float64)
        n_words, n_topics = lambdas.shape
        psi_totals = np.asarray(digamma(lambdas.sum(axis=0)))
        table, top = aligned(n_words, padded_to_lanes(n_topics)), np.empty(n_words)
        # Relative to the topic with the fewest words, whose factor is the largest; one without any would leave nothing
        # of the others, and has no word to which its factor could matter.
        least = max(psi_totals.min(), psi_totals.max() - LARGEST_LOG)
        bits = np.empty(n_topics, dtype=np.int64)
        scale = np.exp(np.minimum(least - psi_totals, LARGEST_LOG))
        topic_table(lambdas, scale, -least, aligned(2, n_topics), bits, bits.view(np.float64), table, top)
        return cls(lambdas, psi_totals, table, top)

    @classmethod
    def from_components(cls, components: ArrayLike | Topics) -> Topics:
        """Prepare lambda as scikit-learn stores it, topic after topic; what is prepared already as it is."""
        if isinstance(components, Topics):
            return components
        return cls.of(np.asarray(components, dtype=np.float64).T)

    @cached_property
    def components(self) -> Array:
        """Lambda as (n_topics, n_words)."""
        return np.ascontiguousarray(self.word_topic.T)

    @cached_property
    def inverse_top(self) -> Array:
        """exp(-top), infinite for words that no topic has seen."""
        with np.errstate(over="ignore"):
            return np.exp(-self.top)

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return int(self.word_topic.shape[1])

    def arrays(self, *, epsilon: bool) -> TopicArrays:
        """Give the same to a compiled loop, with `inverse_top` if something is added to the probability of words."""
        inverse = self.inverse_top if epsilon else self.top
        return TopicArrays(self.word_topic, self.psi_totals, self.table, self.top, inverse)


def topics_bound(topics: Topics, priors: TopicPriors) -> float:
    """The topics' part of the bound: minus the divergence of q(beta) from the prior."""
    from pluri.topics.lda.variational._topic_kernels import topic_divergence

    eta = priors.topic_word
    totals = gammaln(priors.word_totals(topics.n_topics)) - gammaln(topics.word_topic.sum(axis=0))
    return float(totals.sum() + topic_divergence(topics.word_topic, eta, topics.psi_totals))


class Found(NamedTuple):
    """What the loop fills: gamma, expected counts (n_words, width), sum of E[log theta], and bounds of documents."""

    gamma: Array
    stats: Array
    log_theta: Array
    bounds: Array


class Room(NamedTuple):
    """Room for a document.

    Attributes
    ----------
    current, exponents, theta, sums, everywhere, shares, prior, log_gamma_alpha, psi_alpha : (width,)
        By topic: gamma, what exp(E[log theta]) is computed from and itself, expected counts; gamma of topics that are
        left out too; phi of a word, alpha, and functions of alpha.
    counts, norms, ratios, softening : (longest document, padded)
        By word: counts, probabilities, counts over probabilities, and what is added to probabilities.
    bits, topics, kept : (width,), integers
        Room for `exponentials`; topics that are looked at, and those among them that go on.
    powers : (width,) `bits` as floating-point numbers
    rows, parts : twice longest * width; 8 * width
        Rows of the table, and packed columns of it; sums in parts.
    """

    current: Array
    exponents: Array
    theta: Array
    sums: Array
    everywhere: Array
    shares: Array
    prior: Array
    log_gamma_alpha: Array
    psi_alpha: Array
    counts: Array
    norms: Array
    ratios: Array
    softening: Array
    bits: NDArray[np.int64]
    topics: NDArray[np.int64]
    kept: NDArray[np.int64]
    powers: Array
    rows: Array
    parts: Array

    @classmethod
    def of(cls, width: int, longest: int) -> Room:
        """Room for so many topics and words of a document."""
        numbers = np.empty((3, width), dtype=np.int64)
        by_topic, by_word, rows = aligned(9, width), aligned(4, longest), aligned(2 * longest * width)
        return cls._make([*by_topic, *by_word, *numbers, numbers[0].view(np.float64), rows, aligned(LANES * width)])


@dataclass(frozen=True, eq=False)
class LocalFactors:
    """Documents at rest.

    Attributes
    ----------
    gamma : (n_documents, n_topics)
    counts : (n_words, n_topics) expected counts, weighted; None if not asked for
    log_theta : (n_topics,) sum over documents of E[log theta], weighted
    bounds : (n_documents,) their parts of the bound; None if not asked for
    n_iterations : int
    """

    gamma: Array
    counts: Array | None
    log_theta: Array
    bounds: Array | None
    n_iterations: int
