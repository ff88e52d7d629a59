"""What the model of a search expects along two parameters, and what a further evaluation is worth there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import HEATMAP, PALETTE, tidy
from pluri.validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class SearchSurfaceDisplay:
    """Heat maps of the expected value and of the acquisition over two parameters, with what was evaluated.

    Parameters
    ----------
    x, y : array-like of shape (n_x,) and (n_y,)
        Values of the two parameters, rising.
    mean, acquisition : array-like of shape (n_y, n_x)
    observed : array-like of shape (n_evaluations, 2), optional
        Both parameters of each evaluation.
    best : pair of float, optional
        Where the best evaluation was.
    names : pair of str, default=("x", "y")
    log : pair of bool, default=(False, False)
        Whether each axis is logarithmic.

    Attributes
    ----------
    next_ : pair of float
        Where the acquisition is highest.
    axes_ : array of two Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.decisions import BayesianOptimizer, Real
    >>> from pluri.plotting import SearchSurfaceDisplay
    >>> optimizer = BayesianOptimizer({"x": Real(-1, 1), "y": Real(0, 2)}, random_state=0)
    >>> optimizer.tell([{"x": -0.5, "y": 1.0}, {"x": 0.0, "y": 0.5}, {"x": 0.8, "y": 2.0}], [1.0, 0.2, 0.5])
    >>> display = SearchSurfaceDisplay.from_optimizer(optimizer, n_points=9)
    >>> display.mean.shape, display.best
    ((9, 9), (0.0, 0.5))
    >>> matplotlib.pyplot.close("all")
    """

    axes_: Any
    figure_: Figure | SubFigure

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        mean: ArrayLike,
        acquisition: ArrayLike,
        *,
        observed: ArrayLike | None = None,
        best: tuple[float, float] | None = None,
        names: tuple[str, str] = ("x", "y"),
        log: tuple[bool, bool] = (False, False),
    ) -> None:
        self.x, self.y, self.mean, self.acquisition = (
            np.asarray(one, dtype=np.float64) for one in (x, y, mean, acquisition)
        )
        for name, one in (("x", self.x), ("y", self.y)):
            if one.ndim != 1 or not one.size or not (np.diff(one) > 0).all():
                raise ValueError(f"{name} must be rising values, got shape {one.shape}")
        shape = (len(self.y), len(self.x))
        if self.mean.shape != shape or self.acquisition.shape != shape:
            raise ValueError(
                f"mean and acquisition must have shape {shape}, got {self.mean.shape} and {self.acquisition.shape}"
            )
        self.observed = np.empty((0, 2)) if observed is None else np.asarray(observed, dtype=np.float64).reshape(-1, 2)
        self.best, self.names, self.log = best, names, log
        row, column = np.unravel_index(np.argmax(self.acquisition), shape)
        self.next_ = float(self.x[column]), float(self.y[row])

    @classmethod
    def from_optimizer(
        cls, optimizer: Any, names: Sequence[str] | None = None, n_points: int = 40, **options: Any
    ) -> Self:
        """Draw what a Bayesian optimizer knows along two parameters; the others stay at the best point.

        Parameters
        ----------
        optimizer : `pluri.decisions.BayesianOptimizer`
            With at least one evaluation that succeeded.
        names : pair of str, optional
            The parameters; the first two that are numbers by default.
        n_points : int, default=40
            Along each.
        **options
            For :meth:`plot`.

        Returns
        -------
        SearchSurfaceDisplay
        """
        check_count(n_points, "n_points", 2)
        space = optimizer.space
        numbers = [one for one, kind in zip(space.names, space.dimensions) if not kind.categorical]
        chosen = numbers[:2] if names is None else [names] if isinstance(names, str) else list(names)
        if len(chosen) != 2 or chosen[0] == chosen[1] or not set(chosen) <= set(numbers):
            raise ValueError(
                f"names must be two parameters that are numbers, of {', '.join(numbers) or 'none'}, got {names!r}"
            )
        kinds = [space.dimensions[space.names.index(name)] for name in chosen]
        codes = [np.unique(one.snap(np.linspace(0.0, 1.0, n_points))) for one in kinds]
        axes = [[one.value(code) for code in each.tolist()] for one, each in zip(kinds, codes)]
        best = optimizer.best_params_
        points = [{**best, chosen[0]: x, chosen[1]: y} for y in axes[1] for x in axes[0]]
        shape = (len(axes[1]), len(axes[0]))
        observed = [[one.params[name] for name in chosen] for one in optimizer.history_]
        return cls(
            axes[0], axes[1], optimizer.predict(points)[0].reshape(shape),
            optimizer.acquisition_values(points).reshape(shape), observed=observed,
            best=(float(best[chosen[0]]), float(best[chosen[1]])), names=(chosen[0], chosen[1]),
            log=(_is_logarithmic(kinds[0], axes[0]), _is_logarithmic(kinds[1], axes[1])),
        ).plot(**options)  # fmt: skip

    def plot(self, *, axes: Any = None, title: str | None = None, cmap: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : pair of matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        cmap : str, optional
            Colours of the heat maps.

        Returns
        -------
        SearchSurfaceDisplay
            Itself.
        """
        import matplotlib.pyplot as plt

        if axes is None:
            self.figure_, self.axes_ = plt.subplots(1, 2, figsize=(9.0, 3.8), sharey=True, layout="constrained")
        else:
            self.axes_ = np.ravel(axes)
            if len(self.axes_) != 2:
                raise ValueError(f"axes must be a pair of Axes, got {len(self.axes_)}")
            self.figure_ = self.axes_[0].figure
        for ax, values, label in zip(self.axes_, (self.mean, self.acquisition), ("expected value", "acquisition")):
            mesh = ax.pcolormesh(self.x, self.y, values, cmap=cmap or HEATMAP, shading="nearest", rasterized=True)
            self.figure_.colorbar(mesh, ax=ax, label=label, pad=0.02)
            self._marks(ax)
        self.axes_[0].set(ylabel=self.names[1], title=title or "")
        self.axes_[1].legend(
            frameon=True, fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, edgecolor="none"
        )
        return self

    def _marks(self, ax: Axes) -> None:
        whole: dict[str, Any] = {"linestyle": "none", "clip_on": False}  # also on the border
        if len(self.observed):
            ax.plot(
                *self.observed.T, marker="o", color="white", markeredgecolor="black", markersize=4.5,
                label="evaluated", **whole,
            )  # fmt: skip
        if self.best is not None:
            x, y = self.best
            ax.plot(x, y, marker="*", color=PALETTE[5], markeredgecolor="white", markersize=13, label="best", **whole)
        x, y = self.next_
        ax.plot(x, y, marker="X", color=PALETTE[3], markeredgecolor="white", markersize=9, label="next", **whole)
        if self.log[0]:
            ax.set_xscale("log")
        if self.log[1]:
            ax.set_yscale("log")
        ax.set(xlabel=self.names[0], xlim=(self.x[0], self.x[-1]), ylim=(self.y[0], self.y[-1]))
        tidy(ax)


def _is_logarithmic(dimension: Any, values: list[float]) -> bool:
    """Whether a parameter is searched by its logarithm: it says so, or its distribution spreads it so."""
    if hasattr(dimension, "log") or min(values) <= 0 or len(values) < 3:
        return bool(getattr(dimension, "log", False))
    steps = np.diff(np.log(values))
    return bool(np.ptp(steps) < 1e-3 * steps.max())
