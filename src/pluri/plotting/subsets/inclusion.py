"""How probable each item is to be drawn: as bars, or as colour where the items lie in the plane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import HEATMAP, PALETTE, TRUTH_COLOR, checked_names, tidy
from pluri.plotting.subsets.side_panels import known_items, mark_known, side_axes
from pluri.validation import RandomState, as_generator

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MOST_NAMED = 60


class InclusionDisplay:
    """Inclusion probabilities of items, with the frequencies in subsets that were drawn.

    Bars have the frequencies as points on them; over the plane, frequencies stand against probabilities in a second
    panel. Error bars are standard errors of the frequencies; many items have a band of two standard errors instead.

    Make it with :meth:`from_process`.

    Parameters
    ----------
    probabilities : array-like of shape (n_items,)
    X : array-like of shape (n_items, 2), optional
        Where the items lie; bars without it.
    frequencies : array-like of shape (n_items,), optional
        Share of subsets that held the item.
    n_draws : int, optional
        Number of those subsets, for the standard errors.
    names : array-like of shape (n_items,), optional
        Names of the items; their numbers by default.
    fixed, excluded : array-like of int, optional
        Items that are always drawn, and items that never are. Over the plane they have their own markers, squares and
        crosses, and the colours are for the others; fixed bars are hatched.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
    figure_ : matplotlib Figure
    errors_ : ndarray of shape (n_items,) or None
        Standard errors of the frequencies, from the probabilities.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import InclusionDisplay
    >>> InclusionDisplay([0.5, 0.2], frequencies=[0.53, 0.19], n_draws=100).plot().errors_
    array([0.05, 0.04])
    >>> matplotlib.pyplot.close("all")
    """

    axes_: list[Axes]
    figure_: Figure | SubFigure

    def __init__(
        self,
        probabilities: ArrayLike,
        X: ArrayLike | None = None,
        *,
        frequencies: ArrayLike | None = None,
        n_draws: int | None = None,
        names: ArrayLike | None = None,
        fixed: ArrayLike = (),
        excluded: ArrayLike = (),
    ) -> None:
        self.probabilities = _shares(probabilities, None, "probabilities")
        n_items = self.probabilities.size
        self.X = None if X is None else np.asarray(X, dtype=np.float64)
        if self.X is not None and self.X.shape != (n_items, 2):
            raise ValueError(f"X must have shape ({n_items}, 2), got {self.X.shape}")
        self.frequencies = None if frequencies is None else _shares(frequencies, n_items, "frequencies")
        if n_draws is not None and n_draws < 1:
            raise ValueError(f"n_draws must be at least 1, got {n_draws}")
        self.n_draws = n_draws
        self.names = checked_names(names, n_items)
        self.fixed, self.excluded = (np.asarray(items, dtype=np.int64) for items in (fixed, excluded))
        for name, items in (("fixed", self.fixed), ("excluded", self.excluded)):
            if items.size and not (items.min() >= 0 and items.max() < n_items):
                raise ValueError(f"{name} must hold items from 0 to {n_items - 1}, got {items.min()} to {items.max()}")
        self.errors_: NDArray[np.float64] | None = None
        if self.frequencies is not None and n_draws is not None:
            self.errors_ = np.sqrt(self.probabilities * (1 - self.probabilities) / n_draws)

    @classmethod
    def from_process(
        cls,
        process: Any,
        X: ArrayLike | None = None,
        *,
        n_draws: int = 0,
        random_state: RandomState = None,
        names: ArrayLike | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the inclusion probabilities of a process.

        Parameters
        ----------
        process : pluri.processes.dpp.DPP or KDPP
            Anything with ``inclusion_probabilities()`` and, to compare, ``sample(n, random_state=...)``.
        X : array-like of shape (n_items, 2), optional
            Where the items lie; bars without it.
        n_draws : int, default=0
            Subsets to draw for the comparison.
        random_state : int, Generator, RandomState or None
            Source of those.
        names : array-like of shape (n_items,), optional
            Names of the items.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **options
            Passed to :meth:`plot`.

        Returns
        -------
        InclusionDisplay
        """
        probabilities = np.asarray(process.inclusion_probabilities())
        frequencies = None
        if n_draws:
            drawn = np.concatenate(process.sample(n_draws, random_state=as_generator(random_state)))
            frequencies = np.bincount(drawn.astype(np.int64), minlength=probabilities.size) / n_draws
        fixed, _, excluded = known_items(process, probabilities.size)
        display = cls(
            probabilities, X, frequencies=frequencies, n_draws=n_draws or None, names=names, fixed=fixed,
            excluded=excluded,
        )  # fmt: skip
        return display.plot(ax=ax, **options)

    def plot(self, *, ax: Axes | None = None, sort: bool = False, title: str | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        sort : bool, default=False
            Most probable items first (bars only).
        title : str, optional
            Title; "Inclusion probabilities" by default.

        Returns
        -------
        InclusionDisplay
            Itself.
        """
        name = "Inclusion probabilities" if title is None else title
        n_items = self.probabilities.size
        if self.X is None:
            width = float(np.clip(2.5 + 0.16 * n_items, 5, 12))
            self.figure_, self.axes_ = side_axes(ax, [1.0], (width, 3.6))
            self._draw_bars(self.axes_[0], sort, name)
            return self
        widths = [1.0] if self.frequencies is None else [1.15, 1.0]
        self.figure_, self.axes_ = side_axes(ax, widths, (4.8 if len(widths) == 1 else 8.8, 4.0))
        self._draw_points(self.axes_[0], self.X, name)
        if self.frequencies is not None:
            self._draw_comparison(self.axes_[1], self.frequencies)
        return self

    def _draw_bars(self, panel: Axes, sort: bool, title: str) -> None:
        n_items = self.probabilities.size
        order = np.argsort(-self.probabilities, kind="stable") if sort else np.arange(n_items)
        many = n_items > MOST_NAMED
        bars = panel.bar(
            np.arange(n_items), self.probabilities[order], width=1.0 if many else 0.8, color=PALETTE[4], label="exact"
        )
        for bar, item in zip(bars, order):
            if item in self.fixed:
                bar.set(hatch="///", edgecolor="white")
        if self.frequencies is not None:
            errors = None if self.errors_ is None or many else self.errors_[order]
            if many and self.errors_ is not None:
                self._draw_band(panel, np.arange(n_items), order)
            panel.errorbar(
                np.arange(n_items), self.frequencies[order], errors, fmt="o", color=PALETTE[5],
                markersize=1.8 if many else 3.5, linewidth=1.2,
                label="drawn" if self.n_draws is None else f"{self.n_draws} draws",
            )  # fmt: skip
            panel.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1.0, 1.0), borderaxespad=0.2)
        if many:
            panel.set_xlabel("items, most probable first" if sort else "item")
            panel.set_xlim(-0.5, n_items - 0.5)
        else:
            names = [self.names[item] for item in order]
            slanted = sum(map(len, names)) > 90
            panel.set_xticks(
                range(n_items), names, rotation=40 if slanted else 0, ha="right" if slanted else "center",
                rotation_mode="anchor" if slanted else "default",
            )  # fmt: skip
            panel.tick_params(axis="x", length=0, labelsize=7 if n_items > 25 else None)
            panel.set(xlabel="item", xlim=(-0.6, n_items - 0.4))
        panel.set(ylabel="probability")
        panel.set_ylim(bottom=0)
        panel.set_title(title, loc="left" if self.frequencies is not None else "center")
        tidy(panel, grid="y")

    def _draw_points(self, panel: Axes, places: NDArray[np.float64], title: str) -> None:
        # The most probable are drawn last, so that they are not hidden by their neighbours.
        order = np.argsort(self.probabilities, kind="stable")
        size = float(np.clip(4000 / order.size, 8, 60))
        order = order[~np.isin(order, np.concatenate([self.fixed, self.excluded]))]
        mark_known(panel, places, self.fixed, self.excluded, size)
        # From zero, unless all are so alike that they would then have one colour.
        free = self.probabilities[order]
        least, most = float(free.min(initial=1.0)), float(free.max(initial=0.0))
        start = least if least > 0.4 * most else 0.0
        dots = panel.scatter(
            places[order, 0],
            places[order, 1],
            c=self.probabilities[order],
            s=size,
            cmap=HEATMAP,
            vmin=start,
            linewidths=0,
        )
        panel.set(title=title, xticks=[], yticks=[])
        panel.set_aspect("equal", adjustable="box")
        panel.spines[:].set_color("0.85")
        bar = panel.figure.colorbar(dots, ax=panel, label="probability", pad=0.02, aspect=24)
        bar.outline.set_visible(False)

    def _draw_comparison(self, panel: Axes, frequencies: NDArray[np.float64]) -> None:
        shown = np.setdiff1d(np.arange(frequencies.size), np.concatenate([self.fixed, self.excluded]))
        top = 1.05 * float(max(self.probabilities[shown].max(initial=0.0), frequencies[shown].max(initial=0.0))) or 1.0
        panel.plot([0, top], [0, top], color=TRUTH_COLOR, linestyle="--", linewidth=1.0, zorder=1)
        crowded = frequencies.size > MOST_NAMED
        if crowded and self.errors_ is not None:
            order = shown[np.argsort(self.probabilities[shown], kind="stable")]
            self._draw_band(panel, self.probabilities[order], order)
            panel.legend(frameon=False, loc="upper left")
        panel.errorbar(
            self.probabilities[shown], frequencies[shown],
            None if crowded or self.errors_ is None else self.errors_[shown], fmt="o", color=PALETTE[5], zorder=2,
            markersize=2.2 if crowded else 4, linewidth=1.2,
        )  # fmt: skip
        drawn = "Frequency" if self.n_draws is None else f"Frequency in {self.n_draws} draws"
        panel.set(title=drawn, xlabel="probability", ylabel="frequency", xlim=(0, top))
        panel.set_ylim(bottom=0)
        tidy(panel, grid="both")

    def _draw_band(self, panel: Axes, places: NDArray[Any], order: NDArray[np.int64]) -> None:
        """Two standard errors to either side of the probabilities: where 19 of 20 frequencies should lie."""
        assert self.errors_ is not None
        middle, width = self.probabilities[order], 2 * self.errors_[order]
        panel.fill_between(
            places, np.maximum(middle - width, 0.0), middle + width, color=TRUTH_COLOR, alpha=0.2, linewidth=0,
            label="2 standard errors", zorder=1.5,
        )  # fmt: skip


def _shares(given: ArrayLike, n_items: int | None, name: str) -> NDArray[np.float64]:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or (n_items is not None and values.size != n_items):
        raise ValueError(f"{name} must be a list of numbers, one for each item, got shape {values.shape}")
    if not ((values >= -1e-12) & (values <= 1 + 1e-12)).all():
        raise ValueError(f"{name} must be between 0 and 1, got {values.min():.3g} to {values.max():.3g}")
    return np.clip(values, 0.0, 1.0)
