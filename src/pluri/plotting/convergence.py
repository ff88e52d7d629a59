"""The objective of an iterative fit against the iteration, one line for each restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, QUIET_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


class ConvergenceDisplay:
    """Objective per iteration; the restart that ended best stands out.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    curves : mapping of int to array-like of shape (n_iterations,)
        Objective after each iteration, by restart.
    iterations : mapping of int to array-like of shape (n_iterations,), optional
        Numbers of these iterations; 1, 2, ... by default.

    Attributes
    ----------
    best : int
        The restart with the highest last objective.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : dict of int to Line2D
        One line for each restart.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import ConvergenceDisplay
    >>> display = ConvergenceDisplay({0: [-9.0, -5.0, -4.0], 1: [-8.0, -3.0]}).plot()
    >>> display.best
    1
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: dict[int, Line2D]

    def __init__(self, curves: Mapping[int, ArrayLike], *, iterations: Mapping[int, ArrayLike] | None = None) -> None:
        self.curves: dict[int, NDArray[np.float64]] = {}
        self.iterations: dict[int, NDArray[np.float64]] = {}
        for restart, values in curves.items():
            objective = np.asarray(values, dtype=np.float64)
            numbers = np.arange(1, objective.size + 1) if iterations is None else np.asarray(iterations[restart])
            if objective.ndim != 1 or objective.size == 0 or numbers.shape != objective.shape:
                raise ValueError(
                    f"curves[{restart}] must have one axis, an entry and a number for each iteration, "
                    f"got shapes {objective.shape} and {numbers.shape}"
                )
            self.curves[restart], self.iterations[restart] = objective, numbers.astype(np.float64)
        if not self.curves:
            raise ValueError("curves must hold at least one restart, got none")
        self.best = max(self.curves, key=lambda restart: np.nan_to_num(self.curves[restart][-1], nan=-np.inf))

    @classmethod
    def from_estimator(cls, model: Any, *, column: str = "objective", ax: Axes | None = None, **options: Any) -> Self:
        """Draw the history of a fitted model (its ``history_``).

        Parameters
        ----------
        model : object
            Anything with an attribute ``history_`` whose columns ``restart``, ``iteration`` and ``objective`` are
            arrays of equal length.
        column : str, default="objective"
            The column to draw; ``"log_likelihood"`` leaves the prior out.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        ConvergenceDisplay
        """
        if not hasattr(model, "history_"):
            raise ValueError(f"model must be fitted and have history_, got {type(model).__name__} without it")
        history = model.history_
        if not hasattr(history, column):
            raise ValueError(f"column must be a column of history_, got {column!r}")
        values, restart = np.asarray(getattr(history, column)), np.asarray(history.restart)
        iteration = np.asarray(history.iteration)
        runs = [int(run) for run in np.unique(restart)]
        display = cls(
            {run: values[restart == run] for run in runs}, iterations={run: iteration[restart == run] for run in runs}
        )
        return display.plot(ax=ax, **{"ylabel": column.replace("_", "-"), **options})

    def plot(
        self,
        *,
        ax: Axes | None = None,
        title: str | None = None,
        ylabel: str = "objective",
        gap: bool = False,
        legend: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title; "Convergence" by default, an empty string for none.
        ylabel : str, default="objective"
            What the curves are.
        gap : bool, default=False
            Draw the distance to the best value reached on a logarithmic axis, which shows the rate of convergence.
        legend : bool, default=True
            Tell the best restart from the others, if there are several.

        Returns
        -------
        ConvergenceDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.6, 3.6))
        top = max(float(np.nanmax(values)) for values in self.curves.values())
        self.lines_ = {}
        for restart, values in self.curves.items():
            best = restart == self.best
            # The best value itself has no distance to show: NaN leaves it out.
            shown = np.where(values < top, top - values, np.nan) if gap else values
            others = "other restarts" if all(r == self.best for r in self.lines_) else "_other"
            (self.lines_[restart],) = self.ax_.plot(
                self.iterations[restart],
                shown,
                color=PALETTE[0] if best else QUIET_COLOR,
                linewidth=2.2 if best else 1.1,
                marker="o" if values.size <= 15 else None,
                markersize=4 if best else 3,
                zorder=3 if best else 2,
                label=f"best (restart {restart})" if best else others,
            )
        if gap:
            self.ax_.set_yscale("log")
        self.ax_.set(xlabel="iteration", ylabel=f"best {ylabel} minus {ylabel}" if gap else ylabel)
        self.ax_.locator_params(axis="x", integer=True, min_n_ticks=1)
        self.ax_.set_title("Convergence" if title is None else title)
        tidy(self.ax_, grid="both")
        if legend and len(self.curves) > 1:
            self.ax_.legend(frameon=False, loc="best")
        return self
