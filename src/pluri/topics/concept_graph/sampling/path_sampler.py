r"""The path of a document given the levels of its words: an exact dynamic programme, and enumeration as its check.

The words of level l of a document sit at place S - l of a path of S nodes, wherever it goes. So given S the weight of a
path is a product over its places, and sums over all paths are sums over one place after another:

.. math::
    \beta_S(S, x) = \phi_0(x)\, p(x \to \mathrm{end}), \qquad
    \beta_S(i, x) = \phi_{S-i}(x) \sum_y p(x \to y)\, \beta_S(i+1, y),

where :math:`\phi_l(x)` is the probability of the words of level l at node x, the topic integrated out. The path has S
nodes with a probability proportional to :math:`\beta_S(1, root)\, p(levels \mid \tau, S)`; its nodes follow forward. A
new node stands for all nodes without documents; the order of its atoms is unknown, so that each follows it with the
same probability. Costs O(number of edges that there could be) for each S, not the number of paths.

The factor p(levels | tau, S) = (sum_{j<S} (1 - tau)^j)^{-n} is missing in the published sampler. It is enormous:
without it long paths are far too frequent.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.topics.concept_graph.arrays import Numbers
from pluri.topics.concept_graph.sampling.state import GraphState

Path = tuple[int, ...]


def word_terms_of(state: GraphState, numbers: Numbers, document: int) -> tuple[NDArray[np.float64], int]:
    """Log probability of the words of each level at each slot, and at a new node (last); and the highest level."""
    from pluri.topics.concept_graph.sampling._path_kernels import word_terms

    graph, corpus = state.graph, state.corpus
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    log_term, product = np.empty((n_levels, capacity + 1)), np.empty((n_levels, capacity + 1))
    first, last = corpus.offsets[document], corpus.offsets[document + 1]
    top = word_terms(
        graph, numbers.eta, corpus.words, corpus.level, first, last, capacity, 1, log_term, product,
        np.zeros(n_levels, dtype=np.int64), np.zeros(n_levels, dtype=np.int64),
    )  # fmt: skip
    return log_term, int(top)


def enumerate_paths(state: GraphState, numbers: Numbers, document: int) -> dict[Path, float]:
    """Log weight of every path of a document that was taken out, given the levels of its words and tau.

    Paths are tuples of slots; a new node of depth k is the number of slots plus k.
    """
    from pluri.topics.concept_graph.sampling._path_kernels import log_length_factor

    graph, corpus = state.graph, state.corpus
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    log_term, top = word_terms_of(state, numbers, document)
    n_words = int(corpus.offsets[document + 1] - corpus.offsets[document])
    label, end = int(corpus.label[document]), capacity + n_levels + 1
    weights: dict[Path, float] = {}

    def visit(path: Path, depth: int, log_prior: float) -> None:
        length = len(path)
        if length > top and (label < 0 or path[-1] == label):
            value = log_prior + np.log(graph.probability[path[-1], end])
            value += log_length_factor(numbers, length, n_words, corpus.tau[document])
            for place, x in enumerate(path):
                value += log_term[length - 1 - place, x if x < capacity else capacity]
            weights[path] = float(value)
        for below in range(depth + 1, n_levels + 1 if numbers.deeper else min(depth + 1, n_levels) + 1):
            following = [int(y) for y in graph.members[below, : graph.n_used[below]]]
            if graph.n_nodes[below] > graph.n_used[below]:
                following.append(capacity + below)
            for y in following:
                visit((*path, y), below, log_prior + float(np.log(graph.probability[path[-1], y])))

    visit((0,), 1, 0.0)
    return weights


def draw_path_by_enumeration(rng: np.random.Generator, state: GraphState, numbers: Numbers, document: int) -> None:
    """Draw the path of a document from all paths, one by one: slow, and as exact as the dynamic programme."""
    from pluri.topics.concept_graph.sampling._graph_kernels import put_in, take_out

    n_levels = len(state.graph.n_nodes) - 1
    path = np.empty(n_levels, dtype=np.int64)
    take_out(state.graph, numbers, state.corpus, document, path)
    weights = enumerate_paths(state, numbers, document)
    paths, values = list(weights), np.array(list(weights.values()))
    share = np.exp(values - values.max())
    chosen = paths[int(rng.choice(len(paths), p=share / share.sum()))]
    path[: len(chosen)] = chosen
    put_in(rng, state.graph, numbers, state.corpus, document, path, len(chosen))


def programme_path(rng: np.random.Generator, state: GraphState, numbers: Numbers, document: int) -> tuple[Path, Any]:
    """Path drawn by the dynamic programme for a document that was taken out, and log weights of all lengths."""
    from pluri.topics.concept_graph.sampling._path_kernels import backward, draw_path, log_length_factor

    graph, corpus = state.graph, state.corpus
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    log_term, top = word_terms_of(state, numbers, document)
    back = np.full((n_levels + 1, n_levels + 1, capacity + n_levels + 1), -np.inf)
    room = capacity + n_levels + 2
    backward(graph, numbers, corpus.label[document], top, log_term, back, np.empty(room), np.empty(n_levels + 2))
    n_words, tau = int(corpus.offsets[document + 1] - corpus.offsets[document]), corpus.tau[document]
    path = np.empty(n_levels, dtype=np.int64)
    length = draw_path(
        rng, graph, numbers, n_words, tau, top, back, np.empty(room), np.empty(room, dtype=np.int64), path
    )
    by_length = {
        n: float(back[n, 1, 0] + log_length_factor(numbers, n, n_words, tau)) for n in range(top + 1, n_levels + 1)
    }
    return tuple(int(x) for x in path[:length]), by_length
