"""Shares of topics over time, with error bars, and marks where they emerge or fade."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, QUIET_COLOR, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 12


class TopicTrendsDisplay:
    """Share of each topic in each period with a band of two standard errors; changes are marked.

    Parameters
    ----------
    starts : array-like of dates of shape (n_periods,)
    shares, errors : array-like of shape (n_periods, n_topics)
    labels : sequence of str, optional
        Headings of the panels.
    changes : sequence of TopicChange, optional
        Topics that emerge or fade: a line where that began.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, one for each topic
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from pluri.plotting import TopicTrendsDisplay
    >>> weeks = np.arange("2024-01-01", "2024-02-26", 7, dtype="datetime64[D]")
    >>> shares = np.column_stack([np.linspace(0.6, 0.4, 8), np.linspace(0.4, 0.6, 8)])
    >>> display = TopicTrendsDisplay(weeks, shares, np.full((8, 2), 0.05)).plot()
    >>> len(display.axes_)
    2
    >>> matplotlib.pyplot.close("all")
    """

    axes_: NDArray[Any]
    figure_: Figure

    def __init__(
        self, starts: ArrayLike, shares: ArrayLike, errors: ArrayLike, *, labels: Any = None, changes: Any = ()
    ) -> None:
        self.starts = np.asarray(starts, dtype="datetime64[D]")
        self.shares, self.errors = np.asarray(shares, dtype=np.float64), np.asarray(errors, dtype=np.float64)
        if self.shares.shape != self.errors.shape or len(self.shares) != len(self.starts):
            raise ValueError(
                f"shares and errors must have a row for each of {len(self.starts)} periods, got {self.shares.shape} "
                f"and {self.errors.shape}"
            )
        n_topics = self.shares.shape[1]
        self.labels = (
            [f"topic {topic}" for topic in range(n_topics)] if labels is None else [str(one) for one in labels]
        )
        if len(self.labels) != n_topics:
            raise ValueError(f"labels must have one text for each of {n_topics} topics, got {len(self.labels)}")
        self.changes = list(changes)

    @classmethod
    def from_trends(cls, trends: Any, *, topics: ArrayLike | None = None, **options: Any) -> Self:
        """Draw what :func:`pluri.topics.topic_trends` found.

        Parameters
        ----------
        trends : TopicTrends
        topics : array-like of int, optional
            Which; by default those that change, and the largest, at most twelve.
        **options
            See :meth:`plot`.
        """
        changes = [*trends.emerging(), *trends.fading()]
        display = cls(trends.over_time.starts, trends.over_time.shares, trends.over_time.errors,
                      labels=trends.labels, changes=changes)  # fmt: skip
        if topics is None:
            order = np.argsort(-np.nanmean(display.shares, axis=0), kind="stable").tolist()
            topics = list(dict.fromkeys([*(change.topic for change in changes), *order]))[:MOST_PANELS]
        return display.plot(topics=topics, **options)

    def plot(self, *, topics: ArrayLike | None = None, n_columns: int = 3, color: str = PALETTE[0]) -> Self:
        """Draw on a new figure.

        Parameters
        ----------
        topics : array-like of int, optional
            Which; all by default.
        n_columns : int, default=3
            Panels side by side.
        color : str
        """
        import matplotlib.pyplot as plt
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
        from matplotlib.ticker import PercentFormatter

        chosen = list(range(len(self.labels))) if topics is None else [int(one) for one in np.asarray(topics).ravel()]
        wrong = [topic for topic in chosen if not 0 <= topic < len(self.labels)]
        if wrong or not chosen:
            raise ValueError(f"topics must lie between 0 and {len(self.labels) - 1}, got {wrong[:1] or chosen}")
        across = max(1, min(n_columns, len(chosen)))
        down = -(-len(chosen) // across)
        self.figure_, grid = plt.subplots(
            down, across, squeeze=False, sharex=True, figsize=(3.4 * across, 1.9 * down + 0.3), layout="constrained"
        )
        for spare in grid.ravel()[len(chosen) :]:
            spare.set_visible(False)
        self.axes_ = grid.ravel()[: len(chosen)]
        when = self.starts.astype("datetime64[s]").astype(object)
        for panel, topic in zip(self.axes_, chosen):
            share, error = self.shares[:, topic], self.errors[:, topic]
            panel.fill_between(when, np.maximum(share - 2 * error, 0), share + 2 * error, color=color, alpha=0.25, lw=0)
            panel.plot(when, share, color=color, lw=1.3)
            for change in self.changes:
                if change.topic == topic:
                    place = int(np.searchsorted(self.starts, _first_day(change.since)))
                    since = self.starts[min(place, len(self.starts) - 1)]
                    panel.axvline(since.astype("datetime64[s]").astype(object), color=QUIET_COLOR, ls="--", lw=1)
                    panel.annotate(
                        change.kind, (0.98, 0.95), xycoords="axes fraction", fontsize=7.5, ha="right", va="top"
                    )
            panel.set_title(self.labels[topic], fontsize=9, loc="left")
            panel.set_ylim(bottom=0)
            panel.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            locator: Any = AutoDateLocator(maxticks=5)  # type: ignore[no-untyped-call]
            panel.xaxis.set_major_locator(locator)
            panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
            panel.tick_params(labelsize=7.5)
            tidy(panel)
        return self


def _first_day(name: str) -> np.datetime64:
    """The first day of a period by its name, such as 2024-03-25, 2024-03 or 2024 Q2."""
    if " Q" in name:
        return np.datetime64(f"{name[:4]}-{3 * int(name[-1]) - 2:02d}", "D")
    return np.datetime64(name, "D")
