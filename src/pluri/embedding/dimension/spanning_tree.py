"""Dimension from the length of spanning trees along the data: it grows as ``n^((d-1)/d)`` with the number of rows.

Distances go along a graph of nearest neighbours. Trees of random subsets of growing size are measured; with s the slope
of the logarithm of their length in the logarithm of their size, ``d = 1 / (1 - s)``.

References
----------
Costa and Hero (2004), Geodesic entropic graphs for dimension and entropy estimation in manifold learning, IEEE
Transactions on Signal Processing 52, 2210-2221.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components, shortest_path
from sklearn.neighbors import kneighbors_graph

from pluri.embedding.dimension.records import DimensionSettings, Estimate

Array = NDArray[np.float64]
#: Sizes of the subsets as shares of all rows, and subsets of each size.
SHARES = (0.3, 0.4, 0.52, 0.68, 0.85, 1.0)
N_SUBSETS = 4


def geodesic_distances(X: Array, n_neighbors: int) -> Array:
    """Shortest ways along the graph of nearest neighbours, (n_samples, n_samples).

    Raises
    ------
    ValueError
        If the graph is not connected.
    """
    graph = kneighbors_graph(X, n_neighbors, mode="distance")
    number, _ = connected_components(graph, directed=False)
    if number > 1:
        raise ValueError(
            f"n_neighbors must be large enough to connect all rows, got {n_neighbors}, with which they fall into "
            f"{number} parts"
        )
    return np.asarray(shortest_path(graph, directed=False))


def spanning_tree_length(distance: Array) -> float:
    """Length of the minimal spanning tree of a complete graph (Prim's algorithm).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding.dimension.spanning_tree import spanning_tree_length
    >>> spanning_tree_length(np.abs(np.subtract.outer([0.0, 5.0, 1.0], [0.0, 5.0, 1.0])))
    5.0
    """
    outside = distance[0].copy()
    outside[0] = np.inf
    length = 0.0
    for _ in range(len(distance) - 1):
        nearest = int(outside.argmin())
        length += float(outside[nearest])
        np.minimum(outside, distance[nearest], out=outside, where=np.isfinite(outside))
        outside[nearest] = np.inf
    return length


def spanning_trees(X: Array, settings: DimensionSettings, rng: np.random.Generator) -> Estimate:
    """Dimension from the growth of geodesic minimal spanning trees."""
    distance = geodesic_distances(X, min(settings.n_neighbors, len(X) - 1))
    sizes, lengths = [], []
    for share in SHARES:
        size = max(3, round(share * len(X)))
        for _ in range(1 if size == len(X) else N_SUBSETS):
            subset = rng.permutation(len(X))[:size]
            sizes.append(size)
            lengths.append(spanning_tree_length(distance[np.ix_(subset, subset)]))
    slope = float(np.polyfit(np.log(sizes), np.log(lengths), 1)[0])
    if slope >= 1:
        raise ValueError("X must have trees that grow more slowly than its number of rows; method='gmst' fails on it")
    return Estimate(max(1.0, 1.0 / (1.0 - slope)), None)
