"""Value of a choice against its size, between what it reaches and what nothing can exceed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import PALETTE, TRUTH_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure, SubFigure


class SelectionValueDisplay:
    """Value after each choice with both bounds: the one that the search proves, and the one known beforehand.

    Parameters
    ----------
    values : array-like of shape (n_chosen,)
    upper_bounds : array-like of shape (n_chosen + 1,) or more, or a number
        For 0, 1, ... items; a number is that of the whole choice.
    apriori_bounds : array-like of shape (n_chosen,), optional
        NaN where they do not hold.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    gap_ : PolyCollection or None
        Where the optimum of each size lies.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.decisions import GreedySelector
    >>> from pluri.plotting import SelectionValueDisplay
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> display = SelectionValueDisplay.from_estimator(GreedySelector(5).fit(X))
    >>> len(display.ax_.lines)
    3
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    gap_: PolyCollection | None

    def __init__(self, values: ArrayLike, upper_bounds: ArrayLike, apriori_bounds: ArrayLike | None = None) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.upper_bounds = np.atleast_1d(np.asarray(upper_bounds, dtype=np.float64))
        if self.values.ndim != 1 or not len(self.values):
            raise ValueError(f"values must be a number for each chosen item, got shape {self.values.shape}")
        if self.upper_bounds.ndim != 1 or (len(self.upper_bounds) > 1 and len(self.upper_bounds) <= len(self.values)):
            raise ValueError(
                f"upper_bounds must be one number, or one for each of 0 to {len(self.values)} items, got "
                f"shape {self.upper_bounds.shape}"
            )
        given = np.full(len(self.values), np.nan) if apriori_bounds is None else apriori_bounds
        self.apriori_bounds = np.asarray(given, dtype=np.float64)
        if self.apriori_bounds.shape != self.values.shape:
            raise ValueError(f"apriori_bounds must be as many as values, got shape {self.apriori_bounds.shape}")

    @classmethod
    def from_estimator(cls, model: Any, **options: Any) -> Self:
        """Draw a fitted selector or sensor placement; other arguments are passed to :meth:`plot`.

        Parameters
        ----------
        model : GreedySelector, BudgetSelector or SensorPlacement of `pluri.decisions`
        **options
            For :meth:`plot`.
        """
        if not hasattr(model, "values_") or not hasattr(model, "upper_bound_"):
            raise ValueError(f"model must be fitted and have values_ and upper_bound_, got {type(model).__name__}")
        bounds = getattr(model, "upper_bounds_", model.upper_bound_)
        return cls(model.values_, bounds, getattr(model, "apriori_bounds_", None)).plot(**options)

    def plot(
        self, *, ax: Axes | None = None, title: str | None = None, color: str | None = None, ylabel: str = "value"
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        color : str, optional
            Of the value.
        ylabel : str, default="value"
        """
        self.figure_, self.ax_ = single_axes(ax, (5.6, 3.8))
        color = color or PALETTE[0]
        sizes = np.arange(1, len(self.values) + 1)
        self.gap_ = None
        if len(self.upper_bounds) > 1:
            proved = self.upper_bounds[1 : len(sizes) + 1]
            self.ax_.plot(sizes, proved, color=TRUTH_COLOR, linestyle="--", label="no choice exceeds")
            self.gap_ = self.ax_.fill_between(sizes, self.values, proved, color=color, alpha=0.15, linewidth=0)
        elif np.isfinite(self.upper_bounds[0]):
            self.ax_.axhline(self.upper_bounds[0], color=TRUTH_COLOR, linestyle="--", label="no choice exceeds")
        if not np.isnan(self.apriori_bounds).all():
            self.ax_.plot(sizes, self.apriori_bounds, color=PALETTE[1], linestyle=":", label="value / (1 - 1/e)")
        self.ax_.plot(sizes, self.values, color=color, marker="o", markersize=3.5, label="chosen")
        self.ax_.set(xlabel="items chosen", ylabel=ylabel, title=title or "")
        self.ax_.legend(frameon=False)
        tidy(self.ax_, grid="y")
        return self
