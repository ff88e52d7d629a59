"""How probable unseen documents are under a concept graph.

*exact*: the sum over all paths and the quadrature over levels. *completion*: half of the words of each document, each
as the next word after the other half, as in the other topic models. *empirical*: the mean of the probability of the
document over the word distributions of made-up documents. *left_to_right*: word after word, each given those before it,
by particles that redraw the levels of the words before, the path and tau at every word. The last two estimate what the
first computes.
All take topics and steps at their posterior means.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pluri.topics.concept_graph.fitted import FittedGraph
from pluri.topics.documents import tokens_of
from pluri.topics.held_out import HeldOut, empirical_likelihood
from pluri.topics.held_out.halves import halves, score_words

METHODS = ("completion", "empirical", "left_to_right", "exact")


def held_out(fitted: FittedGraph, X: Any, method: str, rng: np.random.Generator, **options: Any) -> HeldOut:
    """Log likelihood of documents by one of the methods of the module.

    Parameters
    ----------
    fitted : FittedGraph
    X : csr matrix of shape (n_documents, n_words)
    method : {"completion", "empirical", "left_to_right", "exact"}
    rng : Generator
    **options
        `n_samples` (made-up documents, 2000 by default) for "empirical", `n_particles` (20) for "left_to_right",
        `share` (0.5) or `observed` (the words to learn from; then `X` has those to score) for "completion".
    """
    allowed = {
        "completion": ("share", "observed"), "empirical": ("n_samples",), "left_to_right": ("n_particles",),
        "exact": (),
    }  # fmt: skip
    if method not in allowed:
        raise ValueError(f"method must be one of {METHODS}, got {method!r}")
    for name in options:
        if name not in allowed[method]:
            raise TypeError(f"method={method!r} has no option {name!r}")
    lengths = np.asarray(X.sum(axis=1)).ravel().astype(np.int64)
    if method == "exact":
        return HeldOut(fitted.posterior(X, shares=False).log_likelihood, lengths, method)
    if method == "completion":
        observed, scored = halves(X, rng, **options)
        return score_words(fitted.posterior(observed, next_word=True).node_share, fitted.topic_word, scored)
    if method == "empirical":
        _, shares = fitted.draw_shares(rng, int(options.get("n_samples", 2000)))
        return empirical_likelihood(shares @ fitted.topic_word, X)
    return _left_to_right(fitted, X, rng, int(options.get("n_particles", 20)), lengths)


def _left_to_right(fitted: FittedGraph, X: Any, rng: np.random.Generator, n_particles: int, lengths: Any) -> HeldOut:
    from pluri.topics.concept_graph._evaluation_kernels import left_to_right

    tokens = tokens_of(X)
    topic_word = np.ascontiguousarray(fitted.topic_word.T)
    a, b = fitted.tau_prior
    value = np.zeros(X.shape[0])
    for d in range(X.shape[0]):
        words = rng.permutation(tokens.words[tokens.offsets[d] : tokens.offsets[d + 1]])
        if len(words):
            value[d] = left_to_right(
                rng, words, topic_word, np.log(topic_word), fitted.paths, fitted.lengths, fitted.log_prior, float(a),
                float(b), fitted.level_prior == "dirichlet", n_particles,
            )  # fmt: skip
    return HeldOut(value, lengths, "left_to_right")
