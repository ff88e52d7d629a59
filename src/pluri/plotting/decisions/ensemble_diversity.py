"""Members of an ensemble: how often each pair disagrees, and what the difference is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from pluri.plotting.style import HEATMAP, PALETTE, TRUTH_COLOR, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class EnsembleDiversityDisplay:
    """Disagreement of each pair of members as a matrix, and their errors beside the ensemble's.

    Parameters
    ----------
    report : `pluri.decisions.DiversityReport`
        Of classifiers.

    Attributes
    ----------
    axes_ : list of two matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.decisions import diversity_of_predictions
    >>> from pluri.plotting import EnsembleDiversityDisplay
    >>> report = diversity_of_predictions([[0, 0, 1, 1], [0, 1, 1, 0], [1, 0, 1, 1]], [0, 0, 1, 1])
    >>> len(EnsembleDiversityDisplay(report).plot().axes_)
    2
    >>> matplotlib.pyplot.close("all")
    """

    axes_: list[Axes]
    figure_: Figure

    def __init__(self, report: Any) -> None:
        for name in ("disagreement", "member_errors", "ensemble_error", "names"):
            if not hasattr(report, name):
                raise ValueError(f"report must be a DiversityReport, got {type(report).__name__}")
        if np.isnan(report.disagreement).all():
            raise ValueError("report must be of classifiers, got one of regression, which has no disagreement")
        self.report = report

    def plot(self, *, statistic: str = "disagreement", title: str | None = None) -> Self:
        """Draw on a new figure.

        Parameters
        ----------
        statistic : {"disagreement", "q_statistic"}, default="disagreement"
            What the matrix shows.
        title : str, optional
        """
        if statistic not in ("disagreement", "q_statistic"):
            raise ValueError(f"statistic must be 'disagreement' or 'q_statistic', got {statistic!r}")
        import matplotlib.pyplot as plt

        self.figure_, axes = plt.subplots(1, 2, figsize=(8.0, 3.6), layout="constrained")
        self.axes_ = list(axes)
        table = np.array(getattr(self.report, statistic), dtype=np.float64)
        np.fill_diagonal(table, np.nan)
        drawn = self.axes_[0].imshow(table, cmap=HEATMAP)
        self.figure_.colorbar(drawn, ax=self.axes_[0], label=statistic.replace("_", " "))
        numbers = np.arange(len(self.report.names))
        if len(numbers) <= 15:
            self.axes_[0].set_xticks(numbers, self.report.names, rotation=90)
            self.axes_[0].set_yticks(numbers, self.report.names)
        self.axes_[0].set_title("pairs of members")
        self.axes_[1].bar(numbers, self.report.member_errors, color=PALETTE[0], label="members")
        self.axes_[1].axhline(self.report.ensemble_error, color=TRUTH_COLOR, linestyle="--", label="together")
        self.axes_[1].set(xlabel="member", ylabel="error")
        self.axes_[1].legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.18), ncols=2)
        tidy(self.axes_[1], grid="y")
        if title:
            self.figure_.suptitle(title)
        return self
