r"""Document completion: learn a document's topics from one half of its words and score the other half.

The score of a scored word w is ``log sum_k E[theta_k | observed words] phi_kw``: the probability that it would be the
next word. It is the score to choose models by, because it needs no estimate of a normaliser: its only error is that
of the posterior mean of theta.

References
----------
.. [1] Wallach, H., Murray, I., Salakhutdinov, R. and Mimno, D. (2009). Evaluation methods for topic models. ICML.
.. [2] Asuncion, A., Welling, M., Smyth, P. and Teh, Y. W. (2009). On smoothing and inference for topic models. UAI.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.topics.held_out.prepared import Prepared, blocks, check_at_least, prepare, warn_impossible
from pluri.topics.held_out.record import HeldOut
from pluri.topics.held_out.splitting import split_documents
from pluri.validation import RandomState, as_generator

Inference = Literal["gibbs", "pseudo_counts", "vb"]
#: Mean change of a topic's expected count at which the deterministic ways stop.
TOLERANCE = 1e-5


def completion(
    topic_word: ArrayLike,
    doc_topic_prior: ArrayLike,
    X: Any,
    rng: RandomState = None,
    *,
    observed: Any = None,
    share: float = 0.5,
    inference: Inference = "gibbs",
    n_warmup: int = 20,
    n_sweeps: int = 80,
    max_iter: int = 200,
) -> HeldOut:
    """Score one half of each document given the other half.

    Parameters
    ----------
    topic_word : array-like of shape (n_topics, n_words)
        Distribution over words of each topic; held fixed.
    doc_topic_prior : float or array-like of shape (n_topics,)
        Parameters of the Dirichlet distribution of a document's proportions.
    X : array-like or sparse matrix of shape (n_documents, n_words)
        Whole counts of the documents; or, if `observed` is given, of the words to score.
    rng : int, Generator or None
        Randomness of the split and of the sampler.
    observed : array-like or sparse matrix of shape (n_documents, n_words), optional
        The words to learn each document's topics from, as :func:`split_documents` returns them. Give both halves to
        score several models, or several draws of one, on the same words.
    share : float, default=0.5
        Part of each document to observe, where `observed` is not given.
    inference : {"gibbs", "pseudo_counts", "vb"}, default="gibbs"
        How the posterior mean of the proportions is found: by Gibbs sampling, which is exact in the limit; by expected
        counts (collapsed variational Bayes of order zero); by mean-field variational Bayes.
    n_warmup, n_sweeps : int, default=20 and 80
        Sweeps of the Gibbs sampler over a document before, and while, its draws are averaged.
    max_iter : int, default=200
        Largest number of rounds of the other two.

    Returns
    -------
    HeldOut
        Of the scored words. Observed words that no topic has are left out, with a warning.

    Examples
    --------
    >>> from pluri.topics.held_out import completion
    >>> topics = [[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]
    >>> completion(topics, 0.1, [[10, 12, 0, 0], [0, 0, 9, 8]], rng=0)
    HeldOut(method='completion', documents=2, tokens=20, per_word=-0.7036)
    """
    if inference not in ("gibbs", "pseudo_counts", "vb"):
        raise ValueError(f"inference must be 'gibbs', 'pseudo_counts' or 'vb', got {inference!r}")
    generator = as_generator(rng)
    if observed is None:
        observed, X = split_documents(X, generator, share)
    known, asked = prepare(topic_word, doc_topic_prior, observed, X)
    if known.impossible.any():
        warnings.warn(
            f"{int(known.impossible.sum())} documents have observed words of probability zero under every topic; "
            "those words are left out",
            RuntimeWarning,
            stacklevel=2,
        )
    from pluri.topics.held_out._fold_in_kernels import log_mixture

    words, offsets = asked.tokens()
    scores = np.empty(asked.n_documents)
    alpha = known.topics.alpha
    for first, last, expected in _expected_counts(known, generator, inference, n_warmup, n_sweeps, max_iter):
        theta = (alpha + expected) / (alpha.sum() + expected.sum(axis=1, keepdims=True))
        log_mixture(first, last, words, offsets, asked.topics.phi, theta, scores)
    scores = asked.scored(scores)
    warn_impossible(scores, "every topic of topic_word")
    return HeldOut(scores, asked.lengths, "completion")


def proportions(
    topic_word: ArrayLike,
    doc_topic_prior: ArrayLike,
    X: Any,
    rng: RandomState = None,
    *,
    inference: Inference = "gibbs",
    n_warmup: int = 20,
    n_sweeps: int = 80,
    max_iter: int = 200,
) -> NDArray[np.float64]:
    """Posterior mean of each document's proportions, with the topics held fixed.

    Parameters are those of :func:`completion`, with whole documents in `X`.

    Returns
    -------
    ndarray of shape (n_documents, n_topics)
        Rows sum to one; an empty document has the prior mean.

    Examples
    --------
    >>> from pluri.topics.held_out import proportions
    >>> proportions([[0.9, 0.1], [0.1, 0.9]], 1.0, [[0, 0]], rng=0)
    array([[0.5, 0.5]])
    """
    if inference not in ("gibbs", "pseudo_counts", "vb"):
        raise ValueError(f"inference must be 'gibbs', 'pseudo_counts' or 'vb', got {inference!r}")
    (known,) = prepare(topic_word, doc_topic_prior, X)
    theta = np.empty((known.n_documents, known.topics.alpha.size))
    alpha = known.topics.alpha
    for first, last, expected in _expected_counts(known, as_generator(rng), inference, n_warmup, n_sweeps, max_iter):
        theta[first:last] = (alpha + expected) / (alpha.sum() + expected.sum(axis=1, keepdims=True))
    return theta


def _expected_counts(
    known: Prepared, rng: np.random.Generator, inference: str, n_warmup: int, n_sweeps: int, max_iter: int
) -> Any:
    """Expected number of words of each topic, block of documents after block."""
    from pluri.topics.held_out import _fold_in_kernels, _kernels, _pseudo_count_kernels

    topics = known.topics
    n_topics = topics.alpha.size
    if inference == "gibbs":
        check_at_least("n_warmup", n_warmup, 0)
        check_at_least("n_sweeps", n_sweeps, 1)
        words, offsets = known.tokens()
        work = np.diff(offsets) * float(n_warmup + n_sweeps) + n_topics
        for first, last in blocks(work):
            expected = np.empty((last - first, n_topics))
            _kernels.gibbs_counts(
                rng, first, last, words, offsets, topics.phi, topics.alpha, topics.ladder, n_warmup, n_sweeps, expected
            )
            yield first, last, expected
        return
    check_at_least("max_iter", max_iter, 1)
    entries, occurrences, indptr = known.entries()
    rows = _fold_in_kernels.variational_rows if inference == "vb" else _pseudo_count_kernels.pseudo_count_rows
    for first, last in blocks(np.diff(indptr) * float(max_iter) * n_topics + n_topics):
        expected = np.empty((last - first, n_topics))
        rows(
            first, last, entries, occurrences, indptr, topics.phi, topics.alpha, max_iter, TOLERANCE, expected
        )  # fmt: skip
        yield first, last, expected
