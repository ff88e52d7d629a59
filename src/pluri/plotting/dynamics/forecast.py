"""Forecast fans: what was seen, what comes next, and the intervals in which it should lie."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from pluri.plotting.style import PALETTE, TRUTH_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Probabilities of the intervals, the widest first.
LEVELS = (0.95, 0.8, 0.5)


class ForecastDisplay:
    """One output over time: its history, then the mean and the intervals of its forecast.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    history : array-like of shape (n_steps,)
        What was seen; NaN is a gap.
    mean, std : array-like of shape (horizon,)
        Of the forecast.
    levels : sequence of float, default=(0.95, 0.8, 0.5)
        Probabilities of the intervals.
    truth : array-like of shape (horizon,), optional
        What came, where it is known.
    intervals : array-like of shape (n_levels, 2, horizon), optional
        Lower and upper bounds for each of `levels`; those of normal distributions by default.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    fans_ : list of PolyCollection
        One band for each level, the widest first.
    lines_ : dict of str to Line2D
        "history", "mean" and, if there is one, "truth".

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import ForecastDisplay
    >>> display = ForecastDisplay([1.0, 2.0, 3.0], mean=[4.0, 5.0], std=[0.5, 0.7]).plot()
    >>> len(display.fans_)
    3
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    fans_: list[Any]
    lines_: dict[str, Any]

    def __init__(
        self,
        history: ArrayLike,
        *,
        mean: ArrayLike,
        std: ArrayLike,
        levels: Sequence[float] = LEVELS,
        truth: ArrayLike | None = None,
        intervals: ArrayLike | None = None,
    ) -> None:
        self.history = _line(history, "history")
        self.mean, self.std = _line(mean, "mean"), _line(std, "std")
        if self.mean.shape != self.std.shape or (self.std < 0).any():
            raise ValueError(
                f"std must be as long as mean and not negative, got shapes {self.mean.shape} and {self.std.shape}"
            )
        given = np.array([float(level) for level in levels])
        order = np.argsort(-given, kind="stable")
        self.levels = given[order].tolist()
        if not self.levels or not all(0 < level < 1 for level in self.levels):
            raise ValueError(f"levels must be probabilities between 0 and 1, got {list(levels)}")
        if intervals is None:
            width = ndtri(0.5 + 0.5 * given)[:, None] * self.std
            bounds = np.stack([self.mean - width, self.mean + width], axis=1)
        else:
            bounds = np.asarray(intervals, dtype=np.float64)
        if bounds.shape != (len(given), 2, len(self.mean)):
            raise ValueError(
                f"intervals must have the shape (n_levels, 2, horizon) = {(len(given), 2, len(self.mean))}, got "
                f"{bounds.shape}"
            )
        self.intervals = bounds[order]
        self.truth = None if truth is None else _line(truth, "truth")
        if self.truth is not None and self.truth.shape != self.mean.shape:
            raise ValueError(f"truth must be as long as mean ({len(self.mean)}), got {len(self.truth)}")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        horizon: int,
        *,
        feature: int = 0,
        n_shown: int | None = None,
        truth: ArrayLike | None = None,
        levels: Sequence[float] = LEVELS,
        ax: Axes | None = None,
        options: dict[str, Any] | None = None,
    ) -> Self:
        """Forecast one sequence and draw one of its outputs.

        Parameters
        ----------
        model : object
            With ``forecast(X, horizon)``, whose result has ``mean`` and ``std`` (n_sequences, horizon, n_features). If
            it takes ``level`` too, the intervals are those of the model, which for counts and for mixtures of regimes
            are not those of normal distributions; it is asked once for each level.
        X : array-like of shape (n_samples, n_features)
            One sequence.
        horizon : int
            Number of steps.
        feature : int, default=0
            Which output to draw.
        n_shown : int, optional
            How many of the last rows to draw; all by default.
        truth : array-like of shape (horizon,), optional
            What came, where it is known.
        levels : sequence of float, default=(0.95, 0.8, 0.5)
            Probabilities of the intervals.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        options : dict, optional
            Further arguments of ``forecast``, such as inputs.

        Returns
        -------
        ForecastDisplay
        """
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or not 0 <= feature < rows.shape[1]:
            raise ValueError(f"feature must be a column of X, one sequence, got {feature} for shape {rows.shape}")
        options = options or {}
        intervals: Any = None
        if "level" in signature(model.forecast).parameters and "level" not in options:
            each = [model.forecast(rows, horizon, level=float(level), **options) for level in levels]
            intervals = [(one.lower[0, :, feature], one.upper[0, :, feature]) for one in each]
            found = each[0]
        else:
            found = model.forecast(rows, horizon, **options)
        shown = rows[:, feature] if n_shown is None else rows[-n_shown:, feature]
        mean, std = found.mean[0, :, feature], found.std[0, :, feature]
        display = cls(shown, mean=mean, std=std, levels=levels, truth=truth, intervals=intervals)
        return display.plot(ax=ax, first=len(rows) - len(shown))

    def plot(self, *, ax: Axes | None = None, title: str | None = None, first: int = 0, legend: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title; "Forecast" by default, an empty string for none.
        first : int, default=0
            Number of the first step of the history.
        legend : bool, default=True
            Whether to tell the lines apart.

        Returns
        -------
        ForecastDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (6.4, 3.4))
        before = first + np.arange(len(self.history))
        after = first + len(self.history) + np.arange(len(self.mean))
        self.fans_, self.lines_ = [], {}
        for number, level in enumerate(self.levels):
            fan = self.ax_.fill_between(
                after,
                *self.intervals[number],
                color=PALETTE[0],
                alpha=0.18 + 0.14 * number,
                linewidth=0,
                label=f"{100 * level:g} %",
            )
            self.fans_.append(fan)
        (self.lines_["history"],) = self.ax_.plot(before, self.history, color=TRUTH_COLOR, linewidth=1.2, label="seen")
        (self.lines_["mean"],) = self.ax_.plot(after, self.mean, color=PALETTE[0], linewidth=2.0, label="mean")
        if self.truth is not None:
            (self.lines_["truth"],) = self.ax_.plot(
                after, self.truth, color=PALETTE[5], linewidth=1.2, linestyle="--", label="what came"
            )
        self.ax_.axvline(first + len(self.history) - 0.5, color=TRUTH_COLOR, linewidth=0.8, linestyle=":")
        self.ax_.set(xlabel="step", ylabel="value", title="Forecast" if title is None else title)
        if legend:
            # Data, intervals and what came leave no corner free.
            self.ax_.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        tidy(self.ax_)
        return self


def _line(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must have one axis and at least one entry, got shape {array.shape}")
    return array
