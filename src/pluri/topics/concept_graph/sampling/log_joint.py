"""Log joint probability of a concept graph: words, levels, tau, paths, orders, and hyper-parameters that are learned.

Topics and sticks are integrated out. Nodes that no path uses are all alike: an order counts once, however they are
placed among each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import betaln, gammaln

from pluri.topics.concept_graph.arrays import END, Graph, StickTables
from pluri.topics.concept_graph.sampling.state import GraphState, Integers, count_histogram

if TYPE_CHECKING:
    from pluri.topics.concept_graph.sampling.gibbs import ConceptGraphGibbs


def log_joint(kernel: ConceptGraphGibbs, state: GraphState) -> float:
    """Log p of words, levels, paths, tau, orders, numbers of nodes, and what is learned, of a state."""
    graph, corpus = state.graph, state.corpus
    value = log_words(graph, count_histogram(graph.word_count), state.topic_word_prior)
    value += log_steps(step_histograms(graph), kernel.sticks(state.stick_beta))
    value += log_levels(kernel, corpus.level, corpus.length, corpus.tau)
    value += log_orders(graph.depth, graph.protected, graph.n_nodes, graph.n_atoms, kernel.deeper)
    for learned, number in (
        (kernel.learned_beta, state.stick_beta), (kernel.learned_words, state.topic_word_prior)
    ):  # fmt: skip
        if learned.prior is not None:
            value += learned.prior.log_density(number)
    return value


def log_words(graph: Graph, histogram: Integers, eta: float) -> float:
    """Log probability of all words given where they are; `histogram` counts how often each count occurs."""
    n_words, counts = graph.word_count.shape[0], np.flatnonzero(histogram)
    totals = eta * n_words + graph.total[graph.depth > 0]
    value = (gammaln(eta * n_words) - gammaln(totals)).sum()
    return float(value + histogram[counts] @ (gammaln(eta + counts) - gammaln(eta)))


def step_histograms(graph: Graph) -> tuple[Integers, Integers, Integers]:
    """How often each number of documents takes a stick, goes on to later ones, and does either, over all sticks."""
    slots = np.flatnonzero(graph.depth)
    order = graph.order[slots]
    n_sticks = graph.n_atoms[graph.depth[slots]] - 1
    is_stick = np.arange(order.shape[1]) < n_sticks[:, None]
    # The end of the path is atom -1, and its count in the last column; blank nodes are below, and nobody takes them.
    taken = np.where(is_stick & (order >= END), graph.edge[slots[:, None], np.maximum(order, END)], 0)
    rest = graph.visits[slots][:, None] - taken.cumsum(axis=1)
    taken, rest = taken[is_stick], rest[is_stick]
    return np.bincount(taken), np.bincount(rest), np.bincount(taken + rest)


def log_steps(histograms: tuple[Integers, Integers, Integers], sticks: StickTables) -> float:
    """Log probability of all steps given the orders: the sum of log B(alpha + n, beta + m) / B(alpha, beta)."""
    first, second, both = (n @ (table[: len(n)] - table[0]) for n, table in zip(histograms, sticks, strict=True))
    return float(first + second - both)


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
