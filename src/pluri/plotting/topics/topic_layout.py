"""Where the nodes of a layered graph are drawn: few crossings, parents beside the middle of their children.

The method is that of Sugiyama [1]_: every node lies in a layer; an edge that passes through a layer has a dummy node
there; each layer is sorted by the mean place of its neighbours, to and fro, with swaps of nodes side by side, and the
order with the fewest crossings is kept. Places are then moved as near as possible to the mean of their neighbours while
those of a layer stay apart, which is an isotonic regression. Everything is deterministic. Trees have no crossings: they
are laid out depth first.

References
----------
.. [1] Sugiyama, K., Tagawa, S. & Toda, M. (1981). Methods for visual understanding of hierarchical system structures.
   IEEE Trans. Systems, Man, and Cybernetics 11, 109-125.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

N_ORDERINGS = 12
N_SWAPS = 8
#: Orders to begin with, in graphs with at most so many nodes.
N_STARTS, SMALL = 8, 300
N_PLACINGS = 10
#: Least distances from the node before: a dummy node is only a line.
APART, APART_DUMMY = 1.0, 0.5

Edge = tuple[int, int]
Links = list[list[int]]


@dataclass(frozen=True)
class LayeredLayout:
    """Places of nodes and the paths of edges.

    Attributes
    ----------
    layer : int array of shape (n_nodes,)
        0 at the top.
    place : float array of shape (n_nodes,)
        Along the layer; those of one layer differ by at least one, and the least is 0.
    routes : list of arrays of shape (n_points, 2)
        For each edge, its points from the parent to the child as (layer, place): one for each layer.
    n_crossings : int
        Number of crossings between edges.
    """

    layer: NDArray[np.int64]
    place: NDArray[np.float64]
    routes: list[NDArray[np.float64]]
    n_crossings: int


def layered_layout(depth: ArrayLike, edges: ArrayLike, *, weight: ArrayLike | None = None) -> LayeredLayout:
    """Lay out a directed graph without cycles.

    Parameters
    ----------
    depth : int array-like of shape (n_nodes,)
        Layers; where an edge does not lead to a deeper layer, each node is put below its deepest parent instead.
    edges : int array-like of shape (n_edges, 2)
        Parents and children.
    weight : array-like of shape (n_edges,), optional
        The children of a node are drawn heaviest first where that makes no crossings.

    Returns
    -------
    LayeredLayout

    Examples
    --------
    >>> from pluri.plotting.topics.topic_layout import layered_layout
    >>> layout = layered_layout([0, 1, 1, 1], [[0, 1], [0, 2], [0, 3]])
    >>> layout.place
    array([1., 0., 1., 2.])
    """
    pairs = [(int(parent), int(child)) for parent, child in np.asarray(edges, dtype=np.int64).reshape(-1, 2)]
    layer = _layers(np.asarray(depth, dtype=np.int64), pairs)
    strength = np.ones(len(pairs)) if weight is None else np.asarray(weight, dtype=np.float64)
    n_nodes = len(layer)
    chains, above, below, layer_of = _with_dummies(layer, pairs)
    order = _depth_first(n_nodes, pairs, strength, chains, layer_of)
    order, n_crossings = _fewest_crossings(order, above, below)
    place = _places(order, above, below, n_nodes)
    routes = [np.array([[layer_of[node], place[node]] for node in chain]) for chain in chains]
    return LayeredLayout(layer, place[:n_nodes], routes, n_crossings)


def _layers(depth: NDArray[np.int64], pairs: Sequence[Edge]) -> NDArray[np.int64]:
    """Layers without gaps, such that every edge leads downwards."""
    for pair in pairs:
        if not all(0 <= node < len(depth) for node in pair):
            raise ValueError(f"edges must lie between nodes 0, ..., {len(depth) - 1}, got {pair}")
    if all(depth[parent] < depth[child] for parent, child in pairs):
        return np.unique(depth, return_inverse=True)[1].reshape(-1).astype(np.int64)
    longest = np.zeros(len(depth), dtype=np.int64)
    for _ in range(len(depth)):
        before = longest.copy()
        for parent, child in pairs:
            longest[child] = max(longest[child], longest[parent] + 1)
        if np.array_equal(before, longest):
            return longest
    raise ValueError("edges must not make a cycle")


def _with_dummies(
    layer: NDArray[np.int64], pairs: Sequence[Edge]
) -> tuple[list[list[int]], Links, Links, NDArray[np.int64]]:
    """Each edge as a chain of nodes from layer to layer, the neighbours of all nodes, and their layers."""
    layers = [int(number) for number in layer]
    above: Links = [[] for _ in layers]
    below: Links = [[] for _ in layers]
    chains = []
    for parent, child in pairs:
        chain = [parent]
        for number in range(layers[parent] + 1, layers[child]):
            chain.append(len(layers))
            layers.append(number)
            above.append([])
            below.append([])
        chain.append(child)
        chains.append(chain)
        for upper, lower in pairwise(chain):
            below[upper].append(lower)
            above[lower].append(upper)
    return chains, above, below, np.array(layers, dtype=np.int64)


def _depth_first(
    n_nodes: int,
    pairs: Sequence[Edge],
    strength: NDArray[np.float64],
    chains: Sequence[Sequence[int]],
    layer_of: NDArray[np.int64],
) -> list[list[int]]:
    """Nodes of each layer in the order in which a walk from the roots meets them, heavy edges first."""
    leaving: list[list[int]] = [[] for _ in range(n_nodes)]
    for number, (parent, _) in enumerate(pairs):
        leaving[parent].append(number)
    lower = {child for _, child in pairs}
    rows: list[list[int]] = [[] for _ in range(int(layer_of.max(initial=-1)) + 1)]
    seen: set[int] = set()
    stack = sorted((node for node in range(n_nodes) if node not in lower), key=lambda node: (layer_of[node], node))
    stack.reverse()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        rows[layer_of[node]].append(node)
        if node >= n_nodes:
            continue  # what lies behind a dummy is on the stack below it
        for number in sorted(leaving[node], key=lambda number: (strength[number], -number)):
            stack.extend(reversed(chains[number][1:]))
    return rows


def _fewest_crossings(order: list[list[int]], above: Links, below: Links) -> tuple[list[list[int]], int]:
    """The best order found from the given one, and from shuffled ones as long as edges cross."""
    rng = np.random.default_rng(0)
    best, fewest = order, _crossings(order, below)
    start = order
    for _ in range(N_STARTS if len(above) <= SMALL else 1):
        if fewest == 0:
            break
        found, n_crossings = _sorted_layers(start, above, below)
        if n_crossings < fewest:
            best, fewest = found, n_crossings
        start = [[row[place] for place in rng.permutation(len(row))] for row in order]
    return best, fewest


def _sorted_layers(order: list[list[int]], above: Links, below: Links) -> tuple[list[list[int]], int]:
    """Sort layers by the mean rank of their neighbours, downwards and upwards in turn; keep the best."""
    best, fewest = order, _crossings(order, below)
    for attempt in range(N_ORDERINGS):
        if fewest == 0:
            break
        order = [list(row) for row in order]
        downwards = attempt % 2 == 0
        numbers = range(1, len(order)) if downwards else range(len(order) - 2, -1, -1)
        for number in numbers:
            beside = order[number - 1 if downwards else number + 1]
            rank = {node: place for place, node in enumerate(beside)}
            order[number] = _by_barycentre(order[number], rank, above if downwards else below)
        _swap_neighbours(order, above, below)
        n_crossings = _crossings(order, below)
        if n_crossings < fewest:
            best, fewest = order, n_crossings
    return best, fewest


def _by_barycentre(row: list[int], rank: dict[int, int], links: Links) -> list[int]:
    """Nodes with neighbours are sorted among themselves; those without stay where they are."""
    means = {node: float(np.mean([rank[other] for other in links[node]])) for node in row if links[node]}
    moving = iter(sorted(means, key=lambda node: means[node]))  # stable: ties keep their order
    return [next(moving) if node in means else node for node in row]


def _swap_neighbours(order: list[list[int]], above: Links, below: Links) -> None:
    """Exchange two that stand side by side as long as that takes crossings away."""
    for _ in range(N_SWAPS):
        changed = False
        for number, row in enumerate(order):
            ranks = [
                ({node: place for place, node in enumerate(order[beside])}, links)
                for beside, links in ((number - 1, above), (number + 1, below))
                if 0 <= beside < len(order)
            ]
            for place in range(len(row) - 1):
                one, two = row[place], row[place + 1]
                gain = 0
                for rank, links in ranks:
                    for first in links[one]:
                        for second in links[two]:
                            gain += (rank[first] > rank[second]) - (rank[first] < rank[second])
                if gain > 0:
                    row[place], row[place + 1] = two, one
                    changed = True
        if not changed:
            break


def _crossings(order: Sequence[Sequence[int]], below: Links) -> int:
    total = 0
    for upper, lower in pairwise(order):
        rank = {node: place for place, node in enumerate(lower)}
        seen: list[int] = []
        for node in upper:
            ends = sorted(rank[other] for other in below[node])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _places(order: Sequence[Sequence[int]], above: Links, below: Links, n_nodes: int) -> NDArray[np.float64]:
    """Near the mean of the neighbours, in order, and apart."""
    place = np.zeros(len(above))
    for row in order:
        place[row] = np.arange(len(row)) - (len(row) - 1) / 2
    # Upwards last: parents end in the middle of their children.
    for attempt in range(N_PLACINGS):
        downwards = attempt % 2 == 0
        links = above if downwards else below
        for row in order if downwards else order[::-1]:
            wanted = np.array([np.mean(place[links[node]]) if links[node] else place[node] for node in row])
            force = np.array([1.0 if links[node] else 0.1 for node in row])
            gaps = [APART if node < n_nodes and other < n_nodes else APART_DUMMY for other, node in pairwise(row)]
            place[row] = _spread(wanted, force, np.array(gaps))
    return place - place[:n_nodes].min(initial=np.inf) if n_nodes else place


def _spread(wanted: NDArray[np.float64], force: NDArray[np.float64], gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places nearest to those wanted (weighted squares) whose successive distances are at least the gaps."""
    from sklearn.isotonic import isotonic_regression

    if len(wanted) < 2:
        return wanted
    offset = np.concatenate([[0.0], np.cumsum(gaps)])
    return isotonic_regression(wanted - offset, sample_weight=force) + offset
