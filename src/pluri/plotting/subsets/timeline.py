"""Which items are chosen at each time: a raster of items by time, with the effective sample size underneath."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.plotting.style import HEATMAP, PALETTE, TRUTH_COLOR, stacked_axes, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MOST_NAMED = 45


class TimelineDisplay:
    """Chosen items over time.

    Make it with :meth:`from_history`, or from arrays.

    Parameters
    ----------
    chosen : array-like of shape (n_steps, n_items), or sequence of collections of ids
        Truth values, or shares between 0 and 1 (inclusion probabilities), of all items; or the ids chosen at each step.
    ess : array-like of shape (n_steps,), optional
        Effective sample size.
    resampled : array-like of shape (n_steps,), dtype bool, or of step numbers, optional
        When particles were resampled.
    times : array-like of shape (n_steps,), optional
        Numbers or dates; 0, 1, ... by default.
    item_names : array-like, optional
        Name of each item (of each column, or of each id in the order of ``item_ids``).
    item_ids : sequence of hashable, optional
        Ids to show and their order, if ``chosen`` are ids; by default all that occur, in the order of first occurrence.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        The raster, then the effective sample size if there is one.
    figure_ : matplotlib Figure
    raster : ndarray of shape (n_steps, n_items)
    item_ids : list

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from pluri.plotting import TimelineDisplay
    >>> display = TimelineDisplay([("a", "b"), ("b",), ("c", "b")], ess=[10, 7, 4], resampled=[2]).plot()
    >>> display.item_ids, display.raster.astype(int).tolist()
    (['a', 'b', 'c'], [[1, 1, 0], [0, 1, 0], [0, 1, 1]])
    >>> matplotlib.pyplot.close("all")
    """

    axes_: list[Axes]
    figure_: Figure | SubFigure

    def __init__(
        self,
        chosen: ArrayLike | Sequence[Iterable[Hashable]],
        *,
        ess: ArrayLike | None = None,
        resampled: ArrayLike | None = None,
        times: ArrayLike | None = None,
        item_names: ArrayLike | None = None,
        item_ids: Sequence[Hashable] | None = None,
    ) -> None:
        self.raster, self.item_ids = _raster(chosen, item_ids)
        n_steps, n_items = self.raster.shape
        self.ess = None if ess is None else np.asarray(ess, dtype=np.float64)
        self.times = np.arange(n_steps) if times is None else np.asarray(times)
        for name, values in (("ess", self.ess), ("times", self.times)):
            if values is not None and values.shape != (n_steps,):
                raise ValueError(f"{name} must have an entry for each of the {n_steps} steps, got shape {values.shape}")
        self.resampled = _steps(resampled, n_steps)
        self.item_names = [str(item) for item in (self.item_ids if item_names is None else np.asarray(item_names))]
        if len(self.item_names) != n_items:
            raise ValueError(f"item_names must have a name for each of the {n_items} items, got {len(self.item_names)}")

    @classmethod
    def from_history(
        cls, history: Any, chosen: Any = None, *, ax: Axes | None = None, names: Any = None, **options: Any
    ) -> Self:
        """Draw the history of a process that was followed through time.

        Parameters
        ----------
        history : object or sequence of records
            A fitted process with ``history_``, or the records themselves: each with ``ess`` and ``resampled`` and, if
            ``chosen`` is not given, with the subset ``best``.
        chosen : array-like or sequence of collections of ids, optional
            What was chosen at each step, as for the class.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        names : mapping, optional
            Name of each id.
        **options
            ``times``, ``item_ids`` and ``item_names`` of the class; the others are passed to :meth:`plot`.

        Returns
        -------
        TimelineDisplay
        """
        records = list(getattr(history, "history_", history))
        if not records:
            raise ValueError("history must hold at least one step, got none")
        shown = chosen
        if shown is None:
            if not all(hasattr(record, "best") for record in records):
                raise ValueError("history must hold the subset 'best' of each step, or chosen must be given")
            shown = [record.best for record in records]
        stamps = [getattr(record, "stamp", record) for record in records]
        if not hasattr(shown, "__len__"):
            shown = list(shown)
        if len(shown) != len(records):
            raise ValueError(
                f"chosen must have an entry for each of the {len(records)} steps of history, got {len(shown)}: give "
                "the same steps of both, such as history[-n:] and the last n of chosen"
            )
        own = {name: options.pop(name) for name in ("times", "item_ids", "item_names") if name in options}
        if names is not None and own.get("item_names") is not None:
            raise ValueError("names (a mapping of ids) and item_names (a list) must not both be given")
        display = cls(
            shown,
            ess=[stamp.ess for stamp in stamps],
            resampled=[bool(getattr(stamp, "resampled", False)) for stamp in stamps],
            **own,
        )
        if names is not None:
            display.item_names = [str(names[item]) for item in display.item_ids]
        return display.plot(ax=ax, **options)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        n_particles: int | None = None,
        marks: ArrayLike | None = None,
        title: str | None = None,
        xlabel: str | None = None,
        ylabel: str = "item",
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        n_particles : int, optional
            Top of the axis of the effective sample size; the largest value by default.
        marks : array-like, optional
            Times at which to draw a dashed line over the raster, such as known changes.
        title : str, optional
            Title; "Chosen items" by default.
        xlabel : str, optional
            Label of the time axis; "step", or nothing for dates, by default.
        ylabel : str, default="item"
            Label of the axis of the items.

        Returns
        -------
        TimelineDisplay
            Itself.
        """
        n_items = self.raster.shape[1]
        tall = float(np.clip(1.6 + 0.14 * n_items, 2.2, 6.5))
        heights = [tall] if self.ess is None else [tall, 1.2]
        self.figure_, self.axes_ = stacked_axes(ax, heights, (8.0, sum(heights) + 0.6))
        upper, lowest = self.axes_[0], self.axes_[-1]
        dated = np.issubdtype(self.times.dtype, np.datetime64)
        moments = _numbers(self.times)
        self._draw_raster(upper, moments, "Chosen items" if title is None else title, ylabel)
        for moment in () if marks is None else _numbers(np.asarray(marks, dtype=self.times.dtype)):
            if self.raster.dtype != np.bool_:  # a white edge, to be seen on dark colours
                upper.axvline(moment, color="white", linewidth=2.6)
            upper.axvline(moment, color=PALETTE[5], linestyle="--", linewidth=1.4)
        if self.ess is not None:
            self._draw_ess(lowest, moments, self.ess, n_particles)
        lowest.set_xlabel(("" if dated else "step") if xlabel is None else xlabel)
        if dated:
            from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

            locator = AutoDateLocator()  # type: ignore[no-untyped-call]
            lowest.xaxis.set_major_locator(locator)
            lowest.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        return self

    def _draw_raster(self, panel: Axes, moments: NDArray[np.float64], title: str, ylabel: str) -> None:
        from matplotlib.colors import ListedColormap

        n_items = self.raster.shape[1]
        is_share = self.raster.dtype != np.bool_
        cells = panel.pcolormesh(
            _edges(moments), np.arange(n_items + 1) - 0.5, self.raster.T.astype(np.float64), vmin=0.0,
            vmax=None if is_share else 1.0, cmap=HEATMAP if is_share else ListedColormap(["white", PALETTE[0]]),
            rasterized=True,
        )  # fmt: skip
        panel.set(title=title, ylabel=ylabel, ylim=(n_items - 0.5, -0.5), xlim=tuple(_edges(moments)[[0, -1]]))
        if n_items <= MOST_NAMED:
            panel.set_yticks(range(n_items), self.item_names, fontsize=9 if n_items <= 20 else 6.5)
            panel.tick_params(axis="y", length=0)
        if is_share:
            bar = panel.figure.colorbar(cells, cax=panel.inset_axes((1.015, 0, 0.02, 1)), label="probability")
            bar.outline.set_visible(False)
        else:
            # Faint rows lead the eye from a name to its marks.
            for row in range(1, n_items) if n_items <= MOST_NAMED else ():
                panel.axhline(row - 0.5, color="0.92", linewidth=0.6, zorder=2)
        tidy(panel)

    def _draw_ess(
        self, panel: Axes, moments: NDArray[np.float64], ess: NDArray[np.float64], n_particles: int | None
    ) -> None:
        top = float(np.nanmax(ess)) if n_particles is None else float(n_particles)
        panel.plot(moments, ess, color=PALETTE[2], linewidth=1.2)
        marked = np.flatnonzero(self.resampled)
        if marked.size:  # (an empty line that is not clipped would upset the layout)
            panel.plot(
                moments[marked], ess[marked], "v", color=PALETTE[5], markersize=5, linestyle="none", clip_on=False,
                label="resampled",
            )  # fmt: skip
            panel.legend(frameon=False, loc="lower left", borderaxespad=0.1, handletextpad=0.2)
        panel.axhline(top, color=TRUTH_COLOR, linewidth=0.6, linestyle=":")
        panel.set(ylabel="effective", ylim=(0, 1.08 * top))
        tidy(panel)


