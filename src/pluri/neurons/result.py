"""What a run gives: recorded fields as arrays, spikes as lists of times, and both as data for the models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.engine.extras import import_pandas
from pluri.neurons.numerics.recording import Group
from pluri.neurons.tree.element import Element
from pluri.neurons.tree.errors import SimulationError, nearest
from pluri.validation import Number, Whole

if TYPE_CHECKING:
    import pandas as pd

    from pluri.neurons.simulation import Simulation

Array = np.ndarray[Any, Any]

HOW = ": ask for it with record(path, field) before the run"


class SimulationResult:
    """What was recorded in a run.

    Attributes
    ----------
    time : ndarray of shape (n_rows,)
        Times (ms) of what was recorded at the fastest clock.
    series : dict
        (path, field) to times and values.
    names : list of (str, str)
        Path and field of each series.
    begin, end : float
        Time (ms) of the beginning and the end of the run.

    Examples
    --------
    >>> from pluri.neurons.models import two_neurons
    >>> sim = two_neurons()
    >>> sim.record("/net/*/soma", "Vm")
    >>> result = sim.run(60.0)
    >>> result.names
    [('/net/a/soma', 'Vm'), ('/net/b/soma', 'Vm')]
    >>> result["/net/b/soma", "Vm"].shape == result.time.shape
    True
    >>> len(result.spikes("/net/a/axon")), len(result.spikes("/net/b/axon"))
    (4, 4)
    """

    def __init__(
        self,
        series: dict[tuple[str, str], tuple[Array, Array]],
        spikes: dict[str, Array],
        begin: float,
        end: float,
        dt: float,
    ) -> None:
        self.series, self._spikes, self.begin, self.end, self.dt = series, spikes, begin, end, dt

    @property
    def names(self) -> list[tuple[str, str]]:
        """Path and field of each series."""
        return list(self.series)

    @property
    def time(self) -> Array:
        """Times of the longest series."""
        return max((times for times, _ in self.series.values()), key=len, default=np.zeros(0))

    def _key(self, path: str | Element, field: str) -> tuple[str, str]:
        key = (path.path if isinstance(path, Element) else path, field)
        if key not in self.series:
            known = [f"{one} {name}" for one, name in self.series]
            raise SimulationError(f"{key[1]} of {key[0]} was not recorded{nearest(' '.join(key), known) or HOW}")
        return key

    def __getitem__(self, key: tuple[str | Element, str]) -> Array:
        return self.series[self._key(*key)][1]

    def times(self, path: str | Element, field: str) -> Array:
        """Times of one series."""
        return self.series[self._key(path, field)][0]

    def spikes(self, path: str | Element, threshold: float = 0.0) -> Array:
        """Times of the spikes of an axon or another source, or of a compartment whose voltage was recorded.

        Parameters
        ----------
        path : str or Element
            Which.
        threshold : float, default=0.0
            Of a compartment: the voltage (mV) whose crossing upwards is a spike; the time is interpolated.

        Returns
        -------
        ndarray of shape (n_spikes,)
            In ms.
        """
        name = path.path if isinstance(path, Element) else path
        if name in self._spikes:
            return self._spikes[name]
        if (name, "Vm") in self.series:
            times, v = self.series[name, "Vm"]
            up = np.flatnonzero((v[:-1] < threshold) & (v[1:] >= threshold))
            return times[up] + (threshold - v[up]) / (v[up + 1] - v[up]) * (times[up + 1] - times[up])
        raise SimulationError(
            f"{name} is no source of spikes, and its Vm was not recorded{nearest(name, self._spikes) or HOW}"
        )

    def raster(self) -> tuple[Array, Array, list[str]]:
        """All spikes: times (ms), numbers of the units, and the names that the numbers stand for."""
        names = list(self._spikes)
        times = [self._spikes[name] for name in names]
        units = [np.full(len(one), k) for k, one in enumerate(times)]
        all_times = np.concatenate([np.zeros(0), *times])
        order = np.argsort(all_times, kind="stable")
        return all_times[order], np.concatenate([np.zeros(0, dtype=int), *units])[order], names

    def counts(self, bin_width: float) -> Array:
        """Spikes of each unit in bins of time: input for the models of counts.

        Parameters
        ----------
        bin_width : float
            In ms. What is left at the end of the run and fills no bin is not counted.

        Returns
        -------
        ndarray of shape (n_bins, n_units)
        """
        if not Number(above=0).holds(bin_width):
            raise SimulationError(f"bin_width must be {Number(above=0)}, got {bin_width!r}")
        n_bins = int((self.end - self.begin) / bin_width + 1e-9)
        edges = self.begin + bin_width * np.arange(n_bins + 1)
        counts = np.zeros((n_bins, len(self._spikes)), dtype=int)
        for j, times in enumerate(self._spikes.values()):
            counts[:, j] = np.histogram(times, edges)[0] if n_bins else 0
        return counts

    def to_sequences(self, field: str = "Vm", every: int = 1) -> tuple[Array, list[int]]:
        """Recorded series one after another, and their lengths: input for the hidden Markov models.

        Parameters
        ----------
        field : str, default="Vm"
            Which field.
        every : int, default=1
            Take each `every`-th value only.

        Returns
        -------
        X : ndarray of shape (n_values, 1)
        lengths : list of int
        """
        if not Whole(1).holds(every):
            raise SimulationError(f"every must be {Whole(1)}, got {every!r}")
        named = [one for (_, name), one in self.series.items() if name == field]
        if len({round(float(step), 9) for times, _ in named for step in np.diff(times)[:1]}) > 1:
            raise SimulationError(f"{field} was recorded at several clocks: one sequence needs one time step")
        chosen = [values[::every] for _, values in named]
        if not chosen:
            raise SimulationError(f"{field} was not recorded{nearest(field, [name for _, name in self.series]) or HOW}")
        return np.concatenate(chosen)[:, None], [len(one) for one in chosen]

    def to_frame(self) -> pd.DataFrame:
        """A pandas DataFrame: one column for each series, the time (ms) as index; NaN where a clock did not tick."""
        pandas = import_pandas()
        columns = {
            f"{path}.{field}": pandas.Series(values, index=np.round(times, 9))
            for (path, field), (times, values) in self.series.items()
        }
        frame = pandas.DataFrame(columns)
        frame.index.name = "time"
        return frame

    def __repr__(self) -> str:
        n_spikes = sum(len(one) for one in self._spikes.values())
        return (
            f"<SimulationResult from {self.begin:g} to {self.end:g} ms: {len(self.series)} series, {n_spikes} spikes "
            f"of {len(self._spikes)} sources>"
        )


def result_of(simulation: Simulation, begin: int) -> SimulationResult:
    """What was recorded from a step on; from the very beginning with the initial values."""
    pieces: dict[tuple[str, str], list[tuple[Array, Array]]] = {}
    dt, recording = simulation.dt, simulation.recording
    for group in recording.groups:
        steps, rows = _rows(group, begin)
        for j, key in enumerate(group.columns):
            pieces.setdefault(key, []).append((steps * dt, rows[:, j]))
    series = {
        key: (np.concatenate([one[0] for one in each]), np.concatenate([one[1] for one in each]))
        for key, each in pieces.items()
    }
    # A spike lies between two steps; those of the first step of this run count, those of the last before it do not.
    since = (begin - 1e-9) * dt if begin else -np.inf
    pieces_of_spikes = _latest(list(zip(recording.spike_times, recording.spike_paths)), since)
    times = np.concatenate([np.zeros(0), *(one[0] for one in pieces_of_spikes)])
    places = np.concatenate([np.zeros(0, dtype=np.int64), *(one[1] for one in pieces_of_spikes)])
    order = np.lexsort((times, places))
    times, places = times[order], places[order]
    bounds = np.searchsorted(places, np.arange(len(recording.paths) + 1))
    spikes = {path: np.zeros(0) for path in _source_paths(simulation)}
    for k, path in enumerate(recording.paths):
        own = times[bounds[k] : bounds[k + 1]]
        spikes[path] = own[own > since]
    return SimulationResult(series, spikes, begin * dt, simulation.n_steps * dt, dt)


def _rows(group: Group, begin: int) -> tuple[Array, Array]:
    """Steps and rows after a step, taken from the end backwards: whoever watches a run asks many times a second."""
    n_rows = group.n_rows
    n_before = min(max((begin - group.first_step) // group.ticks + 1, 0), n_rows) if begin else 0
    wanted, pieces = n_rows - n_before, []
    for piece in reversed(group.rows):
        if wanted <= 0:
            break
        pieces.append(piece[-wanted:])
        wanted -= len(piece)
    rows = np.concatenate([np.zeros((0, len(group.columns))), *reversed(pieces)])
    return group.first_step + group.ticks * np.arange(n_before, n_rows), rows


def _latest(pieces: list[tuple[Array, Array]], since: float) -> list[tuple[Array, Array]]:
    """The last pieces, back to the first of them that has nothing after a time."""
    found: list[tuple[Array, Array]] = []
    for piece in reversed(pieces):
        # A spike may be told a few steps late, but never in a later piece than one that has it all behind.
        if len(piece[0]) and piece[0].max() <= since:
            break
        found.append(piece)
    return found[::-1]


def _source_paths(simulation: Simulation) -> list[str]:
    network = simulation.network
    if network is None:
        return []
    sources = {id(one) for one in network.sources_by_number.values()}
    return [one.path for one in network.assembly.elements if id(one) in sources]
