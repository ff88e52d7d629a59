"""Energy and temperature of simulated annealing against the number of moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import PALETTE, QUIET_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class AnnealingDisplay:
    """Energy of the current state, the lowest so far, and the temperature on an axis of its own.

    Parameters
    ----------
    energy : array-like of shape (n_moves,)
    best : array-like of shape (n_moves,)
    temperature : array-like of shape (n_moves,)

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    temperature_ax_ : matplotlib Axes
        The axis on the right.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.optimize import SimulatedAnnealing
    >>> from pluri.plotting import AnnealingDisplay
    >>> result = SimulatedAnnealing(max_iter=100, random_state=0).minimize(lambda x: float(x @ x), [3.0])
    >>> display = AnnealingDisplay.from_result(result)
    >>> display.temperature_ax_.get_yscale()
    'log'
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    temperature_ax_: Axes
    figure_: Figure | SubFigure

    def __init__(self, energy: ArrayLike, best: ArrayLike, temperature: ArrayLike) -> None:
        self.energy, self.best, self.temperature = (
            np.asarray(one, dtype=np.float64) for one in (energy, best, temperature)
        )
        shapes = {one.shape for one in (self.energy, self.best, self.temperature)}
        if len(shapes) != 1 or self.energy.ndim != 1 or self.energy.size == 0:
            raise ValueError(f"energy, best and temperature must be equally long, got shapes {sorted(shapes)}")

    @classmethod
    def from_result(cls, result: Any, **options: Any) -> Self:
        """Draw the trace of a result; other arguments are passed to :meth:`plot`.

        Parameters
        ----------
        result : object
            What :meth:`pluri.optimize.SimulatedAnnealing.minimize` returns.
        **options
            For :meth:`plot`.

        Returns
        -------
        AnnealingDisplay
        """
        trace = getattr(result, "trace", None)
        if not isinstance(trace, dict) or not {"energy", "best", "temperature"} <= trace.keys():
            raise ValueError(
                f"result must have a trace of energy, best and temperature, got {type(result).__name__} without it"
            )
        return cls(trace["energy"], trace["best"], trace["temperature"]).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None, color: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        color : str, optional
            Of the energy.

        Returns
        -------
        AnnealingDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.8, 3.6))
        moves = np.arange(1, len(self.energy) + 1)
        finite = np.where(np.isfinite(self.energy), self.energy, np.nan)
        self.ax_.plot(moves, finite, color=QUIET_COLOR, linewidth=0.7, label="energy")
        lowest = np.where(np.isfinite(self.best), self.best, np.nan)
        self.ax_.plot(moves, lowest, color=color or PALETTE[0], drawstyle="steps-post", label="lowest so far")
        self.temperature_ax_ = self.ax_.twinx()
        self.temperature_ax_.plot(
            moves, np.where(self.temperature > 0, self.temperature, np.nan), color=PALETTE[5], linestyle="--",
            label="temperature",
        )  # fmt: skip
        if (self.temperature > 0).any():
            self.temperature_ax_.set_yscale("log")
        self.temperature_ax_.set_ylabel("temperature", color=PALETTE[5])
        self.temperature_ax_.spines["top"].set_visible(False)
        self.ax_.set(xlabel="moves", ylabel="energy", title=title or "")
        lines = [*self.ax_.get_lines(), *self.temperature_ax_.get_lines()]
        self.ax_.legend(lines, [str(line.get_label()) for line in lines], frameon=False, loc="upper right")
        tidy(self.ax_, grid="y")
        return self
