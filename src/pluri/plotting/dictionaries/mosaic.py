"""The atoms of a dictionary as tiles, the most used first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import single_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage


class DictionaryMosaicDisplay:
    """Atoms of pictures as tiles, ordered by usage along the rows; the first is in the upper left corner.

    Each tile has the full contrast, and the grey between tiles is 0. The frame of a tile is the thicker the more the
    atom is used.

    Parameters
    ----------
    components : array-like of shape (n_components, n_pixels) or (n_components, n_pixels * 3)
        Atoms of square patches.
    usage : array-like of shape (n_components,), optional
        How likely each is to be used; equal by default.
    n_channels : int, default=1
        1 for grey, 3 for colour.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage
    order_ : array of int
        Atoms as they are drawn.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import DictionaryMosaicDisplay
    >>> display = DictionaryMosaicDisplay(np.eye(4), [0.1, 0.4, 0.3, 0.2]).plot()
    >>> display.order_.tolist()
    [1, 2, 3, 0]
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: AxesImage

    def __init__(self, components: ArrayLike, usage: ArrayLike | None = None, *, n_channels: int = 1) -> None:
        self.components = np.asarray(components, dtype=np.float64)
        if n_channels not in (1, 3):
            raise ValueError(f"n_channels must be 1 or 3, got {n_channels}")
        self.n_channels = n_channels
        n_pixels = self.components.shape[1] / n_channels if self.components.ndim == 2 else 0
        if not self.components.size or math.isqrt(int(n_pixels)) ** 2 != n_pixels:
            raise ValueError(
                f"components must have shape (n_components, side * side * {n_channels}), got {self.components.shape}"
            )
        n = len(self.components)
        self.usage = np.full(n, 1 / n) if usage is None else np.asarray(usage, dtype=np.float64)
        if self.usage.shape != (n,):
            raise ValueError(f"usage must have one number for each of {n} atoms, got shape {self.usage.shape}")
        self.order_ = np.argsort(-self.usage, kind="stable")

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the dictionary of a fitted model.

        Parameters
        ----------
        model : estimator
            Fitted, with ``components_``; ``usage_`` and ``n_channels_`` are taken if there are any.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        DictionaryMosaicDisplay
        """
        if not hasattr(model, "components_"):
            raise ValueError(f"model must be fitted and have components_, got {type(model).__name__} without it")
        found = cls(model.components_, getattr(model, "usage_", None), n_channels=int(getattr(model, "n_channels_", 1)))
        return found.plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, n_atoms: int | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        n_atoms : int, optional
            How many, the most used ones; all by default.
        title : str, optional

        Returns
        -------
        DictionaryMosaicDisplay
            Itself.
        """
        from matplotlib.collections import LineCollection

        if n_atoms is not None and n_atoms < 1:
            raise ValueError(f"n_atoms must be at least 1, got {n_atoms}")
        self.figure_, self.ax_ = single_axes(ax, (6.0, 6.0))
        shown = self.order_[:n_atoms]
        side = math.isqrt(self.components.shape[1] // self.n_channels)
        columns = math.ceil(math.sqrt(len(shown)))
        step = side + 2
        sheet = np.full((step * -(-len(shown) // columns), step * columns, self.n_channels), 0.5)
        frames, widths = [], []
        largest = max(float(self.usage.max()), 1e-300)
        for number, atom in enumerate(self.components[shown]):
            y, x = step * (number // columns) + 1, step * (number % columns) + 1
            tile = 0.5 + 0.5 * atom / max(float(np.abs(atom).max()), 1e-300)
            sheet[y : y + side, x : x + side] = tile.reshape(side, side, self.n_channels)
            left, right, top, bottom = x - 1, x + side, y - 1, y + side
            frames.append(np.array([(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]))
            widths.append(2.5 * float(self.usage[shown[number]]) / largest)
        picture = sheet if self.n_channels == 3 else sheet[..., 0]
        self.image_ = self.ax_.imshow(picture, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        self.ax_.add_collection(LineCollection(frames, linewidths=widths, colors="black"))
        self.ax_.set_axis_off()
        self.ax_.set_title(title or f"{len(shown)} atoms, most used first")
        return self
