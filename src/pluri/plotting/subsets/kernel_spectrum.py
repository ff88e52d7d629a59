"""The eigenvalues of a kernel over items, and how many items they let a subset have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import HEATMAP, PALETTE, TRUTH_COLOR, tidy
from pluri.plotting.subsets.side_panels import side_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Smaller than this share of the largest, an eigenvalue is not drawn: it would only stretch the axis.
LEAST_SHARE = 1e-5


class KernelSpectrumDisplay:
    r"""Eigenvalues :math:`\lambda` of L, largest first, and the distribution of the number of items drawn.

    Each direction is used with probability :math:`\lambda / (1 + \lambda)`, which its colour shows; the line at 1 is
    where that is a half. Directions used for certain (an infinite eigenvalue) are triangles at the top. Where the
    number of items is fixed the probabilities are those of that distribution, and there is no line.

    Make it with :meth:`from_process`.

    Parameters
    ----------
    odds : array-like of shape (rank,)
        Eigenvalues of the kernel L, possibly infinite.
    size_pmf : array-like, optional
        Probability of 0, 1, 2, ... items; without it there is no panel on the right.
    sizes : array-like of int, optional
        Numbers of items in subsets that were drawn, shown as frequencies with standard errors.
    size : int, optional
        Number of items of every subset, where it is fixed: the scale of the eigenvalues then means nothing.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure
    expected_size_, size_deviation_ : float
        Mean and standard deviation of the number of items; NaN without a size distribution.
    use_ : ndarray of shape (rank,)
        Probability that each direction is used.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import KernelSpectrumDisplay
    >>> display = KernelSpectrumDisplay([3.0, 1.0], [0.125, 0.5, 0.375]).plot()
    >>> display.expected_size_
    1.25
    >>> matplotlib.pyplot.close("all")
    """

    axes_: list[Axes]
    figure_: Figure | SubFigure

    def __init__(
        self,
        odds: ArrayLike,
        size_pmf: ArrayLike | None = None,
        *,
        sizes: ArrayLike | None = None,
        size: int | None = None,
    ) -> None:
        self.odds: NDArray[np.float64] = np.sort(np.asarray(odds, dtype=np.float64))[::-1]
        if self.odds.ndim != 1 or self.odds.size == 0 or not (self.odds >= 0).all():
            raise ValueError(f"odds must be non-negative eigenvalues, at least one, got {np.asarray(odds)!r}")
        self.size_pmf = None if size_pmf is None else np.asarray(size_pmf, dtype=np.float64)
        if self.size_pmf is not None and (self.size_pmf.ndim != 1 or abs(self.size_pmf.sum() - 1) > 1e-6):
            raise ValueError("size_pmf must be probabilities of 0, 1, 2, ... items that sum to 1")
        self.sizes = None if sizes is None else np.asarray(sizes, dtype=np.int64).ravel()
        if self.sizes is not None and (self.sizes.size == 0 or self.size_pmf is None):
            raise ValueError("sizes must hold a number and come with size_pmf")
        if size is not None and (size < 0 or size > self.odds.size or not np.isfinite(self.odds).all()):
            raise ValueError(f"size must be from 0 to {self.odds.size}, with finite odds, got {size}")
        self.size = size
        finite = np.isfinite(self.odds)
        self.use_ = np.where(finite, self.odds / (1.0 + np.where(finite, self.odds, 0.0)), 1.0)
        if size is not None:
            self.use_ = _use_at_size(self.odds, size)
        self.expected_size_ = self.size_deviation_ = float("nan")
        if self.size_pmf is not None:
            numbers = np.arange(self.size_pmf.size)
            self.expected_size_ = float(numbers @ self.size_pmf)
            self.size_deviation_ = float(np.sqrt((numbers - self.expected_size_) ** 2 @ self.size_pmf))

    @classmethod
    def from_process(cls, process: Any, *, subsets: Any = None, ax: Axes | None = None, **options: Any) -> Self:
        """Draw the spectrum of a process.

        Parameters
        ----------
        process : pluri.processes.dpp.DPP or KDPP
            Anything with ``spectrum.odds`` and, for the panel on the right, ``size_pmf()``.
        subsets : list of array-like, optional
            Subsets that were drawn; their sizes are shown beside the exact distribution.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        KernelSpectrumDisplay
        """
        pmf = process.size_pmf() if hasattr(process, "size_pmf") else None
        sizes = None if subsets is None or pmf is None else [len(subset) for subset in subsets]
        size = getattr(process, "size", None)
        if size is not None:  # of the free items, which the spectrum is about
            size -= len(getattr(process, "fixed_items", ()))
        return cls(process.spectrum.odds, pmf, sizes=sizes, size=size).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title of the left panel; "Eigenvalues" by default.

        Returns
        -------
        KernelSpectrumDisplay
            Itself.
        """
        widths = [1.0] if self.size_pmf is None else [1.15, 1.0]
        self.figure_, self.axes_ = side_axes(ax, widths, (4.6 * len(widths), 3.6))
        self._draw_spectrum(self.axes_[0], "Eigenvalues" if title is None else title)
        if self.size_pmf is not None:
            self._draw_sizes(self.axes_[1], self.size_pmf)
        return self

    def _draw_spectrum(self, panel: Axes, title: str) -> None:
        from matplotlib.ticker import MaxNLocator

        finite = np.isfinite(self.odds)
        largest = float(self.odds[finite].max(initial=0.0)) or 1.0
        shown = finite & (self.odds > LEAST_SHARE * largest)
        numbers = np.arange(1, self.odds.size + 1)
        hidden = int((finite & ~shown).sum())
        area = float(np.clip(2400 / (self.odds.size - hidden), 12, 30))
        dots = panel.scatter(
            numbers[shown],
            self.odds[shown],
            c=self.use_[shown],
            s=area,
            cmap=HEATMAP,
            vmin=0,
            vmax=1,
            linewidths=0,
            zorder=3,
        )
        panel.set_yscale("log")
        bottom = float(self.odds[shown].min(initial=largest))
        if self.size is None:
            panel.axhline(1.0, color=TRUTH_COLOR, linestyle="--", linewidth=1.0, zorder=1)
            bottom, largest = min(bottom, 1.0), max(largest, 1.0)
        top = largest * (30 if not finite.all() else 2)
        panel.set(ylim=(bottom / 2, top), title=title, ylabel="eigenvalue of L")
        panel.set_xlabel("number" + (f" ({hidden} smaller ones are not drawn)" if hidden else ""))
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.margins(x=0.03)
        if not finite.all():
            places = np.full(int((~finite).sum()), top / 3)
            panel.scatter(numbers[~finite], places, marker="^", s=area, color=PALETTE[5], label="certain", zorder=3)
            panel.legend(frameon=False, loc="best")
        bar = panel.figure.colorbar(dots, ax=panel, label="probability of use", pad=0.02, aspect=24)
        bar.outline.set_visible(False)
        tidy(panel, grid="y")

    def _draw_sizes(self, panel: Axes, pmf: NDArray[np.float64]) -> None:
        from matplotlib.ticker import MaxNLocator

        numbers = np.arange(pmf.size)
        panel.bar(numbers, pmf, width=0.8, color=PALETTE[4], label="exact")
        low, high = self._range(pmf)
        if self.sizes is not None:
            frequency = np.bincount(self.sizes, minlength=pmf.size) / self.sizes.size
            error = np.sqrt(frequency * (1 - frequency) / self.sizes.size)
            seen = np.flatnonzero(frequency)
            low, high = min(low, int(seen[0])), max(high, int(seen[-1]))
            panel.errorbar(
                seen, frequency[seen], error[seen], fmt="o", color=PALETTE[5], markersize=4, linewidth=1.2,
                label=f"{self.sizes.size} draws",
            )  # fmt: skip
        panel.axvline(self.expected_size_, color=TRUTH_COLOR, linestyle="--", linewidth=1.0)
        panel.set(
            title=f"Size {self.expected_size_:.1f} ± {self.size_deviation_:.1f}", xlabel="items drawn",
            ylabel="probability", xlim=(low - 0.7, high + 0.7),
        )  # fmt: skip
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        if self.sizes is not None:
            panel.legend(frameon=False, loc="best")
        tidy(panel, grid="y")

    @staticmethod
    def _range(pmf: NDArray[np.float64]) -> tuple[int, int]:
        """Sizes that matter: all but a thousandth of the probability at either end."""
        reached = np.cumsum(pmf)
        return int(np.searchsorted(reached, 1e-3)), min(int(np.searchsorted(reached, 1 - 1e-3)), pmf.size - 1)


def _use_at_size(odds: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Probability that each of the directions is among the ``size`` that are used.

    It is ``odds * e_{size - 1} / e_size`` with the elementary symmetric polynomials of the others, and of all. Those of
    the others come from both ends, so that nothing is divided out; logarithms keep them in range.
    """
    n = odds.size
    if size == 0:
        return np.zeros(n)
    with np.errstate(divide="ignore"):
        logs = np.log(odds)
    before, after = (_polynomials(values, size) for values in (logs, logs[::-1]))
    use = np.empty(n)
    for place in range(n):
        # e_{k-1} of all others: products of one part before and one after.
        others = before[place][:size] + after[n - 1 - place][:size][::-1]
        use[place] = logs[place] + np.logaddexp.reduce(others)
    return np.exp(use - before[n][size])


def _polynomials(logs: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Logarithms of the elementary symmetric polynomials 0 to ``size`` of the first 0, 1, ... values."""
    table = np.full((logs.size + 1, size + 1), -np.inf)
    table[:, 0] = 0.0
    for row, value in enumerate(logs):
        table[row + 1, 1:] = np.logaddexp(table[row, 1:], value + table[row, :-1])
    return table
