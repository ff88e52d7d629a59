"""Two sequences, how similar their frames are, and the path that aligns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import HEATMAP, PALETTE, state_colors, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D

#: Features that are drawn in the margins; more would not be told apart.
MOST_FEATURES = 12


class AlignmentDisplay:
    """The similarities of all frames of two sequences as an image, the path over it, the sequences in the margins.

    Parameters
    ----------
    x, v : array-like of shape (n, n_features) and (m, n_features), or (n,) and (m,)
        The sequences: x beside the image, from the bottom up, v below it, from left to right.
    similarity : array-like of shape (n, m)
    path : array-like of shape (n_steps, 2), optional
        Frames that belong together, from 0; without it no path is drawn.
    score : float, optional
        Value of the kernel, for the title.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes (of the image) and Figure
    margins_ : two matplotlib Axes
        Of x and of v.
    image_ : AxesImage
    path_ : Line2D or None

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from pluri.plotting import AlignmentDisplay
    >>> from pluri.sequences import TimeAlignmentKernel
    >>> slow, fast = np.sin(np.linspace(0, 6, 30)), np.sin(np.linspace(0, 6, 18))
    >>> display = AlignmentDisplay.from_kernel(TimeAlignmentKernel(sigma=0.5), slow, fast)
    >>> display.similarity.shape
    (30, 18)
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    margins_: tuple[Axes, Axes]
    image_: AxesImage
    path_: Line2D | None

    def __init__(
        self, x: ArrayLike, v: ArrayLike, similarity: ArrayLike, *, path: ArrayLike | None = None,
        score: float | None = None,
    ) -> None:  # fmt: skip
        self.x, self.v = (_rows(part, name) for part, name in ((x, "x"), (v, "v")))
        self.similarity, self.score = np.asarray(similarity, dtype=np.float64), score
        if self.similarity.shape != (len(self.x), len(self.v)):
            raise ValueError(
                f"similarity must have shape {(len(self.x), len(self.v))}, that of the frames of x and v, got "
                f"{self.similarity.shape}"
            )
        self.path = None if path is None else np.asarray(path)
        if self.path is not None and (
            self.path.ndim != 2
            or self.path.shape[1] != 2
            or (self.path < 0).any()
            or (self.path >= self.similarity.shape).any()
        ):
            raise ValueError(f"path must hold pairs of frames of x and v, got shape {self.path.shape}")

    @classmethod
    def from_kernel(cls, kernel: Any, x: Any, v: Any, **options: Any) -> Self:
        """Align two sequences and draw; see :meth:`plot` for the options.

        Parameters
        ----------
        kernel : :class:`pluri.sequences.TimeAlignmentKernel`
            With ``kind="sum"`` there is no path to draw.
        x, v : arrays of shape (n, n_features) and (m, n_features), or (n,) and (m,)
        """
        if not hasattr(kernel, "similarity"):
            raise ValueError(f"kernel must be a TimeAlignmentKernel, got {type(kernel).__name__}")
        path, score = (None, None) if kernel.kind == "sum" else kernel.align(x, v)
        return cls(x, v, kernel.similarity(x, v), path=path, score=score).plot(**options)

    def plot(
        self, *, ax: Axes | None = None, title: str | None = None, cmap: str | None = None, names: ArrayLike = ("", "")
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. The margins are taken from its place.
        title : str, optional
            The score by default.
        cmap : str, optional
            Name of a Matplotlib colour map; cividis by default.
        names : two str, default=("", "")
            What x and v are called.

        Returns
        -------
        AlignmentDisplay
            Itself.
        """
        self.figure_, self.ax_, beside, below = _image_with_margins(ax)
        self.margins_ = beside, below
        self.image_ = self.ax_.imshow(
            self.similarity, origin="lower", aspect="auto", cmap=cmap or HEATMAP, interpolation="nearest"
        )
        self.path_ = None
        if self.path is not None:
            line = self.ax_.plot(self.path[:, 1], self.path[:, 0], color="white", linewidth=3.5)[0]
            self.path_ = self.ax_.plot(*self.path.T[::-1], color=PALETTE[5], linewidth=1.8)[0]
            line.set_solid_capstyle("round")
        n_features = min(self.x.shape[1], MOST_FEATURES)
        for feature, color in enumerate(state_colors(n_features)):
            beside.plot(self.x[:, feature], np.arange(len(self.x)), color=color, linewidth=1.2)
            below.plot(np.arange(len(self.v)), self.v[:, feature], color=color, linewidth=1.2)
        self._label(names)
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, label="similarity of frames")
        bar.outline.set_visible(False)
        told = "" if self.score is None else f"similarity of the sequences {self.score:.3f}"
        self.ax_.set_title(told if title is None else title, fontsize="medium")
        return self

    def _label(self, names: ArrayLike) -> None:
        first, second = (f"frame of {name}" if name else "frame" for name in map(str, np.asarray(names)))
        beside, below = self.margins_
        self.ax_.tick_params(labelleft=False, labelbottom=False, length=0)
        beside.invert_xaxis()
        beside.set(ylabel=first, ylim=(-0.5, len(self.x) - 0.5))
        below.set(xlabel=second, xlim=(-0.5, len(self.v) - 0.5))
        for margin in (beside, below):
            tidy(margin)
        beside.tick_params(labelbottom=False, bottom=False)
        beside.spines["bottom"].set_visible(False)
        below.tick_params(labelleft=False, left=False)
        below.spines["left"].set_visible(False)


def _rows(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.size:
        raise ValueError(f"{name} must be a sequence of frames, got shape {array.shape}")
    return array


def _image_with_margins(ax: Axes | None) -> tuple[Figure | SubFigure, Axes, Axes, Axes]:
    """Axes of an image, and a narrow one on the left of it and below it, on a new figure or in the place of `ax`."""
    if ax is None:
        import matplotlib.pyplot as plt

        figure, grid = plt.subplots(
            2, 2, figsize=(6.4, 5.2), layout="constrained", width_ratios=(1, 4), height_ratios=(4, 1)
        )
        grid[1, 0].set_visible(False)
        return figure, grid[0, 1], grid[0, 0], grid[1, 1]
    from matplotlib.gridspec import GridSpec, GridSpecBase

    place, ratios = ax.get_subplotspec(), (1, 4)
    cells: GridSpecBase
    if place is not None:
        cells = place.subgridspec(2, 2, width_ratios=ratios, height_ratios=ratios[::-1])
    else:
        box = ax.get_position()
        corners = box.x0, box.y0, box.x1, box.y1
        cells = GridSpec(2, 2, None, *corners, width_ratios=ratios, height_ratios=ratios[::-1])
    ax.set_subplotspec(cells[0, 1])
    return ax.figure, ax, ax.figure.add_subplot(cells[0, 0]), ax.figure.add_subplot(cells[1, 1])
