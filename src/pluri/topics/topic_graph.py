"""Topics, their words, and how they hang together: what is shown of any topic model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import networkx


class Hierarchy(NamedTuple):
    """Which topics lie below which.

    Attributes
    ----------
    depth : int array of shape (n_topics,)
        0 at the top.
    edges : int array of shape (n_edges, 2)
        Parent and child of each edge.
    weight : float array of shape (n_edges,)
        How strong each edge is: probability of the child given the parent.
    labels : list of str or None, one for each topic; or None
        Names that the topics were given.
    """

    depth: NDArray[np.int_]
    edges: NDArray[np.int_]
    weight: NDArray[np.float64]
    labels: Sequence[str | None] | None = None


@dataclass(frozen=True)
class Example:
    """A document that stands for a topic: its title, how it begins, and the topic's share of it."""

    title: str
    excerpt: str
    share: float
    document: int


@dataclass(frozen=True)
class TopicNode:
    """A topic as it is shown.

    Attributes
    ----------
    index : row of `topic_word_`
    depth : 0 at the top
    weight : share of all tokens
    words, probabilities : most probable words, most probable first
    label : name that it was given, if any
    examples : documents that have much of it
    """

    index: int
    depth: int
    weight: float
    words: tuple[str, ...]
    probabilities: tuple[float, ...]
    label: str | None = None
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class TopicEdge:
    """A step from a topic to one below it."""

    parent: int
    child: int
    weight: float


