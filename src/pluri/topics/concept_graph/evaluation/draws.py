"""What is kept of some draws of a concept graph, by which new documents are judged.

One draw says less of new documents than the posterior: their likelihood and their labels are averages over draws. A
draw is a dict: ``name`` of its nodes, the root first; ``count``, ``word`` and ``offset``, the CSR parts of their counts
of words, of which there are ``n_words``; ``topic_word_prior``; ``step`` and ``end``, probabilities of the steps between
nodes and of the ends. After the nodes come, in `step` and `end`, the nodes that no path uses, as one for each depth
from the second on; their words have the mean of their prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.priors.hyperpriors import Beta
from pluri.topics.concept_graph.arrays import Graph
from pluri.topics.concept_graph.evaluation.fitted import FittedGraph

Draw = dict[str, Any]
#: Most draws that are kept of a chain. When there are more, every other one goes.
MOST_DRAWS = 10


def draw_of(graph: Graph, topic_word_prior: float, deeper: bool) -> Draw:
    """What is kept of the present state of a graph."""
    slots, n_levels = np.flatnonzero(graph.depth), len(graph.n_nodes) - 1
    new = np.arange(2, n_levels + 1)
    place, depth = np.append(slots, len(graph.depth) + new), np.append(graph.depth[slots], new).astype(np.int64)
    below = depth[None, :] - depth[:, None]
    feasible = below > 0 if deeper else below == 1
    counts = sparse.csr_matrix(graph.word_count[:, slots].T)
    return {
        "name": graph.name[slots],
        "count": counts.data,
        "word": counts.indices,
        "offset": counts.indptr,
        "n_words": counts.shape[1],
        "topic_word_prior": float(topic_word_prior),
        "step": graph.probability[np.ix_(place, place)] * feasible,
        "end": graph.probability[place, -1],
    }


def counts_of(draw: Draw) -> NDArray[np.float64]:
    """How often each node has each word: array of shape (n_nodes, n_words)."""
    parts, shape = (draw["count"], draw["word"], draw["offset"]), (len(draw["name"]), draw["n_words"])
    return np.asarray(sparse.csr_matrix(parts, shape=shape).toarray(), dtype=np.float64)


def fitted_draw(draw: Draw, n_levels: int, level_prior: str, tau_prior: Beta) -> FittedGraph:
    """The graph of a draw, with a node for each depth that stands for all that no path uses."""
    smoothed = counts_of(draw) + draw["topic_word_prior"]
    n_words = draw["n_words"]
    unused = np.full((n_levels - 1, n_words), 1.0 / n_words)
    topic_word: NDArray[np.float64] = np.vstack([smoothed / smoothed.sum(axis=1, keepdims=True), unused])
    return FittedGraph.of(topic_word, draw["step"], draw["end"], n_levels, level_prior, tau_prior)


class KeptDraws:
    """Some draws of a chain, evenly apart, however many there will be."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []
        self.n_seen, self.apart = 0, 1

    def add(self, graph: Graph, topic_word_prior: float, deeper: bool) -> None:
        """Look at the next draw, and keep it if it is its turn."""
        if self.n_seen % self.apart == 0:
            self.draws.append(draw_of(graph, topic_word_prior, deeper))
            if len(self.draws) > MOST_DRAWS:
                self.draws, self.apart = self.draws[::2], 2 * self.apart
        self.n_seen += 1
