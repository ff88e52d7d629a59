"""What a learner asked for, in its order, on the boundary that it found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import QUIET_COLOR, single_axes, state_colors, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: Places along each axis at which the model is asked.
GRID = 120


class QueriedPointsDisplay:
    """Points of a pool with two columns, those that were asked for numbered, and the classes that a model sees.

    Parameters
    ----------
    X_pool : array-like of shape (n_pool, 2)
    queried : array-like of int
        Rows that were asked for, in their order.
    model : classifier
        Asked for the class of each place of the plane.
    start : array-like of shape (n_start, 2), optional
        Points that had labels from the start.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    texts_ : list of Text
        The numbers.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from pluri.decisions import ActiveLearner
    >>> from pluri.plotting import QueriedPointsDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = (X.sum(axis=1) > 0).astype(int)
    >>> learner = ActiveLearner(n_queries=5, random_state=0).fit(X[:10], y[:10]).run(X[10:], y[10:])
    >>> [text.get_text() for text in QueriedPointsDisplay.from_estimator(learner, X[10:]).texts_]
    ['1', '2', '3', '4', '5']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    texts_: list[Any]

    def __init__(self, X_pool: ArrayLike, queried: ArrayLike, model: Any, *, start: ArrayLike | None = None) -> None:
        self.X_pool = np.asarray(X_pool, dtype=np.float64)
        if self.X_pool.ndim != 2 or self.X_pool.shape[1] != 2:
            raise ValueError(f"X_pool must have two columns, got shape {self.X_pool.shape}")
        self.queried = np.asarray(queried, dtype=np.int64)
        if self.queried.size and not (self.queried.min() >= 0 and self.queried.max() < len(self.X_pool)):
            raise ValueError(f"queried must be rows of X_pool, from 0 to {len(self.X_pool) - 1}, got others")
        self.model = model
        self.start = None if start is None else np.asarray(start, dtype=np.float64).reshape(-1, 2)

    @classmethod
    def from_estimator(cls, learner: Any, X_pool: ArrayLike, **options: Any) -> Self:
        """Draw what a learner asked for; other arguments are passed to :meth:`plot`.

        Parameters
        ----------
        learner : ActiveLearner or QueryByCommittee
            After ``run``.
        X_pool : array-like of shape (n_pool, 2)
            The pool of that run.
        **options
            For :meth:`plot`.

        Returns
        -------
        QueriedPointsDisplay
        """
        if not hasattr(learner, "queried_"):
            raise ValueError(f"learner must have been run on a pool, got {type(learner).__name__} without queried_")
        n_start = len(learner.y_) - len(learner.queried_)
        return cls(X_pool, learner.queried_, learner, start=np.asarray(learner.X_)[:n_start]).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional

        Returns
        -------
        QueriedPointsDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, (5.4, 4.6))
        low, high = self.X_pool.min(axis=0), self.X_pool.max(axis=0)
        margin = 0.06 * np.where(high > low, high - low, 1.0)
        axes = [np.linspace(a, b, GRID) for a, b in zip(low - margin, high + margin)]
        places = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)
        classes, codes = np.unique(self.model.predict(places), return_inverse=True)
        colors = state_colors(max(2, len(classes)))
        from matplotlib.colors import ListedColormap

        self.ax_.pcolormesh(
            *axes, codes.reshape(GRID, GRID), cmap=ListedColormap(colors[: max(2, len(classes))]), vmin=0,
            vmax=max(1, len(classes) - 1), alpha=0.18, shading="auto", rasterized=True,
        )  # fmt: skip
        self.ax_.scatter(self.X_pool[:, 0], self.X_pool[:, 1], s=14, color=QUIET_COLOR, linewidths=0, label="pool")
        if self.start is not None and len(self.start):
            self.ax_.scatter(
                self.start[:, 0],
                self.start[:, 1],
                s=30,
                color="black",
                marker="x",
                linewidths=1.2,
                label="labelled at first",
            )
        asked = self.X_pool[self.queried]
        self.ax_.scatter(
            asked[:, 0], asked[:, 1], s=130, facecolor="white", edgecolor="black", linewidths=0.8, label="asked for"
        )
        self.texts_ = [
            self.ax_.text(x, y, str(number), ha="center", va="center", fontsize=7.5)
            for number, (x, y) in enumerate(asked, start=1)
        ]
        self.ax_.set_title(title or "")
        self.ax_.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        tidy(self.ax_)
        return self
