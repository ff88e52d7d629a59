r"""Documents given topics: the variational posterior of the topic shares of each, its bound, and expected counts.

With theta_d ~ Dirichlet(alpha), topics beta_k and q(theta_d) = Dirichlet(gamma_d), q(beta_k) = Dirichlet(lambda_k), the
fixed point of a document with counts n_w is

.. math:: \phi_{wk} \propto \exp(\psi(\gamma_k) + E \log \beta_{kw}), \qquad
   \gamma_k = \alpha_k + \sum_w n_w \phi_{wk}.

Its part of the bound, phi being at its optimum, is

.. math:: \sum_w n_w \log \sum_k e^{E \log \theta_k + E \log \beta_{kw}} + \log\Gamma(\sum_k \alpha_k)
   - \log\Gamma(\sum_k \gamma_k) + \sum_k \{ (\alpha_k - \gamma_k) E \log \theta_k + \log\Gamma(\gamma_k)
   - \log\Gamma(\alpha_k) \},

and that of the topics is the same expression in lambda and eta. phi is never stored.

References
----------
.. [1] Blei, D. M., Ng, A. Y. and Jordan, M. I. (2003). Latent Dirichlet allocation. JMLR 3, 993-1022.
.. [2] Hoffman, M. D., Blei, D. M. and Bach, F. (2010). Online learning for latent Dirichlet allocation. NIPS 23.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import digamma, gammaln

from pluri.topics.lda.aligned_arrays import aligned, padded_to_lanes
from pluri.topics.lda.topic_priors import TopicPriors

Array = NDArray[np.float64]

#: Factors of topics lie within exp of this, above and below.
LARGEST_LOG = 600.0
#: What scikit-learn adds to the probability of a word; words that no topic has seen are then left out of a document.
SCIKIT_LEARN_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class DocumentStep:
    """How far the iterations of a document go.

    Parameters
    ----------
    max_iter : int, default=100
        Largest number of iterations.
    tol : float, default=1e-3
        They end when gamma moves less than this, in the mean over topics.
    epsilon : float, default=0.0
        Added to the probability of each word in phi. With 0, iterations never lower the bound; scikit-learn has
        `SCIKIT_LEARN_EPSILON`, with which words that are improbable under all topics are partly ignored.

    Examples
    --------
    >>> from pluri.topics.lda.document_step import DocumentStep
    >>> DocumentStep(tol=1e-4).max_iter
    100
    """

    max_iter: int = 100
    tol: float = 1e-3
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.max_iter, Integral) or isinstance(self.max_iter, bool) or self.max_iter < 0:
            raise ValueError(f"max_iter of a document must be an integer of at least 0, got {self.max_iter!r}")
        for name in ("tol", "epsilon"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not 0 <= value < np.inf:
                raise ValueError(f"{name} of a document must be a number that is not negative, got {value!r}")


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
        from pluri.topics.lda._topic_kernels import topic_table

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
    def from_components(cls, components: ArrayLike) -> Topics:
        """Prepare lambda as scikit-learn stores it, topic after topic."""
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


def local_factors(
    topics: Topics,
    doc_topic_prior: Array,
    X: Any,
    *,
    step: DocumentStep | None = None,
    start: Array | None = None,
    weight: Array | None = None,
    counts: bool = True,
    bounds: bool = True,
) -> LocalFactors:
    """The best q(theta_d) of every document, and what the topics need to know of it.

    Parameters
    ----------
    topics : Topics
    doc_topic_prior : array of shape (n_topics,)
    X : csr matrix or array of shape (n_documents, n_words)
    step : DocumentStep, optional
    start : array of shape (n_documents, n_topics), optional
        gamma to start from; ones by default.
    weight : array of shape (n_documents,), optional
        Weights of the documents in `counts` and `log_theta`.
    counts, bounds : bool, default=True
        Whether to compute them.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.lda.document_step import Topics, local_factors
    >>> topics = Topics.from_components([[9.0, 1.0], [1.0, 9.0]])
    >>> found = local_factors(topics, np.full(2, 0.5), sparse.csr_matrix([[6.0, 0.0], [0.0, 0.0]]))
    >>> found.gamma.round(2)
    array([[6.49, 0.51],
           [0.5 , 0.5 ]])
    """
    from pluri.topics.lda._variational_kernels import documents

    step = DocumentStep() if step is None else step
    csr = X if sparse.issparse(X) and X.format == "csr" else sparse.csr_matrix(X)
    n_documents, n_words = csr.shape
    if n_words != topics.table.shape[0]:
        raise ValueError(f"X must have {topics.table.shape[0]} columns, got {n_words}")
    width, n_topics = topics.table.shape[1], topics.n_topics
    longest = padded_to_lanes(max(int(np.diff(csr.indptr).max(initial=0)), 1))
    gamma, log_theta = np.empty((n_documents, n_topics)), np.zeros(n_topics)
    expected = np.zeros((n_words, width) if counts else (0, 0))
    parts = np.empty(n_documents if bounds else 0)
    numbers = np.empty((3, width), dtype=np.int64)
    n_iterations = documents(
        csr.indptr.astype(np.int64, copy=False),
        csr.indices.astype(np.int32, copy=False),
        csr.data.astype(np.float64, copy=False),
        np.ones(n_documents) if weight is None else np.asarray(weight, dtype=np.float64),
        topics.word_topic,
        topics.psi_totals,
        topics.table,
        topics.top,
        topics.inverse_top if step.epsilon > 0 else topics.top,
        np.ascontiguousarray(doc_topic_prior, dtype=np.float64),
        np.empty((0, 0)) if start is None else np.ascontiguousarray(start, dtype=np.float64),
        int(step.max_iter),
        float(step.tol),
        float(step.epsilon),
        aligned(9, width),
        aligned(4, longest),
        numbers,
        numbers[0].view(np.float64),
        aligned(2 * longest * width),
        aligned(8 * width),
        gamma,
        expected,
        log_theta,
        parts,
    )
    return LocalFactors(
        gamma, expected[:, :n_topics] if counts else None, log_theta, parts if bounds else None, int(n_iterations)
    )


def topics_bound(topics: Topics, priors: TopicPriors) -> float:
    """The topics' part of the bound: minus the divergence of q(beta) from the prior."""
    from pluri.topics.lda._topic_kernels import topic_divergence

    eta = priors.topic_word
    totals = gammaln(priors.word_totals(topics.n_topics)) - gammaln(topics.word_topic.sum(axis=0))
    return float(totals.sum() + topic_divergence(topics.word_topic, eta, topics.psi_totals))
