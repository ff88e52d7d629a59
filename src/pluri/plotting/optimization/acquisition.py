"""What the model of an expensive function expects along one parameter, and where it would look next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import PALETTE, TRUTH_COLOR, tidy
from pluri.validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class AcquisitionDisplay:
    """Mean and uncertainty of a function above, what another evaluation is worth below, with the next point.

    Parameters
    ----------
    x : array-like of shape (n_points,)
        Values of the parameter.
    mean, std : array-like of shape (n_points,)
        Of the function there.
    acquisition : array-like of shape (n_points,)
    observed : array-like of shape (n_evaluations, 2), optional
        Evaluations: the parameter and the value.
    next_x : float, optional
        Where to evaluate next; the highest acquisition by default.
    name : str, default="x"
        Of the parameter.
    log : bool, default=False
        Whether its axis is logarithmic.

    Attributes
    ----------
    axes_ : array of two Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.decisions import BayesianOptimizer, Real
    >>> from pluri.plotting import AcquisitionDisplay
    >>> optimizer = BayesianOptimizer({"x": Real(-1, 1)}, random_state=0)
    >>> optimizer.tell([{"x": -0.5}, {"x": 0.0}, {"x": 0.8}], [1.0, 0.2, 0.5])
    >>> display = AcquisitionDisplay.from_optimizer(optimizer)
    >>> -1 <= display.next_x <= 1
    True
    >>> matplotlib.pyplot.close("all")
    """

    axes_: Any
    figure_: Figure | SubFigure

    def __init__(
        self,
        x: ArrayLike,
        mean: ArrayLike,
        std: ArrayLike,
        acquisition: ArrayLike,
        *,
        observed: ArrayLike | None = None,
        next_x: float | None = None,
        name: str = "x",
        log: bool = False,
    ) -> None:
        self.x, self.mean, self.std, self.acquisition = (
            np.asarray(one, dtype=np.float64) for one in (x, mean, std, acquisition)
        )
        shapes = {one.shape for one in (self.x, self.mean, self.std, self.acquisition)}
        if len(shapes) != 1 or self.x.ndim != 1 or self.x.size == 0:
            raise ValueError(f"x, mean, std and acquisition must be equally long, got shapes {sorted(shapes)}")
        self.observed = np.empty((0, 2)) if observed is None else np.asarray(observed, dtype=np.float64).reshape(-1, 2)
        self.next_x = float(self.x[np.argmax(self.acquisition)] if next_x is None else next_x)
        self.name = name
        self.log = log

    @classmethod
    def from_optimizer(cls, optimizer: Any, name: str | None = None, n_points: int = 200, **options: Any) -> Self:
        """Draw what a Bayesian optimizer knows along one parameter; the others stay at the best point.

        Parameters
        ----------
        optimizer : `pluri.decisions.BayesianOptimizer`
            With at least one evaluation that succeeded.
        name : str, optional
            The parameter; the first that is a number by default.
        n_points : int, default=200
        **options
            For :meth:`plot`.

        Returns
        -------
        AcquisitionDisplay
        """
        check_count(n_points, "n_points", 2)
        space = optimizer.space
        numbers = [one for one, kind in zip(space.names, space.dimensions) if not kind.categorical]
        if name is None and numbers:
            name = numbers[0]
        if name is None or name not in numbers:
            raise ValueError(f"name must be a parameter that is a number, one of {', '.join(numbers)}, got {name!r}")
        dimension = space.dimensions[space.names.index(name)]
        best = optimizer.best_params_
        codes = np.unique(dimension.snap(np.linspace(0.0, 1.0, n_points)))
        values = [dimension.value(code) for code in codes.tolist()]
        points = [{**best, name: value} for value in values]
        mean, std = optimizer.predict(points)
        # Other parameters differ from those of the best point, so that their values need not lie on the curve.
        observed = [(one.params[name], one.value) for one in optimizer.history_ if not one.failed]
        log = bool(getattr(dimension, "log", False))
        acquisition = optimizer.acquisition_values(points)
        return cls(np.array(values), mean, std, acquisition, observed=observed, name=name, log=log).plot(**options)

    def plot(self, *, axes: Any = None, title: str | None = None, color: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : pair of matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        color : str, optional
            Of the model.

        Returns
        -------
        AcquisitionDisplay
            Itself.
        """
        import matplotlib.pyplot as plt

        if axes is None:
            self.figure_, self.axes_ = plt.subplots(
                2, 1, figsize=(5.8, 4.6), sharex=True, height_ratios=(2, 1), layout="constrained"
            )
        else:
            self.axes_ = np.ravel(axes)
            if len(self.axes_) != 2:
                raise ValueError(f"axes must be a pair of Axes, got {len(self.axes_)}")
            self.figure_ = self.axes_[0].figure
        color = color or PALETTE[0]
        upper: Axes = self.axes_[0]
        upper.plot(self.x, self.mean, color=color, label="expected")
        upper.fill_between(
            self.x, self.mean - 2 * self.std, self.mean + 2 * self.std, color=color, alpha=0.15, linewidth=0,
            label="two standard deviations",
        )  # fmt: skip
        if len(self.observed):
            upper.plot(*self.observed.T, "o", color=TRUTH_COLOR, markersize=4, label="evaluated")
        lower: Axes = self.axes_[1]
        lower.plot(self.x, self.acquisition, color=PALETTE[5])
        lower.fill_between(self.x, min(0.0, self.acquisition.min()), self.acquisition, color=PALETTE[5], alpha=0.2)
        for ax in (upper, lower):
            ax.axvline(self.next_x, color=PALETTE[5], linestyle="--", linewidth=1, label="next")
            if self.log:
                ax.set_xscale("log")
            tidy(ax, grid="y")
        upper.set(ylabel="value", title=title or "")
        lower.set(xlabel=self.name, ylabel="acquisition")
        upper.legend(frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        return self
