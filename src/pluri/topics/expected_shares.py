r"""New documents under fixed topics: how much of each topic they have.

The posterior mean of theta_d given the words has no closed form. Its zeroth-order collapsed approximation keeps for
each distinct word w of the document a distribution r_w over topics and repeats

    r_wk  proportional to  phi_kw (gamma_k - r_wk),     gamma_k = alpha_k + sum_w n_w r_wk,

that is, the conditional of collapsed Gibbs sampling with expected counts in place of drawn ones. It is deterministic,
one document does not depend on another, and it is closer to what sampling gives than the mean-field fixed point [1]_.

References
----------
.. [1] Asuncion, A., Welling, M., Smyth, P. and Teh, Y. W. (2009). On smoothing and inference for topic models. UAI.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
#: About how many passes a document takes.
USUAL_PASSES = 20.0


def expected_shares(
    topic_word: Array,
    doc_topic_prior: Array,
    X: Any,
    *,
    max_iter: int = 200,
    tol: float = 1e-4,
    n_jobs: int | None = None,
) -> Array:
    """Share of each topic in each document.

    Parameters
    ----------
    topic_word : array of shape (n_topics, n_words)
        Rows sum to one.
    doc_topic_prior : array of shape (n_topics,)
        Parameters of the Dirichlet distribution of the shares.
    X : csr matrix of shape (n_documents, n_words)
    max_iter : int, default=200
        Passes over a document.
    tol : float, default=1e-4
        A document is done when the expected counts move less than this, in the mean over topics.
    n_jobs : int, optional
        Threads; the result does not depend on their number.

    Returns
    -------
    array of shape (n_documents, n_topics)
        Rows sum to one; an empty document has the prior mean.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from pluri.topics.expected_shares import expected_shares
    >>> topics = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> expected_shares(topics, np.array([0.5, 0.5]), sparse.csr_matrix([[9, 0], [0, 0]])).round(1)
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """
    from pluri.engine.executors import count_jobs
    from pluri.topics.held_out._pseudo_count_kernels import pseudo_count_rows
    from pluri.topics.held_out.prepared import blocks

    prior = np.ascontiguousarray(doc_topic_prior, dtype=np.float64)
    by_word = np.ascontiguousarray(topic_word.T, dtype=np.float64)
    words, occurrences = X.indices.astype(np.int32), X.data.astype(np.float64)
    starts = X.indptr.astype(np.int64)
    shares = np.empty((X.shape[0], prior.size))

    def fill(rows: tuple[int, int]) -> None:
        first, last = rows
        part = shares[first:last]
        pseudo_count_rows(first, last, words, occurrences, starts, by_word, prior, max_iter, tol, part)
        part += prior
        part /= part.sum(axis=1, keepdims=True)

    parts = blocks((USUAL_PASSES * np.diff(starts) + 1.0) * prior.size)
    n_threads = 1 if n_jobs is None else count_jobs(n_jobs)
    if n_threads == 1:
        for rows in parts:
            fill(rows)
        return shares
    with ThreadPoolExecutor(n_threads, thread_name_prefix="pluri") as pool:
        list(pool.map(fill, parts))
    return shares
