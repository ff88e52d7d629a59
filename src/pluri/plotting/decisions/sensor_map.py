"""Places of sensors in the order of choice, over what is still uncertain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import HEATMAP, single_axes, text_color, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure, SubFigure


class SensorMapDisplay:
    """Places shaded by the variance that is left, with the sensors numbered in the order of choice.

    Parameters
    ----------
    places : array-like of shape (n_places, 2) or (n_places, 1)
        One column is drawn as a line of places, with the variance above.
    selected : array-like of int
        Places of the sensors, in order.
    posterior_variance : array-like of shape (n_places,)

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    shades_ : PathCollection
        The places.
    numbers_ : list of matplotlib Text

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import SensorMapDisplay
    >>> places = np.stack(np.meshgrid(range(4), range(4)), axis=-1).reshape(-1, 2)
    >>> display = SensorMapDisplay(places, [5, 0, 10], np.linspace(0, 1, 16)).plot()
    >>> [text.get_text() for text in display.numbers_]
    ['1', '2', '3']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    shades_: PathCollection
    numbers_: list[Any]

    def __init__(self, places: ArrayLike, selected: ArrayLike, posterior_variance: ArrayLike) -> None:
        self.places = np.asarray(places, dtype=np.float64)
        self.selected: NDArray[np.int64] = np.asarray(selected, dtype=np.int64)
        self.posterior_variance = np.asarray(posterior_variance, dtype=np.float64)
        if self.places.ndim != 2 or self.places.shape[1] not in (1, 2) or not len(self.places):
            raise ValueError(f"places must have one or two columns, got shape {self.places.shape}")
        if self.posterior_variance.shape != (len(self.places),):
            raise ValueError(
                f"posterior_variance must be a number for each of {len(self.places)} places, got shape "
                f"{self.posterior_variance.shape}"
            )
        if self.selected.ndim != 1 or ((self.selected < 0) | (self.selected >= len(self.places))).any():
            raise ValueError(f"selected must be places from 0 to {len(self.places) - 1}, got {self.selected}")

    @classmethod
    def from_estimator(cls, model: Any, X: ArrayLike, **options: Any) -> Self:
        """Draw the sensors of a fitted `pluri.decisions.SensorPlacement`; other arguments are passed to :meth:`plot`.

        Parameters
        ----------
        model : SensorPlacement
        X : array-like of shape (n_places, 2) or (n_places, 1)
            Where the places lie.
        **options
            For :meth:`plot`.
        """
        if not hasattr(model, "posterior_variance_"):
            raise ValueError(f"model must be a fitted SensorPlacement, got {type(model).__name__}")
        return cls(X, model.selected_, model.posterior_variance_).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None, cmap: str = HEATMAP) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        cmap : str
            Colours of the variance.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.6, 4.6))
        flat = self.places.shape[1] == 1
        x = self.places[:, 0]
        y = self.posterior_variance if flat else self.places[:, 1]
        # Fewer places have larger marks, so that they fill the room.
        size = float(np.clip(22_000 / len(self.places), 12, 240))
        self.shades_ = self.ax_.scatter(x, y, c=self.posterior_variance, cmap=cmap, s=size, marker="s", linewidths=0)
        self.shades_.set_clim(0.0, max(float(self.posterior_variance.max()), 1e-12))
        chosen = self.selected
        self.ax_.scatter(x[chosen], y[chosen], s=190, color="white", edgecolors="black", linewidths=1.2, zorder=3)
        self.numbers_ = [
            self.ax_.text(
                x[place], y[place], str(number), ha="center", va="center", fontsize=8, color=text_color("#FFFFFF"),
                zorder=4,
            )
            for number, place in enumerate(chosen, start=1)
        ]  # fmt: skip
        self.ax_.figure.colorbar(self.shades_, ax=self.ax_, label="variance given the sensors")
        self.ax_.set(title=title or "", xlabel="x", ylabel="variance" if flat else "y")
        if not flat:
            self.ax_.set_aspect("equal")
        tidy(self.ax_)
        return self
