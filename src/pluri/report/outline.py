"""A graph of topics as text, with lines between parents and children."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pluri.report.labels import percent, topic_label

if TYPE_CHECKING:
    from pluri.topics.topic_graph import TopicGraph


def tree_text(graph: TopicGraph, *, n_words: int = 5, max_depth: int | None = None) -> str:
    """The topics of a graph, one in each line: number, share of the tokens, words.

    A topic with several parents is drawn below the strongest of them, and only named below the others. Without edges
    the topics are listed, the largest first.

    Parameters
    ----------
    graph : TopicGraph
        From the method ``topic_graph`` of a model.
    n_words : int, default=5
        Words of each topic.
    max_depth : int, optional
        Number of steps below the roots that are drawn; all by default.

    Returns
    -------
    str

    Examples
    --------
    >>> from pluri.report import tree_text
    >>> from pluri.topics import TopicEdge, TopicGraph, TopicNode
    >>> words = [("play", "win"), ("ice", "goal"), ("bat", "inning"), ("score", "point")]
    >>> nodes = tuple(TopicNode(i, min(i, 1) + i // 3, 0.25, names, (0.2, 0.1)) for i, names in enumerate(words))
    >>> edges = (TopicEdge(0, 1, 0.5), TopicEdge(0, 2, 0.5), TopicEdge(1, 3, 0.6), TopicEdge(2, 3, 0.4))
    >>> print(tree_text(TopicGraph("Example", nodes, edges)))
    [0] 25%  play win
    ├── [1] 25%  ice goal
    │   └── [3] 25%  score point
    └── [2] 25%  bat inning
        └── [3] see below [1]
    """
    labels = {
        node.index: f"[{node.index}] {percent(node.weight)}  {topic_label(node, n_words)}" for node in graph.nodes
    }
    lines: list[str] = []
    home = main_parents(graph)
    for root in graph.roots():
        lines.append(labels[root] + _hidden(graph, root, max_depth))
        lines.extend(_below(graph, labels, home, root, "", max_depth))
    return "\n".join(lines)


def main_parents(graph: TopicGraph) -> dict[int, int]:
    """Of each topic that is not at the top, the parent with the strongest edge."""
    best: dict[int, tuple[float, int]] = {}
    for edge in graph.edges:
        rank = (edge.weight, -edge.parent)
        if edge.child not in best or rank > best[edge.child]:
            best[edge.child] = rank
    return {child: -negative for child, (_, negative) in best.items()}


def _below(
    graph: TopicGraph, labels: dict[int, str], home: dict[int, int], top: int, indent: str, levels: int | None
) -> Iterator[str]:
    children = graph.children(top) if levels != 0 else ()
    left = None if levels is None else levels - 1
    for child in children:
        last = child == children[-1]
        branch, stem = ("└── ", "    ") if last else ("├── ", "│   ")
        if home[child] != top:
            yield f"{indent}{branch}[{child}] see below [{home[child]}]"
            continue
        yield f"{indent}{branch}{labels[child]}{_hidden(graph, child, left)}"
        yield from _below(graph, labels, home, child, indent + stem, left)


def _hidden(graph: TopicGraph, top: int, levels: int | None) -> str:
    """How many topics just below one are not drawn."""
    n_children = len(graph.children(top)) if levels == 0 else 0
    return f"  (+{n_children})" if n_children else ""
