"""Topics as bubbles in the plane, near each other where they share words; areas are shares of the tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.topics.topic_map import bubble_map, classical_scaling
from pluri.report.labels import shortened, text_width, topic_label
from pluri.report.markup import escape
from pluri.report.svg_cards import Drawing, branch_colors, link

if TYPE_CHECKING:
    from pluri.topics.topic_graph import TopicGraph

WIDTH, HEIGHT = 1000.0, 700.0
LEAST_FONT, MOST_FONT, LINE = 12.0, 17.0, 1.2
#: Room of a single word that stands for a small topic.
SHORT = 84.0

Box = tuple[float, float, float, float]


def draw_map(graph: TopicGraph, distances: ArrayLike, n_words: int = 3) -> Drawing:
    """Bubbles, with as many labels as have room; the distances are those of `hellinger_distances`."""
    n_topics = len(graph.nodes)
    # The box grows with the number of topics: what is written keeps its size.
    scale = max(1.0, float(np.sqrt(n_topics / 60)))
    width, height = WIDTH * scale, HEIGHT * scale
    points = classical_scaling(distances)
    shares = [node.weight for node in graph.nodes]
    centres, radii = bubble_map(points, shares, width=width, height=height)
    colors = branch_colors(graph)
    drawn: dict[int, str] = {}
    taken: list[Box] = []
    for place in np.argsort(-radii, kind="stable"):
        node = graph.nodes[place]
        x, y, radius = float(centres[place, 0]), float(centres[place, 1]), float(radii[place])
        near = (np.abs(centres[:, 0] - x) < radii + radius + 260) & (np.abs(centres[:, 1] - y) < radii + radius + 60)
        near[place] = False
        others: list[Box] = [(a - r, b - r, a + r, b + r) for (a, b), r in zip(centres[near], radii[near])]
        text, box = _label(topic_label(node, n_words), x, y, radius, taken, others, width, height)
        if box is None:
            text, box = _short_label(topic_label(node, n_words), x, y, radius, taken, width, height) or (text, None)
        if box is not None:
            taken.append(box)
        inside = f'<circle class="bubble" r="{radius:.1f}"/>{text}'
        drawn[place] = link(node, colors[node.index], f"translate({x:.1f} {y:.1f})", inside)
    # Small ones on top: they can always be reached. Labels belong to their bubble, and never overlap another.
    body = "".join(drawn[place] for place in np.argsort(-radii, kind="stable"))
    return Drawing(width, height, f'<g class="nodes">{body}</g>')


def _label(
    label: str, x: float, y: float, radius: float, taken: list[Box], others: list[Box], width: float, height: float
) -> tuple[str, Box | None]:
    """Words inside the bubble, one below the other, or beside it; nothing if there is no room."""
    words = label.split()
    largest = float(np.clip(radius / 2.6, LEAST_FONT, MOST_FONT))
    for n_lines in range(len(words), 0, -1):
        for size in (largest, max(0.8 * largest, LEAST_FONT), LEAST_FONT):
            half = n_lines * LINE * size / 2
            room = 2 * float(np.sqrt(max(radius**2 - half**2, 0.0))) - 4
            lines = words[:n_lines]
            if half < radius and max(text_width(line, size) for line in lines) <= room:
                reach = max(text_width(line, size) for line in lines) / 2
                return _inside(lines, size), (x - reach, y - half, x + reach, y + half)
    text = shortened(label, 190.0, LEAST_FONT)
    reach, half = text_width(text, LEAST_FONT), LEAST_FONT * 0.62
    gap = radius + 4
    places = [
        ("start", gap, 0.0, (x + gap, y - half, x + gap + reach, y + half)),
        ("end", -gap, 0.0, (x - gap - reach, y - half, x - gap, y + half)),
        ("middle", 0.0, -gap - half, (x - reach / 2, y - gap - 2 * half, x + reach / 2, y - gap)),
        ("middle", 0.0, gap + half, (x - reach / 2, y + gap, x + reach / 2, y + gap + 2 * half)),
    ]
    for anchor, dx, dy, box in places:
        within = box[0] > 2 and box[1] > 2 and box[2] < width - 2 and box[3] < height - 2
        if within and not any(_overlap(box, other) for other in (*taken, *others)):
            return (
                f'<text class="beside" text-anchor="{anchor}" x="{dx:.1f}" y="{dy:.1f}" dy="0.35em" '
                f'font-size="{LEAST_FONT:g}">{escape(text)}</text>',
                box,
            )
    # Shown when the bubble is pointed at or chosen.
    return (
        f'<text class="beside spare" text-anchor="middle" y="{-gap - half:.1f}" dy="0.35em" '
        f'font-size="{LEAST_FONT:g}">{escape(text)}</text>',
        None,
    )


def _short_label(
    label: str, x: float, y: float, radius: float, taken: list[Box], width: float, height: float
) -> tuple[str, Box] | None:
    """The first word, over the bubble or beside it: it may cover other bubbles, but no other label."""
    text = shortened(label.split()[0], SHORT, LEAST_FONT)
    reach, half = text_width(text, LEAST_FONT), LEAST_FONT * 0.62
    for dx, dy in ((0.0, 0.0), (0.0, -radius - half), (0.0, radius + half), (radius + reach / 2, 0.0),
                   (-radius - reach / 2, 0.0), (0.0, -half), (0.0, half)):  # fmt: skip
        left, top = x + dx - reach / 2, y + dy - half
        box = (left, top, left + reach, top + 2 * half)
        within = box[0] > 2 and box[1] > 2 and box[2] < width - 2 and box[3] < height - 2
        if within and not any(_overlap(box, other) for other in taken):
            return (
                f'<text class="beside" text-anchor="middle" x="{dx:.1f}" y="{dy:.1f}" dy="0.35em" '
                f'font-size="{LEAST_FONT:g}">{escape(text)}</text>',
                box,
            )
    return None


def _inside(lines: list[str], size: float) -> str:
    first = -(len(lines) - 1) / 2 * LINE * size
    spans = "".join(
        f'<tspan x="0" y="{first + number * LINE * size:.1f}" dy="0.35em">{escape(line)}</tspan>'
        for number, line in enumerate(lines)
    )
    return f'<text class="within" text-anchor="middle" font-size="{size:.1f}">{spans}</text>'


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
