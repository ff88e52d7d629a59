"""Documents under topics that are known: their expected counts of topics and their bounds, on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pluri.topics.lda.document_step import DocumentStep, LocalFactors, Topics, local_factors, topics_bound
from pluri.topics.lda.threads import cut_rows, on_threads
from pluri.topics.lda.topic_priors import TopicPriors

Array = NDArray[np.float64]


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
    parts = _by_parts(components, X, doc_topic_prior, step, None, n_jobs, bounds=False)
    return np.concatenate([part.gamma for part in parts])


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
    step = step if gamma is None else DocumentStep(max_iter=0)
    parts = _by_parts(components, X, doc_topic_prior, step, gamma, n_jobs, bounds=True)
    return np.concatenate([part.bounds for part in parts if part.bounds is not None])


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
    topics = components if isinstance(components, Topics) else Topics.from_components(components)
    bounds = document_bounds(topics, X, priors.doc_topic, gamma=gamma, step=step, n_jobs=n_jobs)
    ratio = 1.0 if total_samples is None else total_samples / X.shape[0]
    return ratio * float(bounds.sum()) + topics_bound(topics, priors)


def _by_parts(
    components: ArrayLike | Topics,
    X: Any,
    doc_topic_prior: Array,
    step: DocumentStep | None,
    gamma: Array | None,
    n_jobs: int | None,
    *,
    bounds: bool,
) -> list[LocalFactors]:
    """Local factors without counts, on threads."""
    topics = components if isinstance(components, Topics) else Topics.from_components(components)
    csr = X if sparse.issparse(X) and X.format == "csr" else sparse.csr_matrix(X)
    pieces = cut_rows(csr.shape[0], n_jobs)

    def one(rows: slice) -> LocalFactors:
        start = None if gamma is None else gamma[rows]
        return local_factors(topics, doc_topic_prior, csr[rows], step=step, start=start, counts=False, bounds=bounds)

    return on_threads(one, pieces)
