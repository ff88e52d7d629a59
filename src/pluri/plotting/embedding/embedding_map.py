"""A map of points, coloured by classes or numbers, with pictures of the points where there is room for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.embedding.places import places_of, with_room
from pluri.plotting.style import HEATMAP, PALETTE, single_axes, state_colors
from pluri.validation import RandomState, as_generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Classes that a legend can list; whole numbers of more different values are shown by a scale.
MOST_CLASSES = 20


class EmbeddingDisplay:
    """Points of a map, and pictures of some of them that do not overlap.

    Pictures are tried in random order; one whose box overlaps a box that is there is left out.

    Parameters
    ----------
    coordinates : array-like of shape (n_points, n_axes)
        The first two axes are drawn; one alone is drawn along a line.
    y : array-like of shape (n_points,), optional
        Classes or numbers, which give the colours.
    images : array-like of shape (n_points, height, width), with a fourth axis of 3 if they are coloured, optional
        A picture of each point.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    shown_ : list of int
        Points whose pictures are drawn.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import EmbeddingDisplay
    >>> coordinates = np.array([[0.0, 0.0], [0.01, 0.0], [1.0, 1.0]])
    >>> display = EmbeddingDisplay(coordinates, images=np.zeros((3, 8, 8))).plot(random_state=0)
    >>> len(display.shown_)  # two of the three are too near to each other
    2
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    shown_: list[int]

    def __init__(self, coordinates: ArrayLike, y: ArrayLike | None = None, *, images: ArrayLike | None = None) -> None:
        found = places_of(coordinates).coordinates[:, 0]
        if len(found) == 0:
            raise ValueError("coordinates must be those of at least one point, got none")
        self.coordinates = found[:, :2] if found.shape[1] > 1 else np.column_stack([found, np.zeros(len(found))])
        self.y = None if y is None else np.asarray(y)
        if self.y is not None and self.y.shape != (len(found),):
            raise ValueError(f"y must have one value for each of {len(found)} points, got shape {self.y.shape}")
        self.images = None if images is None else np.asarray(images)
        if self.images is not None and (len(self.images) != len(found) or self.images.ndim not in (3, 4)):
            raise ValueError(
                f"images must have shape ({len(found)}, height, width), with a fourth axis if they are coloured, got "
                f"{self.images.shape}"
            )

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        y: ArrayLike | None = None,
        *,
        images: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the map of a fitted embedding.

        Parameters
        ----------
        model : estimator
            Fitted, with ``embedding_``.
        y : array-like of shape (n_points,), optional
            Classes or numbers, which give the colours.
        images : array-like of shape (n_points, height, width), optional
            A picture of each point.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        EmbeddingDisplay
        """
        if not hasattr(model, "embedding_"):
            raise ValueError(f"model must be fitted and have embedding_, got {type(model).__name__} without it")
        return cls(model.embedding_, y, images=images).plot(ax=ax, **options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        image_size: float = 0.05,
        random_state: RandomState = 0,
        title: str | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        image_size : float, default=0.05
            Longer side of a picture, as a share of the longer side of the map.
        random_state : int, Generator, RandomState or None, default=0
            Order in which pictures are tried.
        title : str, optional

        Returns
        -------
        EmbeddingDisplay
            Itself.
        """
        if not 0 < image_size <= 1:
            raise ValueError(f"image_size must be above 0 and at most 1, got {image_size}")
        self.figure_, self.ax_ = single_axes(ax, (6.4, 5.6))
        order = as_generator(random_state).permutation(len(self.coordinates))
        colors = self._dots(order)
        low, high = self.coordinates.min(axis=0), self.coordinates.max(axis=0)
        side = float((high - low).max()) or 1.0
        margin = max(0.04, 0.6 * image_size if self.images is not None else 0.0) * side
        self.ax_.set(xlim=(low[0] - margin, high[0] + margin), ylim=(low[1] - margin, high[1] + margin))
        self.ax_.set_aspect("equal")
        self.shown_ = [] if self.images is None else self._pictures(self.images, image_size * side, order, colors)
        self.ax_.set(xticks=[], yticks=[], title=title or "")
        self.ax_.spines[:].set_color("0.85")
        return self

    def _dots(self, order: NDArray[np.intp]) -> NDArray[Any]:
        """Draw all points, in random order: drawn class by class, the last would bury the others. Gives the colours."""
        x, y = self.coordinates[order].T
        area = float(np.clip(12000 / len(order), 5, 30))
        if self.y is None:
            colors = np.full(len(order), PALETTE[0])
        elif _is_scale(self.y):
            dots = self.ax_.scatter(x, y, s=area, c=self.y[order].astype(float), cmap=HEATMAP, linewidths=0)
            self.figure_.colorbar(dots, ax=self.ax_, shrink=0.7)
            return np.asarray(dots.to_rgba(self.y.astype(float)))
        else:
            values = self.y.astype(str) if self.y.dtype == object else self.y
            classes, codes = np.unique(values, return_inverse=True)
            palette = state_colors(len(classes))
            colors = np.array(palette)[codes]
            self._legend([str(name) for name in classes], palette)
        self.ax_.scatter(x, y, s=area, c=colors[order], linewidths=0)
        return colors

    def _legend(self, classes: list[str], palette: list[str]) -> None:
        for name, color in zip(classes[:MOST_CLASSES], palette):
            self.ax_.scatter([], [], s=30, color=color, linewidths=0, label=name)
        more = f"{len(classes) - MOST_CLASSES} more, and" if len(classes) > MOST_CLASSES else None
        self.ax_.legend(
            loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize="small", title=more,
            handletextpad=0.2, title_fontsize="small",
        )  # fmt: skip

    def _pictures(self, images: NDArray[Any], side: float, order: NDArray[np.intp], colors: NDArray[Any]) -> list[int]:
        from matplotlib.patches import Rectangle

        height, width = images.shape[1:3]
        tall, wide = side * height / max(height, width), side * width / max(height, width)
        kept = with_room(self.coordinates, 1.1 * wide, 1.1 * tall, order)
        scale = {} if images.ndim == 4 and images.dtype == np.uint8 else {"vmin": images.min(), "vmax": images.max()}
        limits = self.ax_.get_xlim(), self.ax_.get_ylim()
        for point in kept:
            x, y = self.coordinates[point] - [wide / 2, tall / 2]
            self.ax_.imshow(
                images[point],
                extent=(x, x + wide, y, y + tall),
                cmap="gray",
                interpolation="nearest",
                zorder=3,
                **scale,
            )
            if self.y is not None:
                self.ax_.add_patch(
                    Rectangle((x, y), wide, tall, fill=False, edgecolor=colors[point], linewidth=1.0, zorder=4)
                )
        self.ax_.set(xlim=limits[0], ylim=limits[1])
        return kept


def _is_scale(values: NDArray[Any]) -> bool:
    """Whether values are shown by a scale: fractions, or whole numbers of more values than a legend can list."""
    if values.dtype.kind not in "iuf":
        return False
    present = values[np.isfinite(values)]
    return bool((present != np.floor(present)).any()) or len(np.unique(present)) > MOST_CLASSES
