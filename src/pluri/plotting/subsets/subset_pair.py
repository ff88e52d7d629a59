"""A subset drawn from a process over points of the plane, beside one whose points were drawn independently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import PALETTE, QUIET_COLOR
from pluri.plotting.subsets.side_panels import known_items, mark_known, side_axes
from pluri.validation import RandomState, as_generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class SubsetDisplay:
    """Points with a chosen subset, and beside it independent draws of the same number.

    Make it with :meth:`from_process`.

    Parameters
    ----------
    X : array-like of shape (n_items, 2)
        Where the items lie.
    subset : array-like of int
        Chosen items.
    independent : array-like of int, optional
        Items for the panel on the right; without them there is none.
    fixed, excluded : array-like of int, optional
        Items that are in every subset, marked by squares, and items that are in none, marked by crosses.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        The subset, and the independent draws.
    figure_ : matplotlib Figure
    spacing_ : list of float
        Mean distance from a chosen item to the nearest other one, for each panel.

    Examples
    --------
    >>> import matplotlib, numpy as np
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import SubsetDisplay
    >>> X = np.stack(np.meshgrid(range(4), range(4)), axis=-1).reshape(-1, 2)
    >>> SubsetDisplay(X, [0, 3, 12], [0, 1, 2]).plot().spacing_
    [3.0, 1.0]
    >>> matplotlib.pyplot.close("all")
    """

    axes_: list[Axes]
    figure_: Figure | SubFigure
    spacing_: list[float]

    def __init__(
        self,
        X: ArrayLike,
        subset: ArrayLike,
        independent: ArrayLike | None = None,
        *,
        fixed: ArrayLike = (),
        excluded: ArrayLike = (),
    ) -> None:
        self.X = np.asarray(X, dtype=np.float64)
        if self.X.ndim != 2 or self.X.shape[1] != 2 or len(self.X) == 0:
            raise ValueError(f"X must have shape (n_items, 2), got {self.X.shape}")
        self.subset = _items(subset, len(self.X), "subset")
        self.independent = None if independent is None else _items(independent, len(self.X), "independent")
        self.fixed = _items(fixed, len(self.X), "fixed")
        self.excluded = _items(excluded, len(self.X), "excluded")

    @classmethod
    def from_process(
        cls, process: Any, X: ArrayLike, *, random_state: RandomState = None, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw a subset from a process, then as many items independently, and plot both.

        Items that a condition has fixed are in both, and those that it excludes in neither.

        Parameters
        ----------
        process : pluri.processes.dpp.DPP or KDPP
            Anything with ``sample(random_state=...)``.
        X : array-like of shape (n_items, 2)
            Where the items lie.
        random_state : int, Generator, RandomState or None
            Source of both draws.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        SubsetDisplay
        """
        rng = as_generator(random_state)
        subset = np.asarray(process.sample(random_state=rng))
        fixed, free, excluded = known_items(process, len(np.asarray(X)))
        drawn = rng.choice(free, size=min(max(subset.size - fixed.size, 0), free.size), replace=False)
        independent = np.sort(np.concatenate([fixed, drawn]))
        return cls(X, subset, independent, fixed=fixed, excluded=excluded).plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, titles: tuple[str, str] | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        titles : pair of str, optional
            Titles of the panels; "Diverse subset" and "Independent draws" by default.

        Returns
        -------
        SubsetDisplay
            Itself.
        """
        chosen = [self.subset] if self.independent is None else [self.subset, self.independent]
        self.figure_, self.axes_ = side_axes(ax, [1.0] * len(chosen), (4.2 * len(chosen), 4.2))
        names = titles or ("Diverse subset", "Independent draws")
        size = float(np.clip(2400 / len(self.X), 3, 16))
        self.spacing_ = []
        for panel, items, name, color in zip(self.axes_, chosen, names, (PALETTE[0], PALETTE[5])):
            area = float(np.clip(900 / max(items.size, 1), 14, 42))
            others, free = np.delete(self.X, self.excluded, axis=0), np.setdiff1d(items, self.fixed)
            panel.scatter(others[:, 0], others[:, 1], s=size, color=QUIET_COLOR, linewidths=0, zorder=1)
            panel.scatter(
                self.X[free, 0], self.X[free, 1], s=area, color=color, edgecolors="white", linewidths=0.6, zorder=2
            )
            mark_known(panel, self.X, np.intersect1d(items, self.fixed), self.excluded, area)
            self.spacing_.append(_spacing(self.X[items]))
            nearest = f", nearest at {self.spacing_[-1]:.2g}" if items.size > 1 else ""
            panel.set(title=name, xlabel=f"{items.size} of {len(self.X)} items{nearest}", xticks=[], yticks=[])
            panel.set_aspect("equal", adjustable="box")
            panel.spines[:].set_color("0.85")
        return self


def _items(given: ArrayLike, n_items: int, name: str) -> NDArray[np.int64]:
    items = np.asarray(given)
    if items.dtype == np.bool_ and items.shape == (n_items,):
        return np.flatnonzero(items).astype(np.int64)
    if items.ndim != 1 or (items.size and items.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a list of items or a mask, got {items.dtype} of shape {items.shape}")
    if items.size and not (items.min() >= 0 and items.max() < n_items):
        raise ValueError(f"{name} must hold items from 0 to {n_items - 1}, got {items.min()} to {items.max()}")
    return items.astype(np.int64)


def _spacing(points: NDArray[np.float64]) -> float:
    """Mean distance to the nearest other point; NaN for fewer than two."""
    if len(points) < 2:
        return float("nan")
    squared = ((points[:, None] - points) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return float(np.sqrt(squared.min(axis=1)).mean())
