"""A score against the strength of the diversity prior, with error bars, and the log determinant it buys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, stacked_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.figure import Figure, SubFigure

Curves = dict[str, tuple[NDArray[np.float64], NDArray[np.float64] | None]]
MARKERS = "osD^vPX*"


class DiversitySweepDisplay:
    """Curves over a sweep of the prior strength alpha, which may include zero.

    Make it with :meth:`from_results`.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,)
        Strengths, at least 0; shown in increasing order on an axis that is linear near 0 and logarithmic beyond.
    scores : array-like or mapping of str to array-like
        For one curve or for several by name: values of shape (n_alphas,), or repeats of shape (n_alphas, n_repeats),
        of which mean and standard deviation are drawn.
    errors : array-like or mapping of str to array-like, optional
        Half lengths of the error bars, of shape (n_alphas,); with repeats they come from these.
    log_det : array-like or mapping, optional
        Log determinants in the same form, drawn in a panel below.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        The panel of the scores, and its figure.
    log_det_ax_ : matplotlib Axes or None
        The panel of the log determinants.
    lines_ : dict of str to ErrorbarContainer
        The curves of the scores.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import DiversitySweepDisplay
    >>> display = DiversitySweepDisplay.from_results([0, 1, 10], [0.70, 0.72, 0.71], [0.01, 0.01, 0.02])
    >>> display.ax_.get_xscale()
    'symlog'
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    log_det_ax_: Axes | None
    lines_: dict[str, ErrorbarContainer]

    def __init__(
        self,
        alphas: ArrayLike,
        scores: ArrayLike | Mapping[str, ArrayLike],
        errors: ArrayLike | Mapping[str, ArrayLike] | None = None,
        log_det: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        strengths = np.asarray(alphas, dtype=np.float64)
        if strengths.ndim != 1 or strengths.size == 0:
            raise ValueError(f"alphas must have one axis and at least one entry, got shape {strengths.shape}")
        if not np.isfinite(strengths).all() or (strengths < 0).any():
            raise ValueError("alphas must be finite and not negative, got other values")
        order = np.argsort(strengths, kind="stable")
        self.alphas = strengths[order]
        self.scores = _curves(scores, errors, order, "scores")
        self.log_det = None if log_det is None else _curves(log_det, None, order, "log_det")

    @classmethod
    def from_results(
        cls,
        alphas: ArrayLike,
        scores: ArrayLike | Mapping[str, ArrayLike],
        errors: ArrayLike | Mapping[str, ArrayLike] | None = None,
        log_det: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the results of a sweep; the arguments are those of the class and of :meth:`plot`."""
        return cls(alphas, scores, errors, log_det).plot(ax=ax, **options)

    def plot(
        self, *, ax: Axes | None = None, title: str | None = None, ylabel: str = "accuracy", legend: bool = True
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default. Its place is shared with the panel of the log determinants.
        title : str, optional
            Title; "Strength of the diversity prior" by default, an empty string for none.
        ylabel : str, default="accuracy"
            What the scores are.
        legend : bool, default=True
            Name the curves, if there are several.

        Returns
        -------
        DiversitySweepDisplay
            Itself.
        """
        heights = [1.0] if self.log_det is None else [1.6, 1.0]
        self.figure_, panels = stacked_axes(ax, heights, (5.6, 3.4 if self.log_det is None else 4.8))
        self.ax_, self.log_det_ax_ = panels[0], panels[1] if len(panels) > 1 else None
        self._scale_x(panels)
        self.lines_ = _draw(self.ax_, self.alphas, self.scores)
        self.ax_.set(ylabel=ylabel)
        if self.log_det_ax_ is not None and self.log_det is not None:
            _draw(self.log_det_ax_, self.alphas, self.log_det)
            self.log_det_ax_.set(ylabel="log det")
        panels[-1].set_xlabel(r"$\alpha$ (strength of the prior)")
        self.ax_.set_title("Strength of the diversity prior" if title is None else title)
        for panel in panels:
            tidy(panel, grid="both")
        if legend and len(self.scores) > 1:
            self.ax_.legend(frameon=False)
        return self

    def _scale_x(self, panels: list[Axes]) -> None:
        """Logarithmic above the smallest positive alpha, linear below, a tick at each alpha while there is room."""
        positive = self.alphas[self.alphas > 0]
        if positive.size == 0:
            return
        distinct = np.unique(self.alphas)
        for panel in panels:
            panel.set_xscale("symlog", linthresh=float(positive.min()), linscale=0.6)
            if distinct.size <= 8:
                panel.set_xticks(distinct, [f"{alpha:g}" for alpha in distinct])
                panel.set_xticks([], minor=True)
        low = -0.25 * positive.min() if self.alphas.min() == 0 else positive.min() / 1.5
        panels[0].set_xlim(float(low), float(positive.max()) * 1.6)


def _curves(
    values: ArrayLike | Mapping[str, ArrayLike],
    errors: ArrayLike | Mapping[str, ArrayLike] | None,
    order: NDArray[np.intp],
    name: str,
) -> Curves:
    """Means and half error bars of each curve in increasing alpha; an unnamed curve has the empty name."""
    named = dict(values) if isinstance(values, Mapping) else {"": values}
    bars = dict(errors) if isinstance(errors, Mapping) else {} if errors is None else {"": errors}
    if not named or set(bars) - set(named):
        raise ValueError(f"{name} must hold the curves that errors name, got {sorted(named)} and {sorted(bars)}")
    curves: Curves = {}
    for curve, given in named.items():
        array = np.asarray(given, dtype=np.float64)
        if array.ndim not in (1, 2) or array.shape[0] != order.size:
            raise ValueError(f"{name} must have one row for each of the {order.size} alphas, got shape {array.shape}")
        bar = None if curve not in bars else np.asarray(bars[curve], dtype=np.float64)
        if array.ndim == 2:
            if bar is not None:
                raise ValueError("errors must be None when scores hold repeats: they give the error bars")
            bar = array.std(axis=1, ddof=1) if array.shape[1] > 1 else None
            array = array.mean(axis=1)
        if bar is not None and bar.shape != array.shape:
            raise ValueError(f"errors must have shape {array.shape}, got {bar.shape}")
        curves[curve] = (array[order], None if bar is None else bar[order])
    return curves


def _draw(ax: Axes, alphas: NDArray[np.float64], curves: Curves) -> dict[str, ErrorbarContainer]:
    return {
        name: ax.errorbar(
            alphas,
            mean,
            yerr=bar,
            color=PALETTE[number % len(PALETTE)],
            marker=MARKERS[number % len(MARKERS)],
            markersize=5,
            linewidth=1.6,
            elinewidth=1.0,
            capsize=3,
            label=name,
        )
        for number, (name, (mean, bar)) in enumerate(curves.items())
    }
