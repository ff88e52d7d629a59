"""Errors of a decoder with and without the true tokens before each, by epoch and by place in the sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import PALETTE, QUIET_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class TrainingErrorDisplay:
    """Teacher-forced and free-running errors by epoch, with the share of true tokens shaded behind them.

    Parameters
    ----------
    teacher_forced, free_running, epsilon : arrays of shape (n_epochs,)
    best_epoch : int, optional
        Marked by a line; from 1.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of str to Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import TrainingErrorDisplay
    >>> display = TrainingErrorDisplay([0.3, 0.2], [0.6, 0.5], [1.0, 0.9], best_epoch=2).plot()
    >>> sorted(display.lines_)
    ['free-running', 'teacher-forced']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: dict[str, Any]

    def __init__(
        self, teacher_forced: ArrayLike, free_running: ArrayLike, epsilon: ArrayLike, best_epoch: int | None = None
    ) -> None:
        self.teacher_forced = np.asarray(teacher_forced, dtype=np.float64)
        self.free_running = np.asarray(free_running, dtype=np.float64)
        self.epsilon = np.asarray(epsilon, dtype=np.float64)
        shapes = {self.teacher_forced.shape, self.free_running.shape, self.epsilon.shape}
        if len(shapes) != 1 or self.epsilon.ndim != 1 or not self.epsilon.size:
            raise ValueError(f"teacher_forced, free_running and epsilon must be equally long, got {sorted(shapes)}")
        self.best_epoch = best_epoch

    @classmethod
    def from_estimator(cls, model: Any, *, member: int = 0, **options: Any) -> Self:
        """Draw the training of a fitted decoder of `pluri.networks`; other arguments are passed to :meth:`plot`."""
        if not hasattr(model, "free_running_history_"):
            raise ValueError(f"model must be a fitted decoder, got {type(model).__name__} without histories")
        if not 0 <= member < len(model.best_epoch_):
            raise ValueError(f"member must be from 0 to {len(model.best_epoch_) - 1}, got {member}")
        there = np.isfinite(model.loss_history_[member])
        names = ("teacher_forced_history_", "free_running_history_", "epsilon_history_")
        teacher_forced, free_running, epsilon = (getattr(model, name)[member][there] for name in names)
        best_epoch = int(model.best_epoch_[member])
        return cls(teacher_forced, free_running, epsilon, best_epoch=best_epoch).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional

        Returns
        -------
        TrainingErrorDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.4, 3.4))
        epochs = np.arange(1, len(self.epsilon) + 1)
        top = 1.05 * max(np.nanmax(self.teacher_forced), np.nanmax(self.free_running), 1e-9)
        self.ax_.fill_between(
            epochs, 0, self.epsilon * top, color=QUIET_COLOR, alpha=0.25, linewidth=0, label="share of true tokens"
        )
        self.lines_ = {}
        named = {"teacher-forced": self.teacher_forced, "free-running": self.free_running}
        for (name, values), color in zip(named.items(), PALETTE):
            (self.lines_[name],) = self.ax_.plot(epochs, values, color=color, label=name)
        if self.best_epoch is not None:
            self.ax_.axvline(self.best_epoch, color=QUIET_COLOR, linestyle=":")
        self.ax_.set(xlabel="epoch", ylabel="error rate", ylim=(0, top), title=title or "")
        self.ax_.legend(frameon=False)
        tidy(self.ax_, grid="y")
        return self


class PositionErrorDisplay:
    """Error rate at each place of the sequence: does it grow as errors pile up?

    Parameters
    ----------
    errors : dict of str to array of shape (n_positions,)
        Error rates by the name of the way of decoding, or of the model.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of str to Line2D

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import PositionErrorDisplay
    >>> display = PositionErrorDisplay({"free-running": [0.1, 0.2, 0.3], "teacher-forced": [0.1, 0.1, 0.1]}).plot()
    >>> display.ax_.get_ylabel()
    'error rate'
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: dict[str, Any]

    def __init__(self, errors: dict[str, ArrayLike]) -> None:
        if not errors:
            raise ValueError("errors must hold at least one row of error rates, got none")
        self.errors = {name: np.asarray(values, dtype=np.float64) for name, values in errors.items()}
        for name, values in self.errors.items():
            if values.ndim != 1 or not values.size:
                raise ValueError(f"errors must hold rows of error rates, got shape {values.shape} for {name!r}")

    @classmethod
    def from_estimator(cls, model: Any, X: Any, y: Any, **options: Any) -> Self:
        """Draw the errors of a fitted decoder of `pluri.networks` on data; other arguments go to :meth:`plot`."""
        return cls(model.errors_by_position(X, y)).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional

        Returns
        -------
        PositionErrorDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.4, 3.4))
        self.lines_ = {}
        for number, (name, values) in enumerate(self.errors.items()):
            places = np.arange(1, len(values) + 1)
            color = PALETTE[number % len(PALETTE)]
            (self.lines_[name],) = self.ax_.plot(places, values, color=color, label=name)
        self.ax_.set(xlabel="place in the sequence", ylabel="error rate", title=title or "")
        self.ax_.set_ylim(bottom=0)
        self.ax_.legend(frameon=False)
        tidy(self.ax_, grid="y")
        return self
