"""What a search has attained and what it has proved, against the work done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import PALETTE, TRUTH_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.figure import Figure, SubFigure


class OptimizationGapDisplay:
    """Objective and lower bound against the number of updates, the gap between them shaded.

    Parameters
    ----------
    updates : array-like of shape (n_moments,)
    objective : array-like of shape (n_moments,)
        Best value so far; infinite while there is none.
    lower_bound : array-like of shape (n_moments,)
        What is proved; minus infinity while there is nothing.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    gap_ : PolyCollection
        Where the optimum lies.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import OptimizationGapDisplay
    >>> display = OptimizationGapDisplay([10, 100, 1000], [9.0, 5.0, 4.2], [1.0, 3.5, 4.0]).plot()
    >>> display.ax_.get_xscale()
    'log'
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    gap_: PolyCollection

    def __init__(self, updates: ArrayLike, objective: ArrayLike, lower_bound: ArrayLike) -> None:
        self.updates = np.asarray(updates, dtype=np.float64)
        self.objective = np.asarray(objective, dtype=np.float64)
        self.lower_bound = np.asarray(lower_bound, dtype=np.float64)
        shapes = {self.updates.shape, self.objective.shape, self.lower_bound.shape}
        if len(shapes) != 1 or self.updates.ndim != 1 or self.updates.size == 0:
            raise ValueError(f"updates, objective and lower_bound must be equally long, got shapes {sorted(shapes)}")
        if (self.lower_bound > self.objective + 1e-6 * np.maximum(1.0, np.abs(self.lower_bound))).any():
            raise ValueError("lower_bound must not exceed objective, got a bound that does")

    @classmethod
    def from_result(cls, result: Any, **options: Any) -> Self:
        """Draw the history of a result; other arguments are passed to :meth:`plot`.

        Parameters
        ----------
        result : object
            With a ``history`` of ``updates``, ``objective`` and ``lower_bound``, as
            :func:`pluri.optimize.sdp.solve_sdp` gives it.
        **options
            For :meth:`plot`.

        Returns
        -------
        OptimizationGapDisplay
        """
        history = getattr(result, "history", None)
        if not isinstance(history, dict) or not {"updates", "objective", "lower_bound"} <= history.keys():
            raise ValueError(
                "result must have a history of updates, objective and lower_bound, "
                f"got {type(result).__name__} without it"
            )
        return cls(history["updates"], history["objective"], history["lower_bound"]).plot(**options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        title: str | None = None,
        color: str | None = None,
        optimum: float | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        color : str, optional
            Of the objective.
        optimum : float, optional
            A line at the true value, if it is known.

        Returns
        -------
        OptimizationGapDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.6, 3.6))
        color = color or PALETTE[0]
        upper = np.where(np.isfinite(self.objective), self.objective, np.nan)
        lower = np.where(np.isfinite(self.lower_bound), self.lower_bound, np.nan)
        self.ax_.plot(self.updates, upper, color=color, drawstyle="steps-post", label="attained")
        self.ax_.plot(
            self.updates, lower, color=TRUTH_COLOR, linestyle="--", drawstyle="steps-post", label="nothing lies below"
        )
        self.gap_ = self.ax_.fill_between(
            self.updates, lower, upper, where=np.isfinite(lower) & np.isfinite(upper), step="post",
            color=color, alpha=0.15, linewidth=0,
        )  # fmt: skip
        if optimum is not None:
            self.ax_.axhline(optimum, color=TRUTH_COLOR, linewidth=0.8, label="optimum")
        self.ax_.set_xscale("log")
        self.ax_.set(xlabel="updates", ylabel="objective", title=title or "")
        self.ax_.legend(frameon=False)
        tidy(self.ax_, grid="y")
        return self
