"""What a reversible embedding makes of places on a straight way from one point of its map to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import HEATMAP, single_axes, tidy
from pluri.validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Longer rows that are no pictures are not drawn point by point.
MARKERS = 40


class CutDisplay:
    """Rows along a straight cut, as pictures beside each other, or as lines that change colour from end to end.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    rows : array-like of shape (n_steps, n_features)
        Rows from one end to the other.
    picture_shape : (height, width) or (height, width, 3), optional
        Shape of rows that are pictures.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from sklearn.decomposition import PCA
    >>> from pluri.plotting import CutDisplay
    >>> X = np.random.default_rng(0).normal(size=(50, 16))
    >>> pca = PCA(2).fit(X)
    >>> display = CutDisplay.from_estimator(pca, [-1.0, 0.0], [1.0, 0.0], picture_shape=(4, 4))
    >>> np.allclose(display.rows[4], pca.inverse_transform([[0.0, 0.0]]))  # the middle of nine
    True
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, rows: ArrayLike, *, picture_shape: tuple[int, ...] | None = None) -> None:
        self.rows = np.asarray(rows, dtype=np.float64)
        if self.rows.ndim != 2 or 0 in self.rows.shape or not np.isfinite(self.rows).all():
            raise ValueError(f"rows must be finite and of shape (n_steps, n_features), got shape {self.rows.shape}")
        self.picture_shape = picture_shape
        if picture_shape is not None and (
            len(picture_shape) not in (2, 3) or np.prod(picture_shape) != self.rows.shape[1]
        ):
            raise ValueError(
                f"picture_shape must be (height, width) or (height, width, 3), of {self.rows.shape[1]} values, got "
                f"{picture_shape}"
            )

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        begin: int | ArrayLike,
        end: int | ArrayLike,
        *,
        n_steps: int = 9,
        picture_shape: tuple[int, ...] | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Make rows along a cut and draw them.

        Parameters
        ----------
        model : estimator
            Fitted, with ``inverse_transform``, and ``embedding_`` if points are given by their numbers.
        begin, end : int or array-like of shape (n_axes,)
            Ends of the cut: points of the map, or coordinates.
        n_steps : int, default=9
            Rows, both ends included.
        picture_shape : tuple, optional
            Shape of rows that are pictures.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        CutDisplay
        """
        if not hasattr(model, "inverse_transform"):
            raise ValueError(f"model must have inverse_transform, got {type(model).__name__}, which has none")
        check_count(n_steps, "n_steps", least=2)
        ends = [_place(model, place, name) for place, name in ((begin, "begin"), (end, "end"))]
        if ends[0].shape != ends[1].shape:
            raise ValueError(f"begin and end must have as many coordinates, got {ends[0].size} and {ends[1].size}")
        share = np.linspace(0.0, 1.0, n_steps)[:, None]
        rows = model.inverse_transform((1 - share) * ends[0] + share * ends[1])
        return cls(rows, picture_shape=picture_shape).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, cmap: str = "gray", title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        cmap : str, default="gray"
            Colours of pictures without colours of their own.
        title : str, optional

        Returns
        -------
        CutDisplay
            Itself.
        """
        if self.picture_shape is None:
            self._lines(ax)
        else:
            self._pictures(ax, self.picture_shape, cmap)
        if title is not None:
            self.ax_.set_title(title)
        return self

    def _pictures(self, ax: Axes | None, shape: tuple[int, ...], cmap: str) -> None:
        n_steps, (height, width) = len(self.rows), shape[:2]
        gap = 0.08 * width
        across = n_steps * (width + gap)
        self.figure_, self.ax_ = single_axes(ax, (8.0, max(0.6, 8.0 * height / across) + 0.9))
        low, high = float(self.rows.min()), float(self.rows.max())
        for step, row in enumerate(self.rows):
            left = step * (width + gap)
            picture = row.reshape(shape)
            if len(shape) == 3:
                picture = (picture - low) / ((high - low) or 1.0)
            self.ax_.imshow(picture, extent=(left, left + width, 0, height), cmap=cmap, vmin=low, vmax=high,
                            interpolation="nearest")  # fmt: skip
        self.ax_.set(xlim=(-gap, across), ylim=(-0.02 * height, 1.02 * height), yticks=[])
        self.ax_.set_xticks([width / 2 + step * (width + gap) for step in range(n_steps)], _shares(n_steps))
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)
        self.ax_.set_xlabel("share of the way")

    def _lines(self, ax: Axes | None) -> None:
        from matplotlib import colormaps
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap

        self.figure_, self.ax_ = single_axes(ax, (6.0, 3.6))
        colors = LinearSegmentedColormap.from_list("cut", colormaps[HEATMAP](np.linspace(0, 0.9, 64)))  # seen on white
        features = np.arange(self.rows.shape[1])
        marker = "o" if features.size <= MARKERS else ""
        for step, row in enumerate(self.rows):
            color = colors(step / max(len(self.rows) - 1, 1))
            self.ax_.plot(features, row, color=color, linewidth=1.3, marker=marker, markersize=3)
        self.figure_.colorbar(ScalarMappable(cmap=colors), ax=self.ax_, label="share of the way")
        self.ax_.set(xlabel="feature", ylabel="value")
        tidy(self.ax_, grid="y")


def _shares(n_steps: int) -> list[str]:
    return [f"{share:.2g}" for share in np.linspace(0, 1, n_steps)]


def _place(model: Any, place: int | ArrayLike, name: str) -> NDArray[np.float64]:
    if np.ndim(place) == 0:
        if not hasattr(model, "embedding_"):
            raise ValueError(f"{name} must be coordinates for {type(model).__name__}, which has no embedding_")
        coordinates = np.asarray(model.embedding_, dtype=np.float64)
        number = np.asarray(place)
        if number.dtype.kind not in "iu" or not 0 <= number < len(coordinates):
            raise ValueError(f"{name} must be a point from 0 to {len(coordinates) - 1} or coordinates, got {place!r}")
        found: NDArray[np.float64] = coordinates[int(number)]
        return found
    found = np.asarray(place, dtype=np.float64)
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ValueError(f"{name} must be a point or finite coordinates of one axis, got shape {found.shape}")
    return found
