"""Estimates of the dimension of data, by several methods, as noise is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import TRUTH_COLOR, single_axes, state_colors, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MARKERS = "osD^vP*X"
#: The whole bundle of markers at one level of noise, as a share of the distance to the next level.
SPREAD = 0.3


class DimensionDisplay:
    """Estimated dimension against noise, a line for each method, with intervals where they are known.

    Parameters
    ----------
    noise : array-like of shape (n_levels,)
        Levels of noise, increasing.
    dimensions : mapping of names of methods to array-likes of shape (n_levels,)
        Estimates; NaN where there is none.
    intervals : mapping of names of methods to array-likes of shape (n_levels, 2), optional
        Lower and upper ends; methods may be missing, and NaN is no interval.
    truth : float, optional
        The true dimension.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of str to matplotlib Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import DimensionDisplay
    >>> estimates = {"mle": [2.0, 2.4, 3.9], "eigenvalue": [3.0, 3.0, 3.0]}
    >>> display = DimensionDisplay([0.0, 0.01, 0.1], estimates, truth=2).plot()
    >>> list(display.lines_)
    ['mle', 'eigenvalue']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(
        self,
        noise: ArrayLike,
        dimensions: Mapping[str, ArrayLike],
        intervals: Mapping[str, ArrayLike] | None = None,
        *,
        truth: float | None = None,
    ) -> None:
        self.noise = np.asarray(noise, dtype=np.float64)
        if self.noise.ndim != 1 or not self.noise.size or (np.diff(self.noise) <= 0).any() or self.noise[0] < 0:
            raise ValueError(f"noise must be levels that are not negative and increase, got {np.asarray(noise)}")
        if not dimensions:
            raise ValueError("dimensions must hold the estimates of at least one method, got none")
        n_levels = self.noise.size
        self.dimensions = {name: np.asarray(values, dtype=np.float64) for name, values in dimensions.items()}
        self.intervals = {name: np.asarray(ends, dtype=np.float64) for name, ends in (intervals or {}).items()}
        for name, values in self.dimensions.items():
            if values.shape != (n_levels,):
                raise ValueError(
                    f"dimensions[{name!r}] must have one for each of {n_levels} levels, got {values.shape}"
                )
        for name, ends in self.intervals.items():
            if name not in self.dimensions or ends.shape != (n_levels, 2):
                raise ValueError(f"intervals[{name!r}] must be two ends for each level of a method, got {ends.shape}")
        self.truth = truth

    @classmethod
    def from_estimators(
        cls,
        noise: ArrayLike,
        models: Mapping[str, Sequence[Any]],
        *,
        truth: float | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw what fitted models have estimated.

        Parameters
        ----------
        noise : array-like of shape (n_levels,)
            Levels of noise, increasing.
        models : mapping of names of methods to lists of fitted models
            One model for each level, with ``dimension_``, and ``dimension_interval_`` if it has one.
        truth : float, optional
            The true dimension.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        DimensionDisplay
        """
        for name, fitted in models.items():
            if not all(hasattr(model, "dimension_") for model in fitted):
                raise ValueError(f"models[{name!r}] must be fitted and have dimension_")
        unknown = (np.nan, np.nan)
        dimensions = {name: [model.dimension_ for model in fitted] for name, fitted in models.items()}
        intervals = {
            name: [getattr(model, "dimension_interval_", unknown) for model in fitted]
            for name, fitted in models.items()
        }
        return cls(noise, dimensions, intervals, truth=truth).plot(ax=ax, **options)

    def plot(
        self, *, ax: Axes | None = None, xlabel: str = "standard deviation of the noise", title: str | None = None
    ) -> Self:
        """Draw.

        The axis of the noise is logarithmic if its positive levels span more than a factor of twenty; no noise is then
        drawn at its left end.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        xlabel : str, default="standard deviation of the noise"
        title : str, optional

        Returns
        -------
        DimensionDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (6.0, 3.8))
        positive = self.noise[self.noise > 0]
        is_log = positive.size > 1 and positive[-1] > 20 * positive[0]
        places = self.noise
        if is_log:
            step = np.diff(np.log10(positive)).min()
            first = [np.log10(positive[0]) - max(step, 0.3)] if self.noise[0] == 0 else []
            places = np.concatenate([first, np.log10(positive)])
        near = float(np.diff(places).min()) if places.size > 1 else 1.0
        offsets = np.linspace(-0.5, 0.5, len(self.dimensions)) * SPREAD * near if len(self.dimensions) > 1 else [0.0]
        if self.truth is not None:
            self.ax_.axhline(self.truth, color=TRUTH_COLOR, linestyle="--", linewidth=1.2, label="truth", zorder=1)
        self.lines_ = {}
        colors = state_colors(len(self.dimensions))
        for number, (name, values) in enumerate(self.dimensions.items()):
            x, color = places + offsets[number], colors[number]
            (self.lines_[name],) = self.ax_.plot(
                x, values, color=color, marker=MARKERS[number % len(MARKERS)], markersize=5, linewidth=1.4, label=name
            )
            if name in self.intervals:
                low, high = self.intervals[name].T
                self.ax_.vlines(x, low, high, color=color, linewidth=1.4, alpha=0.6)
        if is_log:
            self.ax_.set_xticks(places, [f"{level:g}" for level in self.noise])
        self.ax_.set(xlabel=xlabel, ylabel="dimension", title=title or "")
        self.ax_.set_ylim(bottom=max(0.0, self.ax_.get_ylim()[0]))
        self.ax_.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
        tidy(self.ax_, grid="y")
        return self
