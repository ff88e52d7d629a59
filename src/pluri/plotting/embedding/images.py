"""A map on which each object has several images, with lines between the images of one object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.embedding.places import places_of
from pluri.plotting.style import QUIET_COLOR, single_axes, state_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class ImagesDisplay:
    """Images of objects as dots, larger where more of the object is, and lines between images of one object.

    A line leads from the image that has most of an object to each other one. The objects whose images are farthest
    apart have a colour and their name at both ends.

    Parameters
    ----------
    images : array-like of shape (n_objects, n_images, n_axes)
        Of the axes the first two are drawn.
    proportions : array-like of shape (n_objects, n_images), optional
        How much of an object is at each image; equal by default.
    names : array-like of str, optional
        Names of the objects; their numbers by default.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    separation_ : array of shape (n_objects,)
        Largest distance between images of an object that are drawn; 0 if only one is.
    named_ : list of int
        Objects that have a colour and a name, the most separated one first.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import ImagesDisplay
    >>> images = np.array([[[0.0, 0.0], [0.0, 0.0]], [[1.0, 0.0], [1.0, 2.0]]])
    >>> display = ImagesDisplay(images, names=["plain", "torn"]).plot()
    >>> display.separation_, display.named_
    (array([0., 2.]), [1])
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    named_: list[int]

    def __init__(
        self, images: ArrayLike, proportions: ArrayLike | None = None, *, names: ArrayLike | None = None
    ) -> None:
        if np.ndim(images) != 3:
            raise ValueError(f"images must have shape (n_objects, n_images, n_axes), got {np.shape(images)}")
        places = places_of(np.asarray(images), proportions)
        if not places.coordinates.size or places.coordinates.shape[2] < 2:
            raise ValueError(f"images must be of at least one object, in two dimensions, got {np.shape(images)}")
        self.images, self.proportions = places.coordinates[:, :, :2], places.proportions
        self.names = [str(name) for name in (range(len(self.images)) if names is None else np.asarray(names).ravel())]
        if len(self.names) != len(self.images):
            raise ValueError(f"names must have one name for each of {len(self.images)} objects, got {len(self.names)}")

    @classmethod
    def from_estimator(
        cls, model: Any, *, names: ArrayLike | None = None, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw the images of a fitted model.

        Parameters
        ----------
        model : estimator
            Fitted, with ``images_`` and ``proportions_``.
        names : array-like of str, optional
            Names of the objects.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        ImagesDisplay
        """
        if not hasattr(model, "images_"):
            raise ValueError(f"model must be fitted and have images_, got {type(model).__name__} without it")
        return cls(model.images_, getattr(model, "proportions_", None), names=names).plot(ax=ax, **options)

    def plot(
        self, *, ax: Axes | None = None, n_names: int = 8, min_proportion: float = 0.05, title: str | None = None
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        n_names : int, default=8
            Objects to name, those whose images are farthest apart.
        min_proportion : float, default=0.05
            Images with less of their object are left out.
        title : str, optional

        Returns
        -------
        ImagesDisplay
            Itself.
        """
        if n_names < 0:
            raise ValueError(f"n_names must be at least 0, got {n_names}")
        self.figure_, self.ax_ = single_axes(ax, (6.4, 5.6))
        drawn = self.proportions >= min(min_proportion, float(self.proportions.max(axis=1).min()))
        main = self.images[np.arange(len(self.images)), self.proportions.argmax(axis=1)]
        self.separation_ = np.where(drawn, np.linalg.norm(self.images - main[:, None], axis=2), 0.0).max(axis=1)
        order = np.argsort(-self.separation_, kind="stable")
        self.named_ = [int(point) for point in order[:n_names] if self.separation_[point] > 0]
        area = 30 * self.proportions
        x, y = self.images[drawn].T
        self.ax_.scatter(x, y, s=area[drawn], color="0.45", linewidths=0, zorder=2)
        for point in order[len(self.named_) :]:
            self._lines(point, main, drawn, QUIET_COLOR, 0.6)
        for point, color in zip(self.named_, state_colors(max(len(self.named_), 1))):
            self._lines(point, main, drawn, color, 1.6)
            for place in self.images[point][drawn[point]]:
                self.ax_.plot(*place, "o", color=color, markersize=5, zorder=4)
                self.ax_.annotate(
                    self.names[point], place, (4, 3), textcoords="offset points", fontsize="small", zorder=5,
                    bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.75},
                )  # fmt: skip
        self.ax_.set(xticks=[], yticks=[], title=title or "")
        self.ax_.set_aspect("equal")
        self.ax_.margins(0.08)
        self.ax_.spines[:].set_color("0.85")
        return self

    def _lines(self, point: int, main: Any, drawn: Any, color: str, width: float) -> None:
        for end in self.images[point][drawn[point]]:
            if not np.array_equal(end, main[point]):
                (x, y), (a, b) = main[point], end
                self.ax_.plot([x, a], [y, b], color=color, linewidth=width, zorder=1 if width < 1 else 3)