@dataclass(frozen=True)
class TopicGraph:
    """Topics and the edges between them; a flat model has no edges.

    Attributes
    ----------
    model : name of the class of the model
    nodes : topics, in the order of their index
    edges : from parents to children
    facts : short statements about the fit, for people

    Examples
    --------
    >>> from pluri.topics.topic_graph import TopicEdge, TopicGraph, TopicNode
    >>> top = TopicNode(0, 0, 0.6, ("game", "team"), (0.2, 0.1))
    >>> below = TopicNode(1, 1, 0.4, ("goal", "ice"), (0.3, 0.1))
    >>> graph = TopicGraph("Made by hand", (top, below), (TopicEdge(0, 1, 1.0),))
    >>> graph.children(0), graph.roots()
    ((1,), (0,))
    """

    model: str
    nodes: tuple[TopicNode, ...]
    edges: tuple[TopicEdge, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    def children(self, index: int) -> tuple[int, ...]:
        """Topics below one, the likeliest first."""
        below = [edge for edge in self.edges if edge.parent == index]
        return tuple(edge.child for edge in sorted(below, key=lambda edge: (-edge.weight, edge.child)))

    def parents(self, index: int) -> tuple[int, ...]:
        """Topics above one, the strongest edge first."""
        above = [edge for edge in self.edges if edge.child == index]
        return tuple(edge.parent for edge in sorted(above, key=lambda edge: (-edge.weight, edge.parent)))

    def roots(self) -> tuple[int, ...]:
        """Topics with nothing above them, the largest first."""
        lower = {edge.child for edge in self.edges}
        tops = [node for node in self.nodes if node.index not in lower]
        return tuple(node.index for node in sorted(tops, key=lambda node: (node.depth, -node.weight, node.index)))

    def layers(self) -> list[list[int]]:
        """Topics of each depth, from the top."""
        deepest = max((node.depth for node in self.nodes), default=-1)
        rows: list[list[int]] = [[] for _ in range(deepest + 1)]
        for node in self.nodes:
            rows[node.depth].append(node.index)
        return rows

    def without_empty(self) -> TopicGraph:
        """The graph without topics that have no tokens, unless topics below them have some.

        Those that stay keep their index.

        Examples
        --------
        >>> from pluri.topics.topic_graph import TopicEdge, TopicGraph, TopicNode
        >>> nodes = [TopicNode(i, d, w, ("a",), (1.0,)) for i, d, w in [(0, 0, 0.0), (1, 1, 1.0), (2, 1, 0.0)]]
        >>> graph = TopicGraph("Made by hand", tuple(nodes), (TopicEdge(0, 1, 1.0), TopicEdge(0, 2, 0.0)))
        >>> [node.index for node in graph.without_empty().nodes], len(graph.without_empty().edges)
        ([0, 1], 1)
        """
        kept = {node.index for node in self.nodes if node.weight > 0}
        if not kept or len(kept) == len(self.nodes):
            return self
        above: dict[int, list[int]] = {}
        for edge in self.edges:
            above.setdefault(edge.child, []).append(edge.parent)
        waiting = list(kept)
        while waiting:
            for parent in above.get(waiting.pop(), ()):
                if parent not in kept:
                    kept.add(parent)
                    waiting.append(parent)
        nodes = tuple(node for node in self.nodes if node.index in kept)
        edges = tuple(edge for edge in self.edges if edge.parent in kept and edge.child in kept)
        return replace(self, nodes=nodes, edges=edges)

    def readable(self, *, max_children: int = 12, least_share: float = 0.01, least_weight: float = 0.05) -> TopicGraph:
        """The graph without branches too small to matter, without weak edges, and with few children of each topic.

        The tokens of a branch that is left out are counted with the topic above it, so that shares still sum to one.
        Those that stay keep their index. A flat graph stays as it is.

        Parameters
        ----------
        max_children : int, default=12
            Of each topic, the largest branches.
        least_share : float, default=0.01
            Share of the tokens that a branch (a topic, and all that hang on it by their strongest edges) must have.
        least_weight : float, default=0.05
            Weight of the edges to further parents; the strongest edge to a topic always stays.

        Examples
        --------
        >>> from pluri.topics.topic_graph import TopicEdge, TopicGraph, TopicNode
        >>> nodes = [TopicNode(i, min(i, 1), w, ("a",), (1.0,)) for i, w in enumerate((0.5, 0.495, 0.005))]
        >>> graph = TopicGraph("Made by hand", tuple(nodes), (TopicEdge(0, 1, 0.99), TopicEdge(0, 2, 0.01)))
        >>> [(node.index, round(node.weight, 3)) for node in graph.readable().nodes]
        [(0, 0.505), (1, 0.495)]
        """
        if max_children < 1:
            raise ValueError(f"max_children must be at least 1, got {max_children!r}")
        if not self.edges:
            return self
        home = {node.index: self.parents(node.index)[:1] for node in self.nodes}
        below: dict[int, list[int]] = {}
        for index, above in home.items():
            for parent in above:
                below.setdefault(parent, []).append(index)
        weight = {node.index: node.weight for node in self.nodes}
        branch = dict(weight)
        for node in sorted(self.nodes, key=lambda one: -one.depth):
            for parent in home[node.index]:
                branch[parent] += branch[node.index]
        kept, waiting = set[int](), list(self.roots())
        while waiting:
            top = waiting.pop()
            kept.add(top)
            largest = sorted(below.get(top, ()), key=lambda index: (-branch[index], index))
            shown = [index for index in largest[:max_children] if branch[index] >= least_share]
            weight[top] += sum(branch[index] for index in largest) - sum(branch[index] for index in shown)
            waiting += shown
        edges = _few_edges(self, kept, home, max_children, least_weight)
        nodes = tuple(replace(node, weight=weight[node.index]) for node in self.nodes if node.index in kept)
        return replace(self, nodes=nodes, edges=edges)

    def to_dict(self) -> dict[str, Any]:
        """Lists, numbers and strings only: ready for JSON."""
        return asdict(self)

    def to_networkx(self) -> networkx.DiGraph:
        """Directed graph of networkx, with depth, weight and words of each node and weight of each edge."""
        try:
            import networkx
        except ImportError as missing:
            raise ImportError("a networkx graph needs networkx: pip install 'pluri[graphs]'") from missing
        graph = networkx.DiGraph(model=self.model)
        for node in self.nodes:
            graph.add_node(
                node.index,
                depth=node.depth,
                weight=node.weight,
                label=node.label,
                words=list(node.words),
                probabilities=list(node.probabilities),
            )
        for edge in self.edges:
            graph.add_edge(edge.parent, edge.child, weight=edge.weight)
        return graph


def _few_edges(
    graph: TopicGraph, kept: set[int], home: Mapping[int, tuple[int, ...]], max_children: int, least_weight: float
) -> tuple[TopicEdge, ...]:
    """The strongest edge to each topic that is kept, and others that are strong, as far as a parent has room."""
    chosen = [edge for edge in graph.edges if edge.child in kept and edge.parent in home[edge.child]]
    n_children = Counter(edge.parent for edge in chosen)
    others = [edge for edge in graph.edges if {edge.parent, edge.child} <= kept and edge.parent not in home[edge.child]]
    for edge in sorted(others, key=lambda edge: (-edge.weight, edge.parent, edge.child)):
        if edge.weight >= least_weight and n_children[edge.parent] < max_children:
            chosen.append(edge)
            n_children[edge.parent] += 1
    place = {(edge.parent, edge.child): number for number, edge in enumerate(graph.edges)}
    return tuple(sorted(chosen, key=lambda edge: place[edge.parent, edge.child]))
