"""A graph of topics in the language of Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pluri.report.labels import percent, shown_graph, topic_label
from pluri.report.markup import allowed

if TYPE_CHECKING:
    from pluri.topics.topic_graph import TopicGraph
    from pluri.topics.topic_model import TopicModel


def topic_dot(graph: TopicGraph | TopicModel, *, n_words: int = 4) -> str:
    r"""Source text for ``dot`` and its kin; Graphviz itself is not needed to write it.

    Parameters
    ----------
    graph : TopicGraph or TopicModel
        Topics without tokens are left out.
    n_words : int, default=4
        Words of each topic.

    Returns
    -------
    str

    Examples
    --------
    >>> from pluri.report import topic_dot
    >>> from pluri.topics import TopicEdge, TopicGraph, TopicNode
    >>> nodes = (TopicNode(0, 0, 0.7, ("a",), (1.0,)), TopicNode(1, 1, 0.3, ('"b"',), (1.0,)))
    >>> print(topic_dot(TopicGraph("Example", nodes, (TopicEdge(0, 1, 1.0),))))
    digraph topics {
      rankdir=LR;
      node [shape=box, style=rounded, fontname="sans-serif"];
      t0 [label="a\n70%"];
      t1 [label="\"b\"\n30%"];
      t0 -> t1 [penwidth=5, tooltip="1"];
    }
    """
    graph = shown_graph(graph, n_words)
    lines = ["digraph topics {", "  rankdir=LR;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    for node in graph.nodes:
        lines.append(f'  t{node.index} [label="{_quoted(topic_label(node, n_words))}\\n{percent(node.weight)}"];')
    heaviest = max((edge.weight for edge in graph.edges), default=1.0) or 1.0
    for edge in graph.edges:
        width = 0.8 + 4.2 * edge.weight / heaviest
        lines.append(f'  t{edge.parent} -> t{edge.child} [penwidth={width:.3g}, tooltip="{edge.weight:.3g}"];')
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return " ".join(allowed(text).replace("\\", "\\\\").replace('"', '\\"').split())
