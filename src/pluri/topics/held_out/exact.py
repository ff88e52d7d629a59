r"""The probability of a document exactly, for few topics: the known answer of the estimates.

``p(w) = sum_n f(n) Gamma(A) / Gamma(A + N) prod_k Gamma(alpha_k + n_k) / Gamma(alpha_k)``, A = sum alpha, where f(n) is
the sum over all assignments with n_k words of topic k of ``prod_i phi_{z_i w_i}``. Word after word f is a convolution
along the topics, so there are as many terms as vectors of counts, not as many as assignments.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.topics.held_out.prepared import prepare, warn_impossible
from pluri.topics.held_out.record import HeldOut

#: Largest table of counts.
LARGEST_TABLE = 10**7


def exact_likelihood(topic_word: ArrayLike, doc_topic_prior: ArrayLike, X: Any) -> HeldOut:
    """Compute the probability of each document exactly.

    Parameters
    ----------
    topic_word : array-like of shape (n_topics, n_words)
        Distribution over words of each topic.
    doc_topic_prior : float or array-like of shape (n_topics,)
        Parameters of the Dirichlet distribution of a document's proportions.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Whole counts. The length of a document plus one, to the power of the number of topics less one, must not
        exceed ten million: with three topics a document may have 3000 words, with ten it may have five.

    Returns
    -------
    HeldOut

    Examples
    --------
    >>> from pluri.topics.held_out import exact_likelihood
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    >>> score = exact_likelihood(topics, 0.5, [[1, 1, 0, 0], [1, 0, 1, 0]])
    >>> score.log_likelihood.round(4)  # log of 3/32 and of 1/32
    array([-2.3671, -3.4657])
    """
    (documents,) = prepare(topic_word, doc_topic_prior, X)
    words, offsets = documents.tokens()
    longest = int(np.diff(offsets).max(initial=0))
    n_topics = documents.topics.alpha.size
    if (longest + 1.0) ** (n_topics - 1) > LARGEST_TABLE:
        raise ValueError(
            f"X must have documents of fewer words for an exact sum over {n_topics} topics, got one of {longest}; "
            "estimate it by left_to_right"
        )
    scores = np.array(
        [
            _log_probability(documents.topics.phi[words[start:stop]], documents.topics.alpha)
            for start, stop in pairwise(offsets)
        ]
    ).reshape(-1)
    scores = documents.scored(scores)
    warn_impossible(scores, "every topic of topic_word")
    return HeldOut(scores, documents.lengths, "exact")


def _log_probability(phi: NDArray[np.float64], alpha: NDArray[np.float64]) -> float:
    """Log probability of the words whose probabilities in each topic are the rows of `phi`."""
    n, n_topics = phi.shape
    ways = np.zeros((n + 1,) * (n_topics - 1))
    ways[(0,) * (n_topics - 1)] = 1.0
    log_scale = 0.0
    for row in phi:
        # The last topic's count is what the others leave.
        longer = ways * row[-1]
        for axis in range(n_topics - 1):
            before = [slice(None)] * (n_topics - 1)
            after = before.copy()
            before[axis], after[axis] = slice(None, -1), slice(1, None)
            longer[tuple(after)] += ways[tuple(before)] * row[axis]
        largest = longer.max()
        ways = longer / largest
        log_scale += np.log(largest)
    # Sums of logarithms, not differences of gammaln: these lose all digits where alpha is large.
    counts = np.indices(ways.shape)
    rest = np.maximum(n - counts.sum(axis=0), 0)
    log_prior = _log_rising(alpha[-1], n)[rest] - _log_rising(alpha.sum(), n)[n]
    for axis, count in enumerate(counts):
        log_prior = log_prior + _log_rising(alpha[axis], n)[count]
    reached = ways > 0
    return float(np.logaddexp.reduce(np.log(ways[reached]) + log_prior[reached])) + log_scale


def _log_rising(start: float, n: int) -> NDArray[np.float64]:
    """Log of start (start + 1) ... (start + m - 1) for m = 0, ..., n."""
    return np.concatenate([[0.0], np.cumsum(np.log(start + np.arange(float(n))))])
