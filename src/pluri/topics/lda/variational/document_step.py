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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pluri.engine import pairwise_sum
from pluri.topics.lda.aligned_arrays import WordCounts
from pluri.topics.lda.document_source import on_threads
from pluri.topics.lda.topic_priors import TopicPriors
from pluri.topics.lda.variational.factors import Found, LocalFactors, Room, Topics, topics_bound
from pluri.validation import Number, Whole, check_value

Array = NDArray[np.float64]

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
    >>> from pluri.topics.lda.variational.document_step import DocumentStep
    >>> DocumentStep(tol=1e-4).max_iter
    100
    """

    max_iter: int = 100
    tol: float = 1e-3
    epsilon: float = 0.0

    def __post_init__(self) -> None:
        check_value(self.max_iter, "max_iter of a document", Whole(0))
        for name in ("tol", "epsilon"):
            check_value(getattr(self, name), f"{name} of a document", Number(least=0))


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
    n_jobs: int | None = None,
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
    n_jobs : int, optional
        Threads that share the documents.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.lda.variational.document_step import local_factors
    >>> from pluri.topics.lda.variational.factors import Topics
    >>> topics = Topics.from_components([[9.0, 1.0], [1.0, 9.0]])
    >>> found = local_factors(topics, np.full(2, 0.5), sparse.csr_matrix([[6.0, 0.0], [0.0, 0.0]]))
    >>> found.gamma.round(2)
    array([[6.49, 0.51],
           [0.5 , 0.5 ]])
    """
    step = DocumentStep() if step is None else step
    if n_jobs is None or n_jobs == 1:
        return _of_rows(topics, doc_topic_prior, X, step, start, weight, counts, bounds)
    csr = X if sparse.issparse(X) and X.format == "csr" else sparse.csr_matrix(X)
    parts = on_threads(
        lambda rows: _of_rows(topics, doc_topic_prior, rows(csr), step, rows(start), rows(weight), counts, bounds),
        csr.shape[0], n_jobs,
    )  # fmt: skip
    return LocalFactors(
        np.concatenate([part.gamma for part in parts]),
        pairwise_sum(part.counts for part in parts) if counts else None,
        pairwise_sum(part.log_theta for part in parts),
        np.concatenate([part.bounds for part in parts]) if bounds else None,
        sum(part.n_iterations for part in parts),
    )


def _of_rows(
    topics: Topics, doc_topic_prior: Array, X: Any, step: DocumentStep, start: Array | None, weight: Array | None,
    counts: bool, bounds: bool,
) -> LocalFactors:  # fmt: skip
    """The same, on this thread."""
    from pluri.topics.lda.variational._document_kernels import documents

    n_words, width = topics.table.shape
    words, n_topics = WordCounts.of(X, weight, n_words), topics.n_topics
    found = Found(
        np.empty((words.n_documents, n_topics)), np.zeros((n_words, width) if counts else (0, 0)), np.zeros(n_topics),
        np.empty(words.n_documents if bounds else 0),
    )  # fmt: skip
    n_iterations = documents(
        words,
        topics.arrays(epsilon=step.epsilon > 0),
        np.ascontiguousarray(doc_topic_prior, dtype=np.float64),
        np.empty((0, 0)) if start is None else np.ascontiguousarray(start, dtype=np.float64),
        int(step.max_iter),
        float(step.tol),
        float(step.epsilon) if step.epsilon > 0 else None,
        Room.of(width, words.longest),
        found,
    )
    return LocalFactors(
        found.gamma, found.stats[:, :n_topics] if counts else None, found.log_theta, found.bounds if bounds else None,
        int(n_iterations),
    )  # fmt: skip


def infer(
    components: ArrayLike | Topics,
    X: Any,
    doc_topic_prior: Array,
    *,
    step: DocumentStep | None = None,
    n_jobs: int | None = None,
) -> Array:
    """Find gamma of documents given topics; divided by their sums the rows are the expected shares of topics.

    From ones, as ``sklearn.decomposition.LatentDirichletAllocation.transform`` starts; a ``DocumentStep`` with
    `SCIKIT_LEARN_EPSILON` gives its numbers.

    Parameters
    ----------
    components : array of shape (n_topics, n_words), or Topics
        lambda.
    X : csr matrix or array of shape (n_documents, n_words)
    doc_topic_prior : array of shape (n_topics,)
    step : DocumentStep, optional
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    array of shape (n_documents, n_topics)
    """
    topics = Topics.from_components(components)
    return local_factors(topics, doc_topic_prior, X, step=step, counts=False, bounds=False, n_jobs=n_jobs).gamma


def document_bounds(
    components: ArrayLike | Topics,
    X: Any,
    doc_topic_prior: Array,
    *,
    gamma: Array | None = None,
    step: DocumentStep | None = None,
    n_jobs: int | None = None,
) -> Array:
    """Bound of the log probability of each document, the topics' own part left out.

    Parameters
    ----------
    components, X, doc_topic_prior, step, n_jobs
        As for `infer`.
    gamma : array of shape (n_documents, n_topics), optional
        Take this q(theta) as it is, instead of the best.

    Returns
    -------
    array of shape (n_documents,)
    """
    topics, step = Topics.from_components(components), step if gamma is None else DocumentStep(max_iter=0)
    found = local_factors(topics, doc_topic_prior, X, step=step, start=gamma, counts=False, n_jobs=n_jobs)
    assert found.bounds is not None
    return found.bounds


def approximate_bound(
    components: ArrayLike | Topics,
    X: Any,
    priors: TopicPriors,
    *,
    gamma: Array | None = None,
    step: DocumentStep | None = None,
    total_samples: float | None = None,
    n_jobs: int | None = None,
) -> float:
    """Bound over documents and topics, as scikit-learn's ``score`` has it.

    Parameters
    ----------
    components, X, gamma, step, n_jobs
        As for `document_bounds`.
    priors : TopicPriors
    total_samples : float, optional
        Number of documents that those of X stand for (scikit-learn's ``sub_sampling=True``).

    Returns
    -------
    float
        Its perplexity is ``exp(-bound / number of words)``, the number being scaled too.
    """
    topics = Topics.from_components(components)
    bounds = document_bounds(topics, X, priors.doc_topic, gamma=gamma, step=step, n_jobs=n_jobs)
    ratio = 1.0 if total_samples is None else total_samples / X.shape[0]
    return ratio * float(bounds.sum()) + topics_bound(topics, priors)
