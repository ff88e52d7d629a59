"""Loadings of factor models: squares whose size is the magnitude (Hinton), or images."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import checked_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class LoadingsDisplay:
    """What each factor of each component is made of; the factors of a component lie side by side.

    Parameters
    ----------
    loadings : array-like of shape (n_components, n_factors, n_features) or (n_factors, n_features)
    feature_names : array-like of shape (n_features,), optional
    image_shape : pair of int, optional
        Draw every factor as an image of this shape instead of a Hinton diagram.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        (n_components,) for Hinton diagrams, (n_components, n_factors) for images.
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import LoadingsDisplay
    >>> display = LoadingsDisplay([[[1.0, -0.5, 0.0], [0.2, 0.9, 0.4]]]).plot()
    >>> len(display.axes_[0].patches)
    6
    >>> matplotlib.pyplot.close("all")
    """

    axes_: NDArray[Any]
    figure_: Figure

    def __init__(
        self,
        loadings: ArrayLike,
        *,
        feature_names: ArrayLike | None = None,
        image_shape: tuple[int, int] | None = None,
    ) -> None:
        values = np.asarray(loadings, dtype=np.float64)
        values = values[None] if values.ndim == 2 else values
        if values.ndim != 3 or values.size == 0 or not np.isfinite(values).all():
            raise ValueError(
                "loadings must be finite, of shape (n_components, n_factors, n_features), got shape "
                f"{np.shape(loadings)}"
            )
        if image_shape is not None and int(np.prod(image_shape)) != values.shape[2]:
            raise ValueError(f"image_shape must have {values.shape[2]} pixels, got {image_shape!r}")
        self.loadings = values
        self.image_shape = image_shape
        self.feature_names = checked_names(feature_names, values.shape[2])

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        feature_names: ArrayLike | None = None,
        image_shape: tuple[int, int] | None = None,
        **options: Any,
    ) -> Self:
        """Draw ``loadings_`` (components, features, factors) or ``components_`` (factors, features) of a model."""
        if hasattr(model, "loadings_"):
            loadings = np.asarray(model.loadings_, dtype=np.float64)
            loadings = np.swapaxes(loadings, -1, -2)
        elif hasattr(model, "components_"):
            loadings = np.asarray(model.components_, dtype=np.float64)
        else:
            raise ValueError(f"model must have loadings_ or components_, got {type(model).__name__} without them")
        return cls(loadings, feature_names=feature_names, image_shape=image_shape).plot(**options)

    def plot(self, *, title: str | None = None, cmap: str = "RdBu_r") -> Self:
        """Draw on a new figure.

        Parameters
        ----------
        title : str, optional
        cmap : str, default="RdBu_r"
            Colour map of the images; it should be white in the middle.

        Returns
        -------
        LoadingsDisplay
            Itself.
        """
        import matplotlib.pyplot as plt

        k, n_factors, n_features = self.loadings.shape
        largest = float(np.abs(self.loadings).max()) or 1.0
        if self.image_shape is not None:
            self.figure_, self.axes_ = plt.subplots(
                k, n_factors, squeeze=False, figsize=(1.6 * n_factors + 0.5, 1.7 * k + 0.3), layout="constrained"
            )
            for j in range(k):
                for i in range(n_factors):
                    panel = self.axes_[j, i]
                    image = self.loadings[j, i].reshape(self.image_shape)
                    panel.imshow(image, vmin=-largest, vmax=largest, cmap=cmap, interpolation="nearest")
                    panel.set_axis_off()
        else:
            width = min(1.2 + 0.3 * n_features, 14.0)
            self.figure_, grid = plt.subplots(
                k, 1, squeeze=False, figsize=(width, 0.9 + k * (0.5 + 0.3 * n_factors)), layout="constrained"
            )
            self.axes_ = grid[:, 0]
            for j, panel in enumerate(self.axes_):
                _hinton(panel, self.loadings[j], largest)
                panel.set_yticks(range(n_factors), [str(i) for i in range(n_factors)])
                panel.set_ylabel("factor" if k == 1 else f"component {j}\nfactor")
                panel.set_xticks([])
            every = max(1, n_features // 40)
            names = self.feature_names[::every]
            long = max(map(len, names)) > 3
            self.axes_[-1].set_xticks(range(0, n_features, every), names, rotation=90 if long else 0)
        if title is not None:
            self.figure_.suptitle(title, fontsize="medium")
        return self


def _hinton(ax: Axes, loadings: NDArray[np.float64], largest: float) -> None:
    """Squares with areas in proportion to the magnitude: white positive, black negative, on grey."""
    from matplotlib.patches import Rectangle

    n_factors, n_features = loadings.shape
    ax.set_facecolor("0.6")
    for i in range(n_factors):
        for d in range(n_features):
            side = float(np.sqrt(abs(loadings[i, d]) / largest)) * 0.95
            color = "white" if loadings[i, d] > 0 else "black"
            ax.add_patch(Rectangle((d - side / 2, i - side / 2), side, side, facecolor=color, linewidth=0))
    ax.set(xlim=(-0.6, n_features - 0.4), ylim=(n_factors - 0.4, -0.6), aspect="equal")
    ax.tick_params(length=0)
