"""Learning curves of query strategies, and how much better each is than random choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import QUIET_COLOR, TRUTH_COLOR, single_axes, stacked_axes, state_colors, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Array = NDArray[np.float64]


class LearningCurvesDisplay:
    """Mean scores of strategies against the number of labels, and below them their differences to a baseline.

    Parameters
    ----------
    n_labels : array-like of shape (n_rounds,)
    scores : dict of str to arrays of shape (n_repeats, n_rounds)
        Of each strategy; repeats are paired.
    differences : dict of str to (mean, low, high), each of shape (n_rounds,), optional
        Of strategies to the baseline, with the ends of their intervals.
    baseline : str, optional
        Name of the baseline.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Of the curves.
    difference_ax_ : matplotlib Axes or None
        Of the differences.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import LearningCurvesDisplay
    >>> scores = {"random": [[0.5, 0.6], [0.5, 0.7]], "margin": [[0.5, 0.8], [0.5, 0.8]]}
    >>> display = LearningCurvesDisplay([10, 20], scores).plot()
    >>> [line.get_label() for line in display.ax_.get_lines()]
    ['random', 'margin']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    difference_ax_: Axes | None

    def __init__(
        self,
        n_labels: ArrayLike,
        scores: Mapping[str, ArrayLike],
        differences: Mapping[str, tuple[ArrayLike, ArrayLike, ArrayLike]] | None = None,
        baseline: str | None = None,
    ) -> None:
        self.n_labels = np.asarray(n_labels, dtype=np.float64)
        self.scores = {name: np.asarray(values, dtype=np.float64) for name, values in scores.items()}
        self.differences = {
            name: tuple(np.asarray(one, dtype=np.float64) for one in given)
            for name, given in (differences or {}).items()
        }
        self.baseline = baseline
        for name, values in self.scores.items():
            if values.ndim != 2 or values.shape[1:] != self.n_labels.shape:
                raise ValueError(
                    f"scores must have shape (n_repeats, {self.n_labels.size}), got {values.shape} for {name!r}"
                )
        if not self.scores:
            raise ValueError("scores must have at least one strategy, got none")

    @classmethod
    def from_comparison(cls, comparison: Any, **options: Any) -> Self:
        """Draw what :func:`pluri.decisions.compare_strategies` found; other arguments are passed to :meth:`plot`.

        Parameters
        ----------
        comparison : StrategyComparison
        **options
            For :meth:`plot`.

        Returns
        -------
        LearningCurvesDisplay
        """
        names = [name for name in comparison.scores if name != comparison.baseline]
        differences = {name: comparison.difference(name) for name in names}
        return cls(comparison.n_labels, comparison.scores, differences, comparison.baseline).plot(**options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        title: str | None = None,
        score_name: str = "held-out score",
        colors: Mapping[str, str] | None = None,
        show_differences: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        score_name : str
        colors : dict of str to color, optional
            Of strategies; by default the palette, and grey for the baseline.
        show_differences : bool, default=True
            Whether to draw the differences to the baseline, if there are any, below the curves.

        Returns
        -------
        LearningCurvesDisplay
            Itself.
        """
        below = show_differences and bool(self.differences)
        self.difference_ax_ = None
        if below:
            self.figure_, (self.ax_, self.difference_ax_) = stacked_axes(ax, (3, 2), (6.0, 5.4))
        else:
            self.figure_, self.ax_ = single_axes(ax, (6.0, 3.8))
        chosen = self._colors() | dict(colors or {})
        for name, values in self.scores.items():
            mean = values.mean(axis=0)
            style = "--" if name == self.baseline else "-"
            self.ax_.plot(self.n_labels, mean, style, color=chosen[name], label=name)
            if len(values) > 1:
                error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
                self.ax_.fill_between(
                    self.n_labels, mean - error, mean + error, color=chosen[name], alpha=0.18, linewidth=0
                )
        self.ax_.set(ylabel=score_name, title=title or "")
        self.ax_.legend(frameon=False)
        tidy(self.ax_, grid="y")
        self.ax_.locator_params(axis="x", integer=True)
        if self.difference_ax_ is None:
            self.ax_.set_xlabel("labels")
            return self
        for name, (mean, low, high) in self.differences.items():
            self.difference_ax_.plot(self.n_labels, mean, color=chosen[name])
            self.difference_ax_.fill_between(self.n_labels, low, high, color=chosen[name], alpha=0.18, linewidth=0)
        self.difference_ax_.axhline(0.0, color=TRUTH_COLOR, linewidth=0.8)
        self.difference_ax_.set(xlabel="labels", ylabel=f"minus {self.baseline or 'baseline'},\n95 % interval")
        tidy(self.difference_ax_, grid="y")
        return self

    def _colors(self) -> dict[str, str]:
        others = [name for name in self.scores if name != self.baseline]
        found = dict(zip(others, state_colors(max(1, len(others)))))
        return found | ({self.baseline: QUIET_COLOR} if self.baseline is not None else {})
