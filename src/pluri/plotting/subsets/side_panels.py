"""Two panels beside each other, on a new figure or in the place of given axes; and items that a condition fixes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pluri.plotting.style import PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


def side_axes(
    ax: Axes | None, widths: Sequence[float], figsize: tuple[float, float]
) -> tuple[Figure | SubFigure, list[Axes]]:
    """Return panels from left to right, in the place of ``ax``, which becomes the left one."""
    if ax is None:
        import matplotlib.pyplot as plt

        figure, grid = plt.subplots(
            1, len(widths), squeeze=False, figsize=figsize, layout="constrained", width_ratios=widths
        )
        return figure, list(grid[0])
    if len(widths) == 1:
        return ax.figure, [ax]
    from matplotlib.gridspec import GridSpec, GridSpecBase

    place = ax.get_subplotspec()
    cells: GridSpecBase
    if place is not None:
        cells = place.subgridspec(1, len(widths), width_ratios=widths)
    else:
        box = ax.get_position()
        cells = GridSpec(1, len(widths), None, box.x0, box.y0, box.x1, box.y1, width_ratios=widths)
    ax.set_subplotspec(cells[0])
    return ax.figure, [ax, *(ax.figure.add_subplot(cells[column]) for column in range(1, len(widths)))]


def known_items(process: Any, n_items: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Items that a process always draws, those it may draw, and those it never draws; all may without a condition."""
    fixed = np.asarray(getattr(process, "fixed_items", ()), dtype=np.int64)
    free = np.asarray(getattr(process, "free_items", np.arange(n_items)), dtype=np.int64)
    return fixed, free, np.setdiff1d(np.arange(n_items), np.concatenate([fixed, free]))


def mark_known(
    panel: Axes, places: NDArray[np.float64], fixed: NDArray[np.int64], excluded: NDArray[np.int64], area: float
) -> None:
    """Squares for items that are always drawn, crosses for those that never are, and a legend if there are any."""
    if fixed.size:
        panel.scatter(
            places[fixed, 0], places[fixed, 1], s=1.3 * area, marker="s", color=PALETTE[2], edgecolors="black",
            linewidths=0.8, label="fixed", zorder=4,
        )  # fmt: skip
    if excluded.size:
        panel.scatter(
            places[excluded, 0], places[excluded, 1], s=0.7 * area, marker="x", color="0.45", linewidths=1.0,
            label="excluded", zorder=3,
        )  # fmt: skip
    if fixed.size or excluded.size:
        panel.legend(
            loc="lower right", fontsize=8, framealpha=0.85, borderpad=0.3, handletextpad=0.2, borderaxespad=0.2
        )
