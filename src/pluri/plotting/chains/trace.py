"""Markov chains as they ran: the distribution of each number, and its path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.chains.chain_panels import ChainDisplay, chosen_numbers, grid_of_axes, name_row
from pluri.plotting.style import TRUTH_COLOR, state_colors, tidy


class TraceDisplay(ChainDisplay):
    """For each number a histogram of every chain (left) and its path (right); divergences as ticks below.

    Make it with :meth:`from_trace`.

    Parameters
    ----------
    numbers : mapping of str to array-like of shape (n_chains, n_draws)
    divergent : array-like of shape (n_chains, n_draws), optional
        Draws whose trajectory diverged.

    Attributes
    ----------
    axes_ : ndarray of shape (n_numbers, 2)
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import TraceDisplay
    >>> draws = np.random.default_rng(0).normal(size=(4, 100, 2))
    >>> TraceDisplay.from_trace({"mu": draws}).axes_.shape
    (2, 2)
    >>> matplotlib.pyplot.close("all")
    """

    def __init__(self, numbers: Mapping[str, ArrayLike], *, divergent: ArrayLike | None = None) -> None:
        super().__init__(numbers)
        self.divergent = None if divergent is None else np.asarray(divergent) > 0

    @classmethod
    def from_trace(
        cls, trace: Any, names: Sequence[str] | str | None = None, *, axes: Any = None, **options: Any
    ) -> Self:
        """Draw a trace and where it diverged; the arguments are those of :meth:`RankDisplay.from_trace`."""
        divergent = getattr(trace, "stats", {}).get("divergent")
        return cls(chosen_numbers(trace, names), divergent=divergent).plot(axes=axes, **options)

    def plot(self, *, axes: Any = None, truth: Mapping[str, float] | None = None, bins: int = 40) -> Self:
        """Draw.

        Parameters
        ----------
        axes : array of matplotlib Axes, optional
            A row of two for each number; a new figure by default.
        truth : mapping of str to float, optional
            Known values, drawn as lines.
        bins : int, default=40
            Bins of a histogram.

        Returns
        -------
        TraceDisplay
            Itself.
        """
        self.figure_, self.axes_ = grid_of_axes(len(self.numbers), 2, axes, 1.5, 9.0)
        for (label, values), (left, right) in zip(self.numbers.items(), self.axes_):
            finite = values[np.isfinite(values)]
            edges = np.histogram_bin_edges(finite, bins=bins) if finite.size else np.array([0.0, 1.0])
            for chain, color in zip(values, state_colors(len(values))):
                height, _ = np.histogram(chain[np.isfinite(chain)], bins=edges, density=len(chain) > 1)
                left.stairs(height, edges, color=color, linewidth=1.2, baseline=None)
                right.plot(np.arange(1, len(chain) + 1), chain, color=color, linewidth=0.5, alpha=0.8)
            if truth is not None and label in truth:
                left.axvline(truth[label], color=TRUTH_COLOR, linestyle="--", linewidth=1.2)
                right.axhline(truth[label], color=TRUTH_COLOR, linestyle="--", linewidth=1.2)
            if self.divergent is not None and self.divergent.any():
                where = np.flatnonzero(self.divergent.any(axis=0)) + 1
                right.plot(where, np.full(len(where), 0.02), "|", color="black", transform=right.get_xaxis_transform())
            left.set_yticks([])
            name_row(left, label)
            tidy(left)
            tidy(right)
        self.axes_[0, 0].set_title("distribution, a line for each chain")
        self.axes_[0, 1].set_title("path")
        self.axes_[-1, 1].set_xlabel("draw")
        return self
