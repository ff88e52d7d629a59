"""Maximum a posteriori topics in the terms of `pluri.inference.expectation_maximization`; see `em`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, Source, Statistics
from pluri.priors import Diversity, maximize_rows
from pluri.topics.lda.aligned_arrays import WordCounts, aligned, padded_to_lanes
from pluri.topics.lda.diverse_topics import log_diversity, pushed_apart
from pluri.topics.lda.document_source import DocumentBatch, Documents, Stacked
from pluri.topics.lda.starts import TopicStart, document_topics
from pluri.topics.lda.topic_priors import TopicPriors

Array = NDArray[np.float64]

#: Updates of new documents, at most, and the largest change of a share at which they end.
FOLD_IN_ITERATIONS, FOLD_IN_TOL = 1000, 1e-7


@dataclass(frozen=True)
class MaximumStatistics(Statistics):
    """What a pass brings back: objective of the documents, expected counts, and their shares if they are kept."""

    log_likelihood: float
    counts: Array
    doc_topic: Stacked | None


@dataclass(frozen=True, eq=False)
class MaximumParameters:
    """Topics (n_topics, n_words), and shares (n_documents, n_topics) of documents in memory."""

    topic_word: Array
    doc_topic: Array | None = None


@dataclass(frozen=True, eq=False)
class MaximumProblem:
    """Maximum a posteriori topics as `expectation_maximization` takes them.

    Parameters
    ----------
    doc_topic_prior : array of shape (n_topics,)
        alpha, at least 1.
    topic_word_prior : array of shape (1 or n_topics, 1 or n_words)
        eta, at least 1.
    n_words : int
    diversity : Diversity, optional
    temper : float, default=1.0
        The power b.
    n_inner : int, default=1
        Updates of the shares in each pass; 1 is plain EM.
    topic_start : {"random", "documents"}
    """

    doc_topic_prior: Array
    topic_word_prior: Array
    n_words: int
    diversity: Diversity | None = None
    temper: float = 1.0
    n_inner: int = 1
    topic_start: TopicStart = "random"

    def begin(self, topic_word: Array, n_documents: int | None) -> MaximumParameters:
        """Given topics and equal shares."""
        n_topics = topic_word.shape[0]
        shares = None if n_documents is None else np.full((n_documents, n_topics), 1.0 / n_topics)
        return MaximumParameters(topic_word, shares)

    def initialize(self, source: Source, rng: np.random.Generator) -> MaximumParameters:
        """Where a run starts: topics drawn from a flat Dirichlet distribution, or like documents; equal shares."""
        n_topics = self.doc_topic_prior.size
        n_documents = source.X.shape[0] if isinstance(source, Documents) else None
        if self.topic_start == "documents":
            # A tenth of a flat topic: probabilities that are zero would stay so.
            lambdas = document_topics(TopicPriors.checked(n_topics, self.n_words, None, 1e-8), source, rng).T
            topics = 0.9 * lambdas / lambdas.sum(axis=1, keepdims=True) + 0.1 / self.n_words
            return self.begin(topics, n_documents)
        return self.begin(np.maximum(rng.dirichlet(np.ones(self.n_words), n_topics), 1e-12), n_documents)

    def expect(self, params: MaximumParameters, batch: Batch) -> MaximumStatistics:
        """E-step, and the shares' part of the M-step, of some documents."""
        pseudo = self.doc_topic_prior - 1.0
        weight = np.ones(batch.n_samples) if batch.weight is None else batch.weight
        kept = params.doc_topic is not None and isinstance(batch, DocumentBatch)
        if kept:
            start = params.doc_topic[batch.first : batch.first + batch.n_samples]  # type: ignore[index, attr-defined]
            n_inner, tol = self.n_inner, -1.0
        else:
            start = np.full((batch.n_samples, pseudo.size), 1.0 / pseudo.size)
            n_inner, tol = FOLD_IN_ITERATIONS, FOLD_IN_TOL
        before, shares, values, counts = best_shares(
            params.topic_word, batch.X, pseudo, start, n_inner, tol, self.temper, weight
        )
        value = float(weight @ (values + _log_prior(before, pseudo)))
        return MaximumStatistics(value, counts, Stacked((shares,)) if kept else None)

    def maximize(self, stats: MaximumStatistics, params: MaximumParameters) -> MaximumParameters:
        """The topics' part of the M-step."""
        evidence = stats.counts.T + (self.topic_word_prior - 1.0)
        shares = None if stats.doc_topic is None else stats.doc_topic.array
        # The pseudo-counts of a Dirichlet prior are counts like others.
        if self.diversity is None or len(evidence) < 2:
            return MaximumParameters(maximize_rows(evidence, params.topic_word), shares)
        return MaximumParameters(pushed_apart(evidence, params.topic_word, self.diversity), shares)

    def log_prior(self, params: MaximumParameters) -> float:
        """Log density of the topics, up to a constant; that of the shares is with the documents."""
        pseudo = np.broadcast_to(self.topic_word_prior - 1.0, params.topic_word.shape)
        density = _log_prior(params.topic_word, pseudo).sum()
        if self.diversity is not None and params.topic_word.shape[0] > 1:
            density += log_diversity(params.topic_word, self.diversity)
        return float(density)


def _log_prior(rows: Array, pseudo: Array) -> Array:
    """sum_k pseudo_k log rows_k, 0 log 0 being 0."""
    if not pseudo.any():
        return np.zeros(rows.shape[0])
    with np.errstate(divide="ignore"):
        terms = np.where(pseudo > 0, pseudo * np.log(np.where(pseudo > 0, rows, 1.0)), 0.0)
    return np.asarray(terms.sum(axis=1))


class Room(NamedTuple):
    """Room for a document: by topic shares, counts and powers; by word counts, norms and ratios; the table's rows."""

    theta: Array
    sums: Array
    powered: Array
    counts: Array
    norms: Array
    ratios: Array
    rows: Array

    @classmethod
    def of(cls, width: int, longest: int) -> Room:
        """Room for so many topics and words of a document."""
        return cls._make([*aligned(3, width), *aligned(3, longest), aligned(longest * width)])


def best_shares(
    topic_word: Array, X: Any, pseudo: Array, start: Array, n_inner: int, tol: float, temper: float,
    weight: Array | None,
) -> tuple[Array, Array, Array, Array]:  # fmt: skip
    """Shares before the last update and after it, values of the documents before it, expected counts."""
    from pluri.topics.lda.maximum._em_kernels import shares_of_documents

    n_topics, n_words = topic_word.shape
    documents, width = WordCounts.of(X, weight, n_words), padded_to_lanes(n_topics)
    table = aligned(n_words, width)
    table[:, n_topics:] = 0.0
    table[:, :n_topics] = topic_word.T if temper == 1.0 else topic_word.T**temper
    pseudo, room = np.ascontiguousarray(pseudo, dtype=np.float64), Room.of(width, documents.longest)
    stats = np.zeros((n_words, width) if weight is not None else (0, 0))
    values = np.empty(documents.n_documents)

    def run(shares: Array, max_iter: int, stats: Array) -> None:
        shares_of_documents(documents, table, pseudo, float(temper), max_iter, tol, room, shares, stats, values)

    before = np.array(start, dtype=np.float64, order="C")
    if n_inner > 1:
        run(before, n_inner - 1, np.empty((0, 0)))
    shares = before.copy()
    run(shares, min(n_inner, 1), stats)
    return before, shares, values, stats[:, :n_topics]
