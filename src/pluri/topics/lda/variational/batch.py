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
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Source
from pluri.inference import expectation_maximization
from pluri.inference.run import AscentWarning, History, IterationState
from pluri.priors import Diversity
from pluri.topics.lda.document_source import Documents
from pluri.topics.lda.settling import Settling
from pluri.topics.lda.starts import TopicStart, legacy_stream, random_topics
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.lda.variational.batch_problem import DocumentStart, VariationalParameters, VariationalProblem
from pluri.topics.lda.variational.document_step import DocumentStep
from pluri.validation import RandomState, as_generator

Array = NDArray[np.float64]

#: Numbers of gamma that are kept between passes; of larger corpora each pass starts documents anew.
MOST_REMEMBERED = 2**26


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
    tol: float = 1e-5,
    random_state: RandomState = None,
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
    tol : float, default=1e-5
        A run ends when a pass raises the bound by at most this share of it; negative: never.
    random_state : int, Generator, RandomState or None
    on_iteration
        As for :func:`pluri.inference.expectation_maximization`.
    **options
        Passed on to it (`max_iter` passes, 100 at most by default, `engine`, `verbose`, `checkpoint`, ...).

    Returns
    -------
    VariationalFit

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.lda.topic_priors import TopicPriors
    >>> from pluri.topics.lda.variational.batch import fit_batch
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
    settling = Settling(tol, on_iteration, also=lambda params: document_start != "settling" or params.n_settled > 1)

    with warnings.catch_warnings() if may_fall else nullcontext():
        if may_fall:
            warnings.simplefilter("ignore", AscentWarning)
        result = expectation_maximization(
            problem, source, rng=rng, tol=-np.inf, n_init=n_init, start=first, on_iteration=settling, **options
        )
    params = result.params
    trace = [float(value) for value in result.history.run(result.restart).objective]
    if document_start == "settling":
        trace = [value for place, value in enumerate(trace) if value >= max(trace[:place], default=-math.inf)]
    return VariationalFit(
        params.topics.components, params.doc_topic_prior, result.objective, trace,
        None if document_start == "random" else params.doc_topic, result.n_iter, settling.reason(result),
        result.history, result.interrupted,
    )  # fmt: skip
