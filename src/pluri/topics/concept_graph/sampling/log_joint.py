"""Log joint probability of a concept graph: words, levels, tau, paths, orders, and hyper-parameters that are learned.

Topics and sticks are integrated out. Nodes that no path uses are all alike: an order counts once, however they are
placed among each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaln, gammaln

from pluri.topics.concept_graph.sampling.state import GraphState, Integers, count_histogram

if TYPE_CHECKING:
    from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs


def log_joint(kernel: ConceptGraphGibbs, state: GraphState) -> float:
    """Log p of words, levels, paths, tau, orders, numbers of nodes, and what is learned, of a state."""
    from pluri.topics.concept_graph.sampling._density_kernels import log_steps, log_words

    graph, corpus = state.graph, state.corpus
    words, sticks = count_histogram(graph.word_count), kernel.sticks(state.stick_beta)
    value = float(log_words(graph.depth, graph.total, kernel.n_words, state.topic_word_prior, words))
    value += float(log_steps(graph.depth, graph.visits, graph.edge, graph.order, graph.n_atoms, *sticks))
    value += log_levels(kernel, corpus.level, corpus.length, corpus.tau)
    value += log_orders(graph.depth, graph.protected, graph.n_nodes, graph.n_atoms, kernel.deeper)
    for learned, number in (
        (kernel.learned_beta, state.stick_beta), (kernel.learned_words, state.topic_word_prior)
    ):  # fmt: skip
        if learned.prior is not None:
            value += learned.prior.log_density(number)
    return value


def log_levels(kernel: ConceptGraphGibbs, level: Any, length: Any, tau: Any) -> float:
    """Log p(levels, tau | lengths of the paths)."""
    n_tokens = np.diff(kernel.offsets)
    a, b = kernel.tau_prior.a, kernel.tau_prior.b
    if kernel.level_prior == "dirichlet":
        documents = np.repeat(np.arange(len(n_tokens)), n_tokens)
        counts = np.zeros((len(n_tokens), kernel.n_levels))
        np.add.at(counts, (documents, level), 1.0)
        prior = np.where(np.arange(kernel.n_levels) == 0, a, b)
        total = a + (length - 1) * b
        value = gammaln(total) - gammaln(total + n_tokens)
        return float(value.sum() + (gammaln(prior + counts) - gammaln(prior)).sum())
    summed = np.concatenate([[0], np.cumsum(level, dtype=np.int64)])
    sums = summed[kernel.offsets[1:]] - summed[kernel.offsets[:-1]]
    powers = (1.0 - tau)[:, None] ** np.arange(kernel.n_levels)
    series = np.where(np.arange(kernel.n_levels) < np.asarray(length)[:, None], powers, 0.0).sum(axis=1)
    value = (a - 1.0) * np.log(tau) + (b - 1.0 + sums) * np.log1p(-tau) - n_tokens * np.log(series)
    return float(value.sum() - len(n_tokens) * betaln(a, b))


def log_orders(depth: Any, protected: Any, n_nodes: Integers, n_atoms: Integers, deeper: bool) -> float:
    """Log probability of the orders, and of which nodes are in use, blank nodes being all alike."""
    n_levels = len(n_nodes) - 1
    used = np.bincount(depth, minlength=n_levels + 1)
    kept = np.bincount(depth[protected.astype(bool)], minlength=n_levels + 1)
    blanks = gammaln(n_nodes - used + 1.0)
    value = float((gammaln(n_nodes - kept + 1.0) - blanks)[2:].sum())
    for k in range(1, n_levels):
        below = blanks[k + 1 :].sum() if deeper else blanks[k + 1]
        value += float(used[k] * (below - gammaln(n_atoms[k] + 1.0)))
    return value
