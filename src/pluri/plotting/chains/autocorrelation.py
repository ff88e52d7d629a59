"""How long a chain remembers: the autocorrelation of its draws."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.diagnostics import autocorrelation
from pluri.plotting.chains.chain_panels import ChainDisplay, grid_of_axes
from pluri.plotting.style import state_colors, tidy


class AutocorrelationDisplay(ChainDisplay):
    """Autocorrelation against the lag, a line for each chain; the band is where independent draws would lie.

    Make it with :meth:`from_trace`.

    Parameters
    ----------
    numbers : mapping of str to array-like of shape (n_chains, n_draws)

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    curves_ : dict of str to ndarray of shape (n_chains, max_lag + 1)

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import AutocorrelationDisplay
    >>> draws = np.random.default_rng(0).normal(size=(2, 500))
    >>> AutocorrelationDisplay.from_trace({"mu": draws}, max_lag=10).curves_["mu"].shape
    (2, 11)
    >>> matplotlib.pyplot.close("all")
    """

    curves_: dict[str, NDArray[np.float64]]

    def plot(self, *, axes: Any = None, max_lag: int = 50) -> Self:
        """Draw.

        Parameters
        ----------
        axes : array of matplotlib Axes, optional
            One for each number; a new figure by default.
        max_lag : int, default=50

        Returns
        -------
        AutocorrelationDisplay
            Itself.
        """
        self.figure_, grid = grid_of_axes(len(self.numbers), 1, axes, 1.6, 6.0, sharex=True)
        self.axes_ = grid[:, 0]
        self.curves_ = {}
        for ax, (label, values) in zip(self.axes_, self.numbers.items()):
            curves = autocorrelation(values, max_lag=min(max_lag, values.shape[1] - 1))
            self.curves_[label] = curves
            # 95 % of the autocorrelations of independent draws are within two standard errors of zero.
            band = 1.96 / np.sqrt(values.shape[1])
            ax.axhspan(-band, band, color="0.92", linewidth=0)
            ax.axhline(0.0, color="0.5", linewidth=0.8)
            for curve, color in zip(curves, state_colors(len(curves))):
                ax.plot(curve, color=color, linewidth=1.4)
            ax.set_ylim(min(-0.25, float(curves.min()) - 0.05), 1.05)
            ax.set_title(label)
            tidy(ax)
        self.axes_[-1].set_xlabel("lag")
        return self
