"""Pictures of counts: dispersion, learned shapes, covariances against lag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import QUIET_COLOR, TRUTH_COLOR, single_axes, state_colors, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MARKERS = "osD^vP*X"


class DispersionDisplay:
    """Variance against mean of counts, with the line on which Poisson counts lie.

    Parameters
    ----------
    means, variances : mappings of names to array-likes of shape (n_neurons,)
        For instance of the data and of a model.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    points_ : dict of str to matplotlib Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from pluri.plotting import DispersionDisplay
    >>> counts = np.random.default_rng(0).binomial(4, 0.5, size=(200, 6))
    >>> display = DispersionDisplay({"data": counts.mean(axis=0)}, {"data": counts.var(axis=0)}).plot()
    >>> display.ax_.get_ylabel()
    'variance'
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, means: Mapping[str, ArrayLike], variances: Mapping[str, ArrayLike]) -> None:
        self.means = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in means.items()}
        self.variances = {name: np.asarray(values, dtype=np.float64).ravel() for name, values in variances.items()}
        if not self.means or self.means.keys() != self.variances.keys():
            raise ValueError(f"means and variances must have the same names, got {[*means]} and {[*variances]}")
        for name, values in self.means.items():
            if values.shape != self.variances[name].shape:
                raise ValueError(f"variances[{name!r}] must have one for each of {values.size} means")

    @classmethod
    def from_counts(cls, X: ArrayLike, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the mean and variance of each column of counts, NaN left out."""
        counts = np.asarray(X, dtype=np.float64)
        data = {"data": np.nanmean(counts, axis=0)}, {"data": np.nanvar(counts, axis=0)}
        return cls(*data).plot(ax=ax, **options)

    @classmethod
    def from_estimators(
        cls, models: Mapping[str, Any], X: ArrayLike, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw counts beside what fitted systems make of them.

        Parameters
        ----------
        models : mapping of names to fitted models
            With ``moments()``, as `pluri.dynamics.CountDynamicalSystem` has it.
        X : array of shape (n_samples, n_features)
            Counts.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.
        """
        counts = np.asarray(X, dtype=np.float64)
        moments = {name: model.moments() for name, model in models.items()}
        means = {"data": np.nanmean(counts, axis=0)} | {name: one.neuron_mean for name, one in moments.items()}
        variances = {"data": np.nanvar(counts, axis=0)} | {name: one.neuron_variance for name, one in moments.items()}
        return cls(means, variances).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        """
        self.figure_, self.ax_ = single_axes(ax, (4.6, 4.2))
        most = max(float(np.nanmax(values)) for one in (self.means, self.variances) for values in one.values())
        self.ax_.plot(
            [0, 1.05 * most], [0, 1.05 * most], color=TRUTH_COLOR, linewidth=1.0, linestyle="--", label="Poisson"
        )
        self.points_ = {}
        for number, (name, color) in enumerate(zip(self.means, state_colors(len(self.means)))):
            (self.points_[name],) = self.ax_.plot(
                self.means[name], self.variances[name], MARKERS[number % len(MARKERS)], color=color, markersize=5,
                alpha=0.8, label=name,
            )  # fmt: skip
        self.ax_.set(xlabel="mean", ylabel="variance", title=title or "", xlim=(0, None), ylim=(0, None))
        self.ax_.legend(frameon=False, fontsize="small")
        tidy(self.ax_, grid="both")
        return self


class ShapeDisplay:
    """Learned shapes g(k) of generalized counts without their linear parts: a Poisson count is the line at 0.

    Parameters
    ----------
    g : array-like of shape (n_neurons, K + 1) or (K + 1,)
        Shapes, -inf where a count is impossible.
    names : sequence of str, optional

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of matplotlib Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from pluri.plotting import ShapeDisplay
    >>> k = np.arange(6)
    >>> display = ShapeDisplay([0.5 * k - 0.1 * k**2, 0.3 * k], names=["narrow", "Poisson"]).plot()
    >>> display.lines_[1].get_ydata().round(6).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, g: ArrayLike, names: Sequence[str] | None = None) -> None:
        self.g = np.atleast_2d(np.asarray(g, dtype=np.float64))
        if self.g.ndim != 2 or self.g.shape[1] < 2:
            raise ValueError(f"g must have a row for each neuron and at least two counts, got shape {np.shape(g)}")
        if names is not None and len(names) != len(self.g):
            raise ValueError(f"names must have one for each of {len(self.g)} shapes, got {len(names)}")
        self.names = names

    @classmethod
    def from_estimator(
        cls, model: Any, neurons: Sequence[int] | None = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw the shapes ``g_`` of a fitted model; of some `neurons` only if they are given."""
        if not hasattr(model, "g_"):
            raise ValueError("model must be fitted and have shapes g_, as CountDynamicalSystem has")
        g = np.atleast_2d(model.g_)
        chosen = range(len(g)) if neurons is None else neurons
        return cls(g[list(chosen)], [f"neuron {number}" for number in chosen]).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw g(k) - k g(1).

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        """
        self.figure_, self.ax_ = single_axes(ax, (5.0, 3.6))
        k = np.arange(self.g.shape[1])
        self.ax_.axhline(0.0, color=TRUTH_COLOR, linewidth=1.0, linestyle="--", label="Poisson", zorder=1)
        few = len(self.g) <= 8
        colors = state_colors(len(self.g)) if few else [QUIET_COLOR] * len(self.g)
        slopes = np.where(np.isfinite(self.g[:, 1]), self.g[:, 1], 0.0)
        self.lines_ = []
        for number, (g, slope) in enumerate(zip(self.g, slopes)):
            bent = np.where(np.isfinite(g), g - k * slope, np.nan)
            label = self.names[number] if self.names is not None and few else None
            (line,) = self.ax_.plot(k, bent, color=colors[number], marker="o", markersize=3, linewidth=1.3, label=label)
            self.lines_.append(line)
        self.ax_.set(xlabel="count k", ylabel="g(k) - k g(1)", title=title or "")
        self.ax_.legend(frameon=False, fontsize="small")
        tidy(self.ax_, grid="y")
        return self


class CrossCovarianceDisplay:
    """Covariance of the counts of pairs of neurons against lag.

    Parameters
    ----------
    covariances : mapping of names to array-likes of shape (max_lag + 1, n_neurons, n_neurons)
        Entry (lag, i, j) is that of i with j, `lag` steps later; for instance of data and of models.
    pair : pair of int, optional
        The neurons to draw; by default the mean over all pairs of different ones.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of str to matplotlib Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from pluri.plotting import CrossCovarianceDisplay
    >>> decaying = 0.5 ** np.arange(4)[:, None, None] * np.ones((3, 3))
    >>> display = CrossCovarianceDisplay({"model": decaying}).plot()
    >>> display.lines_["model"].get_xdata().tolist()
    [-3, -2, -1, 0, 1, 2, 3]
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, covariances: Mapping[str, ArrayLike], pair: tuple[int, int] | None = None) -> None:
        self.covariances = {name: np.asarray(values, dtype=np.float64) for name, values in covariances.items()}
        for name, values in self.covariances.items():
            if values.ndim != 3 or values.shape[1] != values.shape[2]:
                raise ValueError(
                    f"covariances[{name!r}] must have the shape (lags, neurons, neurons), got {values.shape}"
                )
            if pair is None and values.shape[1] < 2:
                raise ValueError("covariances must be of at least two neurons, unless pair is given")
        self.pair = pair

    @classmethod
    def from_estimators(
        cls,
        models: Mapping[str, Any],
        max_lag: int = 10,
        *,
        pair: tuple[int, int] | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw ``cross_covariance(max_lag)`` of fitted systems."""
        found = {name: model.cross_covariance(max_lag) for name, model in models.items()}
        return cls(found, pair).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        """
        self.figure_, self.ax_ = single_axes(ax, (5.0, 3.6))
        self.ax_.axhline(0.0, color=QUIET_COLOR, linewidth=0.8, zorder=1)
        self.lines_ = {}
        for (name, values), color in zip(self.covariances.items(), state_colors(len(self.covariances))):
            forward, backward = self._curve(values), self._curve(values.transpose(0, 2, 1))
            lags = np.arange(1 - len(forward), len(forward))
            curve = np.concatenate([backward[:0:-1], forward])
            (self.lines_[name],) = self.ax_.plot(lags, curve, color=color, marker="o", markersize=3, label=name)
        self.ax_.set(xlabel="lag (steps)", ylabel="covariance", title=title or "")
        self.ax_.legend(frameon=False, fontsize="small")
        tidy(self.ax_, grid="y")
        return self

    def _curve(self, values: np.ndarray) -> np.ndarray:
        if self.pair is not None:
            return np.asarray(values[:, self.pair[0], self.pair[1]])
        apart = ~np.eye(values.shape[1], dtype=bool)
        return np.asarray(values[:, apart].mean(axis=1))
