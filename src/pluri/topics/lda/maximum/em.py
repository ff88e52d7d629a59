r"""Topics by EM: probabilistic latent semantic analysis, and its maximum a posteriori form.

Shares theta_d and topics beta_k are parameters, not random variables that are integrated out. The objective is

.. math:: \sum_{dw} n_{dw} \log \sum_k \theta_{dk} \beta_{kw} + \sum_{dk} (\alpha_k - 1) \log \theta_{dk}
   + \sum_{kw} (\eta_{kw} - 1) \log \beta_{kw} + s \log\det K(\beta),

with alpha and eta at least 1 (1: maximum likelihood) and, if wanted, a diversity prior of strength s. With
p(k | d, w) proportional to theta_dk beta_kw, a pass sets

.. math:: \theta_{dk} \propto \alpha_k - 1 + \sum_w n_{dw} p(k | d, w), \qquad
   \beta_{kw} \propto \eta_{kw} - 1 + \sum_d n_{dw} p(k | d, w),

which for alpha = eta = 1 are the multiplicative updates of non-negative factorisation under the Kullback-Leibler
divergence. p(k | d, w) is never stored. Tempered EM takes p proportional to (theta beta)^b with b < 1, which climbs the
same objective with (1/b) log sum_k (theta beta)^b in place of the logarithm of the sum.

Given the topics, the objective is concave in the shares of a document (if b = 1): new documents, and those of a source
that is larger than memory, can start from equal shares every time.

References
----------
.. [1] Hofmann, T. (2001). Unsupervised learning by probabilistic latent semantic analysis. Machine Learning 42.
.. [2] Asuncion, A., Welling, M., Smyth, P. and Teh, Y. W. (2009). On smoothing and inference for topic models. UAI.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pluri.engine import Source
from pluri.inference import expectation_maximization
from pluri.inference.run import History, IterationState
from pluri.priors import Diversity
from pluri.topics.lda.document_source import Documents, on_threads
from pluri.topics.lda.maximum.maximum_problem import (
    FOLD_IN_ITERATIONS,
    FOLD_IN_TOL,
    MaximumParameters,
    MaximumProblem,
    best_shares,
)
from pluri.topics.lda.settling import Settling
from pluri.topics.lda.starts import TopicStart
from pluri.validation import Number, RandomState, as_generator, check_count, check_value

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MaximumFit:
    """What a fit gives.

    Attributes
    ----------
    topic_word : (n_topics, n_words), rows sum to one
    doc_topic : (n_documents, n_topics) shares of the documents, if they were in memory
    objective : float
        At the last pass, before its update.
    trace : list of float
        The objective in each pass of the run.
    n_iter : int
    reason : {"converged", "max_iter", "descent", "stopped", "interrupted"}
    history : History
    interrupted : bool
    """

    topic_word: Array
    doc_topic: Array | None
    objective: float
    trace: list[float]
    n_iter: int
    reason: str
    history: History = field(repr=False)
    interrupted: bool = False

    @property
    def converged(self) -> bool:
        """Whether the objective had stopped rising."""
        return self.reason == "converged"


def fit_maximum(
    data: Any,
    n_topics: int,
    *,
    doc_topic_prior: ArrayLike = 1.1,
    topic_word_prior: ArrayLike = 1.01,
    diversity: Diversity | None = None,
    temper: float = 1.0,
    n_inner: int = 1,
    start: TopicStart | Array = "random",
    sample_weight: Array | None = None,
    tol: float = 1e-6,
    random_state: RandomState = None,
    on_iteration: Callable[[IterationState[MaximumParameters]], bool | None] | None = None,
    **options: Any,
) -> MaximumFit:
    """Learn topics by EM.

    Parameters
    ----------
    data : csr matrix of shape (n_documents, n_words), or Source
        Counts. The documents of a source are folded in anew in every pass, which is slower and needs no memory.
    n_topics : int
    doc_topic_prior : float or array of shape (n_topics,), default=1.1
        alpha, at least 1.
    topic_word_prior : float or array of shape (n_words,) or (n_topics, n_words), default=1.01
        eta, at least 1.
    diversity : Diversity, optional
        Prior that keeps the topics apart.
    temper : float, default=1.0
        Power b in (0, 1] of the probabilities in the E-step.
    n_inner : int, default=1
        Updates of the shares in each pass.
    start : {"random", "documents"} or array of shape (n_topics, n_words), default="random"
    sample_weight : array of shape (n_documents,), optional
    tol : float, default=1e-6
        A run ends when a pass raises the objective by at most this share of it; negative: never.
    random_state : int, Generator, RandomState or None
    on_iteration, **options
        Passed on to :func:`pluri.inference.expectation_maximization`: `max_iter` passes (200), `n_init`, `engine`, ...

    Returns
    -------
    MaximumFit

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.lda.maximum.em import fit_maximum
    >>> X = sparse.csr_matrix(np.repeat([[4, 4, 0, 0], [0, 0, 4, 4]], 10, axis=0).astype(float))
    >>> fit = fit_maximum(X, 2, doc_topic_prior=1.0, topic_word_prior=1.0, random_state=0)
    >>> np.sort(fit.topic_word, axis=0).round(2)
    array([[0. , 0. , 0. , 0. ],
           [0.5, 0.5, 0.5, 0.5]])
    """
    in_memory = not isinstance(data, Source)
    source = Documents(data, sample_weight) if in_memory else data
    n_words = int(data.shape[1]) if in_memory else int(getattr(data, "n_features", 0) or 0)
    if not n_words:
        n_words = int(next(iter(data.batches())).load().X.shape[1])
    alpha, eta = _at_least_one("doc_topic_prior", doc_topic_prior), _at_least_one("topic_word_prior", topic_word_prior)
    if alpha.shape not in ((), (n_topics,)):
        raise ValueError(f"doc_topic_prior must be a number or have {n_topics} numbers, got shape {alpha.shape}")
    if eta.shape not in ((), (n_words,), (n_topics, n_words)):
        raise ValueError(
            f"topic_word_prior must be a number or have shape ({n_words},) or ({n_topics}, {n_words}), got {eta.shape}"
        )
    check_value(temper, "temper", Number(above=0, most=1))
    check_count(n_inner, "n_inner")
    problem = MaximumProblem(
        np.broadcast_to(alpha, (n_topics,)).copy(), np.atleast_2d(eta), n_words, diversity, float(temper), int(n_inner),
        start if isinstance(start, str) else "random",
    )  # fmt: skip
    if isinstance(start, str) and start not in ("random", "documents"):
        raise ValueError(f"start must be 'random', 'documents' or an array, got {start!r}")
    first = None
    if not isinstance(start, str):
        given = np.asarray(start, dtype=np.float64)
        first = problem.begin(given / given.sum(axis=1, keepdims=True), data.shape[0] if in_memory else None)
    settling = Settling(tol, on_iteration)
    result = expectation_maximization(
        problem, source, rng=as_generator(random_state), tol=-math.inf, start=first, on_iteration=settling,
        **{"max_iter": 200} | options,
    )  # fmt: skip
    trace = [float(value) for value in result.history.run(result.restart).objective]
    return MaximumFit(
        result.params.topic_word, result.params.doc_topic, result.objective, trace, result.n_iter,
        settling.reason(result), result.history, result.interrupted,
    )  # fmt: skip


def fold_in(
    topic_word: Array,
    X: Any,
    *,
    doc_topic_prior: ArrayLike = 1.0,
    max_iter: int = FOLD_IN_ITERATIONS,
    tol: float = FOLD_IN_TOL,
    n_jobs: int | None = None,
) -> Array:
    """Shares of topics in documents, the topics being fixed: the maximum a posteriori ones.

    Parameters
    ----------
    topic_word : array of shape (n_topics, n_words)
        Rows sum to one.
    X : csr matrix or array of shape (n_documents, n_words)
    doc_topic_prior : float or array of shape (n_topics,), default=1.0
        At least 1.
    max_iter, tol : int, float
        Updates of a document, and the largest change of a share at which they end.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    array of shape (n_documents, n_topics)
        Rows sum to one. A document without words has equal shares, or the mode of the prior.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.lda.maximum.em import fold_in
    >>> topics = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])
    >>> fold_in(topics, sparse.csr_matrix([[2.0, 1.0, 1.0, 0.0]])).round(4)
    array([[0.75, 0.25]])
    """
    n_topics = topic_word.shape[0]
    pseudo = np.broadcast_to(_at_least_one("doc_topic_prior", doc_topic_prior), (n_topics,)) - 1.0
    csr = X if sparse.issparse(X) and X.format == "csr" else sparse.csr_matrix(X)

    def one(rows: Callable[[Any], Any]) -> Array:
        part = rows(csr)
        start = np.full((part.shape[0], n_topics), 1.0 / n_topics)
        return best_shares(topic_word, part, pseudo, start, max_iter, tol, 1.0, None)[1]

    return np.concatenate(on_threads(one, csr.shape[0], n_jobs))


def document_log_likelihood(topic_word: Array, X: Any, doc_topic: Array) -> Array:
    """sum_w n_dw log sum_k theta_dk beta_kw of each document.

    Raises
    ------
    ValueError
        If a document has a word that none of its topics has: its probability is zero.
    """
    pseudo = np.zeros(topic_word.shape[0])
    values = best_shares(topic_word, X, pseudo, doc_topic, 0, 0.0, 1.0, None)[2]
    if np.isneginf(values).any():
        raise ValueError(
            f"document {int(np.flatnonzero(np.isneginf(values))[0])} has a word that no topic has: its probability is "
            "zero; fit with topic_word_prior above 1"
        )
    return values


def _at_least_one(name: str, value: ArrayLike) -> Array:
    array = np.asarray(value, dtype=np.float64)
    if not (np.isfinite(array).all() and (array >= 1).all()):
        raise ValueError(
            f"{name} must be finite and at least 1 for maximum a posteriori topics, got "
            f"{float(np.min(array)) if np.isfinite(array).all() else value!r}"
        )
    return array
