"""A square matrix over states as an image, with readable numbers in the cells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pluri.plotting.style import HEATMAP, text_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

MOST_ANNOTATED = 16


def square_size(n_states: int) -> tuple[float, float]:
    """Size in inches of a figure whose cells stay legible: between 4 and 8.5 high."""
    side = float(np.clip(2.8 + 0.32 * n_states, 4.0, 8.5))
    return side * 1.15, side


def compact(value: float) -> str:
    """Two decimals without a leading zero, nothing for what rounds to zero: ``.25``, ``1.00``, an empty string."""
    rounded = f"{value:.2f}"
    return "" if rounded == "0.00" else rounded.lstrip("0")


def draw_heatmap(
    ax: Axes,
    values: NDArray[np.float64],
    names: list[str],
    *,
    vmax: float,
    cmap: str | None,
    annotate: bool | None,
    colorbar: str | None,
    write: Callable[[float], str] = compact,
) -> tuple[AxesImage, list[Text]]:
    """Draw ``values`` (k, k) with a name at each row and column; return the image and the numbers written.

    ``annotate=None`` writes numbers up to 16 states; ``colorbar`` is its label, or None for no bar; a masked cell is
    drawn light grey.
    """
    from matplotlib import colormaps

    n_states = values.shape[0]
    colormap = colormaps[cmap or HEATMAP].with_extremes(bad="0.85")
    image = ax.imshow(values, vmin=0.0, vmax=vmax, cmap=colormap, interpolation="nearest")
    long = max(map(len, names)) > 3
    ax.set_xticks(range(n_states), names, rotation=90 if long and n_states > 5 else 0)
    ax.set_yticks(range(n_states), names)
    size = 9.0 if n_states <= 10 else 8.0 if n_states <= 20 else 6.5
    ax.tick_params(length=0, labelsize=size)
    ax.spines[:].set_visible(False)
    # White lines between the cells.
    ax.set_xticks(np.arange(n_states + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(n_states + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.0 if n_states <= 20 else 0.4)
    ax.tick_params(which="minor", length=0)

    texts = []
    if annotate if annotate is not None else n_states <= MOST_ANNOTATED:
        font = 9.0 if n_states <= 6 else 8.0 if n_states <= 10 else 6.5
        shown, background = np.ma.getdata(values), colormap(values / vmax)
        for row in range(n_states):
            for column in range(n_states):
                text = write(float(shown[row, column]))
                if text:
                    color = text_color(background[row, column])
                    texts.append(ax.text(column, row, text, ha="center", va="center", color=color, fontsize=font))
    if colorbar is not None:
        # Axes within the axes: as high as the image, whatever the layout does to it.
        bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.03, 0, 0.045, 1)), label=colorbar)
        bar.outline.set_visible(False)
    return image, texts
