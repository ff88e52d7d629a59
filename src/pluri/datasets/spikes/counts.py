"""When nerve cells fired, and how often in bins of time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Seconds of a bin of the counts of a reaching macaque.
MACAQUE_WIDTH = 0.2


@dataclass(frozen=True, eq=False, repr=False)
class SpikeTrains:
    """When which cell fired.

    Attributes
    ----------
    times : ndarray of shape (n_spikes,)
        Seconds since the beginning of the recording, or on the clock of the laboratory.
    units : ndarray of shape (n_spikes,), dtype int64
        Number of the cell, from 0.
    recordings : ndarray of shape (n_spikes,), dtype int64
        Number of the recording, from 0; each has a clock of its own.
    unit_names, recording_names : tuple of str
    windows : ndarray of shape (n_trials, 2)
        Beginning and end of each trial.
    window_recordings : ndarray of shape (n_trials,), dtype int64
        The recording that each trial belongs to.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.datasets import SpikeTrains
    >>> trains = SpikeTrains(np.array([0.1, 0.2, 5.1]), np.array([0, 1, 1]), np.zeros(3, dtype=int), ("a", "b"),
    ...                      ("only",), np.array([[0.0, 0.4], [5.0, 5.4]]), np.zeros(2, dtype=int))
    >>> [counts.tolist() for counts in trains.counts(0.2)]
    [[[1, 0], [0, 1]], [[0, 1], [0, 0]]]
    """

    times: Array
    units: Integers
    recordings: Integers
    unit_names: tuple[str, ...]
    recording_names: tuple[str, ...]
    windows: Array
    window_recordings: Integers

    def counts(self, width: float, recordings: ArrayLike | None = None) -> list[Integers]:
        """Counts in bins of `width` seconds, an array (n_bins, n_units) for each trial.

        Parameters
        ----------
        width : float
        recordings : list of str, optional
            Names of the recordings to take; all by default.
        """
        names = list(self.recording_names) if recordings is None else np.atleast_1d(np.asarray(recordings)).tolist()
        strange = [name for name in names if name not in self.recording_names]
        if strange:
            raise ValueError(f"recordings must be among {', '.join(self.recording_names)}, got {strange[0]!r}")
        found: list[Integers] = []
        for name in names:
            number = self.recording_names.index(name)
            rows = self.recordings == number
            windows = self.windows[self.window_recordings == number]
            found += bin_spikes(
                self.times[rows], self.units[rows], width, windows=windows, n_units=len(self.unit_names)
            )
        return found

    def __repr__(self) -> str:
        """Sizes instead of the values."""
        size = f"{self.times.size} spikes, {len(self.unit_names)} units"
        return f"{type(self).__name__}({size}, {len(self.recording_names)} recordings, {len(self.windows)} trials)"


@dataclass(frozen=True, eq=False, repr=False)
class TrackSpikes(SpikeTrains):
    """Spikes of place cells, and where the animal was.

    Attributes
    ----------
    times, units, recordings, unit_names, recording_names, windows, window_recordings
        As in `SpikeTrains`; one recording, one trial.
    place_times : ndarray of shape (n_places,)
        On the same clock as the spikes.
    places : ndarray of shape (n_places, 2)
        Pixels of the camera.
    """

    place_times: Array
    places: Array


@dataclass(frozen=True, eq=False, repr=False)
class ReachingCounts:
    """Counts of spikes while an animal reaches for targets.

    Attributes
    ----------
    counts : ndarray of shape (n_bins, n_units), dtype int64
        In bins of 0.2 s, one after the other.
    velocities : ndarray of shape (n_bins, 2)
        Of the hand.
    targets : ndarray of shape (n_bins,), dtype int64
    width : float
        Seconds of a bin.
    """

    counts: Integers
    velocities: Array
    targets: Integers
    width: float = MACAQUE_WIDTH

    def trials(self) -> list[Integers]:
        """Counts cut wherever the target changes; two reaches in a row for the same target are not told apart."""
        return np.split(self.counts, np.flatnonzero(np.diff(self.targets)) + 1)

    def __repr__(self) -> str:
        """Sizes instead of the values."""
        return f"ReachingCounts({len(self.counts)} bins of {self.width:g} s, {self.counts.shape[1]} units)"


def bin_spikes(
    times: ArrayLike, units: ArrayLike, width: float, *, windows: ArrayLike | None = None, n_units: int | None = None
) -> list[Integers]:
    """Count spikes in bins of time, for each trial.

    Parameters
    ----------
    times : array-like of shape (n_spikes,)
    units : array-like of shape (n_spikes,) of integers
        Cell of each spike, from 0.
    width : float
        Of a bin, in the unit of the times. What is left at the end of a window is no bin.
    windows : array-like of shape (n_trials, 2), optional
        Beginning and end of each trial; by default one from the first spike to the last.
    n_units : int, optional
        Number of cells; the largest number of a cell and one by default.

    Returns
    -------
    list of ndarray of shape (n_bins, n_units), dtype int64

    Examples
    --------
    >>> from pluri.datasets import bin_spikes
    >>> bin_spikes([0.1, 0.15, 0.9, 2.1], [0, 0, 1, 1], 0.5, windows=[[0, 1], [2, 2.7]])
    [array([[2, 0],
           [0, 1]]), array([[0, 1]])]
    """
    when, who = np.asarray(times, dtype=np.float64), np.asarray(units)
    if when.ndim != 1 or who.shape != when.shape or not np.isfinite(when).all():
        raise ValueError(f"times must be finite, with a unit for each, got shapes {when.shape} and {who.shape}")
    if who.dtype.kind not in "iu" or (who.size and who.min() < 0):
        raise ValueError(
            f"units must be integers from 0, got {who.dtype}, {who.min() if who.size else 'none'} the least"
        )
    if not (np.isfinite(width) and width > 0):
        raise ValueError(f"width must be a positive number, got {width}")
    size = int(who.max(initial=-1)) + 1 if n_units is None else int(n_units)
    if who.size and who.max() >= size:
        raise ValueError(f"n_units must be above the largest unit ({who.max()}), got {n_units}")
    if windows is None and not when.size:
        raise ValueError("windows must be given if there is no spike, got none")
    bounds = np.array([[when.min(), when.max()]]) if windows is None else np.asarray(windows, dtype=np.float64)
    if bounds.ndim != 2 or bounds.shape[1] != 2 or not np.isfinite(bounds).all() or (bounds[:, 1] < bounds[:, 0]).any():
        raise ValueError(f"windows must be pairs of a beginning and a later end, got shape {bounds.shape}")
    order = np.argsort(when, kind="stable")
    when, who = when[order], who[order].astype(np.int64)
    found = []
    for start, stop in bounds:
        n_bins = int(np.floor((stop - start) / width + 1e-9))  # a window of whole bins may be short by rounding
        first, last = np.searchsorted(when, [start, start + n_bins * width])
        rows = np.floor((when[first:last] - start) / width).astype(np.int64)
        inside = rows < n_bins
        cells = rows[inside] * size + who[first:last][inside]
        found.append(np.bincount(cells, minlength=n_bins * size).reshape(n_bins, size).astype(np.int64))
    return found
