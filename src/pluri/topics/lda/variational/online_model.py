"""LDA as a conjugate-exponential model, in the terms of `pluri.inference.variational`; see `online`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma

from pluri.engine import Batch, Source
from pluri.topics.lda.starts import Draws, TopicStart, first_topics, gamma_draws
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.lda.variational.doc_topic_prior import best_doc_topic_prior
from pluri.topics.lda.variational.document_step import DocumentStep, local_factors
from pluri.topics.lda.variational.factors import Topics, topics_bound

Array = NDArray[np.float64]
Natural = Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class OnlineModel:
    """LDA as a conjugate-exponential model.

    Its natural parameters are ``word_topic`` (n_words, n_topics), lambda, and if alpha is learned ``log_theta``
    (n_topics,), the sum of E[log theta] over all documents.

    Parameters
    ----------
    priors : TopicPriors
    step : DocumentStep
    topic_start : {"random", "documents"}
    n_total : float, optional
        Number of documents, needed to learn alpha.
    draws : RandomState or Generator, optional
        Documents start from draws near one, as in scikit-learn, instead of ones.
    n_jobs : int, optional
        Threads that share a minibatch.
    """

    priors: TopicPriors
    step: DocumentStep = field(default_factory=DocumentStep)
    topic_start: TopicStart = "random"
    n_total: float | None = None
    draws: Draws | None = None
    n_jobs: int | None = None

    @cached_property
    def _prior(self) -> Natural:
        shape = (self.priors.n_words, self.priors.doc_topic.size)
        prior = {"word_topic": np.broadcast_to(self.priors.topic_word, shape)}
        return prior if self.n_total is None else prior | {"log_theta": np.zeros(shape[1])}

    def begin(self, word_topic: Array) -> Natural:
        """Natural parameters with these topics."""
        if self.n_total is None:
            return {"word_topic": word_topic}
        alpha = self.priors.doc_topic
        return {"word_topic": word_topic, "log_theta": self.n_total * (digamma(alpha) - digamma(alpha.sum()))}

    def initialize(self, source: Source, rng: np.random.Generator) -> Natural:
        """Where a run starts."""
        return self.begin(first_topics(self.topic_start, self.priors, source, rng))

    def global_prior(self) -> Natural:
        """Give eta."""
        return self._prior

    def doc_topic_prior(self, params: Natural) -> Array:
        """Alpha at these parameters."""
        if self.n_total is None:
            return self.priors.doc_topic
        return best_doc_topic_prior(params["log_theta"] / self.n_total, self.priors.doc_topic)

    def local_step(self, batch: Batch, params: Natural) -> tuple[Natural, float]:
        """Documents at rest: their expected counts and parts of the bound."""
        topics, alpha = Topics.of(params["word_topic"]), self.doc_topic_prior(params)
        start = None if self.draws is None else gamma_draws(self.draws, (batch.n_samples, alpha.size))
        found = local_factors(
            topics, alpha, batch.X, step=self.step, start=start, weight=batch.weight, n_jobs=self.n_jobs
        )
        assert found.bounds is not None
        assert found.counts is not None
        weight = np.ones(found.bounds.size) if batch.weight is None else batch.weight
        stats = {"word_topic": found.counts}
        if self.n_total is not None:
            stats["log_theta"] = found.log_theta
        return stats, float(weight @ found.bounds)

    def global_elbo(self, params: Natural) -> float:
        """The topics' part of the bound."""
        return topics_bound(Topics.of(params["word_topic"]), self.priors)
