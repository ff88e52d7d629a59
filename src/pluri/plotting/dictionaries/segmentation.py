"""Clusters of rows where the rows are: a segmentation of the picture that they come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import single_axes, state_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Clusters with a line in the legend, the largest.
MOST_IN_LEGEND = 10


class SegmentationDisplay:
    """Cluster of each patch over the picture, the largest cluster first.

    Parameters
    ----------
    labels : array-like of int of shape (n_samples,)
        Cluster of each patch.
    locations : array-like of shape (n_samples, 2)
        Row and column of its upper left corner. On a regular grid patches are tiles, otherwise dots.
    image : array-like of shape (height, width) or (height, width, 3), optional
        The picture, drawn below.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    clusters : array of int
        Clusters in use, the largest first.
    shares : array of float
        Share of the patches that each of them has.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import SegmentationDisplay
    >>> display = SegmentationDisplay([4, 1, 1, 1], [[0, 0], [0, 8], [8, 0], [8, 8]]).plot()
    >>> display.clusters.tolist(), display.grid.tolist()
    ([1, 4], [[1, 0], [0, 0]])
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, labels: ArrayLike, locations: ArrayLike, image: ArrayLike | None = None) -> None:
        self.labels, self.locations = np.asarray(labels), np.asarray(locations, dtype=np.float64)
        if self.labels.ndim != 1 or not len(self.labels) or self.labels.dtype.kind not in "iu":
            raise ValueError(f"labels must be whole numbers of shape (n_samples,), got shape {self.labels.shape}")
        if self.locations.shape != (len(self.labels), 2) or not np.isfinite(self.locations).all():
            raise ValueError(
                f"locations must be finite and of shape ({len(self.labels)}, 2), got {self.locations.shape}"
            )
        self.image = None if image is None else np.asarray(image)
        if self.image is not None and not (self.image.ndim == 2 or self.image.shape[2:] in ((3,), (4,))):
            raise ValueError(f"image must have shape (height, width) or (height, width, 3), got {self.image.shape}")
        found, self.ranks, counts = np.unique(self.labels, return_inverse=True, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        self.clusters, self.shares = found[order], counts[order] / len(self.labels)
        self.ranks = np.argsort(order, kind="stable")[self.ranks.ravel()]

    @classmethod
    def from_estimator(
        cls, model: Any, locations: ArrayLike, image: ArrayLike | None = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw the clusters of a fitted dictionary.

        Parameters
        ----------
        model : estimator
            Fitted, with ``cluster_labels_``.
        locations : array-like of shape (n_samples, 2)
            Of the rows that it was fitted to.
        image : array-like, optional
            The picture, drawn below.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        SegmentationDisplay
        """
        if not hasattr(model, "cluster_labels_"):
            raise ValueError(f"model must be fitted and have cluster_labels_, got {type(model).__name__} without it")
        return cls(model.cluster_labels_, locations, image).plot(ax=ax, **options)

    @property
    def grid(self) -> NDArray[np.intp] | None:
        """Ranks of the clusters on a grid of the locations, -1 where there is no patch; None if they are no grid."""
        axes = [np.unique(values) for values in self.locations.T]
        regular = all(len(places) < 3 or np.allclose(np.diff(places, 2), 0.0) for places in axes)
        if not regular or len(axes[0]) * len(axes[1]) > 4 * len(self.labels):
            return None
        tiles = np.full((len(axes[0]), len(axes[1])), -1, dtype=np.intp)
        tiles[tuple(np.searchsorted(places, values) for places, values in zip(axes, self.locations.T))] = self.ranks
        return tiles

    def plot(self, *, ax: Axes | None = None, opacity: float = 0.6, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        opacity : float, default=0.6
            Of the clusters over a picture, from 0 to 1; without a picture they are opaque.
        title : str, optional

        Returns
        -------
        SegmentationDisplay
            Itself.
        """
        from matplotlib.colors import to_rgba
        from matplotlib.patches import Patch

        if not 0 <= opacity <= 1:
            raise ValueError(f"opacity must lie between 0 and 1, got {opacity!r}")
        self.figure_, self.ax_ = single_axes(ax, (6.6, 5.0))
        colors = state_colors(len(self.clusters))
        if self.image is not None:
            self.ax_.imshow(self.image, cmap="gray", interpolation="nearest")
        else:
            opacity = 1.0
        tiles = self.grid
        if tiles is None:
            rows, columns = self.locations.T
            self.ax_.scatter(columns, rows, c=[colors[rank] for rank in self.ranks], s=12, alpha=opacity)
        else:
            paint = np.array([*(to_rgba(color, opacity) for color in colors), (0, 0, 0, 0)])
            self.ax_.imshow(paint[tiles], extent=self._extent(tiles.shape), interpolation="nearest", origin="upper")
        if self.image is not None:
            self.ax_.set_xlim(-0.5, self.image.shape[1] - 0.5)
            self.ax_.set_ylim(self.image.shape[0] - 0.5, -0.5)
        elif tiles is None:
            self.ax_.invert_yaxis()
        self.ax_.set_aspect("equal")
        self.ax_.set_axis_off()
        shown = list(zip(self.clusters, self.shares, colors))[:MOST_IN_LEGEND]
        handles = [Patch(color=to_rgba(color, opacity), label=f"{c}: {share:.0%}") for c, share, color in shown]
        self.ax_.legend(
            handles=handles, title="cluster: share", loc="upper left", bbox_to_anchor=(1.02, 1.0), frameon=False
        )
        self.ax_.set_title(title or "")
        return self

    def _extent(self, shape: tuple[int, ...]) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the tiles in pixels."""
        (low_y, low_x), (high_y, high_x) = self.locations.min(axis=0), self.locations.max(axis=0)
        step_y = (high_y - low_y) / max(shape[0] - 1, 1) or 1.0
        step_x = (high_x - low_x) / max(shape[1] - 1, 1) or 1.0
        return low_x - 0.5, high_x + step_x - 0.5, high_y + step_y - 0.5, low_y - 0.5
