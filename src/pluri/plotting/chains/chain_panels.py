"""What the pictures of Markov chains share: which numbers are drawn, and a row of axes for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.inference.mcmc.diagnostics import each_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Rows drawn at most, if no names are given.
MOST_ROWS = 12


def chosen_numbers(
    trace: Any, names: Sequence[str] | str | None, most: int = MOST_ROWS
) -> dict[str, NDArray[np.float64]]:
    """Draws (n_chains, n_draws) by label, of a trace or a mapping of arrays (n_chains, n_draws, ...).

    `names` are variables (``"theta"``: all its entries) or single numbers (``"theta[2]"``); the first `most`
    numbers if there are none.
    """
    draws: Mapping[str, Any] = trace.draws if hasattr(trace, "draws") else trace
    arrays = {name: np.asarray(values) for name, values in draws.items()}
    for name, values in arrays.items():
        if values.ndim < 2:
            raise ValueError(f"draws of {name!r} must have shape (n_chains, n_draws, ...), got {values.shape}")
    numbers = dict(each_number(arrays))
    if names is None:
        return dict(list(numbers.items())[:most])
    wanted = [names] if isinstance(names, str) else list(names)
    chosen: dict[str, NDArray[np.float64]] = {}
    for name in wanted:
        found = {label: values for label, values in numbers.items() if label == name or label.split("[")[0] == name}
        if not found:
            raise ValueError(f"there is no variable {name!r}; there are {', '.join(map(repr, arrays))}")
        chosen |= found
    return chosen


def grid_of_axes(
    n_rows: int, n_columns: int, axes: Any, row_height: float, width: float, *, sharex: bool = False
) -> tuple[Figure, NDArray[Any]]:
    """Rows and columns of axes: the given ones, or a new figure."""
    if axes is not None:
        given = np.asarray(axes, dtype=object).reshape(-1)
        if given.size != n_rows * n_columns:
            raise ValueError(f"axes must be {n_rows} x {n_columns} axes, got {given.size}")
        return given[0].figure, given.reshape(n_rows, n_columns)
    import matplotlib.pyplot as plt

    figure, grid = plt.subplots(
        n_rows, n_columns, squeeze=False, sharex=sharex, figsize=(width, max(2.2, row_height * n_rows)),
        layout="constrained",
    )  # fmt: skip
    return figure, grid


def name_row(ax: Axes, label: str) -> None:
    """Write the name of a number beside its axes."""
    ax.set_ylabel(label, rotation=0, ha="right", va="center")


class ChainDisplay(ABC):
    """What displays of the numbers in a trace have in common.

    Parameters
    ----------
    numbers : mapping of str to array-like of shape (n_chains, n_draws)
    """

    axes_: NDArray[Any]
    figure_: Figure

    def __init__(self, numbers: Mapping[str, ArrayLike]) -> None:
        self.numbers = {name: np.asarray(values, dtype=np.float64) for name, values in numbers.items()}
        if not self.numbers:
            raise ValueError("numbers must hold at least one, got none")

    @classmethod
    def from_trace(
        cls, trace: Any, names: Sequence[str] | str | None = None, *, axes: Any = None, **options: Any
    ) -> Self:
        """Draw a trace.

        Parameters
        ----------
        trace : pluri.inference.mcmc.Trace or mapping of str to array of shape (n_chains, n_draws, ...)
        names : list of str, optional
            Variables, or single numbers such as ``"theta[2]"``; the first twelve numbers by default.
        axes : array of matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to ``plot``.
        """
        return cls(chosen_numbers(trace, names)).plot(axes=axes, **options)

    @abstractmethod
    def plot(self, *, axes: Any = None) -> Self:
        """Draw."""
