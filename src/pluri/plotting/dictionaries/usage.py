"""Which atoms the clusters of a dictionary use: a heat map of clusters and atoms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import HEATMAP, single_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage


class UsageDisplay:
    """How much each cluster uses each atom, atoms sorted by the cluster that uses them most.

    Parameters
    ----------
    usage : array-like of shape (n_clusters, n_components)
        Of each cluster and atom: a probability, or a share of the power of the codes.
    clusters : sequence, optional
        Names of the rows; their numbers by default.
    quantity : str, default="usage"
        What the numbers are, for the colour bar.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage
    atoms_ : array of int
        Atoms from left to right.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import UsageDisplay
    >>> display = UsageDisplay([[0.1, 0.9, 0.0], [0.6, 0.2, 0.0]], ["sky", "grass"]).plot()
    >>> display.atoms_.tolist()
    [1, 0]
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: AxesImage

    def __init__(self, usage: ArrayLike, clusters: Sequence[Any] | None = None, *, quantity: str = "usage") -> None:
        self.usage, self.quantity = np.asarray(usage, dtype=np.float64), quantity
        if self.usage.ndim != 2 or not self.usage.size or not (np.isfinite(self.usage) & (self.usage >= 0)).all():
            raise ValueError(
                f"usage must be at least 0 and of shape (n_clusters, n_components), got shape {self.usage.shape}"
            )
        self.clusters = [str(name) for name in (range(len(self.usage)) if clusters is None else clusters)]
        if len(self.clusters) != len(self.usage):
            raise ValueError(
                f"clusters must have one name for each of {len(self.usage)} rows, got {len(self.clusters)}"
            )
        used = np.flatnonzero(self.usage.max(axis=0) > 0)
        main = self.usage[:, used].argmax(axis=0)
        self._order = used[np.lexsort((-self.usage[main, used], main))]
        self.atoms_ = self._order

    @classmethod
    def from_estimator(cls, model: Any, X: ArrayLike, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw what the clusters of a fitted dictionary use.

        A cell is the share of the power of the rows of a cluster that an atom has: the mean of its squared code times
        its squared length, over the sum of these.

        Parameters
        ----------
        model : estimator
            Fitted, with ``cluster_labels_``, ``components_`` and ``transform``.
        X : array-like of shape (n_samples, n_features)
            The rows that it was fitted to.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        UsageDisplay
        """
        if not hasattr(model, "cluster_labels_"):
            raise ValueError(f"model must be fitted and have cluster_labels_, got {type(model).__name__} without it")
        labels, codes = np.asarray(model.cluster_labels_), np.asarray(model.transform(X))
        if len(codes) != len(labels):
            raise ValueError(f"X must have the {len(labels)} rows that the model was fitted to, got {len(codes)}")
        found, counts = np.unique(labels, return_counts=True)
        found = found[np.argsort(-counts, kind="stable")]
        power = codes**2 * (model.components_**2).sum(axis=1)
        table = np.array([power[labels == cluster].mean(axis=0) for cluster in found])
        totals = table.sum(axis=1, keepdims=True)
        shares = np.divide(table, totals, out=np.zeros_like(table), where=totals > 0)
        return cls(shares, found.tolist(), quantity="share of the power").plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, n_atoms: int | None = 64, cmap: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        n_atoms : int or None, default=64
            How many, those that a cluster uses most; None is all.
        cmap : str, optional

        Returns
        -------
        UsageDisplay
            Itself.
        """
        if n_atoms is not None and n_atoms < 1:
            raise ValueError(f"n_atoms must be at least 1, got {n_atoms}")
        best = self.usage.max(axis=0)[self._order]
        kept = np.sort(np.argsort(-best, kind="stable")[:n_atoms])
        self.atoms_ = self._order[kept]
        shown = self.usage[:, self.atoms_]
        size = (min(max(2.0 + 0.14 * shown.shape[1], 4.0), 12.0), min(max(1.4 + 0.3 * len(shown), 2.2), 9.0))
        self.figure_, self.ax_ = single_axes(ax, size)
        self.image_ = self.ax_.imshow(
            shown, vmin=0.0, vmax=max(float(shown.max(initial=0.0)), 1e-12), cmap=cmap or HEATMAP, aspect="auto",
            interpolation="nearest",
        )  # fmt: skip
        every = max(1, -(-len(self.atoms_) // 20))
        self.ax_.set_xticks(range(0, len(self.atoms_), every), [str(atom) for atom in self.atoms_[::every]])
        self.ax_.set_yticks(range(len(shown)), self.clusters)
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)
        self.ax_.set(xlabel="atom", ylabel="cluster")
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, label=self.quantity)
        bar.outline.set_visible(False)
        return self
