"""Latent trajectories: paths of hidden states in a plane, or each dimension over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import single_axes, state_colors, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class TrajectoryDisplay:
    """Paths of the hidden state, one for each sequence; a dot marks where a path begins.

    Make it with :meth:`from_estimator`.

    Parameters
    ----------
    paths : sequence of array-like of shape (n_steps, n_components)
        States over time.
    names : sequence of str, optional
        Names of the paths.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : list of Line2D
        One for each path, or for each dimension of each path over time.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> import numpy as np
    >>> from pluri.plotting import TrajectoryDisplay
    >>> turn = np.linspace(0.0, 6.0, 50)
    >>> display = TrajectoryDisplay([np.stack([np.sin(turn), np.cos(turn)], axis=1)]).plot()
    >>> len(display.lines_)
    1
    >>> matplotlib.pyplot.close("all")
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: list[Any]

    def __init__(self, paths: Sequence[ArrayLike], *, names: Sequence[str] | None = None) -> None:
        self.paths: list[NDArray[np.float64]] = [np.asarray(path, dtype=np.float64) for path in paths]
        if not self.paths or any(path.ndim != 2 or path.shape[1] != self.paths[0].shape[1] for path in self.paths):
            shapes = [path.shape for path in self.paths]
            raise ValueError(f"paths must be arrays (n_steps, n_components) of one width, got shapes {shapes}")
        self.names = None if names is None else [str(name) for name in names]
        if self.names is not None and len(self.names) != len(self.paths):
            raise ValueError(f"names must have one entry for each of {len(self.paths)} paths, got {len(self.names)}")

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        *,
        lengths: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        dimensions: tuple[int, int] | None = (0, 1),
        ax: Axes | None = None,
        options: dict[str, Any] | None = None,
    ) -> Self:
        """Draw the states that a model finds in sequences.

        Parameters
        ----------
        model : object
            With ``transform(X)``, which gives states (n_samples, n_components), sequences end to end.
        X : array-like of shape (n_samples, n_features), or list of sequences
            The data.
        lengths : array-like of shape (n_sequences,), optional
            Lengths of the sequences in X, if it is an array.
        names : sequence of str, optional
            Names of the sequences.
        dimensions : pair of int or None, default=(0, 1)
            The plane to draw; None draws all dimensions over time. A model with one dimension is drawn over time.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        options : dict, optional
            Further arguments of ``transform``, such as inputs.

        Returns
        -------
        TrajectoryDisplay
        """
        if lengths is None:
            is_list = isinstance(X, list | tuple)
            lengths = [len(part) for part in X] if is_list else [len(X)]
            found = model.transform(X, **(options or {}))
        else:
            found = model.transform(X, lengths=lengths, **(options or {}))
        states = np.asarray(found, dtype=np.float64)
        ends = np.cumsum(np.asarray(lengths))
        display = cls(np.split(states, ends[:-1]), names=names)
        return display.plot(ax=ax, dimensions=dimensions if states.shape[1] > 1 else None)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        title: str | None = None,
        dimensions: tuple[int, int] | None = (0, 1),
        legend: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        title : str, optional
            Title; "Latent trajectories" by default, an empty string for none.
        dimensions : pair of int or None, default=(0, 1)
            The plane to draw; None draws all dimensions over time.
        legend : bool, default=True
            Whether to name the paths, if they have names, or the dimensions.

        Returns
        -------
        TrajectoryDisplay
            Itself.
        """
        width = self.paths[0].shape[1]
        if dimensions is not None and not all(0 <= axis < width for axis in dimensions):
            raise ValueError(f"dimensions must be two of 0 to {width - 1}, or None, got {dimensions}")
        self.figure_, self.ax_ = single_axes(ax, (5.0, 4.4) if dimensions is not None else (6.4, 3.4))
        self.lines_ = []
        if dimensions is None:
            self._over_time(width, legend)
        else:
            self._in_plane(dimensions, legend)
        self.ax_.set_title("Latent trajectories" if title is None else title)
        tidy(self.ax_)
        return self

    def _in_plane(self, dimensions: tuple[int, int], legend: bool) -> None:
        first, second = dimensions
        for number, (path, color) in enumerate(zip(self.paths, state_colors(len(self.paths)))):
            label = None if self.names is None else self.names[number]
            (line,) = self.ax_.plot(path[:, first], path[:, second], color=color, linewidth=1.3, label=label)
            self.ax_.plot(path[:1, first], path[:1, second], "o", color=color, markersize=5)
            self.lines_.append(line)
        self.ax_.set(xlabel=f"dimension {first}", ylabel=f"dimension {second}")
        if legend and self.names is not None:
            self.ax_.legend(frameon=False, fontsize="small")

    def _over_time(self, width: int, legend: bool) -> None:
        for axis, color in enumerate(state_colors(width)):
            for number, path in enumerate(self.paths):
                label = f"dimension {axis}" if number == 0 else None
                (line,) = self.ax_.plot(np.arange(len(path)), path[:, axis], color=color, linewidth=1.2, label=label)
                self.lines_.append(line)
        self.ax_.set(xlabel="step", ylabel="state")
        if legend and width > 1:
            self.ax_.legend(frameon=False, fontsize="small")
