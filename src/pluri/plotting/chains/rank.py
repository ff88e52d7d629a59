"""Ranks of the draws of each chain among all draws: flat where the chains sample the same distribution."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pluri.plotting.chains.chain_panels import ChainDisplay, grid_of_axes
from pluri.plotting.style import TRUTH_COLOR, state_colors, tidy


class RankDisplay(ChainDisplay):
    """Histogram of ranks, a line for each chain; the dashed line is where all should lie.

    Make it with :meth:`from_trace`.

    Parameters
    ----------
    numbers : mapping of str to array-like of shape (n_chains, n_draws)

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
    figure_ : matplotlib Figure
    counts_ : dict of str to ndarray of shape (n_chains, n_bins)
        Heights that were drawn.

    References
    ----------
    .. [1] Vehtari, A. et al. (2021). Rank-normalization, folding, and localization. Bayesian Analysis 16, 667-718.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import RankDisplay
    >>> display = RankDisplay.from_trace({"mu": np.random.default_rng(0).normal(size=(4, 100))})
    >>> display.counts_["mu"].sum(axis=1)
    array([100., 100., 100., 100.])
    >>> matplotlib.pyplot.close("all")
    """

    counts_: dict[str, NDArray[np.float64]]

    def plot(self, *, axes: Any = None, n_bins: int = 20) -> Self:
        """Draw.

        Parameters
        ----------
        axes : array of matplotlib Axes, optional
            One for each number; a new figure by default.
        n_bins : int, default=20

        Returns
        -------
        RankDisplay
            Itself.
        """
        self.figure_, grid = grid_of_axes(len(self.numbers), 1, axes, 1.6, 6.0)
        self.axes_ = grid[:, 0]
        self.counts_ = {}
        for ax, (label, values) in zip(self.axes_, self.numbers.items()):
            ranks = np.empty(values.size)
            ranks[np.argsort(values, axis=None, kind="stable")] = np.arange(values.size)
            edges = np.linspace(0, values.size, n_bins + 1)
            counts = np.array([np.histogram(row, bins=edges)[0] for row in ranks.reshape(values.shape)], dtype=float)
            self.counts_[label] = counts
            ax.axhline(values.shape[1] / n_bins, color=TRUTH_COLOR, linestyle="--", linewidth=1.0)
            for height, color in zip(counts, state_colors(len(counts))):
                ax.stairs(height, edges, color=color, linewidth=1.4, baseline=None)
            ax.set_ylim(bottom=0)
            ax.set_title(label)
            tidy(ax)
        self.axes_[-1].set_xlabel("rank among all draws")
        return self
