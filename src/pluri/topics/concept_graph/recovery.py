"""How much of a true graph a learned one has: nodes matched by their words, then edges compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

#: Cosine above which a learned topic is a true one, and documents that an edge needs to count.
SAME, FEWEST = 0.9, 10


@dataclass(frozen=True, eq=False)
class GraphRecovery:
    """What was found of a true graph.

    Attributes
    ----------
    match : int array of shape (n_true,)
        Learned node of each true one; -1 if none is left for it.
    cosine : array of shape (n_true,)
        Cosine of the two topics.
    n_found : int
        True nodes whose cosine is above 0.9.
    edge_recall, edge_precision : float
        Share of true edges found, and of learned edges true, among those with at least ten documents.
    largest_count_error : float
        Largest relative error of the number of documents of a true edge.
    same_depth : float
        Share of the nodes found that have their true depth.
    """

    match: NDArray[np.int64]
    cosine: NDArray[np.float64]
    n_found: int
    edge_recall: float
    edge_precision: float
    largest_count_error: float
    same_depth: float


def graph_recovery(
    true_topic_word: ArrayLike,
    true_edges: ArrayLike,
    true_counts: ArrayLike,
    true_depth: ArrayLike,
    topic_word: ArrayLike,
    edges: ArrayLike,
    counts: ArrayLike,
    depth: ArrayLike,
    *,
    cosine: float = SAME,
    fewest: int = FEWEST,
) -> GraphRecovery:
    """Compare a learned graph with the true one.

    Parameters
    ----------
    true_topic_word, topic_word : array-like of shape (n_nodes, n_words)
    true_edges, edges : array-like of shape (n_edges, 2)
    true_counts, counts : array-like of shape (n_edges,)
        Documents that take each edge.
    true_depth, depth : array-like of shape (n_nodes,)
    cosine : float, default=0.9
        Above this a learned topic is the true one; a lower one does not match anything.
    fewest : int, default=10
        Edges with fewer documents do not count.

    Returns
    -------
    GraphRecovery

    Examples
    --------
    >>> from pluri.topics.concept_graph.recovery import graph_recovery
    >>> topics = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> found = graph_recovery(topics, [[0, 1], [0, 2]], [20, 30], [0, 1, 1],
    ...                        topics[::-1], [[2, 1]], [19], [1, 1, 0])
    >>> found.match.tolist(), found.n_found, found.edge_recall, found.edge_precision
    ([2, 1, 0], 3, 0.5, 1.0)
    """
    true, learned = (np.asarray(values, dtype=np.float64) for values in (true_topic_word, topic_word))
    alike = true @ learned.T / np.linalg.norm(true, axis=1)[:, None] / np.linalg.norm(learned, axis=1)
    rows, columns = linear_sum_assignment(-alike)
    match, near = np.full(len(true), -1), np.zeros(len(true))
    match[rows], near[rows] = columns, alike[rows, columns]
    found = near > cosine
    number = {
        (int(x), int(y)): int(n)
        for (x, y), n in zip(np.asarray(edges, dtype=np.int64).reshape(-1, 2), np.asarray(counts).ravel())
    }
    wanted = [
        (int(x), int(y), int(n))
        for (x, y), n in zip(np.asarray(true_edges, dtype=np.int64).reshape(-1, 2), np.asarray(true_counts).ravel())
        if n >= fewest
    ]
    ours = [number.get((int(match[x]), int(match[y])), 0) if found[x] and found[y] else 0 for x, y, _ in wanted]
    hits = sum(n >= fewest for n in ours)
    n_learned = sum(n >= fewest for n in number.values())
    errors = [abs(n - m) / m for n, (_, _, m) in zip(ours, wanted)]
    right = np.asarray(depth)[match[found]] == np.asarray(true_depth)[found]
    return GraphRecovery(
        match,
        near,
        int(found.sum()),
        hits / len(wanted) if wanted else float("nan"),
        hits / n_learned if n_learned else float("nan"),
        max(errors, default=0.0),
        float(right.mean()) if found.any() else float("nan"),
    )
