"""A graph of topics as text, with lines between parents and children."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pluri.report.labels import percent, shown_graph, topic_label

if TYPE_CHECKING:
    from pluri.topics.topic_graph import TopicGraph, TopicNode
    from pluri.topics.topic_model import TopicModel

#: Words that stand for a topic that is drawn elsewhere.
FEW_WORDS = 2


def tree_text(graph: TopicGraph | TopicModel, *, n_words: int = 5, max_depth: int | None = None) -> str:
    """The topics of a graph, one in each line: number, share of the tokens, words.

    A topic with several parents is drawn under the strongest of them; the others say under which it is. Without edges
    the topics are listed, the largest first. Topics without tokens are left out.

    Parameters
    ----------
    graph : TopicGraph or TopicModel
        From the method ``topic_graph`` of a model, or the model.
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
        └── [3] -> under [1] (score point)
    """
    graph = shown_graph(graph, n_words)
    labels = {node.index: f"[{node.index}] {percent(node.weight)}  {_told(node, n_words)}" for node in graph.nodes}
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


def _told(node: TopicNode, n_words: int) -> str:
    """Its name, if it has one, and its words."""
    words = " ".join(" ".join(node.words[:n_words]).split())
    return f"{topic_label(node)}: {words}" if node.label and words else topic_label(node, n_words)


def _below(
    graph: TopicGraph, labels: dict[int, str], home: dict[int, int], top: int, indent: str, levels: int | None
) -> Iterator[str]:
    children = graph.children(top) if levels != 0 else ()
    left = None if levels is None else levels - 1
    own = [child for child in children if home[child] == top]
    elsewhere = [child for child in children if home[child] != top]
    for child in own:
        last = child == own[-1] and not elsewhere
        branch, stem = ("└── ", "    ") if last else ("├── ", "│   ")
        yield f"{indent}{branch}{labels[child]}{_hidden(graph, child, left)}"
        yield from _below(graph, labels, home, child, indent + stem, left)
    if elsewhere:
        node = {node.index: node for node in graph.nodes}
        told = "; ".join(
            f"[{child}] -> under [{home[child]}] ({topic_label(node[child], FEW_WORDS)})" for child in elsewhere
        )
        yield f"{indent}└── {told}"


def _hidden(graph: TopicGraph, top: int, levels: int | None) -> str:
    """How many topics just below one are not drawn."""
    n_children = len(graph.children(top)) if levels == 0 else 0
    return f"  (+{n_children})" if n_children else ""
