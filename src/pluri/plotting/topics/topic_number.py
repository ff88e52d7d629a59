"""How many topics: what was found of each number that was tried, and where the recommendation lies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, QUIET_COLOR, TRUTH_COLOR, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Curves: column, heading and what the axis says.
PANELS = (
    ("found_again", "Topics found again", "topics"),
    ("mean_test_score", "Held-out documents", "log likelihood per word"),
    ("coherence", "Coherence", "mean NPMI"),
    ("smallest_share", "Redundant topics, and the smallest", "share"),
)


class TopicNumberDisplay:
    """Curves over the number of topics: found again, held-out likelihood, coherence, redundancy and size.

    Parameters
    ----------
    table : mapping of str to array-like
        ``param_n_components``, ``found_again``, ``mean_test_score``, ``gain_per_topic``, ``gain_error``, ``coherence``,
        ``redundancy`` and ``smallest_share``, as `cv_results_` of :class:`~pluri.topics.TopicSearchCV` has them.
    n_components : int
        The number that is recommended.

    Attributes
    ----------
    axes_ : ndarray of four matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import TopicNumberDisplay
    >>> names = ["mean_test_score", "coherence", "redundancy", "smallest_share", "gain_per_topic", "gain_error"]
    >>> table = {"param_n_components": [2, 4, 8], "found_again": [1, 4, 5], **{name: [0.1, 0.2, 0.2] for name in names}}
    >>> display = TopicNumberDisplay(table, 4).plot()
    >>> display.axes_[0].get_title(loc="left")
    'Topics found again'
    >>> matplotlib.pyplot.close("all")
    """

    axes_: NDArray[Any]
    figure_: Figure

    def __init__(self, table: Mapping[str, ArrayLike], n_components: int) -> None:
        needed = ["param_n_components", *(name for name, _, _ in PANELS), "redundancy", "gain_per_topic", "gain_error"]
        missing = [name for name in needed if name not in table]
        if missing:
            raise ValueError(f"table must have {', '.join(needed)}, got none of {', '.join(missing)}")
        self.table = {name: np.asarray(table[name], dtype=np.float64) for name in needed}
        n_tried = len(self.table["param_n_components"])
        if n_tried == 0 or any(values.shape != (n_tried,) for values in self.table.values()):
            raise ValueError("table must have one number for each number of topics, got other lengths")
        self.n_components = int(n_components)

    @classmethod
    def from_estimator(cls, search: Any, **options: Any) -> Self:
        """Draw a fitted :class:`~pluri.topics.TopicSearchCV`; other arguments are passed to :meth:`plot`."""
        if not hasattr(search, "cv_results_") or not hasattr(search, "n_components_"):
            raise ValueError(f"search must be a fitted TopicSearchCV, got {type(search).__name__}")
        return cls(search.cv_results_, search.n_components_).plot(**options)

    def plot(self, *, title: str | None = None) -> Self:
        """Draw on a new figure.

        Parameters
        ----------
        title : str, optional

        Returns
        -------
        TopicNumberDisplay
            Itself.
        """
        import matplotlib.pyplot as plt
        from matplotlib.ticker import MaxNLocator

        self.figure_, grid = plt.subplots(2, 2, figsize=(8.4, 5.8), layout="constrained", sharex=True)
        self.axes_ = grid.ravel()
        numbers = self.table["param_n_components"]
        for panel, (name, heading, axis) in zip(self.axes_, PANELS):
            panel.axvline(self.n_components, color=PALETTE[1], linewidth=1.5, zorder=1)
            panel.plot(numbers, self.table[name], color=PALETTE[0], marker="o", markersize=4, label=_label(name))
            panel.set_title(heading, fontsize=10, loc="left")
            panel.set_ylabel(axis)
            tidy(panel, grid="y")
        again, _, _, sizes = self.axes_
        again.plot(numbers, numbers, color=QUIET_COLOR, linestyle="--", zorder=0, label="all of them")
        again.annotate(
            f"{self.n_components} recommended", (self.n_components, again.get_ylim()[1]), xytext=(4, -10),
            textcoords="offset points", fontsize=9, color=TRUTH_COLOR,
        )  # fmt: skip
        sizes.plot(
            numbers, self.table["redundancy"], color=PALETTE[2], marker="s", markersize=4, label="redundant topics"
        )
        for panel in (again, sizes):
            panel.legend(frameon=False, fontsize=8.5)
        if len(numbers) > 1 and numbers[-1] / numbers[0] > 8:
            for panel in self.axes_:
                panel.set_xscale("log")
                ticks = numbers[:: max(1, len(numbers) // 6)]
                panel.set_xticks(ticks, [f"{tick:.0f}" for tick in ticks])
                panel.minorticks_off()
        else:
            for panel in self.axes_:
                panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        for panel in self.axes_[2:]:
            panel.set_xlabel("number of topics")
        if title is not None:
            self.figure_.suptitle(title, fontsize="medium")
        return self


def _label(name: str) -> str:
    return {"found_again": "found again", "smallest_share": "words of the smallest topic"}.get(name, "")
