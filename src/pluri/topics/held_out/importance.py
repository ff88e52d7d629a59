r"""Importance sampling of the probability of a document.

``p(w) = E_q[p(w, z) / q(z)]``. From the prior, draws of theta are averaged as in :func:`empirical_likelihood`; from
pseudo-counts, each word's topic is drawn from ``q(z_i = k)`` proportional to
``(alpha_k + sum_{j != i} q(z_j = k)) phi_{k w_i}``, iterated until it agrees with itself [1]_. The second is far
better, and quick. Where the words leave a choice between quite different mixtures of topics it may see only one of
them, and its estimate is too low: compare with :func:`left_to_right` on some documents.

References
----------
.. [1] Wallach, H., Murray, I., Salakhutdinov, R. and Mimno, D. (2009). Evaluation methods for topic models. ICML.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from pluri.topics.held_out.empirical import log_mean_likelihood
from pluri.topics.held_out.prepared import blocks, check_at_least, prepare, warn_impossible
from pluri.topics.held_out.record import HeldOut
from pluri.validation import RandomState, as_generator

#: Rounds of the proposal, and the mean change of an expected count at which they stop.
ROUNDS, TOLERANCE = 50, 1e-3


def importance_sampling(
    topic_word: ArrayLike,
    doc_topic_prior: ArrayLike,
    X: Any,
    rng: RandomState = None,
    *,
    n_samples: int = 1000,
    proposal: Literal["pseudo_counts", "prior"] = "pseudo_counts",
) -> HeldOut:
    """Estimate the probability of each document by importance sampling.

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
    n_samples : int, default=1000
        Draws for each document.
    proposal : {"pseudo_counts", "prior"}, default="pseudo_counts"
        Where draws come from. Those from the prior are the same for all documents.

    Returns
    -------
    HeldOut

    Examples
    --------
    >>> from pluri.topics.held_out import importance_sampling
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    >>> score = importance_sampling(topics, 0.5, [[1, 1, 0, 0], [1, 0, 1, 0]], rng=0)
    >>> score.log_likelihood.round(2)  # log of 3/32 and of 1/32
    array([-2.37, -3.47])
    """
    if proposal not in ("pseudo_counts", "prior"):
        raise ValueError(f"proposal must be 'pseudo_counts' or 'prior', got {proposal!r}")
    generator = as_generator(rng)
    check_at_least("n_samples", n_samples, 1)
    (documents,) = prepare(topic_word, doc_topic_prior, X)
    topics, counts = documents.topics, documents.counts
    if proposal == "prior":
        theta = generator.dirichlet(topics.alpha, size=n_samples)
        scores = log_mean_likelihood(theta @ topics.phi.T, counts)
    else:
        from pluri.topics.held_out._pseudo_count_kernels import importance

        scores = np.empty(documents.n_documents)
        entries, occurrences, indptr = documents.entries()
        work = float(n_samples) * np.asarray(counts.sum(axis=1)).ravel() + ROUNDS * np.diff(indptr)
        for first, last in blocks(work):
            importance(
                generator, first, last, entries, occurrences, indptr, topics.phi, topics.alpha, ROUNDS, TOLERANCE,
                n_samples, scores,
            )  # fmt: skip
    scores = documents.scored(scores)
    warn_impossible(scores, "every topic of topic_word")
    return HeldOut(scores, documents.lengths, f"importance_sampling ({proposal})")
