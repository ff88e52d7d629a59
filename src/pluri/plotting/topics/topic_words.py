"""The words of topics as bars, one panel for each topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 24


class TopicWordsDisplay:
    """Most probable words of topics, with bars as long as their probabilities.

    Parameters
    ----------
    words : list of list of str
        Of each topic, most probable first.
    probabilities : list of array-like
    titles : list of str, optional
        Headings of the panels; the numbers of the topics by default.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes, one for each topic
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import TopicWordsDisplay
    >>> display = TopicWordsDisplay([["ice", "goal"], ["bat", "ball"]], [[0.3, 0.2], [0.4, 0.1]]).plot()
    >>> [float(bar.get_width()) for bar in display.axes_[1].patches]
    [0.4, 0.1]
    >>> matplotlib.pyplot.close("all")
    """

    axes_: NDArray[Any]
    figure_: Figure

    def __init__(
        self,
        words: Sequence[Sequence[str]],
        probabilities: Sequence[ArrayLike],
        *,
        titles: Sequence[str] | None = None,
    ) -> None:
        self.words = [[str(word) for word in row] for row in words]
        self.probabilities = [np.asarray(row, dtype=np.float64) for row in probabilities]
        if not self.words or any(not row for row in self.words):
            raise ValueError("words must hold at least one word of at least one topic, got none")
        if [len(row) for row in self.words] != [row.size for row in self.probabilities]:
            raise ValueError("probabilities must have one number for each word, got other lengths")
        self.titles = [f"topic {place}" for place in range(len(self.words))] if titles is None else list(titles)
        if len(self.titles) != len(self.words):
            raise ValueError(f"titles must have one text for each of {len(self.words)} topics, got {len(self.titles)}")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        topics: ArrayLike | None = None,
        feature_names: ArrayLike | None = None,
        n_words: int = 10,
        **options: Any,
    ) -> Self:
        """Draw topics of a fitted topic model.

        Parameters
        ----------
        model : TopicModel
            Fitted.
        topics : array-like of int, optional
            Which; by default those with the largest shares, at most twenty-four.
        feature_names : array-like of str, optional
            Words of the columns, if the model does not know them.
        n_words : int, default=10
        **options
            See :meth:`plot`.
        """
        if not hasattr(model, "topic_graph"):
            raise ValueError(f"model must be a topic model, with topic_graph(), got {type(model).__name__}")
        nodes = model.topic_graph(n_words, feature_names=feature_names).nodes
        if topics is None:
            chosen = sorted(range(len(nodes)), key=lambda place: (-nodes[place].weight, place))[:MOST_PANELS]
        else:
            chosen = [int(topic) for topic in np.asarray(topics).ravel()]
            wrong = [topic for topic in chosen if not 0 <= topic < len(nodes)]
            if wrong:
                raise ValueError(f"topics must lie between 0 and {len(nodes) - 1}, got {wrong[0]}")
        return cls(
            [nodes[place].words for place in chosen],
            [nodes[place].probabilities for place in chosen],
            titles=[nodes[place].label or f"topic {place} ({nodes[place].weight:.1%})" for place in chosen],
        ).plot(**options)

    def plot(self, *, n_columns: int | None = None, title: str | None = None, color: str = PALETTE[0]) -> Self:
        """Draw on a new figure.

        Parameters
        ----------
        n_columns : int, optional
            Panels side by side; at most five by default.
        title : str, optional
        color : str
            Of the bars.

        Returns
        -------
        TopicWordsDisplay
            Itself.
        """
        import matplotlib.pyplot as plt

        n_topics = len(self.words)
        across = min(n_topics, 5) if n_columns is None else n_columns
        if across < 1:
            raise ValueError(f"n_columns must be at least 1, got {across}")
        down = -(-n_topics // across)
        most = max(map(len, self.words))
        self.figure_, grid = plt.subplots(
            down, across, squeeze=False, figsize=(2.5 * across, down * (0.55 + 0.2 * most)), layout="constrained"
        )
        for spare in grid.ravel()[n_topics:]:
            spare.set_visible(False)
        self.axes_ = grid.ravel()[:n_topics]
        for panel, words, values, heading in zip(self.axes_, self.words, self.probabilities, self.titles):
            panel.barh(range(len(words)), values, height=0.72, color=color)
            panel.set_yticks(range(len(words)), words, fontsize=8.5)
            panel.set_ylim(most - 0.4, -0.6)
            panel.set_title(heading, fontsize=9, loc="left")
            panel.tick_params(axis="y", length=0)
            panel.tick_params(axis="x", labelsize=7.5)
            panel.locator_params(axis="x", nbins=3)
            tidy(panel)
        if title is not None:
            self.figure_.suptitle(title, fontsize="medium")
        return self
