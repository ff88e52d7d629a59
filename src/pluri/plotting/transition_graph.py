"""A transition matrix as a graph: states on a circle, curved arrows as wide as their probability is large.

Two arrows between the same pair bend apart, and a state's loop points away from the centre. Everything is laid out in
data coordinates (the circle has radius one), so that the picture scales with its axes.
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
BEND = 0.16
MOST_LABELLED = 5


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

    The states stand clockwise from the top in the given order and have the colours of their own numbers.
    """
    from matplotlib.patches import Circle

    n_states = len(order)
    spacing = 2 * np.sin(np.pi / max(n_states, 2))
    radius = min(0.19, 0.32 * spacing)
    angles = np.pi / 2 - 2 * np.pi * np.arange(n_states) / n_states
    place = {state: np.array([np.cos(angle), np.sin(angle)]) for state, angle in zip(order, angles)}
    colors = state_colors(n_states)
    inside = max(map(len, names)) <= 3

    nodes, edges, texts = {}, {}, []
    pairs = [(i, j) for i in range(n_states) for j in range(n_states) if transmat[i, j] >= threshold]
    label = annotate if annotate is not None else n_states <= MOST_LABELLED
    # Faint arrows first, so that likely transitions lie on top.
    for source, target in sorted(pairs, key=lambda pair: float(transmat[pair])):
        probability = float(transmat[source, target])
        if source == target:
            points, anchor = _loop(place[source], radius)
        else:
            points, anchor = _arc(place[source], place[target], radius)
        edges[source, target] = _arrow(ax, points, probability, colors[source])
        if label:
            box = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
            texts.append(
                ax.text(*anchor, compact(probability), ha="center", va="center", fontsize=8, bbox=box, zorder=4)
            )
    for state in order:
        node = Circle(tuple(place[state]), radius, facecolor=colors[state], edgecolor="white", linewidth=1.5, zorder=3)
        ax.add_patch(node)
        nodes[state] = node
        if inside:
            ax.text(
                *place[state],
                names[state],
                ha="center",
                va="center",
                color=text_color(colors[state]),
                fontsize=11 if n_states <= 10 else 9,
                fontweight="bold",
                zorder=5,
            )
        else:
            _outer_name(ax, place[state] * (1 + 3.1 * radius), names[state], n_states)
    reach = 1 + 3.4 * radius
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    ax.set_axis_off()
    return nodes, edges, texts


def _arc(start: Point, stop: Point, radius: float) -> tuple[NDArray[np.float64], Point]:
    """Control points of a bent arrow between the rims of two nodes, and the place of its label."""
    along = stop - start
    control = (start + stop) / 2 + BEND * np.array([-along[1], along[0]])
    leave = start + (radius * 1.02) * _unit(control - start)
    arrive = stop + (radius * 1.12) * _unit(control - stop)
    # Off the middle towards the source: labels of opposite arrows and of crossing diagonals keep apart.
    t = 0.36
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
        mutation_scale=8 + 14 * probability,
        linewidth=0.6 + 4.4 * probability,
        color=color,
        alpha=0.45 + 0.5 * probability,
        joinstyle="miter",
        capstyle="butt",
        zorder=2,
    )
    ax.add_patch(arrow)
    return arrow


def _outer_name(ax: Axes, place: Point, name: str, n_states: int) -> None:
    across = "center" if abs(place[0]) < 0.25 else "left" if place[0] > 0 else "right"
    up = "center" if across != "center" else "bottom" if place[1] > 0 else "top"
    ax.text(*place, name, ha=across, va=up, fontsize=10 if n_states <= 10 else 8.5, zorder=5)


def _unit(vector: Point) -> Point:
    return np.asarray(vector / max(float(np.hypot(*vector)), 1e-12))
