"""How far a search has come: the best value so far against the number of evaluations, also while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, QUIET_COLOR, TRUTH_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Array = NDArray[np.float64]


class BestSoFarDisplay:
    """The best value so far of one or several searches; of repeated ones the median, with quartiles shaded.

    Parameters
    ----------
    values : dict
        Names of searches, and the values in the order of evaluation: (n_evaluations,), or (n_runs, n_evaluations).
        NaN is a failure.
    maximize : bool, default=False
        Whether the largest value is the best.
    optimum : float, optional
        The best value there is; the distance to it is then drawn, on a logarithmic axis.

    Attributes
    ----------
    best_ : dict of arrays of shape (n_runs, n_evaluations)
        What is drawn.
    ax_, figure_ : matplotlib Axes and Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import BestSoFarDisplay
    >>> display = BestSoFarDisplay({"ours": [3.0, 1.0, 2.0], "random": [[3.0, 4.0, 2.0], [5.0, 2.5, 2.0]]}).plot()
    >>> display.best_["ours"].tolist()
    [[3.0, 1.0, 1.0]]
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self, values: Mapping[str, ArrayLike], *, maximize: bool = False, optimum: float | None = None
    ) -> None:
        if not isinstance(values, Mapping) or not values:
            raise ValueError(f"values must be a dict of at least one search, got {values!r}")
        self.maximize = maximize
        self.optimum = optimum
        self.best_: dict[str, Array] = {}
        for name, given in values.items():
            rows = np.atleast_2d(np.asarray(given, dtype=np.float64))
            if rows.ndim != 2 or rows.size == 0:
                raise ValueError(f"values[{name!r}] must have one or two axes and entries, got shape {rows.shape}")
            self.best_[name] = best_so_far(rows, maximize)
            if optimum is not None and (self._distance(self.best_[name]) < -1e-9 * max(1.0, abs(optimum))).any():
                raise ValueError(f"optimum must be at least as good as every value, got {optimum!r}")

    def _distance(self, best: Array) -> Array:
        """How far from the optimum, which lies above if that is the largest value."""
        assert self.optimum is not None
        return self.optimum - best if self.maximize else best - self.optimum

    @classmethod
    def from_optimizer(
        cls, optimizer: Any, others: Mapping[str, ArrayLike] | None = None, *, optimum: float | None = None,
        **options: Any,
    ) -> Self:  # fmt: skip
        """Draw the search of a Bayesian optimizer, beside others such as random search.

        Parameters
        ----------
        optimizer : `pluri.decisions.BayesianOptimizer`
        others : dict, optional
            Values of other searches, as in the constructor.
        optimum : float, optional
        **options
            For :meth:`plot`.

        Returns
        -------
        BestSoFarDisplay
        """
        values = [one.value if one.feasible else np.nan for one in optimizer.history_]
        if not values:
            raise ValueError("optimizer must have evaluations, got none")
        searches = {"Bayesian optimisation": values, **(others or {})}
        return cls(searches, maximize=optimizer.maximize, optimum=optimum).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional

        Returns
        -------
        BestSoFarDisplay
            Itself.
        """
        from matplotlib.ticker import MaxNLocator

        self.figure_, self.ax_ = single_axes(ax, (5.6, 3.6))
        for number, (name, best) in enumerate(self.best_.items()):
            color = QUIET_COLOR if name == "random" else PALETTE[number % len(PALETTE)]
            shown = best if self.optimum is None else np.maximum(self._distance(best), 1e-12)
            steps = np.arange(1, shown.shape[1] + 1)
            low, middle, high = _quartiles(shown)
            self.ax_.plot(steps, middle, color=color, drawstyle="steps-post", label=name)
            if len(shown) > 1:
                self.ax_.fill_between(steps, low, high, step="post", color=color, alpha=0.2, linewidth=0)
        if self.optimum is not None:
            self.ax_.set_yscale("log")
        label = "best value so far" if self.optimum is None else "distance to the optimum"
        self.ax_.set(xlabel="evaluations", ylabel=label, title=title or "")
        self.ax_.legend(frameon=False)
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        tidy(self.ax_, grid="y")
        return self


class LiveBestSoFar:
    """A picture of the best value so far that is drawn again after each evaluation: a callback of `optimize`.

    In a window or a notebook with an interactive backend it moves while the search runs; with any other backend the
    figure is up to date whenever it is looked at.

    Parameters
    ----------
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.decisions import BayesianOptimizer, Real
    >>> from pluri.plotting import LiveBestSoFar
    >>> live = LiveBestSoFar()
    >>> optimizer = BayesianOptimizer({"x": Real(-1, 1)}, random_state=0)
    >>> result = optimizer.optimize(lambda params: params["x"] ** 2, 5, callback=live)
    >>> len(live.best_line_.get_xdata()), bool(live.best_line_.get_ydata()[-1] == result.fun)
    (5, True)
    >>> matplotlib.pyplot.close("all")
    """

    def __init__(self, ax: Axes | None = None) -> None:
        from matplotlib.ticker import MaxNLocator

        self.figure_, self.ax_ = single_axes(ax, (5.6, 3.6))
        (self.points_,) = self.ax_.plot([], [], "o", color=QUIET_COLOR, markersize=4, label="evaluated")
        (self.best_line_,) = self.ax_.plot([], [], color=PALETTE[0], drawstyle="steps-post", label="best so far")
        (self.failures_,) = self.ax_.plot([], [], "x", color=TRUTH_COLOR, markersize=5, label="_failed")
        self.ax_.set(xlabel="evaluations", ylabel="value")
        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        self.ax_.legend(frameon=False)
        tidy(self.ax_, grid="y")

    def __call__(self, optimizer: Any) -> None:
        """Draw what the optimizer knows by now."""
        history = optimizer.history_
        steps = np.arange(1, len(history) + 1)
        values = np.array([one.value for one in history])
        feasible = np.array([one.feasible for one in history])
        best = best_so_far(np.where(feasible, values, np.nan)[None], optimizer.maximize)[0]
        self.points_.set_data(steps, values)
        self.best_line_.set_data(steps, best)
        failed = ~feasible
        level = np.nanmin(values) if np.isfinite(values).any() else 0.0
        self.failures_.set_data(steps[failed], np.where(np.isnan(values), level, values)[failed])
        self.failures_.set_label("failed or not allowed" if failed.any() else "_failed")
        self.ax_.legend(frameon=False)
        self.ax_.relim()
        self.ax_.autoscale_view()
        canvas = self.ax_.figure.canvas
        canvas.draw_idle()
        canvas.flush_events()


def best_so_far(values: Array, maximize: bool) -> Array:
    """Running best of each row (n_runs, n_evaluations); NaN until there is a value."""
    worst = -np.inf if maximize else np.inf
    filled = np.where(np.isnan(values), worst, values)
    best = (np.maximum if maximize else np.minimum).accumulate(filled, axis=1)
    return np.where(np.isinf(best), np.nan, best)


def _quartiles(rows: Array) -> Array:
    """Lower quartile, median and upper quartile of each column; NaN where a run has no value yet."""
    return np.quantile(rows, [0.25, 0.5, 0.75], axis=0)
