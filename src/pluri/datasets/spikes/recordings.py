"""Spikes of nerve cells: a rat on a track, the antennal lobe of locusts, the motor cortex of a reaching macaque.

The files are read from the data folder and not shipped. :func:`pluri.datasets.bin_spikes` counts spikes in bins of
time, one array for each trial, which is what models of counts take.

References
----------
.. [1] C. Pouzat and A. Chaffiol, "Automatic spike train analysis and report generation", Journal of Neuroscience
   Methods 181, 2009 (locusts).
.. [2] E. L. Dyer, M. Gheshlaghi Azar, M. G. Perich, H. L. Fernandes, S. Naufel, L. E. Miller and K. P. Kording, "A
   cryptography-based approach for movement decoding", Nature Biomedical Engineering 1, 2017 (macaque).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file, npz_arrays
from pluri.datasets.spikes.counts import ReachingCounts, SpikeTrains, TrackSpikes
from pluri.validation import Only, check_value

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
TRACK_ADVICE = "Store spikes and places as an npz file with spike_time, unit, pos_time and pos_xy (github.com/nelpy)."
LOCUST_ADVICE = (
    "Store spikes as an npz file with spike_time, unit, recording, trial, unit_names, recording_names and "
    "trial_period_s; the data are on zenodo.org (locust datasets of C. Pouzat)."
)
MACAQUE_ADVICE = "Store counts as an npz file with Ytr, Xtr, Ttr and Yte, Xte, Tte (github.com/KordingLab/DAD)."
#: Seconds that were recorded of each trial of the locusts.
LOCUST_SECONDS = 28.77


def load_hippocampus_track(data_home: str | os.PathLike[str] | None = None) -> TrackSpikes:
    """Load 31 cells of the hippocampus of a rat that runs on a linear track and then rests: 28,829 spikes in 33 min.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``spikes_hippocampus_linear_track.npz``; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_hippocampus_track
    >>> load_hippocampus_track()  # doctest: +SKIP
    TrackSpikes(28829 spikes, 31 units, 1 recordings, 1 trials)
    """
    path = find_file(("spikes_hippocampus_linear_track.npz",), data_home, TRACK_ADVICE)
    arrays = npz_arrays(path, ("spike_time", "unit", "pos_time", "pos_xy"))
    times, units = _spikes(path, arrays)
    places = arrays["pos_xy"].astype(np.float64)
    if places.shape != (arrays["pos_time"].size, 2):
        raise ValueError(f"{path.name} must hold a place (x, y) for each pos_time, got shape {places.shape}")
    return TrackSpikes(
        times, units, np.zeros_like(units), tuple(f"unit {unit}" for unit in range(int(units.max()) + 1)), ("track",),
        np.array([[times.min(), times.max()]]), np.zeros(1, dtype=np.int64), arrays["pos_time"].astype(np.float64),
        places,
    )  # fmt: skip


def load_locust_spontaneous(data_home: str | os.PathLike[str] | None = None) -> SpikeTrains:
    """Load ten cells of the antennal lobe of a locust without any odour: 95 trials of 28.8 s in 8 recordings.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``spikes_locust20010217_spontaneous.npz``; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_locust_spontaneous
    >>> load_locust_spontaneous()  # doctest: +SKIP
    SpikeTrains(125169 spikes, 10 units, 8 recordings, 95 trials)
    """
    return _locust(find_file(("spikes_locust20010217_spontaneous.npz",), data_home, LOCUST_ADVICE))


def load_locust_odors(data_home: str | os.PathLike[str] | None = None) -> SpikeTrains:
    """Load ten cells of the antennal lobe of a locust that smells odours: 329 trials of 28.8 s in 13 recordings.

    The units ``tetB_u09`` and ``tetB_u10`` fire most, and are likely several cells each.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``spikes_locust20010214_odors.npz``; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_locust_odors
    >>> odors = load_locust_odors()  # doctest: +SKIP
    >>> len(odors.counts(0.05, recordings="Citral"))  # doctest: +SKIP
    25
    """
    return _locust(find_file(("spikes_locust20010214_odors.npz",), data_home, LOCUST_ADVICE))


def load_macaque_reaching(subset: str = "train", data_home: str | os.PathLike[str] | None = None) -> ReachingCounts:
    """Load counts of cells of the motor cortex of a macaque that reaches for four targets, in bins of 0.2 s.

    Parameters
    ----------
    subset : {"train", "test"}, default="train"
        623 bins of 174 cells, or 803 bins of 187 others.
    data_home : str or path, optional
        Folder of ``spikes_macaque_m1_mihi.npz``; see :func:`pluri.datasets.data_home`.

    Examples
    --------
    >>> from pluri.datasets import load_macaque_reaching
    >>> load_macaque_reaching("test")  # doctest: +SKIP
    ReachingCounts(803 bins of 0.2 s, 187 units)
    """
    check_value(subset, "subset", Only("train", "test"))
    path = find_file(("spikes_macaque_m1_mihi.npz",), data_home, MACAQUE_ADVICE)
    part = {"train": "tr", "test": "te"}[subset]
    arrays = npz_arrays(path, (f"Y{part}", f"X{part}", f"T{part}"))
    counts, velocities, targets = arrays.values()
    if (
        counts.ndim != 2
        or counts.dtype.kind not in "iu"
        or velocities.shape != (len(counts), 2)
        or targets.shape != (len(counts),)
    ):
        raise ValueError(
            f"{path.name} must hold counts Y{part}, velocities X{part} and targets T{part} of the same bins, got "
            f"shapes {counts.shape}, {velocities.shape} and {targets.shape}"
        )
    return ReachingCounts(counts.astype(np.int64), velocities.astype(np.float64), targets.astype(np.int64))


def _locust(path: Path) -> SpikeTrains:
    names = ("spike_time", "unit", "recording", "trial", "unit_names", "recording_names", "trial_period_s")
    arrays = npz_arrays(path, names)
    times, units = _spikes(path, arrays)
    recordings, trials = arrays["recording"].astype(np.int64), arrays["trial"].astype(np.int64)
    unit_names, recording_names = (tuple(map(str, arrays[name])) for name in ("unit_names", "recording_names"))
    fits = recordings.shape == trials.shape == times.shape and units.max() < len(unit_names)
    if not fits or not np.isin(recordings, np.arange(len(recording_names))).all():
        raise ValueError(
            f"{path.name} must hold a named unit, a named recording and a trial for each spike, got shapes "
            f"{times.shape}, {recordings.shape} and {trials.shape}, {len(unit_names)} and {len(recording_names)} names"
        )
    present = np.unique(np.column_stack([recordings, trials]), axis=0)
    starts = present[:, 1] * float(arrays["trial_period_s"])
    windows = np.column_stack([starts, starts + LOCUST_SECONDS])
    return SpikeTrains(times, units, recordings, unit_names, recording_names, windows, present[:, 0].copy())


def _spikes(path: Path, arrays: dict[str, NDArray[Any]]) -> tuple[Array, Integers]:
    times, units = arrays["spike_time"].astype(np.float64), arrays["unit"]
    if (
        times.ndim != 1
        or units.shape != times.shape
        or not times.size
        or units.dtype.kind not in "iu"
        or units.min() < 0
    ):
        raise ValueError(
            f"{path.name} must hold the unit, an integer from 0, of each spike_time, got shapes "
            f"{times.shape} and {units.shape}"
        )
    return times, units.astype(np.int64)
