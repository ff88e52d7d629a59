"""Attention: which steps of the input a decoder looks at while it writes each token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import HEATMAP, single_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class AttentionDisplay:
    """Attention weights as a matrix: a row for each output, a column for each step of the input.

    Parameters
    ----------
    weights : array of shape (n_outputs, n_inputs)
        Rows sum to 1.
    outputs, inputs : lists of str, optional
        Names of rows and columns; numbers by default.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    image_ : AxesImage

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import AttentionDisplay
    >>> display = AttentionDisplay([[0.9, 0.1], [0.2, 0.8]], outputs=["(A", "XX"], inputs=["one", "two"]).plot()
    >>> [label.get_text() for label in display.ax_.get_xticklabels()]
    ['one', 'two']
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    image_: Any

    def __init__(
        self, weights: ArrayLike, outputs: Sequence[Any] | None = None, inputs: Sequence[Any] | None = None
    ) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        if self.weights.ndim != 2 or not self.weights.size:
            raise ValueError(f"weights must be a matrix, got shape {self.weights.shape}")
        self.outputs = [str(name) for name in (range(len(self.weights)) if outputs is None else outputs)]
        self.inputs = [str(name) for name in (range(self.weights.shape[1]) if inputs is None else inputs)]
        if (len(self.outputs), len(self.inputs)) != self.weights.shape:
            raise ValueError(
                f"outputs and inputs must name the {self.weights.shape[0]} rows and {self.weights.shape[1]} columns of "
                f"weights, got {len(self.outputs)} and {len(self.inputs)}"
            )

    @classmethod
    def from_estimator(cls, model: Any, x: Any, y: Any, **options: Any) -> Self:
        """Draw the attention of a fitted decoder for one input and one output; other arguments go to :meth:`plot`.

        Parameters
        ----------
        model : decoder of `pluri.networks` with attention
        x, y : one sequence of the input, and one output: tokens, or the tree of a parser
        **options
            For :meth:`plot`.
        """
        weights = model.attention_weights([x], [y])[0]
        names = list(x) if np.ndim(x) == 1 else None
        return cls(weights, [*model.written_tokens([y])[0], "end"], names).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None, cmap: str = HEATMAP) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
        cmap : str
            Colour map.

        Returns
        -------
        AttentionDisplay
            Itself.
        """
        n_rows, n_columns = self.weights.shape
        size = (1.5 + 0.32 * max(4, n_columns), 1.0 + 0.26 * max(4, n_rows))
        self.figure_, self.ax_ = single_axes(ax, size)
        self.image_ = self.ax_.imshow(self.weights, cmap=cmap, vmin=0.0, vmax=1.0, aspect="auto")
        self.ax_.set_xticks(range(n_columns), self.inputs, rotation=60, ha="right")
        self.ax_.set_yticks(range(n_rows), self.outputs)
        self.ax_.set(xlabel="input", ylabel="output", title=title or "")
        self.figure_.colorbar(self.image_, ax=self.ax_, label="attention")
        return self
