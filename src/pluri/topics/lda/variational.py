r"""Latent Dirichlet allocation by batch variational Bayes: coordinate ascent on the bound of the evidence.

A pass finds gamma of every document given the topics (`document_step`), then sets

.. math:: \lambda_{kw} = \eta_{kw} + \sum_d n_{dw} \phi_{dwk},

and, if asked to, alpha to the maximum of the bound. `pluri.inference.expectation_maximization` runs it, with the local
parts of the bound for its log-likelihood and the topics' part for its log prior.

Where the iterations of a document start matters more than one would think. If each pass takes every document up where
the last one left it (``document_start="previous"``), all is coordinate ascent and the bound never falls, however early
the iterations of a document end; but a topic that has lost a document hardly ever returns, and the fit gets stuck at a
much lower bound than if documents start anew (``"ones"``) in every pass, which
``benchmarks/peers/topics_variational.py`` measures. Starting anew, some documents may come to rest at another maximum
than before, and the bound may fall by a little near the end. The default, ``"settling"``, does both: documents start
anew until the bound has settled or would fall (such a pass is not counted), and from then on where they were, so that
the bound never falls and the fit ends at a maximum.

A diversity prior of strength s adds s log det K(E[beta]) to the bound, K being the kernel of the mean topics. Lambda
then has no closed form: `diverse_topics` improves one topic after another, so that the sum never falls either.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Batch, LazyBatch, Source, Statistics
from pluri.inference import expectation_maximization
from pluri.inference.em import AscentWarning
from pluri.inference.history import History
from pluri.inference.result import IterationState
from pluri.priors import Diversity
from pluri.topics.lda.diverse_topics import log_diversity, posterior_pushed_apart
from pluri.topics.lda.document_step import DocumentStep, TopicPriors, Topics, local_factors, topics_bound
from pluri.topics.lda.starts import Draws, TopicStart, first_topics, gamma_draws, legacy_stream, random_topics
from pluri.topics.lda.variational_prior import best_doc_topic_prior
from pluri.validation import RandomState, as_generator

Array = NDArray[np.float64]
DocumentStart = Literal["settling", "previous", "ones", "random"]

#: Numbers of gamma that are kept between passes; of larger corpora each pass starts documents anew.
MOST_REMEMBERED = 2**26
#: Documents of a batch, at least and at most, and batches of a corpus in memory.
SMALLEST_BATCH, LARGEST_BATCH, N_BATCHES = 64, 16_384, 8


@dataclass(frozen=True, eq=False)
class DocumentBatch(Batch):
    """Some documents that know where they stand in the corpus."""

    first: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return DocumentBatch, (self.X, self.lengths, self.weight, self.labels, self.first)


@dataclass(frozen=True, eq=False)
class Documents:
    """A corpus in memory as a source; the cut depends on its size only.

    Parameters
    ----------
    X : csr matrix of shape (n_documents, n_words)
    weight : array of shape (n_documents,), optional

    Examples
    --------
    >>> from scipy import sparse
    >>> from pluri.topics.lda.variational import Documents
    >>> [batch.first for batch in Documents(sparse.eye(150, format="csr")).batches()]
    [0, 64, 128]
    """

    X: Any
    weight: Array | None = None

    @property
    def n_features(self) -> int:
        """Size of the vocabulary."""
        return int(self.X.shape[1])

    def batches(self) -> Iterator[LazyBatch]:
        """Start a new pass."""
        n_documents = self.X.shape[0]
        size = min(max(-(-n_documents // N_BATCHES), SMALLEST_BATCH), LARGEST_BATCH)
        for begin in range(0, n_documents, size):
            rows = slice(begin, begin + size)
            yield DocumentBatch(self.X[rows], weight=None if self.weight is None else self.weight[rows], first=begin)


@dataclass(frozen=True, eq=False)
class Stacked:
    """Arrays of consecutive batches; adding is putting one below the other."""

    parts: tuple[Array, ...]

    def __add__(self, other: Stacked) -> Stacked:
        return Stacked(self.parts + other.parts)

    @property
    def array(self) -> Array:
        """All rows."""
        return self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts)


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


def has_settled(gain: float, bound: float, tol: float) -> bool:
    """Whether a pass has hardly raised the bound."""
    return gain <= tol * max(1.0, abs(bound))


def _means(word_topic: Array) -> Array:
    """Mean topics, as rows."""
    return np.ascontiguousarray((word_topic / word_topic.sum(axis=0)).T)


@dataclass(frozen=True, eq=False)
class VariationalFit:
    """What a fit gives.

    Attributes
    ----------
    components : (n_topics, n_words) lambda
    doc_topic_prior : (n_topics,) alpha
    bound : float
        At the last pass, before its update of the topics.
    trace : list of float
        The bound in each pass of the run that counted.
    doc_topic : (n_documents, n_topics) gamma of the last pass, if it was kept
    n_iter : int
    reason : {"converged", "max_iter", "descent", "stopped", "interrupted"}
    history : History
        All runs.
    interrupted : bool
    """

    components: Array
    doc_topic_prior: Array
    bound: float
    trace: list[float]
    doc_topic: Array | None
    n_iter: int
    reason: str
    history: History = field(repr=False)
    interrupted: bool = False

    @property
    def converged(self) -> bool:
        """Whether the bound had settled."""
        return self.reason == "converged"


def fit_batch(
    data: Any,
    priors: TopicPriors,
    *,
    step: DocumentStep | None = None,
    start: TopicStart | Array = "random",
    document_start: DocumentStart = "settling",
    learn_doc_topic_prior: bool = False,
    diversity: Diversity | None = None,
    sample_weight: Array | None = None,
    n_init: int = 1,
    max_iter: int = 100,
    tol: float = 1e-5,
    random_state: RandomState = None,
    engine: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    on_iteration: Callable[[IterationState[VariationalParameters]], bool | None] | None = None,
    **options: Any,
) -> VariationalFit:
    """Learn topics by batch variational Bayes.

    Parameters
    ----------
    data : csr matrix of shape (n_documents, n_words), or Source
        Counts. A source may be larger than memory; its documents start from ones in every pass.
    priors : TopicPriors
    step : DocumentStep, optional
    start : {"random", "documents"} or array of shape (n_topics, n_words), default="random"
        "random" draws lambda from Gamma(100, 0.01), with `random_state` as scikit-learn draws it; "documents" is the
        prior plus the counts of one document for each topic.
    document_start : {"settling", "previous", "ones", "random"}, default="settling"
        See above. "random" with ``DocumentStep(epsilon=SCIKIT_LEARN_EPSILON)`` is scikit-learn's algorithm.
    learn_doc_topic_prior : bool, default=False
        Whether to learn alpha, one number per topic.
    diversity : Diversity, optional
    sample_weight : array of shape (n_documents,), optional
        A document of weight 2 counts as two. A source has weights of its own.
    n_init : int, default=1
        Number of runs; the one with the highest bound wins.
    max_iter : int, default=100
        Largest number of passes.
    tol : float, default=1e-5
        A run ends when a pass raises the bound by at most this share of it; negative: never.
    random_state : int, Generator, RandomState or None
    engine, n_jobs
        Where documents are worked on, see :func:`pluri.engine.open_engine`.
    verbose, on_iteration
        As for :func:`pluri.inference.expectation_maximization`.
    **options
        Passed on to it (`checkpoint`, `checkpoint_every`, `fingerprint`).

    Returns
    -------
    VariationalFit

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.lda.document_step import TopicPriors
    >>> from pluri.topics.lda.variational import fit_batch
    >>> X = sparse.csr_matrix(np.repeat([[4, 4, 0, 0], [0, 0, 4, 4]], 10, axis=0).astype(float))
    >>> fit = fit_batch(X, TopicPriors.checked(2, 4, 0.1, 0.1), random_state=0)
    >>> np.sort(fit.components.round(), axis=0)
    array([[ 0.,  0.,  0.,  0.],
           [40., 40., 40., 40.]])
    """
    in_memory = not isinstance(data, Source)
    source = Documents(data, sample_weight) if in_memory else data
    n_topics = priors.doc_topic.size
    n_documents = data.shape[0] if in_memory else None
    if document_start == "random" and not in_memory:
        raise ValueError("document_start='random' needs documents in memory, got a source; use 'ones'")
    if document_start in ("settling", "previous") and (n_documents is None or n_documents * n_topics > MOST_REMEMBERED):
        document_start = "ones"
    draws = legacy_stream(random_state)
    problem = VariationalProblem(
        priors, DocumentStep() if step is None else step, start if isinstance(start, str) else "random", document_start,
        tol, learn_doc_topic_prior, diversity, draws,
    )  # fmt: skip
    first = None
    if not isinstance(start, str):
        first = problem.begin(np.asarray(start, dtype=np.float64).T, n_documents)
    elif start == "random":
        first = problem.begin(random_topics(draws, n_topics, priors.n_words), n_documents)
    # Scikit-learn's draws must not be disturbed: the generator of further runs is made only if it is needed.
    rng = as_generator(random_state) if first is None or n_init > 1 else np.random.default_rng(0)
    may_fall = document_start != "previous"
    settled: set[int] = set()

    def watch(state: IterationState[VariationalParameters]) -> bool:
        done = has_settled(state.gain, state.objective, tol)
        done = done and (document_start != "settling" or state.params.n_settled > 1)
        if done:
            settled.add(state.restart)
        seen = replace(state, reason="converged") if done else state
        return (on_iteration is not None and bool(on_iteration(seen))) or done

    with warnings.catch_warnings() if may_fall else nullcontext():
        if may_fall:
            warnings.simplefilter("ignore", AscentWarning)
        result = expectation_maximization(
            problem, source, rng=rng, max_iter=max_iter, tol=-np.inf, n_init=n_init, start=first, engine=engine,
            n_jobs=n_jobs, verbose=verbose, on_iteration=watch, **options,
        )  # fmt: skip
    reason = "converged" if result.restart in settled else result.reason
    params = result.params
    trace = [float(value) for value in result.history.run(result.restart).objective]
    if document_start == "settling":
        trace = [value for place, value in enumerate(trace) if value >= max(trace[:place], default=-math.inf)]
    return VariationalFit(
        params.topics.components, params.doc_topic_prior, result.objective, trace,
        None if document_start == "random" else params.doc_topic, result.n_iter, reason, result.history,
        result.interrupted,
    )  # fmt: skip
