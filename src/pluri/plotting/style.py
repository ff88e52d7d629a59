"""The common look: colours, axes, names of states.

The first seven colours are those of Okabe and Ito [1]_ without black. The other thirteen were chosen one by one, each
as far as possible from those before it for normal sight and for simulated protanopia, deuteranopia and tritanopia
[2]_: any two of the twenty differ by at least 15 in CIELAB under each of the four (checked by
``tests/plotting/test_style.py``). Matrices are drawn in cividis, made for colour-blind readers.

References
----------
.. [1] Okabe, M. & Ito, K. (2008). Color universal design. jfly.uni-koeln.de/color
.. [2] Machado, G. M., Oliveira, M. M. & Fernandes, L. A. F. (2009). A physiologically-based model for simulation of
   color vision deficiency. IEEE Trans. Visualization and Computer Graphics 15, 1291-1298.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#F0E442",
    "#552200",
    "#BBEE99",
    "#443355",
    "#9977FF",
    "#223399",
    "#776633",
    "#AAAA55",
    "#55EEFF",
    "#883344",
    "#DDAAAA",
    "#88EE66",
    "#AA1188",
    "#995577",
)
"""Twenty colours for states or models, distinct for colour-blind readers too."""

TRUTH_COLOR = "#4D4D4D"
QUIET_COLOR = "#B0B0B0"
HEATMAP = "cividis"


def state_colors(n_states: int) -> list[str]:
    """Colours for states 0, 1, ...: the palette, then the palette paler, then both again.

    Parameters
    ----------
    n_states : int
        Number of colours.

    Returns
    -------
    list of str
        As ``#RRGGBB``.

    Examples
    --------
    >>> from pluri.plotting import state_colors
    >>> state_colors(2)
    ['#0072B2', '#E69F00']
    >>> len(set(state_colors(40)))
    40
    """
    if n_states < 1:
        raise ValueError(f"n_states must be at least 1, got {n_states}")
    colors = list(PALETTE) + [_paler(color) for color in PALETTE]
    return [colors[state % len(colors)] for state in range(n_states)]


def _channels(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _paler(color: str) -> str:
    return "#" + "".join(f"{(channel + 255) // 2:02X}" for channel in _channels(color))


def text_color(background: str | Sequence[float]) -> str:
    """Black or white, whichever reads better on a colour (relative luminance of the sRGB standard)."""
    rgb = [c / 255 for c in _channels(background)] if isinstance(background, str) else list(background[:3])
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    # Equal contrast with black and with white: (1.05 / (L + .05) = (L + .05) / .05).
    return "black" if luminance > 0.179 else "white"


def single_axes(ax: Axes | None, figsize: tuple[float, float]) -> tuple[Figure | SubFigure, Axes]:
    """Return the given axes with their figure, or a new figure with one pair of axes."""
    if ax is not None:
        return ax.figure, ax
    import matplotlib.pyplot as plt

    figure, new = plt.subplots(figsize=figsize, layout="constrained")
    return figure, new


def stacked_axes(
    ax: Axes | None, heights: Sequence[float], figsize: tuple[float, float]
) -> tuple[Figure | SubFigure, list[Axes]]:
    """Return panels above each other with a common x axis, in the place of ``ax``, which becomes the top one."""
    if ax is None:
        import matplotlib.pyplot as plt

        figure, grid = plt.subplots(
            len(heights), 1, sharex=True, squeeze=False, figsize=figsize, layout="constrained", height_ratios=heights
        )
        return figure, list(grid[:, 0])
    if len(heights) == 1:
        return ax.figure, [ax]
    from matplotlib.gridspec import GridSpec, GridSpecBase

    place = ax.get_subplotspec()
    cells: GridSpecBase
    if place is not None:
        cells = place.subgridspec(len(heights), 1, height_ratios=heights, hspace=0.06)
    else:
        box = ax.get_position()
        cells = GridSpec(len(heights), 1, None, box.x0, box.y0, box.x1, box.y1, height_ratios=heights, hspace=0.06)
    ax.set_subplotspec(cells[0])
    below = [ax.figure.add_subplot(cells[row], sharex=ax) for row in range(1, len(heights))]
    for panel in [ax, *below[:-1]]:
        panel.tick_params(labelbottom=False)
    return ax.figure, [ax, *below]


def tidy(ax: Axes, *, grid: str | None = None) -> None:
    """Take away the upper and right frame lines and put a faint grid behind the data."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    if grid == "y":
        ax.grid(axis="y", color="0.9", linewidth=0.8)
    elif grid == "both":
        ax.grid(axis="both", color="0.9", linewidth=0.8)


def checked_names(names: ArrayLike | None, n_states: int) -> list[str]:
    """Names of the states as strings; their numbers if none are given."""
    if names is None:
        return [str(state) for state in range(n_states)]
    given = [str(name) for name in np.asarray(names).ravel()]
    if len(given) != n_states:
        raise ValueError(f"state_names must have one name for each of the {n_states} states, got {len(given)}")
    return given


def checked_order(order: ArrayLike | None, n_states: int) -> list[int]:
    """A permutation of the states; their own order if none is given."""
    if order is None:
        return list(range(n_states))
    given = [int(state) for state in np.asarray(order).ravel()]
    if sorted(given) != list(range(n_states)):
        raise ValueError(f"order must be a permutation of 0, ..., {n_states - 1}, got {given}")
    return given
