"""Gaussian components over the data: an ellipse for each, in two of the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import QUIET_COLOR, single_axes, state_colors, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.patches import Ellipse

Array = NDArray[np.float64]

#: More points than this are drawn as a sample of so many.
MOST_POINTS = 5000


class EllipsesDisplay:
    """Where the components of a Gaussian mixture lie, how wide they are and how much they weigh.

    Parameters
    ----------
    weights : array-like of shape (n_components,)
    means : array-like of shape (n_components, n_features)
    covariances : array-like
        (k, D, D), (D, D) shared by all, (k, D) or (k,).
    X : array-like of shape (n_samples, n_features), optional
        Data to draw beneath.
    labels : array-like of shape (n_samples,), optional
        Component of each row, for its colour.
    features : pair of int, default=(0, 1)
        Columns on the two axes.
    covariance_type : {"full", "tied", "diag", "spherical"}, optional
        What the shape of `covariances` means; needed only if there are as many components as features.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    ellipses_ : list of Ellipse
        Those of the first component first, the smallest of each first.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import EllipsesDisplay
    >>> display = EllipsesDisplay([0.5, 0.5], [[0, 0], [3, 1]], [[1.0, 4.0], [1.0, 1.0]]).plot(n_std=(1,))
    >>> [(float(e.width), float(e.height)) for e in display.ellipses_]
    [(4.0, 2.0), (2.0, 2.0)]
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    ellipses_: list[Ellipse]

    def __init__(
        self,
        weights: ArrayLike,
        means: ArrayLike,
        covariances: ArrayLike,
        *,
        X: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        features: Sequence[int] = (0, 1),
        covariance_type: str | None = None,
    ) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        self.means = np.atleast_2d(np.asarray(means, dtype=np.float64))
        k, n_features = self.means.shape
        if self.weights.shape != (k,):
            raise ValueError(f"weights must have one entry for each of the {k} means, got shape {self.weights.shape}")
        self.features = _two_columns(features, n_features)
        self.covariances = _planes(
            np.asarray(covariances, dtype=np.float64), k, n_features, self.features, covariance_type
        )
        self.X = None if X is None else np.asarray(X, dtype=np.float64)
        if self.X is not None and (self.X.ndim != 2 or self.X.shape[1] != n_features):
            raise ValueError(f"X must have {n_features} columns, as the means do, got shape {self.X.shape}")
        self.labels = None if labels is None else np.asarray(labels, dtype=np.int64)

    @classmethod
    def from_estimator(
        cls, model: Any, X: ArrayLike | None = None, *, features: Sequence[int | str] = (0, 1), **options: Any
    ) -> Self:
        """Draw a fitted mixture.

        Parameters
        ----------
        model : object
            Anything with ``weights_``, ``means_`` and ``covariances_``, or ``covariances()`` as factor analysers have.
        X : array-like of shape (n_samples, n_features), optional
            Data to draw beneath, in the colour of the component that ``model.predict`` gives.
        features : pair of int or str, default=(0, 1)
            Columns on the two axes; names if the model was fitted to a table with names.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        EllipsesDisplay
        """
        named = "covariances" if hasattr(model, "covariances") else "covariances_"
        for name in ("weights_", "means_", named):
            if not hasattr(model, name):
                raise ValueError(f"model must be fitted and have {name}, got {type(model).__name__} without it")
        covariances = getattr(model, named)
        covariances = covariances() if callable(covariances) else covariances
        labels = None if X is None else model.predict(X)
        kind = getattr(model, "covariance_type", None)
        names = [str(name) for name in getattr(model, "feature_names_in_", ())]
        unknown = [item for item in features if isinstance(item, str) and item not in names]
        if unknown:
            raise ValueError(f"features must be columns of the fitted table ({names}), got {unknown[0]!r}")
        columns = [names.index(item) if isinstance(item, str) else item for item in features]
        options = ({"feature_names": names} if names else {}) | options
        return cls(
            model.weights_, model.means_, covariances, X=X, labels=labels, features=columns, covariance_type=kind
        ).plot(**options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        n_std: Sequence[float] = (1.0, 2.0),
        least_weight: float = 0.0,
        feature_names: Sequence[str] | None = None,
        title: str | None = None,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        n_std : sequence of float, default=(1, 2)
            Radii of the ellipses in standard deviations.
        least_weight : float, default=0.0
            Components that weigh less are left out.
        feature_names : sequence of str, optional
            Names of all columns, for the axes.
        title : str, optional

        Returns
        -------
        EllipsesDisplay
            Itself.
        """
        from matplotlib.patches import Ellipse

        self.figure_, self.ax_ = single_axes(ax, (5.6, 4.6))
        colors = state_colors(len(self.weights))
        self._draw_points(colors)
        self.ellipses_ = []
        horizontal, vertical = self.features
        for j, (mean, covariance) in enumerate(zip(self.means[:, [horizontal, vertical]], self.covariances)):
            if self.weights[j] < least_weight:
                continue
            values, vectors = np.linalg.eigh(covariance)
            angle = float(np.degrees(np.arctan2(vectors[1, -1], vectors[0, -1])))
            roots = np.sqrt(np.maximum(values[::-1], 0.0))
            for radius in sorted(n_std):
                ellipse = Ellipse(
                    (float(mean[0]), float(mean[1])),
                    *(2.0 * radius * roots).tolist(),
                    angle=angle,
                    facecolor="none",
                    edgecolor=colors[j],
                    linewidth=1.0 + 2.0 * float(self.weights[j]),
                )
                self.ax_.add_patch(ellipse)
                self.ellipses_.append(ellipse)
            self.ax_.plot(*mean, marker="+", color=colors[j], markersize=8, markeredgewidth=2)
        self.ax_.autoscale_view()
        names = [f"feature {d}" for d in range(self.means.shape[1])] if feature_names is None else feature_names
        self.ax_.set(xlabel=names[horizontal], ylabel=names[vertical], title=title or "")
        tidy(self.ax_)
        return self

    def _draw_points(self, colors: list[str]) -> None:
        if self.X is None:
            return
        step = max(1, -(-len(self.X) // MOST_POINTS))
        points = self.X[::step][:, list(self.features)]
        shade: Any = QUIET_COLOR
        if self.labels is not None:
            shade = [colors[label % len(colors)] for label in self.labels[::step]]
        self.ax_.scatter(points[:, 0], points[:, 1], s=8, c=shade, alpha=0.5, linewidths=0)


def _two_columns(features: Sequence[int], n_features: int) -> tuple[int, int]:
    chosen = tuple(int(feature) for feature in features)
    if len(chosen) != 2 or not all(0 <= feature < n_features for feature in chosen):
        raise ValueError(f"features must be two columns between 0 and {n_features - 1}, got {features!r}")
    return chosen[0], chosen[1]


def _planes(
    covariances: Array, k: int, n_features: int, features: tuple[int, int], covariance_type: str | None
) -> Array:
    """(k, 2, 2): the covariances in the two chosen features."""
    columns = list(features)
    shapes = {
        "full": (k, n_features, n_features),
        "diag": (k, n_features),
        "tied": (n_features, n_features),
        "spherical": (k,),
    }
    fitting = [kind for kind, shape in shapes.items() if covariances.shape == shape]
    kind = covariance_type if covariance_type in fitting else fitting[0] if fitting else None
    if kind == "full":
        return covariances[:, columns][:, :, columns]
    if kind == "tied":
        return np.tile(covariances[np.ix_(columns, columns)], (k, 1, 1))
    if kind == "diag":
        return np.stack([np.diag(row[columns]) for row in covariances])
    if kind == "spherical":
        return covariances[:, None, None] * np.eye(2)
    raise ValueError(f"covariances must have one of the shapes {sorted(shapes.values())}, got {covariances.shape}")
