"""Batch variational Bayes in the terms of `pluri.inference.expectation_maximization`; see `batch`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, Source, Statistics
from pluri.priors import Diversity
from pluri.topics.lda.diverse_topics import log_diversity, posterior_pushed_apart
from pluri.topics.lda.document_source import DocumentBatch, Documents, Stacked
from pluri.topics.lda.settling import has_settled
from pluri.topics.lda.starts import Draws, TopicStart, first_topics, gamma_draws
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.lda.variational.doc_topic_prior import best_doc_topic_prior
from pluri.topics.lda.variational.document_step import DocumentStep, local_factors
from pluri.topics.lda.variational.factors import Topics, topics_bound

Array = NDArray[np.float64]
DocumentStart = Literal["settling", "previous", "ones", "random"]


@dataclass(frozen=True)
class VariationalStatistics(Statistics):
    """What a pass brings back: the local parts of the bound, expected counts, E[log theta], and gamma if it is kept."""

    log_likelihood: float
    counts: Array
    log_theta: Array
    weight: float
    doc_topic: Stacked | None


@dataclass(frozen=True, eq=False)
class VariationalParameters:
    """Where a run stands.

    Attributes
    ----------
    topics : q of the topics
    doc_topic_prior : (n_topics,) alpha
    doc_topic : (n_documents, n_topics) gamma of the last pass, or where the next starts; None: not known, ones
    bound : of the last pass
    n_settled : passes since the bound settled, the next one included; documents go on from `doc_topic` if positive
    """

    topics: Topics
    doc_topic_prior: Array
    doc_topic: Array | None = None
    bound: float = -math.inf
    n_settled: int = 0


@dataclass(frozen=True, eq=False)
class VariationalProblem:
    """Batch variational Bayes as `expectation_maximization` takes it.

    Parameters
    ----------
    priors : TopicPriors
    step : DocumentStep
    topic_start : {"random", "documents"}
        Where runs start that are not given a start.
    document_start : {"settling", "previous", "ones", "random"}
    tol : float
        Share of the bound by which it may still change when it has settled.
    learn_doc_topic_prior : bool
    diversity : Diversity, optional
    draws : RandomState or Generator, optional
        Where ``document_start="random"`` draws from.
    """

    priors: TopicPriors
    step: DocumentStep = field(default_factory=DocumentStep)
    topic_start: TopicStart = "random"
    document_start: DocumentStart = "settling"
    tol: float = 1e-5
    learn_doc_topic_prior: bool = False
    diversity: Diversity | None = None
    draws: Draws | None = None

    def begin(self, word_topic: Array, n_documents: int | None) -> VariationalParameters:
        """Parameters of a run before its first pass."""
        alpha = self.priors.doc_topic
        gamma = None
        if self.document_start == "random":
            gamma = gamma_draws(self.draws, (n_documents, alpha.size))
        return VariationalParameters(Topics.of(word_topic), alpha, gamma)

    def initialize(self, source: Source, rng: np.random.Generator) -> VariationalParameters:
        """Where a run starts."""
        n_documents = source.X.shape[0] if isinstance(source, Documents) else None
        return self.begin(first_topics(self.topic_start, self.priors, source, rng), n_documents)

    def expect(self, params: VariationalParameters, batch: Batch) -> VariationalStatistics:
        """Local factors of some documents."""
        start = None
        goes_on = self.document_start != "settling" or params.n_settled > 0
        if params.doc_topic is not None and goes_on and isinstance(batch, DocumentBatch):
            start = params.doc_topic[batch.first : batch.first + batch.n_samples]
        found = local_factors(
            params.topics, params.doc_topic_prior, batch.X, step=self.step, start=start, weight=batch.weight
        )
        assert found.bounds is not None
        assert found.counts is not None
        weight = np.ones(batch.n_samples) if batch.weight is None else batch.weight
        kept = Stacked((found.gamma,)) if self.document_start in ("settling", "previous") else None
        return VariationalStatistics(
            float(weight @ found.bounds), found.counts, found.log_theta, float(weight.sum()), kept
        )

    def maximize(self, stats: VariationalStatistics, params: VariationalParameters) -> VariationalParameters:
        """The best q of the topics, and alpha."""
        bound, n_settled = -math.inf, 0
        if self.document_start == "settling":
            bound = stats.log_likelihood + self.log_prior(params)
            if bound < params.bound and not params.n_settled:
                return replace(params, n_settled=1)  # the same topics again, with the documents where they were
            if params.n_settled or has_settled(bound - params.bound, bound, self.tol):
                n_settled = params.n_settled + 1
        target = self.priors.topic_word + stats.counts
        topics = self._pushed_apart(target, params.topics)
        alpha, gamma = params.doc_topic_prior, None
        if self.learn_doc_topic_prior and stats.weight > 0:
            alpha = best_doc_topic_prior(stats.log_theta / stats.weight, alpha)
        if stats.doc_topic is not None:
            gamma = stats.doc_topic.array
        elif self.document_start == "random" and params.doc_topic is not None:
            gamma = gamma_draws(self.draws, params.doc_topic.shape)
        return VariationalParameters(topics, alpha, gamma, bound, n_settled)

    def log_prior(self, params: VariationalParameters) -> float:
        """The topics' part of the bound, and the diversity prior."""
        return topics_bound(params.topics, self.priors) + self._diversity(params.topics)

    def _diversity(self, topics: Topics) -> float:
        if self.diversity is None or topics.n_topics < 2:
            return 0.0
        return log_diversity(_means(topics.word_topic), self.diversity)

    def _pushed_apart(self, target: Array, before: Topics) -> Topics:
        """Lambda that is best without diversity, or with it better than before."""
        if self.diversity is None or target.shape[1] < 2:
            return Topics.of(target)
        rows = posterior_pushed_apart(np.ascontiguousarray(target.T), before.word_topic.T, self.diversity)
        return Topics.of(np.ascontiguousarray(rows.T))


def _means(word_topic: Array) -> Array:
    """Mean topics, as rows."""
    return np.ascontiguousarray((word_topic / word_topic.sum(axis=0)).T)
