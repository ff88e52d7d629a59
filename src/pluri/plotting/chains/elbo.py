"""The evidence lower bound of a variational fit, with its noise smoothed if it was estimated by sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, QUIET_COLOR, TRUTH_COLOR, single_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class ElboDisplay:
    """Evidence lower bound per iteration; where it is noisy, a running mean stands out.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    elbo : array-like of shape (n_iterations,)

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    smooth_ : ndarray
        The running mean that was drawn; the bound itself if no window was asked for.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import ElboDisplay
    >>> ElboDisplay([-9.0, -5.0, -4.0]).plot(evidence=-3.5).smooth_
    array([-9., -5., -4.])
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    smooth_: NDArray[np.float64]

    def __init__(self, elbo: ArrayLike) -> None:
        self.elbo = np.asarray(elbo, dtype=np.float64)
        if self.elbo.ndim != 1 or self.elbo.size == 0:
            raise ValueError(f"elbo must have one axis and an entry, got shape {self.elbo.shape}")

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the bound of a fitted model (``elbo_``) or of a variational result (``trace``, ``elbo_trace``).

        Parameters
        ----------
        model : object
            Anything with one of these, a number for each iteration; the ``free_energy`` of a flow is turned around.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        ElboDisplay
        """
        for name in ("elbo_", "elbo_trace", "trace", "elbo", "free_energy"):
            values = np.asarray(getattr(model, name, ()), dtype=np.float64)
            if values.ndim == 1 and values.size:
                return cls(-values if name == "free_energy" else values).plot(ax=ax, **options)
        raise ValueError(f"model must be fitted and have elbo_, got {type(model).__name__} without it")

    def plot(
        self,
        *,
        ax: Axes | None = None,
        window: int = 1,
        evidence: float | None = None,
        skip: int = 0,
        title: str | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        window : int, default=1
            Iterations of the running mean.
        evidence : float, optional
            The log evidence, if it is known: the bound stays below it.
        skip : int, default=0
            First iterations left out, whose low values would hide the rest.
        title : str, optional
            Title; "Evidence lower bound" by default.

        Returns
        -------
        ElboDisplay
            Itself.
        """
        if not 1 <= window <= self.elbo.size:
            raise ValueError(f"window must be from 1 to the number of iterations ({self.elbo.size}), got {window}")
        if not 0 <= skip < self.elbo.size:
            raise ValueError(f"skip must be below the number of iterations ({self.elbo.size}), got {skip}")
        self.figure_, self.ax_ = single_axes(ax, (5.6, 3.6))
        self.smooth_ = np.convolve(self.elbo, np.full(window, 1.0 / window), mode="valid")
        numbers = np.arange(1, self.elbo.size + 1)
        if window > 1:
            self.ax_.plot(numbers[skip:], self.elbo[skip:], color=QUIET_COLOR, linewidth=0.6)
        first = max(skip - window + 1, 0)
        self.ax_.plot(numbers[window - 1 :][first:], self.smooth_[first:], color=PALETTE[0], linewidth=1.8)
        if evidence is not None:
            self.ax_.axhline(evidence, color=TRUTH_COLOR, linestyle="--", linewidth=1.2, label="log evidence")
            self.ax_.legend(frameon=False, loc="lower right")
        self.ax_.set(xlabel="iteration", ylabel="ELBO", title="Evidence lower bound" if title is None else title)
        tidy(self.ax_, grid="both")
        return self
