"""How often two rows share a cluster, over the draws of a posterior."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import HEATMAP, single_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage


class CoClusteringDisplay:
    """The co-clustering matrix as an image, rows of a cluster side by side, clusters framed.

    Parameters
    ----------
    matrix : array-like of shape (n_samples, n_samples)
        Probability that two rows are in one cluster; ones on the diagonal.
    labels : array-like of shape (n_samples,), optional
        A partition to sort and frame by. Without it, rows are sorted by average linkage and nothing is framed.

    Attributes
    ----------
    order_ : ndarray of shape (n_samples,)
        Rows from top to bottom.
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import CoClusteringDisplay
    >>> display = CoClusteringDisplay([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]], labels=[0, 1, 0]).plot()
    >>> display.order_
    array([0, 2, 1])
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: AxesImage

    def __init__(self, matrix: ArrayLike, *, labels: ArrayLike | None = None) -> None:
        values = np.asarray(matrix, dtype=np.float64)
        if values.ndim != 2 or values.shape[0] != values.shape[1] or not np.allclose(values, values.T, atol=1e-8):
            raise ValueError(f"matrix must be square and symmetric, got shape {values.shape}")
        if values.size == 0 or values.min() < -1e-9 or values.max() > 1 + 1e-9:
            raise ValueError("matrix must hold probabilities, between 0 and 1")
        self.matrix = values
        self.labels = None if labels is None else np.unique(np.asarray(labels), return_inverse=True)[1]
        if self.labels is not None and self.labels.shape != (len(values),):
            raise ValueError(f"labels must have one entry for each of the {len(values)} rows")

    @classmethod
    def from_estimator(cls, model: Any, **options: Any) -> Self:
        """Draw the co-clustering matrix of a fitted model, framed by its ``labels_``; see :meth:`plot` for the rest.

        The model has ``similarity_matrix_``, or a method ``similarity_matrix()`` that gives it.
        """
        for name in ("similarity_matrix_", "similarity_matrix"):
            if hasattr(model, name):
                found = getattr(model, name)
                return cls(found() if callable(found) else found, labels=getattr(model, "labels_", None)).plot(
                    **options
                )
        raise ValueError(f"model must be fitted and have similarity_matrix_, got {type(model).__name__} without it")

    def plot(self, *, ax: Axes | None = None, title: str | None = None, cmap: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        cmap : str, optional
            Name of a Matplotlib colour map; cividis by default.

        Returns
        -------
        CoClusteringDisplay
            Itself.
        """
        from matplotlib.patches import Rectangle

        self.order_ = self._sorted()
        self.figure_, self.ax_ = single_axes(ax, (5.4, 4.6))
        shown = self.matrix[np.ix_(self.order_, self.order_)]
        self.image_ = self.ax_.imshow(shown, vmin=0.0, vmax=1.0, cmap=cmap or HEATMAP, interpolation="nearest")
        if self.labels is not None:
            sorted_labels = self.labels[self.order_]
            begins = np.flatnonzero(np.append(True, sorted_labels[1:] != sorted_labels[:-1]))
            for begin, end in zip(begins, np.append(begins[1:], len(sorted_labels))):
                corner, side = (float(begin) - 0.5, float(begin) - 0.5), float(end - begin)
                self.ax_.add_patch(Rectangle(corner, side, side, fill=False, edgecolor="white", linewidth=1.0))
        self.ax_.set(xlabel="row", ylabel="row")
        self.ax_.set_xticks([])
        self.ax_.set_yticks([])
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, label="probability of one cluster")
        bar.outline.set_visible(False)
        self.ax_.set_title("" if title is None else title, fontsize="medium")
        return self

    def _sorted(self) -> NDArray[np.int64]:
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        if len(self.matrix) < 3:
            return np.arange(len(self.matrix))
        if self.labels is None:
            distance = np.clip(1.0 - self.matrix, 0.0, 1.0)
            np.fill_diagonal(distance, 0.0)
            return np.asarray(leaves_list(linkage(squareform(distance, checks=False), "average")), dtype=np.int64)
        # The largest cluster first; within one, those that belong to it most surely.
        sizes = np.bincount(self.labels)
        same = self.labels[:, None] == self.labels
        belonging = (self.matrix * same).sum(axis=1) / same.sum(axis=1)
        return np.lexsort((-belonging, self.labels, -sizes[self.labels]))
