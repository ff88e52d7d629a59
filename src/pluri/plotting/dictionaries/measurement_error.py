"""How good a recovery is, by the number of measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import PALETTE, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


class MeasurementErrorDisplay:
    """Error against the number of measurements, a curve for each method, with a band where it was repeated.

    Parameters
    ----------
    n_measurements : array-like of int of shape (n_points,)
    errors : dict of str to array-like of shape (n_points,) or (n_points, n_repeats)
        Errors of each method; the curve is the median of the repeats, and the band reaches from the smallest to the
        largest.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : list of Line2D
        The curves, in the order of `errors`.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import MeasurementErrorDisplay
    >>> display = MeasurementErrorDisplay([10, 20, 30], {"one": [0.3, 0.2, 0.1], "other": [0.4, 0.2, 0.1]}).plot()
    >>> display.ax_.get_xlabel()
    'measurements of a row'
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: list[Line2D]

    def __init__(self, n_measurements: ArrayLike, errors: Mapping[str, ArrayLike]) -> None:
        numbers = np.asarray(n_measurements)
        if numbers.ndim != 1 or not numbers.size:
            raise ValueError(f"n_measurements must be a list of numbers, got shape {numbers.shape}")
        order = np.argsort(numbers, kind="stable")
        self.n_measurements = numbers[order]
        self.errors = {}
        for name, given in errors.items():
            values = np.asarray(given, dtype=np.float64)
            values = values[:, None] if values.ndim == 1 else values
            if values.ndim != 2 or len(values) != len(numbers) or not values.shape[1]:
                raise ValueError(
                    f"errors[{name!r}] must have an entry for each of {len(numbers)} numbers of measurements, "
                    f"got shape {np.shape(given)}"
                )
            self.errors[str(name)] = values[order]
        if not self.errors:
            raise ValueError("errors must hold at least one method, got none")

    def plot(self, *, ax: Axes | None = None, title: str | None = None, log: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        log : bool, default=True
            Whether errors are on a logarithmic scale.

        Returns
        -------
        MeasurementErrorDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.8, 3.8))
        self.lines_ = []
        for index, (name, values) in enumerate(self.errors.items()):
            color = PALETTE[index % len(PALETTE)]
            (line,) = self.ax_.plot(
                self.n_measurements, np.median(values, axis=1), color=color, marker="o", markersize=4, label=name
            )
            self.lines_.append(line)
            if values.shape[1] > 1:
                low, high = values.min(axis=1), values.max(axis=1)
                self.ax_.fill_between(self.n_measurements, low, high, color=color, alpha=0.15, linewidth=0)
        if log:
            self.ax_.set_yscale("log")
        self.ax_.set_xlabel("measurements of a row")
        self.ax_.set_ylabel("relative error")
        if len(self.errors) > 1:
            self.ax_.legend(frameon=False, fontsize="small")
        tidy(self.ax_)
        if title:
            self.ax_.set_title(title)
        return self
