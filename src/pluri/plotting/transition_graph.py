"""A transition matrix as a graph: states on a circle, curved arrows as wide as their probability is large.

Among many states arrows are drawn towards the centre, so that they pass by the states between their ends; two between
the same pair bend apart; a state's loop points away from the centre. Everything is laid out in data coordinates (the
circle has radius one), so that the picture scales with its axes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pluri.plotting.heatmap import compact
from pluri.plotting.style import state_colors, text_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.patches import Circle, FancyArrowPatch
    from matplotlib.text import Text

Point = NDArray[np.float64]
BEND = 0.14
MOST_LABELLED = 5
LEAST_LABELLED = 0.1


def graph_size(n_states: int) -> tuple[float, float]:
    """Size in inches of a figure with room for the arrows."""
    side = float(np.clip(4.2 + 0.25 * n_states, 5.0, 8.5))
    return side, 2.4 if n_states == 2 else side


def draw_graph(
    ax: Axes,
    transmat: NDArray[np.float64],
    names: list[str],
    order: list[int],
    *,
    threshold: float,
    annotate: bool | None,
) -> tuple[dict[int, Circle], dict[tuple[int, int], FancyArrowPatch], list[Text]]:
    """Draw the graph; return its nodes by state, its arrows by pair of states, and the probabilities written.

    The states stand clockwise from the top (two of them side by side) in the given order and have the colours of their
    own numbers.
    """
    n_states = len(order)
    spacing = 2 * np.sin(np.pi / max(n_states, 2))
    radius = min(0.21, 0.32 * spacing)
    angles = (np.pi if n_states == 2 else np.pi / 2) - 2 * np.pi * np.arange(n_states) / n_states
    place = {state: np.array([np.cos(angle), np.sin(angle)]) for state, angle in zip(order, angles)}
    colors = state_colors(n_states)
    inside = max(map(len, names)) <= 3
    pull = 0.3 * float(np.clip((n_states - 5) / 7, 0, 1))

    nodes: dict[int, Circle] = {}
    edges: dict[tuple[int, int], FancyArrowPatch] = {}
    texts: list[Text] = []
    pairs = [(i, j) for i in range(n_states) for j in range(n_states) if transmat[i, j] >= threshold]
    label = annotate if annotate is not None else n_states <= MOST_LABELLED
    # Faint arrows first, so that likely transitions lie on top.
    for source, target in sorted(pairs, key=lambda pair: float(transmat[pair])):
        probability = float(transmat[source, target])
        if source == target:
            points, anchor = _loop(place[source], radius)
        else:
            chord = place[target] - place[source]
            neighbours = np.hypot(*chord) < 1.01 * spacing
            points, anchor = _arc(place[source], place[target], radius, 0.0 if neighbours else pull)
        edges[source, target] = _arrow(ax, points, probability, colors[source])
        if label and (annotate or n_states <= 3 or probability >= LEAST_LABELLED):
            texts.append(_number(ax, anchor, probability))
    for state in order:
        nodes[state] = _node(place[state], radius, colors[state])
        ax.add_patch(nodes[state])
        if inside:
            _inner_name(ax, place[state], names[state], text_color(colors[state]), n_states)
        else:
            away = 1.35 if (state, state) not in edges else 3.5 if label else 2.8
            _outer_name(ax, place[state] * (1 + away * radius), names[state], n_states)
    reach = 1 + 3.0 * radius
    top = 0.6 if n_states == 2 else reach if inside else 1.12 + (3.5 if label else 2.8) * radius
    ax.set(xlim=(-reach, reach), ylim=(-top, top), aspect="equal")
    ax.set_axis_off()
    return nodes, edges, texts


def _arc(start: Point, stop: Point, radius: float, pull: float) -> tuple[NDArray[np.float64], Point]:
    """Control points of a bent arrow between the rims of two nodes, and the place of its label."""
    along = stop - start
    control = (1 - pull) * (start + stop) / 2 + BEND * np.array([-along[1], along[0]])
    leave = start + (radius * 1.02) * _unit(control - start)
    arrive = stop + (radius * 1.12) * _unit(control - stop)
    # Off the middle towards the source: labels of opposite arrows and of crossing diagonals keep apart.
    t = 0.44
    anchor = (1 - t) ** 2 * leave + 2 * t * (1 - t) * control + t**2 * arrive
    return np.array([leave, control, arrive]), anchor


def _loop(centre: Point, radius: float) -> tuple[NDArray[np.float64], Point]:
    """Control points of a loop on the outer side of a node, and the place of its label."""
    outward = _unit(centre)
    side = np.array([-outward[1], outward[0]])
    spread = 0.6
    leave = centre + radius * 1.02 * (np.cos(spread) * outward + np.sin(spread) * side)
    arrive = centre + radius * 1.14 * (np.cos(spread) * outward - np.sin(spread) * side)
    far = centre + radius * 3.0 * outward
    wide = radius * 1.5 * side
    points = np.array([leave, far + wide, far - wide, arrive])
    return points, centre + radius * 2.55 * outward


def _arrow(ax: Axes, points: NDArray[np.float64], probability: float, color: str) -> FancyArrowPatch:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    curve = Path.CURVE3 if len(points) == 3 else Path.CURVE4
    path = Path(points, [Path.MOVETO] + [curve] * (len(points) - 1))
    arrow = FancyArrowPatch(
        path=path,
        arrowstyle="-|>,head_length=0.5,head_width=0.28",
        mutation_scale=8 + 9 * probability,
        linewidth=0.6 + 3.9 * probability,
        color=color,
        alpha=0.45 + 0.5 * probability,
        joinstyle="miter",
        capstyle="butt",
        zorder=2,
    )
    ax.add_patch(arrow)
    return arrow


def _number(ax: Axes, place: Point, probability: float) -> Text:
    box = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    return ax.text(place[0], place[1], compact(probability), ha="center", va="center", fontsize=8, bbox=box, zorder=4)


def _node(place: Point, radius: float, color: str) -> Circle:
    from matplotlib.patches import Circle

    return Circle((place[0], place[1]), radius, facecolor=color, edgecolor="white", linewidth=1.5, zorder=3)


def _inner_name(ax: Axes, place: Point, name: str, color: str, n_states: int) -> None:
    size = 11 if n_states <= 10 else 9
    ax.text(place[0], place[1], name, ha="center", va="center", color=color, fontsize=size, fontweight="bold", zorder=5)


def _outer_name(ax: Axes, place: Point, name: str, n_states: int) -> None:
    across = "center" if abs(place[0]) < 0.25 else "left" if place[0] > 0 else "right"
    up = "center" if across != "center" else "bottom" if place[1] > 0 else "top"
    ax.text(place[0], place[1], name, ha=across, va=up, fontsize=10 if n_states <= 10 else 8.5, zorder=5)


def _unit(vector: Point) -> Point:
    return np.asarray(vector / max(float(np.hypot(*vector)), 1e-12))
