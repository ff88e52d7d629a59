"""Similarities of rows, sorted by cluster: where clusters are apart, the matrix is nearly block diagonal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import HEATMAP, single_axes
from pluri.validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage


class GramBlocksDisplay:
    """The Gram matrix as an image, rows of a cluster side by side, the largest cluster first, clusters framed.

    Parameters
    ----------
    gram : array-like of shape (n_samples, n_samples)
        Similarities, symmetric.
    labels : array-like of shape (n_samples,)
        Clusters or classes, numbers or words; rows without one (below zero) come last.

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
    >>> from pluri.plotting import GramBlocksDisplay
    >>> display = GramBlocksDisplay([[1.0, 0.1, 0.9], [0.1, 1.0, 0.2], [0.9, 0.2, 1.0]], [0, 1, 0]).plot()
    >>> display.order_
    array([0, 2, 1])
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: AxesImage

    def __init__(self, gram: ArrayLike, labels: ArrayLike) -> None:
        self.gram, self.labels = np.asarray(gram, dtype=np.float64), np.asarray(labels)
        if self.gram.ndim != 2 or self.gram.shape[0] != self.gram.shape[1] or not self.gram.size:
            raise ValueError(f"gram must be square, got shape {self.gram.shape}")
        if self.labels.shape != (len(self.gram),):
            raise ValueError(
                f"labels must have one entry for each of the {len(self.gram)} rows, got shape {self.labels.shape}"
            )
        sizes = np.array([(self.labels == label).sum() for label in self.labels])
        without = np.zeros(len(sizes), bool) if self.labels.dtype.kind in "OUS" else self.labels < 0
        numbers = np.unique(self.labels, return_inverse=True)[1]
        self.order_ = np.lexsort((np.arange(len(sizes)), numbers, -sizes, without))

    @classmethod
    def from_estimator(cls, model: Any, X: Any, *, max_rows: int = 1000, **options: Any) -> Self:
        """Draw the similarities of rows under the kernel of a fitted model, by the clusters that it predicts.

        Parameters
        ----------
        model : fitted estimator
            With ``similarity(X)`` and ``predict(X)``, as :class:`pluri.embedding.SpectralKMeans`.
        X : array-like of shape (n_samples, n_features)
        max_rows : int, default=1000
            Of more rows, so many are shown, at equal distances.
        **options
            For :meth:`plot`.
        """
        if not hasattr(model, "similarity"):
            raise ValueError(f"model must have a method similarity, got {type(model).__name__} without it")
        gram, labels = model.similarity(X), model.predict(X)
        n_shown = check_count(max_rows, "max_rows")
        shown = np.unique(np.linspace(0, len(labels) - 1, min(n_shown, len(labels))).astype(int))
        return cls(gram[np.ix_(shown, shown)], labels[shown]).plot(**options)

    def plot(
        self, *, ax: Axes | None = None, title: str | None = None, cmap: str | None = None, show_labels: bool = False
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        cmap : str, optional
            Name of a Matplotlib colour map; cividis by default.
        show_labels : bool, default=False
            Whether the label of each block is written beside it.

        Returns
        -------
        GramBlocksDisplay
            Itself.
        """
        from matplotlib.patches import Rectangle

        self.figure_, self.ax_ = single_axes(ax, (5.4, 4.6))
        shown = self.gram[np.ix_(self.order_, self.order_)]
        self.image_ = self.ax_.imshow(shown, cmap=cmap or HEATMAP, interpolation="nearest")
        labels = self.labels[self.order_]
        begins = np.flatnonzero(np.append(True, labels[1:] != labels[:-1]))
        ends = np.append(begins[1:], len(labels))
        for begin, end in zip(begins, ends):
            corner, side = (float(begin) - 0.5, float(begin) - 0.5), float(end - begin)
            self.ax_.add_patch(Rectangle(corner, side, side, fill=False, edgecolor="white", linewidth=1.0))
        self.ax_.set(xlabel="" if show_labels else "row", ylabel="" if show_labels else "row")
        middles, names = ((begins + ends - 1) / 2, labels[begins].tolist()) if show_labels else ([], [])
        self.ax_.set_xticks(middles, names, rotation=90 if max(map(len, map(str, names)), default=0) > 3 else 0)
        self.ax_.set_yticks(middles, names)
        self.ax_.tick_params(length=0)
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, label="similarity")
        bar.outline.set_visible(False)
        self.ax_.set_title("" if title is None else title, fontsize="medium")
        return self