def _raster(chosen: Any, item_ids: Sequence[Hashable] | None) -> tuple[NDArray[Any], list[Hashable]]:
    """Steps by items, and the ids of the items."""
    if isinstance(chosen, np.ndarray):
        if chosen.ndim != 2 or chosen.size == 0 or chosen.dtype.kind not in "bfiu":
            raise ValueError(f"chosen must have shape (n_steps, n_items), got {chosen.dtype} of shape {chosen.shape}")
        if not ((chosen >= 0) & (chosen <= 1)).all():
            raise ValueError(f"chosen must be between 0 and 1, got {chosen.min():.3g} to {chosen.max():.3g}")
        ids: list[Hashable] = list(range(chosen.shape[1]) if item_ids is None else item_ids)
        if len(ids) != chosen.shape[1]:
            raise ValueError(f"item_ids must name the {chosen.shape[1]} items of chosen, got {len(ids)}")
        return (chosen if chosen.dtype.kind == "f" else chosen.astype(np.bool_)), ids
    subsets = [list(subset) for subset in chosen]
    # A dictionary keeps the order of first occurrence.
    found = list(dict.fromkeys(item for subset in subsets for item in subset)) if item_ids is None else list(item_ids)
    if not subsets or not found:
        raise ValueError("chosen must hold at least one step with an item, got none")
    column = {item: place for place, item in enumerate(found)}
    raster = np.zeros((len(subsets), len(found)), dtype=np.bool_)
    for row, subset in zip(raster, subsets):
        row[[column[item] for item in subset if item in column]] = True
    return raster, found


