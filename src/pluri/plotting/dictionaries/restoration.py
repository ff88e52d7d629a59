"""A picture before and after, and where it is wrong or unsure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import HEATMAP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class RestorationDisplay:
    """A picture as it came, as it was restored, and a map of the errors, or of the standard deviations.

    Parameters
    ----------
    before, after : array-like of shape (height, width) or (height, width, 3)
        Numbers from 0 to 1; what is NaN before is drawn black.
    truth : array-like of the same shape, optional
        The picture without noise and holes: the map is of absolute errors, and titles tell the peak signal-to-noise
        ratio.
    std : array-like of the same shape, optional
        Standard deviations, drawn if there is no truth.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        Two, or three with a map.
    figure_ : matplotlib Figure
    error_ : array of shape (height, width) or None
        What the map shows, averaged over colours.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import RestorationDisplay
    >>> display = RestorationDisplay(np.zeros((8, 8)), np.full((8, 8), 0.9), truth=np.ones((8, 8))).plot()
    >>> display.axes_[1].get_title()
    'after, 20.0 dB'
    >>> matplotlib.pyplot.close("all")
    """

    axes_: list[Axes]
    figure_: Figure | SubFigure

    def __init__(
        self, before: ArrayLike, after: ArrayLike, *, truth: ArrayLike | None = None, std: ArrayLike | None = None
    ) -> None:
        self.before, self.after = (np.asarray(each, dtype=np.float64) for each in (before, after))
        self.truth, self.std = (None if each is None else np.asarray(each, dtype=np.float64) for each in (truth, std))
        if self.after.ndim not in (2, 3) or (self.after.ndim == 3 and self.after.shape[2] != 3):
            raise ValueError(f"after must have shape (height, width) or (height, width, 3), got {self.after.shape}")
        for name in ("before", "truth", "std"):
            given: Any = getattr(self, name)
            if given is not None and given.shape != self.after.shape:
                raise ValueError(f"{name} must have the shape of after, {self.after.shape}, got {given.shape}")
        shown = np.abs(self.after - self.truth) if self.truth is not None else self.std
        self.error_ = shown.mean(axis=2) if shown is not None and shown.ndim == 3 else shown

    def plot(self, *, axes: Any = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        axes : two or three matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Of the figure.

        Returns
        -------
        RestorationDisplay
            Itself.
        """
        n_panels = 2 if self.error_ is None else 3
        if axes is None:
            import matplotlib.pyplot as plt

            height, width = self.after.shape[:2]
            size = (3.4 * n_panels, 3.4 * min(height / width, 2) + 0.5)
            figure, grid = plt.subplots(1, n_panels, figsize=size, layout="constrained")
            axes = list(grid)
            self.figure_ = figure
            if title is not None:
                figure.suptitle(title)
        else:
            axes = list(np.ravel(axes))
            if len(axes) != n_panels:
                raise ValueError(f"axes must be {n_panels} axes, got {len(axes)}")
            self.figure_ = axes[0].figure
        self.axes_ = axes
        for ax, picture, name in zip(axes, (self.before, self.after), ("before", "after")):
            ax.imshow(np.clip(np.nan_to_num(picture), 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            ax.set_title(name + self._quality(picture))
        if self.error_ is not None:
            most = max(float(np.quantile(self.error_, 0.99)), 1e-12)
            image = axes[2].imshow(self.error_, cmap=HEATMAP, vmin=0, vmax=most, interpolation="nearest")
            axes[2].set_title("standard deviation" if self.truth is None else "absolute error")
            axes[2].figure.colorbar(image, cax=axes[2].inset_axes((1.03, 0, 0.045, 1)))
        for ax in axes:
            ax.set_axis_off()
        return self

    def _quality(self, picture: Any) -> str:
        if self.truth is None or np.isnan(picture).any():
            return ""
        error = float(np.mean((picture - self.truth) ** 2))
        return f", {-10 * np.log10(error):.1f} dB" if error > 0 else ""
