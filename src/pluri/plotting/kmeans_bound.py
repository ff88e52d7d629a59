"""How many clusters, and how sure: the cost of k-means and the least that any partition could cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import PALETTE, TRUTH_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure, SubFigure


class KMeansBoundDisplay:
    """Inertia against the number of clusters, the lower bound, and the gap between them shaded.

    Parameters
    ----------
    n_clusters : array-like of int
    inertia : array-like of the same length
    lower_bound : array-like of the same length
        As :func:`pluri.embedding.kmeans_lower_bound` gives it.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    gap_ : PolyCollection
        Where the cost of the best partition lies.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import KMeansBoundDisplay
    >>> display = KMeansBoundDisplay([2, 3, 4], [9.0, 4.0, 3.5], [6.0, 3.5, 3.0]).plot()
    >>> display.ax_.get_ylabel()
    'inertia'
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    gap_: PolyCollection

    def __init__(self, n_clusters: ArrayLike, inertia: ArrayLike, lower_bound: ArrayLike) -> None:
        order = np.argsort(np.asarray(n_clusters), kind="stable")
        self.n_clusters = np.asarray(n_clusters)
        self.inertia = np.asarray(inertia, dtype=np.float64)
        self.lower_bound = np.asarray(lower_bound, dtype=np.float64)
        shapes = {self.n_clusters.shape, self.inertia.shape, self.lower_bound.shape}
        if len(shapes) != 1 or self.n_clusters.ndim != 1 or self.n_clusters.size == 0:
            raise ValueError(f"n_clusters, inertia and lower_bound must be equally long, got shapes {sorted(shapes)}")
        if (self.lower_bound > self.inertia * (1 + 1e-9)).any():
            raise ValueError("lower_bound must not exceed inertia, got a bound that does")
        self.n_clusters, self.inertia, self.lower_bound = (
            values[order] for values in (self.n_clusters, self.inertia, self.lower_bound)
        )

    @classmethod
    def from_estimators(cls, models: Iterable[Any], **options: Any) -> Self:
        """Draw fitted models, one for each number of clusters; other arguments are passed to :meth:`plot`.

        Parameters
        ----------
        models : iterable of fitted estimators
            With ``n_clusters``, ``inertia_`` and ``lower_bound_``, as :class:`pluri.embedding.SpectralKMeans`.
        **options
            For :meth:`plot`.
        """
        fitted = list(models)
        for model in fitted:
            if not hasattr(model, "lower_bound_") or not hasattr(model, "inertia_"):
                raise ValueError(
                    f"models must be fitted and have inertia_ and lower_bound_, got {type(model).__name__} without them"
                )
        values = [[getattr(model, name) for model in fitted] for name in ("n_clusters", "inertia_", "lower_bound_")]
        return cls(*values).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None, color: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        color : str, optional
            Of the inertia.

        Returns
        -------
        KMeansBoundDisplay
            Itself.
        """
        from matplotlib.ticker import MaxNLocator

        self.figure_, self.ax_ = single_axes(ax, (5.4, 3.6))
        color = color or PALETTE[0]
        self.ax_.plot(self.n_clusters, self.inertia, color=color, marker="o", markersize=4, label="found")
        self.ax_.plot(
            self.n_clusters, self.lower_bound, color=TRUTH_COLOR, linestyle="--", marker="o", markersize=3,
            label="no partition costs less",
        )  # fmt: skip
        self.gap_ = self.ax_.fill_between(
            self.n_clusters, self.lower_bound, self.inertia, color=color, alpha=0.15, linewidth=0
        )
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.ax_.set(xlabel="number of clusters", ylabel="inertia", title=title or "")
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend(frameon=False)
        tidy(self.ax_, grid="y")
        return self
