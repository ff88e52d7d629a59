"""Graphs as files, by matplotlib."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pluri.validation import check_target, replacing

if TYPE_CHECKING:
    from pluri.neurons.graphics.elements import Graph

KINDS = (".png", ".pdf", ".svg")


def save_graph(graph: Graph, path: str | os.PathLike[str]) -> None:
    """Draw the traces of a graph into a file."""
    kind = os.path.splitext(os.fspath(path))[1].lower()
    if kind not in KINDS:
        raise ValueError(f"path must be a file of type {', '.join(KINDS)}, got {os.fspath(path)!r}")
    check_target(path)
    figure = draw_graph(graph)
    with replacing(path) as file:
        figure.savefig(file, format=kind[1:], dpi=150)


def draw_graph(graph: Graph) -> Any:
    """A matplotlib figure of the traces of a graph."""
    from matplotlib.figure import Figure

    from pluri.neurons.graphics.layout import output_layout

    described = next((one for one in output_layout(graph._tree)["graphs"] if one["path"] == graph.path), None)
    figure = Figure(figsize=(7.0, 3.2), layout="constrained")
    axes = figure.add_subplot()
    data = graph.data()
    for trace in described["traces"] if described else ():
        times, values = data[trace["path"], trace["field"]]
        axes.plot(times, values, label=trace["name"], linewidth=1.2)
    axes.set_xlabel("ms")
    if described:
        axes.set_title(described["title"], loc="left", fontsize=11)
        axes.set_ylabel(described["unit"])
        if len(described["traces"]) > 1:
            axes.legend(frameon=False, fontsize=8, loc="upper right")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
