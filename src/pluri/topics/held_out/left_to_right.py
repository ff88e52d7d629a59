r"""Left to right: the probability of a document as the product of those of each word given the words before it.

Particles carry topic assignments of the words read so far. At word i a particle is weighed by
``p(w_i | z_1, ..., z_{i-1}) = sum_k (alpha_k + n_k) phi_{k w_i} / (sum alpha + i - 1)``, then draws z_i given w_i;
before that it draws all earlier assignments anew, each given the others. In [1]_ the weights are averaged over the
particles at each word as if the particles had forgotten how they came there. Here, as in the sequential samplers of
[2]_, they are carried on, and particles chosen anew in proportion to them when less than half are effective; so the
estimate of p(document) has no bias, whether or not earlier assignments are drawn anew.

References
----------
.. [1] Wallach, H., Murray, I., Salakhutdinov, R. and Mimno, D. (2009). Evaluation methods for topic models. ICML.
.. [2] Buntine, W. (2009). Estimating likelihoods for topic models. ACML.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.topics.held_out.prepared import blocks, check_at_least, prepare, warn_impossible
from pluri.topics.held_out.record import HeldOut
from pluri.validation import RandomState, as_generator


def left_to_right(
    topic_word: ArrayLike,
    doc_topic_prior: ArrayLike,
    X: Any,
    rng: RandomState = None,
    *,
    n_particles: int = 20,
    resample: bool = True,
) -> HeldOut:
    """Estimate the probability of each document, word by word in random order.

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
    n_particles : int, default=20
        The log of the estimate is too low by about half its variance, which falls as one over this number.
    resample : bool, default=True
        Whether earlier assignments are drawn anew before each word. It costs the square of a document's length;
        without it, take many more particles for the same error.

    Returns
    -------
    HeldOut

    Examples
    --------
    >>> from pluri.topics.held_out import left_to_right
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    >>> score = left_to_right(topics, 0.5, [[1, 1, 0, 0], [1, 0, 1, 0]], rng=0, n_particles=1000)
    >>> score.log_likelihood.round(2)  # log of 3/32 and of 1/32
    array([-2.37, -3.47])
    """
    generator = as_generator(rng)
    check_at_least("n_particles", n_particles, 1)
    (documents,) = prepare(topic_word, doc_topic_prior, X)
    from pluri.topics.held_out._kernels import left_to_right as kernel

    topics = documents.topics
    words, offsets = documents.tokens(generator)
    lengths = np.diff(offsets).astype(np.float64)
    scores = np.empty(documents.n_documents)
    work = n_particles * (lengths**2 / 2 if resample else lengths)
    for first, last in blocks(work + topics.alpha.size):
        kernel(
            generator, first, last, words, offsets, topics.phi, topics.alpha, topics.ladder, n_particles,
            bool(resample), scores,
        )  # fmt: skip
    scores = documents.scored(scores)
    warn_impossible(scores, "every topic of topic_word")
    return HeldOut(scores, documents.lengths, "left_to_right")
