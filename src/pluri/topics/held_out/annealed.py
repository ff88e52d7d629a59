r"""Annealed importance sampling of the probability of a document: slow, and the check of the others.

Chains move through ``p_b(z)`` proportional to ``p(z | alpha) prod_i phi_{z_i w_i}^b`` with b rising from 0 to 1, one
Gibbs sweep at each; the weight of a chain is ``exp sum_t (b_{t+1} - b_t) sum_i log phi_{z_i w_i}`` [1]_, [2]_. The
estimate of p(document), the mean weight, has no bias; its log is the tighter the more steps there are.

References
----------
.. [1] Neal, R. (2001). Annealed importance sampling. Statistics and Computing 11.
.. [2] Wallach, H., Murray, I., Salakhutdinov, R. and Mimno, D. (2009). Evaluation methods for topic models. ICML.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.topics.held_out.prepared import check_at_least, prepare, warn_impossible
from pluri.topics.held_out.record import HeldOut
from pluri.validation import RandomState, as_generator


def annealed_importance(
    topic_word: ArrayLike,
    doc_topic_prior: ArrayLike,
    X: Any,
    rng: RandomState = None,
    *,
    n_chains: int = 20,
    n_steps: int = 500,
) -> HeldOut:
    """Estimate the probability of each document by annealed importance sampling.

    Parameters
    ----------
    topic_word : array-like of shape (n_topics, n_words)
        Distribution over words of each topic; held fixed.
    doc_topic_prior : float or array-like of shape (n_topics,)
        Parameters of the Dirichlet distribution of a document's proportions.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Whole counts.
    rng : int, Generator or None
        Randomness.
    n_chains : int, default=20
        Chains for each document.
    n_steps : int, default=500
        Steps from the prior to the posterior; take more for documents of many hundred words.

    Returns
    -------
    HeldOut

    Examples
    --------
    >>> from pluri.topics.held_out import annealed_importance
    >>> topics = [[0.9, 0.1], [0.1, 0.9]]
    >>> score = annealed_importance(topics, 1.0, [[1, 0], [0, 0]], rng=0)
    >>> score.log_likelihood.round(2)  # log of one half, and an empty document
    array([-0.69,  0.  ])
    """
    generator = as_generator(rng)
    check_at_least("n_chains", n_chains, 1)
    check_at_least("n_steps", n_steps, 1)
    (documents,) = prepare(topic_word, doc_topic_prior, X)
    from pluri.topics.held_out._annealed_kernels import anneal

    # Small steps first: there a document still chooses its topics.
    temperatures = np.linspace(0.0, 1.0, n_steps + 1) ** 2
    entries, occurrences, indptr = documents.entries()
    scores = np.zeros(documents.n_documents)
    log_weight = np.empty(n_chains)
    for d in range(documents.n_documents):
        of_document = slice(indptr[d], indptr[d + 1])
        if of_document.start == of_document.stop:
            continue
        anneal(
            generator, entries[of_document], occurrences[of_document], documents.topics.phi, documents.topics.alpha,
            temperatures, n_chains, log_weight,
        )  # fmt: skip
        scores[d] = np.logaddexp.reduce(log_weight) - np.log(n_chains)
    scores = documents.scored(scores)
    warn_impossible(scores, "every topic of topic_word")
    return HeldOut(scores, documents.lengths, "annealed_importance")
