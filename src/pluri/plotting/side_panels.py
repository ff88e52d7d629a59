"""Two panels beside each other, on a new figure or in the place of given axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
