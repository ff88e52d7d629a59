"""Who explains what: the probability of each component for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import HEATMAP, checked_names, single_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage


class ResponsibilityDisplay:
    """A row of pixels for each observation, sorted by its component and then by how sure the model is.

    Parameters
    ----------
    probabilities : array-like of shape (n_samples, n_components)
        Rows that sum to one.
    names : array-like of shape (n_components,), optional
        Names of the components; their numbers by default.

    Attributes
    ----------
    order_ : ndarray of shape (n_samples,)
        Rows from top to bottom.
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import ResponsibilityDisplay
    >>> display = ResponsibilityDisplay([[0.2, 0.8], [0.9, 0.1], [1.0, 0.0]]).plot()
    >>> display.order_
    array([2, 1, 0])
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: AxesImage

    def __init__(self, probabilities: ArrayLike, *, names: ArrayLike | None = None) -> None:
        values = np.asarray(probabilities, dtype=np.float64)
        if values.ndim != 2 or values.size == 0 or not np.allclose(values.sum(axis=1), 1.0, atol=1e-6):
            raise ValueError(f"probabilities must be rows that sum to one, got shape {values.shape}")
        self.probabilities = values
        self.names = checked_names(names, values.shape[1])

    @classmethod
    def from_estimator(cls, model: Any, X: ArrayLike, *, names: ArrayLike | None = None, **options: Any) -> Self:
        """Draw ``model.predict_proba(X)``; other arguments are passed to :meth:`plot`."""
        if not hasattr(model, "predict_proba"):
            raise ValueError(f"model must have predict_proba, got {type(model).__name__} without it")
        return cls(model.predict_proba(X), names=names).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None, cmap: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            By default the share of rows of which the model is not sure (no component has 0.95).
        cmap : str, optional
            Name of a Matplotlib colour map; cividis by default.

        Returns
        -------
        ResponsibilityDisplay
            Itself.
        """
        n_samples, k = self.probabilities.shape
        best, sure = self.probabilities.argmax(axis=1), self.probabilities.max(axis=1)
        self.order_ = np.lexsort((-sure, best))
        self.figure_, self.ax_ = single_axes(ax, (min(3.0 + 0.35 * k, 9.0), 4.6))
        self.image_ = self.ax_.imshow(
            self.probabilities[self.order_],
            vmin=0.0,
            vmax=1.0,
            cmap=cmap or HEATMAP,
            aspect="auto",
            interpolation="nearest",
        )
        ends = np.cumsum(np.bincount(best, minlength=k))
        for end in ends[:-1]:
            if 0 < end < n_samples:
                self.ax_.axhline(end - 0.5, color="white", linewidth=0.8)
        every = max(1, k // 20)
        self.ax_.set_xticks(range(0, k, every), self.names[::every])
        self.ax_.set(xlabel="component", ylabel="rows, by component and certainty")
        bar = self.figure_.colorbar(self.image_, ax=self.ax_, label="probability")
        bar.outline.set_visible(False)
        unsure = float((sure < 0.95).mean())
        self.ax_.set_title(f"{unsure:.0%} of the rows uncertain" if title is None else title, fontsize="medium")
        return self
