"""Topics as cards: in layers with curves between parents and children, or in a grid where there are none.

A card holds the words of a topic, and a disc whose area is its share of the tokens. Layers run from left to right, so
that words, which are wide, take little height. Colours tell the branches below the root apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pluri.plotting.topics.topic_layout import layered_layout
from pluri.report.labels import percent, shortened, text_width, topic_label
from pluri.report.markup import escape
from pluri.report.outline import main_parents

if TYPE_CHECKING:
    from pluri.topics.topic_graph import TopicGraph, TopicNode

N_COLORS = 8
FONT = 13.0
#: Room for the disc and on the right of the text.
DISC, PAD = 34.0, 10.0
LEAST_WIDTH, MOST_WIDTH = 96.0, 232.0
HEIGHT, PITCH, BETWEEN, MARGIN = 30.0, 38.0, 62.0, 16.0


@dataclass(frozen=True)
class Drawing:
    """Elements of SVG and the size of the box that they lie in."""

    width: float
    height: float
    body: str


def draw_cards(graph: TopicGraph, n_words: int) -> Drawing:
    """The graph in layers, or a grid of its topics if it has no edges."""
    return _layers(graph, n_words) if graph.edges else _grid(graph, n_words)


def branch_colors(graph: TopicGraph) -> dict[int, int]:
    """A number of a colour for each topic: that of its ancestor just below the root, or of the root if there are many.

    Among flat topics there is nothing to tell apart: all have the first colour.
    """
    if not graph.edges:
        return {node.index: 0 for node in graph.nodes}
    home = main_parents(graph)
    roots = graph.roots()
    bearing = [root for root in roots if graph.children(root)]
    tops = graph.children(bearing[0]) if len(bearing) == 1 else tuple(bearing)
    number = {top: place % N_COLORS for place, top in enumerate(tops)}
    colors: dict[int, int] = {}
    for node in graph.nodes:
        walk: int | None = node.index
        while walk is not None and walk not in number:
            walk = home.get(walk)
        colors[node.index] = number[walk] if walk is not None else N_COLORS
    return colors


def link(node: TopicNode, color: int, place: str, inside: str) -> str:
    """A drawn topic that can be pointed at, focused and followed."""
    words = ", ".join(node.words[:10])
    name = f"{node.label}: {words}" if node.label else words
    told = escape(f"Topic {node.index}, {percent(node.weight)} of the tokens: {name}")
    return (
        f'<a class="node branch-{color}" href="#node={node.index}" data-node="{node.index}" transform="{place}">'
        f"<title>{told}</title>{inside}</a>"
    )


def _card_width(graph: TopicGraph, n_words: int) -> float:
    widest = max((text_width(topic_label(node, n_words), FONT) for node in graph.nodes), default=0.0)
    return float(np.clip(DISC + widest + PAD, LEAST_WIDTH, MOST_WIDTH))


def _card(node: TopicNode, color: int, x: float, y: float, width: float, heaviest: float, n_words: int) -> str:
    radius = max(2.0, 11.5 * float(np.sqrt(node.weight / heaviest)))
    text = escape(shortened(topic_label(node, n_words), width - DISC - PAD, FONT))
    return link(
        node,
        color,
        f"translate({x:.1f} {y:.1f})",
        f'<rect class="card" y="{-HEIGHT / 2:g}" width="{width:.0f}" height="{HEIGHT:g}" rx="7"/>'
        f'<circle class="disc" cx="{DISC / 2:g}" r="{radius:.1f}"/><text x="{DISC:g}" dy="0.35em">{text}</text>',
    )


def _layers(graph: TopicGraph, n_words: int) -> Drawing:
    position = {node.index: place for place, node in enumerate(graph.nodes)}
    edges = [(position[edge.parent], position[edge.child]) for edge in graph.edges]
    layout = layered_layout([node.depth for node in graph.nodes], edges, weight=[edge.weight for edge in graph.edges])
    width = _card_width(graph, n_words)
    lowest = min((float(route[:, 1].min()) for route in layout.routes), default=0.0)
    x = MARGIN + layout.layer * (width + BETWEEN)
    y = MARGIN + HEIGHT / 2 + (layout.place - min(lowest, 0.0)) * PITCH
    heaviest = max(node.weight for node in graph.nodes) or 1.0
    strongest = max(edge.weight for edge in graph.edges) or 1.0
    colors = branch_colors(graph)
    paths = []
    for edge, route in zip(graph.edges, layout.routes):
        points = np.column_stack(
            [MARGIN + route[:, 0] * (width + BETWEEN), MARGIN + HEIGHT / 2 + (route[:, 1] - min(lowest, 0.0)) * PITCH]
        )
        stroke = 0.8 + 4.2 * edge.weight / strongest
        paths.append(
            f'<path class="edge branch-{colors[edge.child]}" data-parent="{edge.parent}" data-child="{edge.child}" '
            f'stroke-width="{stroke:.2f}" d="{_curve(points, width)}"/>'
        )
    cards = [
        _card(node, colors[node.index], x[place], y[place], width, heaviest, n_words)
        for place, node in enumerate(graph.nodes)
    ]
    bottom = max([float(y.max()), *(MARGIN + HEIGHT / 2 + float(route[:, 1].max()) * PITCH for route in layout.routes)])
    return Drawing(
        float(x.max()) + width + MARGIN,
        bottom + HEIGHT / 2 + MARGIN,
        f'<g class="edges">{"".join(paths)}</g><g class="nodes">{"".join(cards)}</g>',
    )


def _curve(points: NDArray[np.float64], width: float) -> str:
    """From the right of the parent's card to the left of the child's, level where it passes other cards."""
    start = (points[0, 0] + width, points[0, 1])
    parts = [f"M{start[0]:.1f} {start[1]:.1f}"]
    for number, (x, y) in enumerate(points[1:], 1):
        middle = (start[0] + x) / 2
        parts.append(f"C{middle:.1f} {start[1]:.1f} {middle:.1f} {y:.1f} {x:.1f} {y:.1f}")
        start = (x, y)
        if number < len(points) - 1:
            parts.append(f"H{x + width:.1f}")
            start = (x + width, y)
    return "".join(parts)


def _grid(graph: TopicGraph, n_words: int) -> Drawing:
    width = _card_width(graph, n_words)
    nodes = sorted(graph.nodes, key=lambda node: (-node.weight, node.index))
    n_columns = max(1, int(np.ceil(np.sqrt(len(nodes) * PITCH / (width + 12.0)))))
    n_rows = -(-len(nodes) // n_columns) if nodes else 0
    heaviest = max((node.weight for node in nodes), default=1.0) or 1.0

    def cards() -> Iterator[str]:
        for number, node in enumerate(nodes):
            x = MARGIN + (number // n_rows) * (width + 12.0)
            y = MARGIN + HEIGHT / 2 + (number % n_rows) * PITCH
            yield _card(node, 0, x, y, width, heaviest, n_words)

    return Drawing(
        2 * MARGIN + n_columns * (width + 12.0) - 12.0,
        2 * MARGIN + max(n_rows, 1) * PITCH - (PITCH - HEIGHT),
        f'<g class="nodes">{"".join(cards())}</g>',
    )
