r"""Empirical likelihood: the average over documents that the model makes up.

With word distributions q_1, ..., q_S drawn from a model's prior of documents,
``log p(x) ~ log (1/S) sum_s prod_w q_s(w)^{n_w}``. Any model that can make up documents can be scored so, and models
of different kinds compared; but few draws resemble a long document, so the estimate is far below the truth unless
documents are short or the model has few topics.

References
----------
.. [1] Li, W. and McCallum, A. (2006). Pachinko allocation: DAG-structured mixture models of topic correlations. ICML.
.. [2] Wallach, H., Murray, I., Salakhutdinov, R. and Mimno, D. (2009). Evaluation methods for topic models. ICML.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

from pluri.topics.held_out.prepared import as_counts, lengths_of, warn_impossible
from pluri.topics.held_out.record import HeldOut
from pluri.validation import check_distributions

#: Entries of a block of documents x draws: 32 MB.
BLOCK = 2**22


def empirical_likelihood(word_distributions: ArrayLike, X: Any) -> HeldOut:
    """Average the probability of each document over word distributions drawn from a model.

    Parameters
    ----------
    word_distributions : array-like of shape (n_draws, n_words)
        Word distributions of made-up documents; rows sum to one.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Counts.

    Returns
    -------
    HeldOut

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.topics.held_out import empirical_likelihood
    >>> score = empirical_likelihood([[0.5, 0.5], [0.9, 0.1]], [[2, 0], [0, 0]])
    >>> np.exp(score.log_likelihood).round(4)  # (0.25 + 0.81) / 2, and an empty document
    array([0.53, 1.  ])
    """
    draws = np.atleast_2d(np.asarray(word_distributions, dtype=np.float64))
    if draws.ndim != 2 or not draws.size:
        raise ValueError(f"word_distributions must have two axes, draws and words, got shape {draws.shape}")
    check_distributions("word_distributions", draws)
    counts = as_counts(X, draws.shape[1], whole=False)
    scores = log_mean_likelihood(draws, counts)
    warn_impossible(scores, "every draw of word_distributions")
    return HeldOut(scores, lengths_of(counts), "empirical")


def log_mean_likelihood(draws: NDArray[np.float64], counts: scipy.sparse.csr_matrix) -> NDArray[np.float64]:
    """Log of the mean over draws of the probability of each document, a block of documents at a time."""
    with np.errstate(divide="ignore"):
        log_words = np.ascontiguousarray(np.log(draws).T)
    n_draws = len(draws)
    scores = np.empty(counts.shape[0])
    step = max(1, BLOCK // n_draws)
    for start in range(0, counts.shape[0], step):
        block = slice(start, start + step)
        scores[block] = np.logaddexp.reduce(counts[block] @ log_words, axis=1) - np.log(n_draws)
    return np.where(np.diff(counts.indptr) == 0, 0.0, scores)
