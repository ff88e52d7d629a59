"""A graph that is given: nodes with names, each at a depth, and edges between them.

It comes as a dict of children (``{"science": ["physics", "space"], "space": ["mars"]}``), as a dict of depths, the root
being at depth 0 (``{"science": 0, "physics": 1}``), or as a ``networkx.DiGraph``. Nodes stay, whether documents use
them or not; edges say on which paths labelled documents start.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class GivenGraph:
    """Nodes and edges of a given graph.

    Attributes
    ----------
    names : list
        The root first, then by depth.
    depth : int array of shape (n_nodes,)
        From 1 at the root.
    edges : int array of shape (n_edges, 2)
    """

    names: list[Any]
    depth: NDArray[np.int64]
    edges: NDArray[np.int64]


def read_graph(graph: Any, n_levels: int, max_nodes: int | None, *, deeper: bool = False) -> GivenGraph:
    """Read and check a given graph.

    Parameters
    ----------
    graph : dict of children, dict of depths, DiGraph, or None
    n_levels : int
    max_nodes : int or None
        Most nodes of each depth.
    deeper : bool, default=False
        Whether edges may skip depths.

    Returns
    -------
    GivenGraph

    Examples
    --------
    >>> from pluri.topics.concept_graph.given_graph import read_graph
    >>> given = read_graph({"all": ["cats", "dogs"], "dogs": ["poodles"]}, 3, None)
    >>> given.names, given.depth.tolist()
    (['all', 'cats', 'dogs', 'poodles'], [1, 2, 2, 3])
    """
    if graph is None:
        return GivenGraph([None], np.ones(1, dtype=np.int64), np.zeros((0, 2), dtype=np.int64))
    names, pairs, depths = _parts(graph)
    if depths is None:
        depths = _depths(names, pairs)
    for name, level in depths.items():
        if level > n_levels:
            raise ValueError(f"graph has {name!r} at depth {level - 1}, but n_levels={n_levels} allows {n_levels - 1}")
    names = sorted(names, key=lambda name: depths[name])
    depth = np.array([depths[name] for name in names], dtype=np.int64)
    if (depth == 1).sum() != 1:
        raise ValueError(f"graph must have one root, got {[name for name in names if depths[name] == 1]}")
    number = np.bincount(depth, minlength=n_levels + 1)
    if max_nodes is not None and number.max() > max_nodes:
        raise ValueError(
            f"max_nodes_per_level must be at least {number.max()}, the most that graph has, got {max_nodes}"
        )
    if not deeper and (number[1 : depth.max() + 1] == 0).any():
        raise ValueError("graph must have a node at every depth down to its deepest")
    place = {name: i for i, name in enumerate(names)}
    for parent, child in pairs:
        step = depths[child] - depths[parent]
        if step < 1 or (step > 1 and not deeper):
            raise ValueError(
                f"graph has an edge from {parent!r} at depth {depths[parent] - 1} to {child!r} at depth "
                f"{depths[child] - 1}; edges must go "
                + ("to a greater depth" if deeper else "one level down (feasible='deeper' lets them skip levels)")
            )
    edges = np.array([(place[parent], place[child]) for parent, child in pairs], dtype=np.int64).reshape(-1, 2)
    return GivenGraph(list(names), depth, edges)


def _parts(graph: Any) -> tuple[list[Any], list[tuple[Any, Any]], dict[Any, int] | None]:
    """Names, edges, and depths from 1 if they are given."""
    if hasattr(graph, "edges") and hasattr(graph, "nodes"):
        names, pairs = list(graph.nodes), [(edge[0], edge[1]) for edge in graph.edges]
        given = {name: graph.nodes[name].get("depth") for name in names}
        known = all(depth is not None for depth in given.values()) and names
        return names, pairs, {name: int(depth) + 1 for name, depth in given.items()} if known else None
    if not isinstance(graph, Mapping) or not graph:
        raise ValueError(
            "graph must be a dict from nodes to their children, a dict from nodes to depths, or a networkx.DiGraph, "
            f"got {type(graph).__name__}"
        )
    if all(isinstance(value, int | np.integer) and not isinstance(value, bool) for value in graph.values()):
        if min(graph.values()) < 0:
            raise ValueError(f"graph must have depths of at least 0, got {min(graph.values())}")
        return list(graph), [], {name: int(depth) + 1 for name, depth in graph.items()}
    seen: dict[Any, None] = {}
    pairs = []
    for parent, children in graph.items():
        if isinstance(children, str) or not isinstance(children, Sequence | set | frozenset | np.ndarray):
            raise ValueError(f"graph must give a list of children for each node, got {children!r} for {parent!r}")
        seen.setdefault(parent)
        for child in children:
            if not isinstance(child, Hashable):
                raise ValueError(f"graph must have nodes that can be keys of a dict, got {child!r}")
            seen.setdefault(child)
            pairs.append((parent, child))
    return list(seen), pairs, None


def _depths(names: list[Any], pairs: list[tuple[Any, Any]]) -> dict[Any, int]:
    """Length of the longest way from a root to each node; a cycle is refused."""
    parents: dict[Any, list[Any]] = {name: [] for name in names}
    for parent, child in pairs:
        parents[child].append(parent)
    depths: dict[Any, int] = {}
    waiting = list(names)
    while waiting:
        ready = [name for name in waiting if all(parent in depths for parent in parents[name])]
        if not ready:
            raise ValueError(f"graph must not have a cycle, got one among {waiting[:5]}")
        for name in ready:
            depths[name] = 1 + max((depths[parent] for parent in parents[name]), default=0)
        waiting = [name for name in waiting if name not in depths]
    return depths


def read_labels(y: Any, given: GivenGraph, n_documents: int) -> NDArray[np.int64]:
    """Node of each document, -1 where y is -1, None or NaN."""
    labels = np.full(n_documents, -1, dtype=np.int64)
    values = list(y)
    if len(values) != n_documents:
        raise ValueError(f"y must have one label for each of {n_documents} documents, got {len(values)}")
    place = {name: i for i, name in enumerate(given.names)}
    for d, value in enumerate(values):
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, Hashable) and value in place:
            labels[d] = place[value]
        elif not (value is None or value == -1 or value == "" or value != value):
            known = ", ".join(map(repr, given.names[:8])) + (", ..." if len(given.names) > 8 else "")
            raise ValueError(f"y must hold nodes of graph ({known}), or -1 where there is no label, got {value!r}")
    return labels
