"""How the weights of annealed runs grew from the beginning to the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, TRUTH_COLOR, stacked_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class AnnealingPathDisplay:
    """Log weights against the inverse temperature (median, middle half, 90 %), and below them the effective share.

    Make it with :meth:`from_samples`.

    Parameters
    ----------
    betas : array-like of shape (n,)
        Inverse temperatures, in the order visited.
    log_weights : array-like of shape (n_runs, n)
        Log weight of each run at each temperature.
    log_z : array-like of shape (n,), optional
        Log ratio of constants at each temperature.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        Weights above, effective share of the runs below.
    figure_ : matplotlib Figure
    share_ : ndarray of shape (n,)
        Effective sample size as a share of the runs.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import AnnealingPathDisplay
    >>> paths = np.cumsum(np.random.default_rng(0).normal(size=(50, 11)), axis=1)
    >>> AnnealingPathDisplay(np.linspace(0, 1, 11), paths).plot().share_.shape
    (11,)
    >>> matplotlib.pyplot.close("all")
    """

    axes_: list[Axes]
    figure_: Figure | SubFigure
    share_: NDArray[np.float64]

    def __init__(self, betas: ArrayLike, log_weights: ArrayLike, *, log_z: ArrayLike | None = None) -> None:
        self.betas = np.asarray(betas, dtype=np.float64)
        self.log_weights = np.asarray(log_weights, dtype=np.float64)
        self.log_z = None if log_z is None else np.asarray(log_z, dtype=np.float64)
        if self.log_weights.ndim != 2 or self.log_weights.shape[1:] != self.betas.shape:
            raise ValueError(
                f"log_weights must have shape (n_runs, {self.betas.size}), one column for each temperature, "
                f"got {self.log_weights.shape}"
            )

    @classmethod
    def from_samples(cls, samples: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the path of annealed importance sampling.

        Parameters
        ----------
        samples : pluri.inference.ais.AnnealedSamples
            With its paths kept.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        AnnealingPathDisplay
        """
        if getattr(samples, "log_weight_paths", None) is None:
            raise ValueError("samples must hold log_weight_paths: run with the paths kept")
        display = cls(samples.betas, samples.log_weight_paths, log_z=samples.log_z_by_temperature)
        return display.plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, log_z: float | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        log_z : float, optional
            The true log ratio of constants at the end.
        title : str, optional
            Title; "Annealing path" by default.

        Returns
        -------
        AnnealingPathDisplay
            Itself.
        """
        self.figure_, self.axes_ = stacked_axes(ax, (3.0, 1.2), (6.0, 4.6))
        upper, lower = self.axes_
        # Runs of weight zero are kept out of the band, which could not be drawn; they count in the share below.
        shown = np.where(np.isfinite(self.log_weights), self.log_weights, np.nan)
        levels = np.nanquantile(shown, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
        upper.fill_between(self.betas, levels[0], levels[4], color=PALETTE[0], alpha=0.15, linewidth=0, label="90 %")
        upper.fill_between(self.betas, levels[1], levels[3], color=PALETTE[0], alpha=0.3, linewidth=0, label="50 %")
        upper.plot(self.betas, levels[2], color=PALETTE[0], linewidth=1.8, label="median weight")
        if self.log_z is not None:
            upper.plot(self.betas, self.log_z, color=PALETTE[5], linewidth=1.4, label="log of the mean weight")
        if log_z is not None:
            upper.plot(self.betas[-1], log_z, "*", color=TRUTH_COLOR, markersize=11, clip_on=False, label="truth")
        upper.set(ylabel="log weight", title="Annealing path" if title is None else title)
        upper.legend(frameon=False, loc="best")
        peak = self.log_weights.max(axis=0, keepdims=True)
        weights = np.exp(self.log_weights - np.where(np.isfinite(peak), peak, 0.0))
        self.share_ = weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0) / len(weights)
        lower.plot(self.betas, self.share_, color=PALETTE[2], linewidth=1.8)
        lower.set(xlabel="inverse temperature", ylabel="effective share", ylim=(0, 1.02))
        for panel in self.axes_:
            tidy(panel, grid="both")
        return self
