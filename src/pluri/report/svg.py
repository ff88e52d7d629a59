"""A graph of topics as a picture in SVG: a file for browsers, documents and drawing programs."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.topics.topic_map import hellinger_distances
from pluri.report.labels import shown_graph
from pluri.report.markup import escape
from pluri.report.page import asset
from pluri.report.svg_cards import Drawing, draw_cards

if TYPE_CHECKING:
    from pluri.topics.topic_graph import TopicGraph
    from pluri.topics.topic_model import TopicModel


def topic_svg(graph: TopicGraph | TopicModel, *, n_words: int = 4, topic_word: ArrayLike | None = None) -> str:
    """Draw the topics of a graph: layers from left to right, or a grid of the largest first if it has no edges.

    A browser tells more of a topic where it is pointed at.

    Parameters
    ----------
    graph : TopicGraph or TopicModel
        From the method ``topic_graph`` of a model, or the model. Topics without tokens are left out.
    n_words : int, default=4
        Words of each topic.
    topic_word : array-like of shape (n_topics, n_words), optional
        With it the topics are drawn as a map instead: near each other where they share words.

    Returns
    -------
    str

    Examples
    --------
    >>> from pluri.report import topic_svg
    >>> from pluri.topics import TopicEdge, TopicGraph, TopicNode
    >>> nodes = (TopicNode(0, 0, 0.7, ("a",), (1.0,)), TopicNode(1, 1, 0.3, ("b",), (1.0,)))
    >>> picture = topic_svg(TopicGraph("Example", nodes, (TopicEdge(0, 1, 1.0),)))
    >>> picture.count('class="card"'), picture.count("<path")
    (2, 1)
    """
    if n_words < 1:
        raise ValueError(f"n_words must be at least 1, got {n_words}")
    # A browser shows ten.
    graph = shown_graph(graph, max(n_words, 10))
    if topic_word is None:
        drawing = draw_cards(graph, n_words)
    else:
        from pluri.report.svg_map import draw_map

        rows = np.asarray(topic_word, dtype=np.float64)[[node.index for node in graph.nodes]]
        drawing = draw_map(graph, hellinger_distances(rows), n_words)
    title = escape(f"{graph.model}: {len(graph.nodes)} topics")
    style = f"<style>{_light_style()}</style>"
    return svg_element(drawing, f"<title>{title}</title>{style}", standalone=True)


@cache
def _light_style() -> str:
    """The style of pages in plain values: most drawing programs know no variables."""
    light = asset("colors.css").split("@media")[0]
    values = dict(re.findall(r"(--\w+):([^;}]+)", light))
    return re.sub(r"var\((--\w+)\)", lambda found: values[found[1]], asset("graph.css"))


def svg_element(drawing: Drawing, head: str = "", *, label: str | None = None, standalone: bool = False) -> str:
    """The element around a drawing."""
    width, height = f"{drawing.width:.0f}", f"{drawing.height:.0f}"
    names = 'xmlns="http://www.w3.org/2000/svg" ' if standalone else ""
    told = "" if label is None else f' role="group" aria-label="{escape(label)}"'
    return (
        f'<svg {names}class="topics" width="{width}" height="{height}" viewBox="0 0 {width} {height}"{told}>'
        f"{head}{drawing.body}</svg>"
    )
