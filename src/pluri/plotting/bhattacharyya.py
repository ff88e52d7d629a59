"""Pairwise Bhattacharyya distances of the rows of a stochastic matrix as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.metrics.diversity import COEFFICIENT_FLOOR, bhattacharyya_diversity
from pluri.plotting.heatmap import compact, draw_heatmap, square_size
from pluri.plotting.style import checked_names, checked_order, single_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.image import AxesImage
    from matplotlib.text import Text

DISJOINT = -np.log(COEFFICIENT_FLOOR) - 1e-6


class BhattacharyyaDisplay:
    """Which rows of a stochastic matrix are alike and which are far apart.

    Pairs with disjoint supports are infinitely far apart: they are grey, marked with the sign for infinity, and do not
    stretch the colour scale.

    Parameters
    ----------
    matrix : array-like of shape (n_states, n_outcomes)
        Rows that sum to one, such as a transition matrix.
    state_names : array-like of shape (n_states,), optional
        Names of the rows; their numbers by default.
    order : array-like of shape (n_states,), optional
        Order in which to show the rows.

    Attributes
    ----------
    diversity : BhattacharyyaDiversity
        Distances, mean, minimum and log determinant.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    image_ : AxesImage
        The heat map.
    texts_ : list of Text
        The distances written.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import BhattacharyyaDisplay
    >>> display = BhattacharyyaDisplay.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    >>> [text.get_text() for text in display.texts_]
    ['.35', '.35']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: AxesImage
    texts_: list[Text]

    def __init__(
        self, matrix: ArrayLike, *, state_names: ArrayLike | None = None, order: ArrayLike | None = None
    ) -> None:
        self.diversity = bhattacharyya_diversity(matrix)
        n_states = self.diversity.distances.shape[0]
        self.state_names = checked_names(state_names, n_states)
        self.order = checked_order(order, n_states)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        parameter: str = "transmat_",
        state_names: ArrayLike | None = None,
        order: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the distances between the rows of a fitted model.

        Parameters
        ----------
        model : object
            Anything with the named attribute.
        parameter : str, default="transmat_"
            Attribute that holds the rows, ``"emissionprob_"`` for instance.
        state_names, order : array-like of shape (n_states,), optional
            As for the class.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        BhattacharyyaDisplay
        """
        if not hasattr(model, parameter):
            raise ValueError(f"model must be fitted and have {parameter}, got {type(model).__name__} without it")
        return cls.from_matrix(getattr(model, parameter), state_names=state_names, order=order, ax=ax, **options)

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        *,
        state_names: ArrayLike | None = None,
        order: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the distances between the rows of a matrix; the arguments are those of :meth:`from_estimator`."""
        return cls(matrix, state_names=state_names, order=order).plot(ax=ax, **options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        title: str | None = None,
        annotate: bool | None = None,
        cmap: str | None = None,
        colorbar: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title; by default with the mean and smallest distance (of pairs that are not disjoint) and the log
            determinant.
        annotate : bool, optional
            Write the distances; by default up to 16 rows.
        cmap : str, optional
            Name of a Matplotlib colour map; cividis by default.
        colorbar : bool, default=True
            Draw the colour scale.

        Returns
        -------
        BhattacharyyaDisplay
            Itself.
        """
        self.figure_, self.ax_ = single_axes(ax, square_size(len(self.order)))
        distances = self.diversity.distances[self.order][:, self.order]
        finite = distances[distances < DISJOINT]
        self.image_, self.texts_ = draw_heatmap(
            self.ax_,
            np.ma.masked_array(distances, mask=distances >= DISJOINT),
            [self.state_names[state] for state in self.order],
            vmax=float(finite.max()) or 1.0,
            cmap=cmap,
            annotate=annotate,
            colorbar="Bhattacharyya distance" if colorbar else None,
            write=lambda value: "\N{INFINITY}" if value >= DISJOINT else compact(value),
        )
        self.ax_.set_title(self._summary() if title is None else title, fontsize="medium")
        return self

    def _summary(self) -> str:
        heading = "Bhattacharyya distances of the rows"
        pairs = self.diversity.distances[np.triu_indices(len(self.order), 1)]
        near = pairs[pairs < DISJOINT]
        if near.size == 0:
            return heading
        n_disjoint = pairs.size - near.size
        disjoint = f"{n_disjoint} pair{'s' * (n_disjoint > 1)} disjoint, others:\n" if n_disjoint else ""
        return (
            f"{heading}\n{disjoint}mean {near.mean():.3g}, smallest {near.min():.3g}; "
            f"log det {self.diversity.log_det:.3g}"
        )
