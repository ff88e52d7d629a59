"""Recorded motion: walks, runs and exercises of the CMU collection, and a run of Ohio State University.

The files are read from the data folder and not shipped. The CMU data were obtained from mocap.cs.cmu.edu; the database
was created with funding from NSF EIA-0196217.

References
----------
.. [1] E. B. Fox, M. C. Hughes, E. B. Sudderth and M. I. Jordan, "Joint modeling of multiple time series via the beta
   process with application to motion capture segmentation", Annals of Applied Statistics 8, 2014 (six routines).
.. [2] N. D. Lawrence and J. Quinonero-Candela, "Local distance preservation in the GP-LVM through back constraints",
   ICML 2006 (the run of Ohio State University).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.datasets.home import find_file, npz_arrays
from pluri.datasets.motion.cmu_skeleton import cmu_skeleton
from pluri.datasets.motion.record import Markers, Motion
from pluri.datasets.motion.skeleton import Skeleton
from pluri.datasets.records import LabelledSequences

CMU_ADVICE = (
    "Store the channels of BVH files, frames of all trials one after the other, as an npz file with the arrays X, "
    "length, trial, description, channels and fps; the files are on mocap.cs.cmu.edu."
)
SIX_ADVICE = "The data set is mocap6 of bnpy (github.com/bnpy/bnpy): an npz file with X, Xprev, doc_range and TrueZ."
RUN_ADVICE = "Store the coordinates of markers as an npz file with the arrays X, markers (C7:X, ...) and time."
#: What the recording has where a marker was not seen.
UNSEEN = -9999.0


@dataclass(frozen=True, eq=False, repr=False)
class MotionCaptures:
    """Sequences of frames by the channels of BVH files.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_channels)
        Frames of all trials: places in units of 5.64 cm, angles in degrees.
    lengths : ndarray of shape (n_trials,)
        Frames of each trial.
    trials : tuple of str
        Subject and trial, such as ``"35_01"``.
    descriptions : tuple of str
        What the subject did.
    channels : tuple of str
        Joint and channel of each column, such as ``"Hips:Xposition"``.
    frame_time : float
        Seconds from one frame to the next.
    """

    X: NDArray[np.float64]
    lengths: NDArray[np.int64]
    trials: tuple[str, ...]
    descriptions: tuple[str, ...]
    channels: tuple[str, ...]
    frame_time: float

    def sequences(self) -> Iterator[NDArray[np.float64]]:
        """The frames of one trial after the other (views)."""
        stops = np.cumsum(self.lengths)
        for start, stop in zip(stops - self.lengths, stops):
            yield self.X[start:stop]

    def motions(self, skeleton: Skeleton | None = None) -> list[Motion]:
        """The trials as motions, named by trial and description.

        The files hold angles but no bones: unless a skeleton is given, the bones are those of an average body
        (:func:`pluri.datasets.cmu_skeleton`).
        """
        body = cmu_skeleton() if skeleton is None else skeleton
        if body.channel_names != self.channels:
            raise ValueError(f"skeleton must have the channels of the data, got {body!r} with others")
        names = (f"{trial} {description}" for trial, description in zip(self.trials, self.descriptions))
        return [Motion(body, frames, self.frame_time, name) for name, frames in zip(names, self.sequences())]

    def keys(self) -> list[str]:
        """Names of the fields."""
        return ["X", "lengths", "trials", "descriptions", "channels", "frame_time"]

    def __getitem__(self, name: str) -> Any:
        """Return a field by its name."""
        if name not in self.keys():
            raise KeyError(name)
        return getattr(self, name)

    def __repr__(self) -> str:
        """Sizes instead of the values."""
        size = f"{len(self.trials)} trials, {len(self.X)} frames of {self.frame_time:.4g} s"
        return f"MotionCaptures({size}, {len(self.channels)} channels)"


@dataclass(frozen=True, eq=False, repr=False)
class ExerciseRoutines(LabelledSequences):
    """Six routines by twelve channels, with the exercise of each frame.

    Attributes
    ----------
    X : ndarray of shape (2058, 12)
        Frames at 10 Hz; the first of each routine is left out.
    lengths : ndarray of shape (6,)
    states : ndarray of shape (2058,)
        The exercise, 0 to 11.
    previous : ndarray of shape (2058, 12)
        The frame before each, for autoregressive models.
    state_names, feature_names : tuple of str
    """

    previous: NDArray[np.float64]
    state_names: tuple[str, ...]
    feature_names: tuple[str, ...]


def load_cmu_walks(data_home: str | os.PathLike[str] | None = None) -> MotionCaptures:
    """Load 49 walks and runs of the subjects 35 and 16 of the CMU collection: 96 channels at 30 Hz.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``mocap_cmu_35_16.npz``; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    MotionCaptures

    Examples
    --------
    >>> from pluri.datasets import load_cmu_walks
    >>> walks = load_cmu_walks()  # doctest: +SKIP
    >>> walks  # doctest: +SKIP
    MotionCaptures(49 trials, 4028 frames of 0.03333 s, 96 channels)
    >>> walks.motions()[0]  # doctest: +SKIP
    Motion('35_01 walk', 90 frames of 0.03333 s, 31 joints, 96 channels)
    """
    return _captures(find_file(("mocap_cmu_35_16.npz",), data_home, CMU_ADVICE))


def load_cmu_exercises(data_home: str | os.PathLike[str] | None = None) -> MotionCaptures:
    """Load six exercise routines of the subjects 13 and 14 of the CMU collection: 96 channels at 30 Hz.

    :func:`load_mocap6` has twelve channels of the same routines at 10 Hz, and the exercise of each frame.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``mocap_cmu_exercise_13_14.npz``; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    MotionCaptures

    Examples
    --------
    >>> from pluri.datasets import load_cmu_exercises
    >>> load_cmu_exercises()  # doctest: +SKIP
    MotionCaptures(6 trials, 6185 frames of 0.03333 s, 96 channels)
    """
    return _captures(find_file(("mocap_cmu_exercise_13_14.npz",), data_home, CMU_ADVICE))


def load_mocap6(data_home: str | os.PathLike[str] | None = None) -> ExerciseRoutines:
    """Load six exercise routines with labels, the usual test of models that find what is done when.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``mocap6_exercise.npz``; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    ExerciseRoutines

    Examples
    --------
    >>> from pluri.datasets import load_mocap6
    >>> routines = load_mocap6()  # doctest: +SKIP
    >>> routines.X.shape, routines.state_names[:3]  # doctest: +SKIP
    ((2058, 12), ('JumpJack', 'Jog', 'Squat'))
    """
    path = find_file(("mocap6_exercise.npz",), data_home, SIX_ADVICE)
    arrays = npz_arrays(path, ("X", "Xprev", "doc_range", "TrueZ", "column_names", "true_state_names"))
    X, previous = (arrays[name].astype(np.float64) for name in ("X", "Xprev"))
    states, bounds = arrays["TrueZ"].astype(np.int64) - 1, arrays["doc_range"].astype(np.int64)
    names = tuple(map(str, arrays["true_state_names"]))
    if (
        X.ndim != 2 or previous.shape != X.shape or states.shape != (len(X),)
        or bounds[0] != 0 or bounds[-1] != len(X) or (np.diff(bounds) < 1).any()
        or not np.isin(states, np.arange(len(names))).all() or arrays["column_names"].shape != (X.shape[1],)
    ):  # fmt: skip
        raise ValueError(
            f"{path.name} must hold X, Xprev of the same shape, TrueZ from 1 to {len(names)} and doc_range that fit, "
            f"got shapes {X.shape}, {previous.shape}, {states.shape} and doc_range {bounds.tolist()}"
        )
    features = tuple(map(str, arrays["column_names"]))
    return ExerciseRoutines(X, np.diff(bounds), states, previous, names, features)


def load_osu_run(data_home: str | os.PathLike[str] | None = None) -> Markers:
    """Load a run with 41 markers at 120 Hz, in millimetres: 217 frames, in some of which markers were not seen.

    Every fourth frame gives the 55 frames that papers use.

    Parameters
    ----------
    data_home : str or path, optional
        Folder of ``mocap_osu_run1.npz``; see :func:`pluri.datasets.data_home`.

    Returns
    -------
    Markers

    Examples
    --------
    >>> from pluri.datasets import load_osu_run
    >>> load_osu_run()  # doctest: +SKIP
    Markers(217 frames of 0.008333 s, 41 markers)
    """
    path = find_file(("mocap_osu_run1.npz",), data_home, RUN_ADVICE)
    arrays = npz_arrays(path, ("X", "markers", "time"))
    X, names, time = arrays["X"].astype(np.float64), arrays["markers"], arrays["time"].astype(np.float64)
    axes = [str(name).rpartition(":")[2] for name in names]
    if (
        X.ndim != 2
        or names.shape != (X.shape[1],)
        or time.shape != (len(X),)
        or len(X) < 2
        or axes != [*"XYZ"] * (len(axes) // 3)
    ):
        raise ValueError(
            f"{path.name} must hold X with columns C7:X, C7:Y, C7:Z, ... named in markers and a time for each row, got "
            f"shapes {X.shape}, {names.shape} and {time.shape}"
        )
    places = np.where(X < UNSEEN, np.nan, X).reshape(len(X), -1, 3)
    places[np.isnan(places).any(axis=2)] = np.nan
    markers = tuple(str(name).rpartition(":")[0] for name in names[::3])
    return Markers(places, markers, float(time[-1] - time[0]) / (len(time) - 1), up="z", name="OSU run")


def _captures(path: Path) -> MotionCaptures:
    arrays = npz_arrays(path, ("X", "length", "trial", "description", "channels", "fps"))
    X, lengths = arrays["X"].astype(np.float64), arrays["length"].astype(np.int64)
    channels = tuple(map(str, arrays["channels"]))
    fits = lengths.ndim == 1 and arrays["trial"].shape == arrays["description"].shape == lengths.shape
    if X.ndim != 2 or not fits or lengths.sum() != len(X) or (lengths < 1).any() or X.shape[1] != len(channels):
        raise ValueError(
            f"{path.name} must hold X (frames, channels), and length, trial and description of each trial, got shapes "
            f"{X.shape}, {lengths.shape}, {arrays['trial'].shape} and {len(channels)} channels"
        )
    trials, descriptions = (tuple(map(str, arrays[name])) for name in ("trial", "description"))
    return MotionCaptures(X, lengths, trials, descriptions, channels, 1.0 / float(arrays["fps"]))