def _steps(given: ArrayLike | None, n_steps: int) -> NDArray[np.bool_]:
    """Truth values of the steps, from truth values or from step numbers."""
    marked = np.zeros(n_steps, dtype=np.bool_)
    values = np.asarray([] if given is None else given)
    if values.dtype == np.bool_ and values.shape != (n_steps,):
        raise ValueError(f"resampled must have an entry for each of the {n_steps} steps, got shape {values.shape}")
    if values.dtype != np.bool_:
        values = values.astype(np.int64)
        if values.size and not (values.min() >= 0 and values.max() < n_steps):
            raise ValueError(f"resampled must hold steps from 0 to {n_steps - 1}, got {values.min()} to {values.max()}")
    marked[values] = True
    return marked


def _numbers(times: NDArray[Any]) -> NDArray[np.float64]:
    """Times as matplotlib counts them: dates in days."""
    if np.issubdtype(times.dtype, np.datetime64):
        from matplotlib.dates import date2num

        return np.asarray(date2num(times), dtype=np.float64)  # type: ignore[no-untyped-call]
    return times.astype(np.float64)


def _edges(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Borders halfway between moments."""
    if moments.size == 1:
        return np.array([moments[0] - 0.5, moments[0] + 0.5])
    inner = 0.5 * (moments[1:] + moments[:-1])
    return np.concatenate([[2 * moments[0] - inner[0]], inner, [2 * moments[-1] - inner[-1]]])
