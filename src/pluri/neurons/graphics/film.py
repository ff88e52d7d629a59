"""What was seen: samples of traces, voltages of cells and spikes, thinned to what an eye can follow.

A film is filled from results, the whole of a run or piece by piece while one goes on. The page asks for what came after
what it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.neurons.tree.errors import SimulationError

if TYPE_CHECKING:
    from pluri.neurons.simulation import Simulation

#: Shortest time between two samples of a trace and between two pictures of a cell (ms).
SAMPLE, PICTURE = 0.1, 0.5
#: Samples, pictures and spikes that a film keeps; older ones leave it.
MOST_SAMPLES, MOST_PICTURES, MOST_SPIKES = 100_000, 2_000, 200_000
#: Decimals of what a page is sent.
DECIMALS = 6


def recorded(simulation: Any, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Times and values of fields since the reset; empty before the first step."""
    result = simulation.result()
    found = {}
    for path, name in pairs:
        try:
            found[path, name] = (result.times(path, name), result[path, name])
        except (KeyError, SimulationError):  # not recorded, or not there any more
            found[path, name] = (np.empty(0), np.empty(0))
    return found


class _Strip:
    """Rows of numbers at rising times, of which the latest are kept."""

    def __init__(self, most: int, gap: float) -> None:
        self.most, self.gap, self.start, self.cell = most, gap, 0, -1.0
        self.times: list[float] = []
        self.rows: list[Any] = []

    def add(self, times: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> None:
        """Add rows, of which those are left out that come too soon after the one before."""
        if not len(times):
            return
        keep = self._spaced(times)
        self.times += np.round(times[keep], DECIMALS).tolist()
        self.rows += plain(rows[keep])
        extra = len(self.times) - self.most
        if extra > self.most // 10:  # in large pieces: each moves all that stays
            del self.times[:extra], self.rows[:extra]
            self.start += extra

    def _spaced(self, times: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The first of each interval of a grid: pieces of any length give the same film."""
        if self.gap <= 0:
            return np.arange(len(times))
        cells = np.floor(times / self.gap + 1e-6)
        keep = np.diff(cells, prepend=self.cell) > 0
        self.cell = float(cells[-1])
        return np.flatnonzero(keep)

    def after(self, number: int) -> slice:
        """Which rows come after the first so many of all that ever were."""
        return slice(max(0, number - self.start), None)

    @property
    def end(self) -> int:
        """How many rows there ever were."""
        return self.start + len(self.times)


def plain(rows: np.ndarray[Any, Any]) -> list[Any]:
    """Numbers as JSON has them, six digits, None in place of what is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (DECIMALS - 1 - np.floor(np.log10(np.maximum(np.abs(rows), 1e-300))))
        short = np.where(np.isfinite(rows) & (rows != 0), np.round(rows * scale) / scale, 0.0)
    told: np.ndarray[Any, Any] = short.astype(object)
    told[~np.isfinite(rows)] = None
    return told.tolist()


class Film:
    """Samples of all graphs, cells and networks of a layout.

    Parameters
    ----------
    layout : dict
        From :func:`pluri.neurons.graphics.layout.output_layout`.
    """

    def __init__(self, layout: dict[str, Any]) -> None:
        self.layout, self.begin, self.end = layout, 0.0, 0.0
        self.clear()

    @classmethod
    def of(cls, simulation: Simulation, layout: dict[str, Any]) -> Film:
        """All that was recorded since the reset."""
        film = cls(layout)
        film.add(simulation.result())
        film.end = max(film.end, float(simulation.time))
        return film

    def clear(self) -> None:
        """Forget what was seen."""
        self.begin = self.end = 0.0
        self.graphs = {one["path"]: _Strip(MOST_SAMPLES, SAMPLE) for one in self.layout["graphs"]}
        self.cells = {one["path"]: _Strip(MOST_PICTURES, PICTURE) for one in self.layout["cells"]}
        self.networks = {one["path"]: _Strip(MOST_SPIKES, 0.0) for one in self.layout["networks"]}

    def add(self, result: Any) -> None:
        """Add what a piece of a run recorded."""
        for graph in self.layout["graphs"]:
            pairs = [(trace["path"], trace["field"]) for trace in graph["traces"]]
            self._add_columns(self.graphs[graph["path"]], result, pairs)
        for cell in self.layout["cells"]:
            self._add_columns(self.cells[cell["path"]], result, [(path, cell["field"]) for path in cell["paths"]])
        for network in self.layout["networks"]:
            pieces = [(np.asarray(_spikes(result, path)), unit) for unit, path in enumerate(network["paths"])]
            times = np.concatenate([times for times, _ in pieces] or [np.empty(0)])
            units = np.concatenate([np.full(len(times), unit) for times, unit in pieces] or [np.empty(0)])
            order = np.argsort(times, kind="stable")
            self.networks[network["path"]].add(times[order], units[order].astype(int))
        if len(result.time):
            self.end = max(self.end, float(result.time[-1]))

    def _add_columns(self, strip: _Strip, result: Any, pairs: list[tuple[str, str]]) -> None:
        times, columns = None, []
        for path, name in pairs:
            try:
                own, values = result.times(path, name), np.asarray(result[path, name], dtype=float)
            except (KeyError, SimulationError):  # it has been deleted
                own, values = np.empty(0), np.empty(0)
            if times is None or len(own) > len(times):
                times = own
            columns.append((own, values))
        if times is None or not len(times):
            return
        table = np.full((len(times), len(columns)), np.nan)
        for place, (own, values) in enumerate(columns):
            if len(own):  # one of a slower clock keeps its value until the next tick
                at = np.searchsorted(own, times + 1e-9, side="right") - 1
                table[:, place] = np.where(at >= 0, values[np.maximum(at, 0)], np.nan)
        strip.add(times, table)

    def marks(self) -> int:
        """A number that grows with the film."""
        return sum(strip.end for strips in (self.graphs, self.cells, self.networks) for strip in strips.values())

    def ends(self) -> dict[str, int]:
        """How many rows each strip ever had."""
        return {
            path: strip.end for strips in (self.graphs, self.cells, self.networks) for path, strip in strips.items()
        }

    def since(self, ends: dict[str, int]) -> dict[str, Any]:
        """What came after given numbers of rows of each strip."""
        found: dict[str, Any] = {"graphs": {}, "cells": {}, "networks": {}}
        for path, strip in self.graphs.items():
            part = strip.after(ends.get(path, 0))
            rows = strip.rows[part]
            if rows:
                found["graphs"][path] = {"t": strip.times[part], "v": list(map(list, zip(*rows)))}
        for path, strip in self.cells.items():
            part = strip.after(ends.get(path, 0))
            found["cells"][path] = {"t": strip.times[part], "frames": strip.rows[part]}
        for path, strip in self.networks.items():
            part = strip.after(ends.get(path, 0))
            found["networks"][path] = {"t": strip.times[part], "u": strip.rows[part]}
        return found

    def whole(self) -> dict[str, Any]:
        """All of it, as a page that replays takes it."""
        begins = [strip.times[0] for strip in self.graphs.values() if strip.start and strip.times]
        return {**self.since({}), "begin": min(begins, default=self.begin), "end": self.end}


def _spikes(result: Any, path: str) -> Any:
    try:
        return result.spikes(path)
    except (KeyError, SimulationError):
        return ()
