"""Schedules of scheduled sampling: the share of true tokens that a network is fed, minibatch by minibatch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pluri.plotting.style import single_axes, state_colors, tidy
from pluri.validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class ScheduleDisplay:
    """Probability of feeding the true token against the number of the minibatch.

    Parameters
    ----------
    schedules : dict of str to callable
        Each a function of the number of the minibatch, such as :class:`pluri.networks.InverseSigmoidDecay`.
    n_steps : int, default=1000
        Minibatches to draw.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of str to Line2D
    values : dict of str to array of shape (n_steps,)

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.networks import ExponentialDecay, InverseSigmoidDecay
    >>> from pluri.plotting import ScheduleDisplay
    >>> schedules = {"exponential": ExponentialDecay(0.99), "inverse sigmoid": InverseSigmoidDecay(100)}
    >>> display = ScheduleDisplay(schedules).plot()
    >>> sorted(display.lines_)
    ['exponential', 'inverse sigmoid']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: dict[str, Any]

    def __init__(self, schedules: Mapping[str, Callable[[Any], Any]], n_steps: int = 1000) -> None:
        if not schedules:
            raise ValueError("schedules must hold at least one schedule, got none")
        check_count(n_steps, "n_steps")
        self.values: dict[str, NDArray[np.float64]] = {}
        for name, schedule in schedules.items():
            if not callable(schedule):
                raise ValueError(f"schedules must hold functions of the minibatch, got {schedule!r} as {name!r}")
            self.values[name] = np.array([float(schedule(i)) for i in range(n_steps)])

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional

        Returns
        -------
        ScheduleDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.4, 3.4))
        self.lines_ = {}
        for (name, values), color in zip(self.values.items(), state_colors(len(self.values))):
            (self.lines_[name],) = self.ax_.plot(values, color=color, label=name)
        self.ax_.set(xlabel="minibatch", ylabel="probability of the true token", ylim=(-0.02, 1.02), title=title or "")
        self.ax_.legend(frameon=False)
        tidy(self.ax_, grid="y")
        return self
