"""The tree that a beam search walks through: what was kept at each step, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from pluri.plotting.style import PALETTE, QUIET_COLOR, single_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class BeamTreeDisplay:
    """Candidates of a beam search, step by step, with lines to what they were extended from.

    Parameters
    ----------
    parents : int array of shape (n_steps, beam_size)
        Place of each candidate's parent in the beam of the step before.
    tokens : list of n_steps lists of beam_size names
        The token by which each was extended; an empty name where a finished candidate is only kept.
    log_probs : array of shape (n_steps, beam_size)
        Of the candidates; minus infinity where there is none.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    best_ : list of int
        Places in the beam of the best final candidate, from the first step to the last.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import BeamTreeDisplay
    >>> tokens = [["a", "b"], ["c", "d"]]
    >>> display = BeamTreeDisplay([[0, 0], [1, 0]], tokens, [[-0.7, -0.9], [-1.0, -1.5]]).plot()
    >>> display.best_
    [1, 0]
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    best_: list[int]

    def __init__(self, parents: ArrayLike, tokens: Sequence[Sequence[Any]], log_probs: ArrayLike) -> None:
        self.parents = np.asarray(parents, dtype=np.int64)
        self.log_probs = np.asarray(log_probs, dtype=np.float64)
        self.tokens = [[str(token) for token in row] for row in tokens]
        shape = self.parents.shape
        named = (len(self.tokens), *{len(row) for row in self.tokens})
        if self.parents.ndim != 2 or self.log_probs.shape != shape or named != shape:
            raise ValueError(
                f"parents, tokens and log_probs must have one shape (n_steps, beam_size), got {shape}, {named} and "
                f"{self.log_probs.shape}"
            )
        if (self.parents < 0).any() or (self.parents >= shape[1]).any():
            raise ValueError(f"parents must be places from 0 to {shape[1] - 1}")

    @classmethod
    def from_estimator(cls, model: Any, x: Any, *, beam_size: int | None = None, **options: Any) -> Self:
        """Draw the search of a fitted decoder of `pluri.networks` for one input; other arguments go to :meth:`plot`.

        Parameters
        ----------
        model : fitted decoder
        x : one input: a vector, or a sequence
        beam_size : int, optional
            In place of the model's setting.
        **options
            For :meth:`plot`.
        """
        return cls(*model.beam_tree(x, beam_size=beam_size)).plot(**options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional

        Returns
        -------
        BeamTreeDisplay
            Itself.
        """
        n_steps, beam_size = self.parents.shape
        self.figure_, self.ax_ = single_axes(ax, (1.0 + 0.7 * n_steps, 0.8 + 0.35 * beam_size))
        self.best_ = self._path(int(np.argmax(self.log_probs[-1])))
        for t in range(n_steps):
            for place in range(beam_size):
                if not np.isfinite(self.log_probs[t, place]):
                    continue
                begin = (t - 1, self.parents[t, place] if t else (beam_size - 1) / 2)
                is_best = self.best_[t] == place
                color = PALETTE[5] if is_best else QUIET_COLOR
                self.ax_.plot(
                    [begin[0], t], [begin[1], place], color=color, linewidth=1.8 if is_best else 0.8, zorder=2 * is_best
                )
                self.ax_.text(
                    t, place, self.tokens[t][place], ha="center", va="center", fontsize=8,
                    bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": color, "pad": 0.2}, zorder=3,
                )  # fmt: skip
        self.ax_.set(xlabel="step", ylabel="place in the beam", title=title or "")
        self.ax_.set_xlim(-1.2, n_steps - 0.4)
        self.ax_.set_ylim(beam_size - 0.4, -0.6)
        self.ax_.set_yticks(range(beam_size))
        return self

    def _path(self, last: int) -> list[int]:
        """Places of a final candidate's ancestors, itself included."""
        path = [last]
        for t in range(len(self.parents) - 1, 0, -1):
            path.append(int(self.parents[t, path[-1]]))
        return path[::-1]
