"""A learned flow in two of its coordinates: where paths go, and the regions that send them there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import QUIET_COLOR, single_axes, state_colors, tidy
from pluri.validation import check_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.patches import Ellipse
    from matplotlib.quiver import Quiver

Array = NDArray[np.float64]


class VectorFieldDisplay:
    """Arrows for the steps of a flow on a grid, over the regions of one draw in the colours of their regimes.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    points, steps : array-like of shape (n_points, 2)
        Where arrows begin, and the steps there.
    centers : array-like of shape (n_regions, 2)
    covariances : array-like of shape (n_regions, 2, 2)
    regimes : array-like of shape (n_regions,)
        Decides the colour of each region.
    paths : sequence of arrays of shape (n_rows, 2), default=()
        Drawn beneath.
    names : pair of str, default=("coordinate 0", "coordinate 1")
        Of the axes.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    arrows_ : Quiver
    ellipses_ : list of Ellipse

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.dynamics import LatentDynamics
    >>> from pluri.plotting import VectorFieldDisplay
    >>> angle = 0.2 * np.arange(100)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)]) + 0.01 * np.random.default_rng(0).normal(size=(100, 2))
    >>> model = LatentDynamics(5, random_state=0).fit(X)
    >>> display = VectorFieldDisplay.from_estimator(model, X)
    >>> display.steps.shape
    (400, 2)
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    arrows_: Quiver
    ellipses_: list[Ellipse]

    def __init__(
        self,
        points: ArrayLike,
        steps: ArrayLike,
        centers: ArrayLike,
        covariances: ArrayLike,
        regimes: ArrayLike,
        *,
        paths: Sequence[ArrayLike] = (),
        names: tuple[str, str] = ("coordinate 0", "coordinate 1"),
    ) -> None:
        self.points, self.steps, self.centers, self.covariances = (
            np.asarray(part, dtype=np.float64) for part in (points, steps, centers, covariances)
        )
        if self.points.ndim != 2 or self.points.shape[1] != 2 or self.points.shape != self.steps.shape:
            raise ValueError(
                f"points and steps must have shape (n_points, 2), got {self.points.shape} and {self.steps.shape}"
            )
        self.regimes = np.asarray(regimes, dtype=np.int64)
        n = len(self.regimes)
        if self.centers.shape != (n, 2) or self.covariances.shape != (n, 2, 2):
            raise ValueError(
                f"centers and covariances must be of {n} regions in two coordinates, got {self.centers.shape} and "
                f"{self.covariances.shape}"
            )
        self.paths = [np.asarray(path, dtype=np.float64) for path in paths]
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        *,
        task: Any = None,
        features: Sequence[int] = (0, 1),
        n_arrows: int = 20,
        **options: Any,
    ) -> Self:
        """Draw a fitted flow.

        Parameters
        ----------
        model : `pluri.dynamics.LatentDynamics` or `pluri.dynamics.MultiTaskDynamics`
            Arrows are averages over its kept draws, regions those of the last one.
        X : array of shape (n_samples, n_features) or list of such arrays, optional
            Paths to draw beneath.
        task : optional
            Whose flow; needed if the model has several tasks.
        features : pair of int, default=(0, 1)
            Coordinates on the two axes; the others are held at the centre of the training rows.
        n_arrows : int, default=20
            Arrows along each axis.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        VectorFieldDisplay
        """
        if not hasattr(model, "vector_field") or not hasattr(model, "centers_"):
            raise ValueError(f"model must be fitted and have vector_field, got {type(model).__name__} without it")
        check_count(n_arrows, "n_arrows", least=2)
        names = model.tasks_.tolist()
        number = 0 if task is None and len(names) == 1 else names.index(task) if task in names else None
        if number is None:
            raise ValueError(f"task must be one of {', '.join(map(repr, names))}, got {task!r}")
        chosen = _two(features, model.centers_.shape[1])
        own = model.task_index_ == number
        own &= model.draw_index_ == model.draw_index_[own].max()
        centers = model.centers_[own][:, chosen]
        covariances = np.linalg.inv(model.precisions_[own])[:, chosen][:, :, chosen]
        paths = [] if X is None else [X] if np.ndim(X[0]) == 1 else list(X)
        paths = [np.asarray(path, dtype=np.float64)[:, chosen] for path in paths]
        seen = np.concatenate(paths) if paths else _corners(centers, covariances)
        low, high = np.nanmin(seen, axis=0), np.nanmax(seen, axis=0)
        sides = [np.linspace(a - 0.05 * (b - a), b + 0.05 * (b - a), n_arrows) for a, b in zip(low, high)]
        points = np.stack(np.meshgrid(*sides), axis=-1).reshape(-1, 2)
        rows = np.tile(model.center_, (len(points), 1))
        rows[:, chosen] = points
        steps = model.vector_field(rows, task=task)[:, chosen]
        named = (f"coordinate {chosen[0]}", f"coordinate {chosen[1]}")
        display = cls(points, steps, centers, covariances, model.regimes_[own], paths=paths, names=named)
        return display.plot(**options)

    def plot(self, *, ax: Axes | None = None, n_std: float = 2.0, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        n_std : float, default=2.0
            Radii of the ellipses in standard deviations.
        title : str, optional

        Returns
        -------
        VectorFieldDisplay
            Itself.
        """
        from matplotlib.patches import Ellipse

        self.figure_, self.ax_ = single_axes(ax, (5.6, 5.0))
        for path in self.paths:
            self.ax_.plot(*path.T, color=QUIET_COLOR, linewidth=0.8, alpha=0.7)
        colors = state_colors(int(self.regimes.max(initial=0)) + 1)
        self.ellipses_ = []
        for center, covariance, regime in zip(self.centers, self.covariances, self.regimes.tolist()):
            values, vectors = np.linalg.eigh(covariance)
            angle = float(np.degrees(np.arctan2(vectors[1, -1], vectors[0, -1])))
            width, height = (2 * n_std * np.sqrt(np.maximum(values[::-1], 0.0))).tolist()
            color = colors[regime % len(colors)]
            ellipse = Ellipse(
                (float(center[0]), float(center[1])), width, height, angle=angle, facecolor=color, edgecolor=color,
                alpha=0.25,
            )  # fmt: skip
            self.ax_.add_patch(ellipse)
            self.ellipses_.append(ellipse)
        self.arrows_ = self.ax_.quiver(*self.points.T, *self.steps.T, angles="xy", width=0.003, color="0.2")
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        self.ax_.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel=self.names[0], ylabel=self.names[1])
        self.ax_.set_title(title or "")
        tidy(self.ax_)
        return self


def _two(features: Sequence[int], n_features: int) -> list[int]:
    chosen = [int(feature) for feature in features]
    if len(chosen) != 2 or not all(0 <= feature < n_features for feature in chosen) or chosen[0] == chosen[1]:
        raise ValueError(f"features must be two coordinates between 0 and {n_features - 1}, got {features!r}")
    return chosen


def _corners(centers: Array, covariances: Array) -> Array:
    """Where regions end, two standard deviations from their centres."""
    spread = 2 * np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    return np.concatenate([centers - spread, centers + spread])
