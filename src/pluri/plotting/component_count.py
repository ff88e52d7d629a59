"""How many components: the posterior of their number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import PALETTE, TRUTH_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import BarContainer
    from matplotlib.figure import Figure, SubFigure


class ComponentCountDisplay:
    """Bars for the posterior of the number of components, and a line for the prior if it is given.

    Parameters
    ----------
    counts : array-like of int
        Number of components in each draw, of any shape.
    prior : array-like of shape (n,), optional
        Probabilities of 1, 2, ..., n components before the data.

    Attributes
    ----------
    numbers_, probabilities_ : ndarray
        What the bars show.
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : BarContainer

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import ComponentCountDisplay
    >>> display = ComponentCountDisplay([[3, 4, 3], [3, 3, 5]]).plot()
    >>> display.numbers_, display.probabilities_.round(2)
    (array([3, 4, 5]), array([0.67, 0.17, 0.17]))
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    bars_: BarContainer

    def __init__(self, counts: ArrayLike, *, prior: ArrayLike | None = None) -> None:
        values = np.asarray(counts)
        if values.size == 0 or not np.equal(np.mod(values, 1), 0).all() or values.min() < 0:
            raise ValueError("counts must be whole numbers of components, at least one of them")
        values = values.astype(np.int64).ravel()
        self.numbers_ = np.arange(values.min(), values.max() + 1)
        self.probabilities_ = np.bincount(values - values.min()) / values.size
        self.prior = None if prior is None else np.asarray(prior, dtype=np.float64)

    @classmethod
    def from_estimator(cls, model: Any, *, prior: ArrayLike | None = None, **options: Any) -> Self:
        """Draw ``n_clusters_trace_`` of a fitted model; other arguments are passed to :meth:`plot`."""
        if not hasattr(model, "n_clusters_trace_"):
            raise ValueError(f"model must be fitted and have n_clusters_trace_, got {type(model).__name__} without it")
        return cls(model.n_clusters_trace_, prior=prior).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None, color: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        color : str, optional
            Of the bars.

        Returns
        -------
        ComponentCountDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.0, 3.4))
        self.bars_ = self.ax_.bar(self.numbers_, self.probabilities_, color=color or PALETTE[0], width=0.8)
        if self.prior is not None:
            numbers = np.arange(1, len(self.prior) + 1)
            seen = (numbers >= self.numbers_[0] - 2) & (numbers <= self.numbers_[-1] + 2)
            self.ax_.plot(numbers[seen], self.prior[seen], color=TRUTH_COLOR, marker="o", markersize=4, label="prior")
            self.ax_.legend(frameon=False)
        from matplotlib.ticker import MaxNLocator

        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.ax_.set(xlabel="number of components", ylabel="posterior probability", title=title or "")
        tidy(self.ax_, grid="y")
        return self
