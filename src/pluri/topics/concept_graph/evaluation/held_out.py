"""How probable unseen documents are under a concept graph.

*exact*: the sum over all paths and the quadrature over levels. *completion*: half of the words of each document, each
as the next word after the other half, as in the other topic models. *empirical*: the mean of the probability of the
document over the word distributions of made-up documents. *left_to_right*: word after word, each given those before it,
by weighted particles that redraw the levels of the words before, the path and tau at every word (see
`pluri.topics.held_out`). The last two estimate without bias what the first computes.
All take topics and steps at their posterior means given a draw of everything else, and average over draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pluri.topics.concept_graph.evaluation.fitted import FittedGraph
from pluri.topics.documents import tokens_of
from pluri.topics.held_out import HeldOut, empirical_likelihood, mean_over_draws
from pluri.topics.held_out.halves import halves, score_words
from pluri.validation import check_count

#: Options of each method.
METHODS = {
    "completion": ("share", "observed"), "empirical": ("n_samples",), "left_to_right": ("n_particles",), "exact": (),
}  # fmt: skip


def check_options(method: str, options: dict[str, Any]) -> None:
    """Refuse a method or an option that there is not."""
    if method not in METHODS:
        raise ValueError(f"method must be one of {tuple(METHODS)}, got {method!r}")
    for name in options:
        if name not in METHODS[method]:
            raise TypeError(f"method={method!r} has no option {name!r}")


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
    check_options(method, options)
    lengths = np.asarray(X.sum(axis=1)).ravel().astype(np.int64)
    if method == "exact":
        return HeldOut(fitted.posterior(X, shares=False).log_likelihood, lengths, method)
    if method == "completion":
        observed, scored = halves(X, rng, **options)
        return score_words(fitted.posterior(observed, next_word=True).node_share, fitted.topic_word, scored)
    if method == "empirical":
        n_samples = check_count(options.get("n_samples", 2000), "n_samples")
        _, shares = fitted.draw_shares(rng, n_samples, spread=True)
        return empirical_likelihood(shares @ fitted.topic_word, X)
    return _left_to_right(fitted, X, rng, check_count(options.get("n_particles", 20), "n_particles"), lengths)


def held_out_over_draws(
    graphs: Sequence[FittedGraph], X: Any, method: str, rng: np.random.Generator, **options: Any
) -> HeldOut:
    """The same, averaged over the graphs of several draws: ``log mean_s p(x | draw s)``, document by document.

    With "completion" it is the next word whose probability is averaged, each draw with the weight of the words to learn
    from: ``sum_s p(observed | s) p(word | observed, s) / sum_s p(observed | s)``.
    """
    check_options(method, options)
    if method != "completion" or len(graphs) == 1:
        return mean_over_draws([held_out(graph, X, method, rng, **options) for graph in graphs])
    observed, scored = halves(X, rng, **options)
    found = [graph.posterior(observed, next_word=True) for graph in graphs]
    log_weight = np.column_stack([one.log_likelihood for one in found])
    weight = np.exp(log_weight - np.logaddexp.reduce(log_weight, axis=1, keepdims=True))
    shares = np.hstack([weight[:, [s]] * one.node_share for s, one in enumerate(found)])
    return score_words(shares, np.vstack([graph.topic_word for graph in graphs]), scored)


def _left_to_right(fitted: FittedGraph, X: Any, rng: np.random.Generator, n_particles: int, lengths: Any) -> HeldOut:
    from pluri.topics.concept_graph.evaluation._left_to_right_kernels import left_to_right

    tokens = tokens_of(X)
    topic_word = np.ascontiguousarray(fitted.topic_word.T)
    log_topic_word = np.log(topic_word)
    a, b = fitted.tau_prior.a, fitted.tau_prior.b
    value = np.zeros(X.shape[0])
    for d in range(X.shape[0]):
        words = rng.permutation(tokens.words[tokens.offsets[d] : tokens.offsets[d + 1]])
        if len(words):
            value[d] = left_to_right(
                rng, words, topic_word, log_topic_word, fitted.paths, fitted.lengths, fitted.log_prior, float(a),
                float(b), fitted.level_prior == "dirichlet", n_particles,
            )  # fmt: skip
    return HeldOut(value, lengths, "left_to_right")
