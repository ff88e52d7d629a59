"""Which regimes each task uses: a heat map of tasks and regimes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.heatmap import compact
from pluri.plotting.style import HEATMAP, single_axes, text_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

#: More cells than this have no numbers.
MOST_ANNOTATED = 200


class RegimeUsageDisplay:
    """Share of the steps of each task that each regime has; a column with two dark cells is a regime that is shared.

    Parameters
    ----------
    usage : array-like of shape (n_tasks, n_regimes)
        Shares; each row sums to one.
    tasks : sequence of str, optional
        Names of the rows.
    least : float, default=0.01
        Regimes that have less than this share of every task are left out.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage
    texts_ : list of Text
    regimes : array of shape (n_shown,)
        Regimes that are shown.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import RegimeUsageDisplay
    >>> display = RegimeUsageDisplay([[0.5, 0.5, 0.0], [0.75, 0.0, 0.25]], ["walk", "run"]).plot()
    >>> [text.get_text() for text in display.texts_]
    ['.50', '.50', '.75', '.25']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: AxesImage
    texts_: list[Text]

    def __init__(self, usage: ArrayLike, tasks: Sequence[Any] | None = None, *, least: float = 0.01) -> None:
        self.usage = np.asarray(usage, dtype=np.float64)
        if self.usage.ndim != 2 or 0 in self.usage.shape or not np.isfinite(self.usage).all():
            raise ValueError(f"usage must be finite and of shape (n_tasks, n_regimes), got {self.usage.shape}")
        self.tasks = [str(name) for name in (range(len(self.usage)) if tasks is None else tasks)]
        if len(self.tasks) != len(self.usage):
            raise ValueError(f"tasks must have one name for each of {len(self.usage)} rows, got {len(self.tasks)}")
        self.regimes = np.flatnonzero(self.usage.max(axis=0) >= least)
        if not len(self.regimes):
            raise ValueError(f"least must be at most the largest share ({self.usage.max():.3g}), got {least}")

    @classmethod
    def from_estimator(cls, model: Any, *, least: float = 0.01, **options: Any) -> Self:
        """Draw what a fitted model of several tasks uses.

        Parameters
        ----------
        model : `pluri.dynamics.MultiTaskDynamics`
        least : float, default=0.01
            Regimes that have less than this share of every task are left out.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        RegimeUsageDisplay
        """
        if not hasattr(model, "regime_usage_"):
            raise ValueError(f"model must be fitted and have regime_usage_, got {type(model).__name__} without it")
        return cls(model.regime_usage_, model.tasks_.tolist(), least=least).plot(**options)

    def plot(self, *, ax: Axes | None = None, cmap: str | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        cmap : str, optional
        title : str, optional

        Returns
        -------
        RegimeUsageDisplay
            Itself.
        """
        from matplotlib import colormaps

        shown = self.usage[:, self.regimes]
        width, height = 1.8 + 0.42 * shown.shape[1], 1.4 + 0.4 * len(shown)
        size = (min(max(width, 4.0), 12.0), min(max(height, 2.0), 9.0))
        self.figure_, self.ax_ = single_axes(ax, size)
        colormap = colormaps[cmap or HEATMAP]
        top = max(float(shown.max()), 1e-12)
        self.image_ = self.ax_.imshow(shown, vmin=0.0, vmax=top, cmap=colormap, aspect="auto", interpolation="nearest")
        self.ax_.set_xticks(range(shown.shape[1]), [str(regime) for regime in self.regimes])
        self.ax_.set_yticks(range(len(shown)), self.tasks)
        self.ax_.tick_params(length=0)
        self.ax_.spines[:].set_visible(False)
        self.ax_.set(xlabel="regime", ylabel="task", title=title or "")
        self.texts_ = []
        for row, column in np.argwhere(shown > 0) if shown.size <= MOST_ANNOTATED else ():
            text = compact(float(shown[row, column]))
            if text:
                color = text_color(colormap(shown[row, column] / top))
                self.texts_.append(
                    self.ax_.text(column, row, text, ha="center", va="center", color=color, fontsize=8.0)
                )
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, label="share of the steps of the task")
        bar.outline.set_visible(False)
        return self
