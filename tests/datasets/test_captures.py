"""Loaders of motion and spikes on small files of the same layout; on the real files where the data folder has them."""

from __future__ import annotations

import numpy as np
import pytest

from pluri.datasets import (
    SpikeTrains,
    bin_spikes,
    cmu_skeleton,
    data_home,
    load_cmu_exercises,
    load_cmu_walks,
    load_hippocampus_track,
    load_locust_odors,
    load_locust_spontaneous,
    load_macaque_reaching,
    load_mocap6,
    load_osu_run,
)


def needs(name):
    """Skip the test where the data folder (``PLURI_DATA``) has no such file."""
    return pytest.mark.skipif(not (data_home() / name).is_file(), reason=f"no {name} in the folder PLURI_DATA names")


CMU = {
    "X": np.arange(5 * 96).reshape(5, 96).astype(np.float32), "length": [3, 2], "trial": ["35_01", "16_08"],
    "description": ["walk", "run"], "channels": list(cmu_skeleton().channel_names), "fps": 30.0,
}  # fmt: skip
SIX = {
    "X": np.arange(10.0).reshape(5, 2), "Xprev": np.zeros((5, 2)), "doc_range": [0, 2, 5], "TrueZ": [1, 2, 2, 1, 1],
    "column_names": ["root.ty", "rfoot.rx"], "true_state_names": ["Jog", "Squat"],
}  # fmt: skip
RUN = {
    "X": np.array([[1, 2, 3, 4, 5, 6], [1, 2, 3, -9999.99, -9999.99, -9999.99]]),
    "markers": [f"{name}:{axis}" for name in ("C7", "LANK") for axis in "XYZ"], "time": [0.0, 0.25],
}  # fmt: skip
LOCUST = {
    "spike_time": [0.1, 30.2, 30.21, 0.5], "unit": np.array([0, 1, 1, 0]), "recording": [0, 0, 0, 1],
    "trial": [0, 1, 1, 0], "unit_names": ["u1", "u2"], "recording_names": ["Mint", "Citral"], "trial_period_s": 30,
}  # fmt: skip
TRACK = {
    "spike_time": [100.0, 100.3, 101.0], "unit": np.array([2, 0, 2]), "pos_time": [100.0, 100.5],
    "pos_xy": np.array([[1, 2], [3, 4]]),
}  # fmt: skip
MACAQUE = {
    "Ytr": np.arange(8, dtype=np.uint8).reshape(4, 2), "Xtr": np.ones((4, 2)), "Ttr": np.array([3, 3, 5, 5], np.uint8),
    "Yte": np.ones((3, 3), np.uint8), "Xte": np.ones((3, 2)), "Tte": np.array([7, 7, 7], np.uint8),
}  # fmt: skip


@pytest.mark.parametrize(
    ("load", "name"), [(load_cmu_walks, "mocap_cmu_35_16"), (load_cmu_exercises, "mocap_cmu_exercise_13_14")]
)
def test_trials_are_cut_and_become_motions(tmp_path, load, name):
    np.savez(tmp_path / f"{name}.npz", **CMU)
    captures = load(tmp_path)
    assert repr(captures) == "MotionCaptures(2 trials, 5 frames of 0.03333 s, 96 channels)"
    assert [len(frames) for frames in captures.sequences()] == [3, 2]
    walk, run = captures.motions()
    assert (walk.name, run.name, run.frame_time) == ("35_01 walk", "16_08 run", 1 / 30)
    np.testing.assert_array_equal(run.frames, CMU["X"][3:])
    assert captures["trials"] == ("35_01", "16_08")
    with pytest.raises(KeyError):
        captures["nothing"]


def test_routines_have_their_exercises(tmp_path):
    np.savez(tmp_path / "mocap6_exercise.npz", **SIX)
    routines = load_mocap6(tmp_path)
    assert [(X.tolist(), states.tolist()) for X, states in routines.sequences()] == [
        ([[0, 1], [2, 3]], [0, 1]),
        ([[4, 5], [6, 7], [8, 9]], [1, 0, 0]),
    ]
    assert (routines.state_names, routines.feature_names) == (("Jog", "Squat"), ("root.ty", "rfoot.rx"))


def test_markers_that_were_not_seen_are_missing(tmp_path):
    np.savez(tmp_path / "mocap_osu_run1.npz", **RUN)
    run = load_osu_run(tmp_path)
    assert (run.markers, run.frame_time, run.up) == (("C7", "LANK"), 0.25, "z")
    np.testing.assert_array_equal(run.places, [[[1, 2, 3], [4, 5, 6]], [[1, 2, 3], [np.nan] * 3]])


@pytest.mark.parametrize(
    ("load", "name"),
    [(load_locust_odors, "locust20010214_odors"), (load_locust_spontaneous, "locust20010217_spontaneous")],
)
def test_trials_of_locusts_are_windows_on_the_clock_of_their_recording(tmp_path, load, name):
    np.savez(tmp_path / f"spikes_{name}.npz", **LOCUST)
    trains = load(tmp_path)
    np.testing.assert_allclose(trains.windows, [[0, 28.77], [30, 58.77], [0, 28.77]])
    counts = trains.counts(0.25)
    assert [trial.shape for trial in counts] == [(115, 2)] * 3
    assert [trial.sum(axis=0).tolist() for trial in counts] == [[1, 0], [0, 2], [1, 0]]
    assert counts[1][0].tolist() == [0, 2]
    (citral,) = trains.counts(0.25, "Citral")
    np.testing.assert_array_equal(citral, counts[2])
    with pytest.raises(ValueError, match="recordings must be among Mint, Citral, got 'Tea'"):
        trains.counts(0.25, ["Mint", "Tea"])


def test_places_come_with_the_spikes_of_place_cells(tmp_path):
    np.savez(tmp_path / "spikes_hippocampus_linear_track.npz", **TRACK)
    track = load_hippocampus_track(tmp_path)
    assert repr(track) == "TrackSpikes(3 spikes, 3 units, 1 recordings, 1 trials)"
    assert track.counts(0.5)[0].tolist() == [[1, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(track.places, [[1, 2], [3, 4]])


def test_reaches_are_cut_where_the_target_changes(tmp_path):
    np.savez(tmp_path / "spikes_macaque_m1_mihi.npz", **MACAQUE)
    assert [trial.tolist() for trial in load_macaque_reaching(data_home=tmp_path).trials()] == [
        [[0, 1], [2, 3]], [[4, 5], [6, 7]],
    ]  # fmt: skip
    test = load_macaque_reaching("test", tmp_path)
    assert (test.counts.shape, len(test.trials()), test.counts.dtype) == ((3, 3), 1, np.int64)
    with pytest.raises(ValueError, match="subset"):
        load_macaque_reaching("all", tmp_path)


@pytest.mark.parametrize(
    ("load", "name", "arrays", "change", "message"),
    [
        (load_cmu_walks, "mocap_cmu_35_16", CMU, {"length": [3, 3]}, "must hold X .frames, channels."),
        (load_cmu_walks, "mocap_cmu_35_16", CMU, {"trial": ["a"]}, "must hold X .frames, channels."),
        (load_cmu_exercises, "mocap_cmu_exercise_13_14", CMU, {"channels": ["a"]}, "and 1 channels"),
        (load_mocap6, "mocap6_exercise", SIX, {"TrueZ": [0, 1, 1, 1, 1]}, "TrueZ from 1 to 2"),
        (load_mocap6, "mocap6_exercise", SIX, {"doc_range": [0, 2, 4]}, "doc_range that fit"),
        (load_osu_run, "mocap_osu_run1", RUN, {"markers": list("abcdef")}, "columns C7:X, C7:Y, C7:Z"),
        (load_osu_run, "mocap_osu_run1", RUN, {"time": [0.0]}, "a time for each row"),
        (load_locust_odors, "spikes_locust20010214_odors", LOCUST, {"unit": np.array([0, 1, 2, 0])}, "a named unit"),
        (load_locust_odors, "spikes_locust20010214_odors", LOCUST, {"trial": [0]}, "a trial for each spike"),
        (load_locust_odors, "spikes_locust20010214_odors", LOCUST, {"recording": [0, 0, 0, 2]}, "a named recording"),
        (load_hippocampus_track, "spikes_hippocampus_linear_track", TRACK, {"unit": np.array([0.5, 1, 1])}, "integer"),
        (load_hippocampus_track, "spikes_hippocampus_linear_track", TRACK, {"pos_time": [1]}, "a place .x, y."),
        (load_macaque_reaching, "spikes_macaque_m1_mihi", MACAQUE, {"Ttr": [3, 3]}, "of the same bins"),
    ],
)  # fmt: skip
def test_files_of_another_layout_are_refused(tmp_path, load, name, arrays, change, message):
    with pytest.raises(FileNotFoundError, match=f"must hold {name}.npz"):
        load(data_home=tmp_path)
    np.savez(tmp_path / f"{name}.npz", **(arrays | change))
    with pytest.raises(ValueError, match=message):
        load(data_home=tmp_path)
    missing = next(iter(change))
    np.savez(tmp_path / f"{name}.npz", **{key: value for key, value in arrays.items() if key != missing})
    with pytest.raises(ValueError, match=f"got none named {missing}"):
        load(data_home=tmp_path)


def test_a_skeleton_with_other_channels_is_refused(tmp_path):
    np.savez(tmp_path / "mocap_cmu_35_16.npz", **(CMU | {"channels": CMU["channels"][::-1]}))
    with pytest.raises(ValueError, match="skeleton must have the channels of the data"):
        load_cmu_walks(tmp_path).motions()


def test_counts_are_those_of_a_histogram():
    rng = np.random.default_rng(0)
    times, units = rng.uniform(0, 10, 500), rng.integers(0, 4, 500)
    windows = np.array([[0, 10], [2.5, 4.99], [9, 9]])
    found = bin_spikes(times, units, 0.25, windows=windows, n_units=5)
    assert [counts.shape for counts in found] == [(40, 5), (9, 5), (0, 5)]
    for (start, _), counts in zip(windows, found):
        for unit in range(5 if len(counts) else 0):
            edges = start + 0.25 * np.arange(len(counts) + 1)
            inside = times[(units == unit) & (times < edges[-1])]
            np.testing.assert_array_equal(counts[:, unit], np.histogram(inside, edges)[0])


def test_whole_bins_are_not_lost_by_rounding():
    assert len(bin_spikes([0.05], [0], 0.1, windows=[[0, 0.3]])[0]) == 3
    assert bin_spikes([1.0, 3.0], [0, 0], 0.5)[0].sum() == 1  # the last spike is at the end of the last bin
    assert bin_spikes([], np.empty(0, int), 0.5, windows=[[0, 1]], n_units=2)[0].tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize(
    ("times", "units", "width", "options", "message"),
    [
        ([0.0, np.nan], [0, 0], 1, {}, "times must be finite"),
        ([0.0], [0, 0], 1, {}, r"got shapes \(1,\) and \(2,\)"),
        ([0.0], [0.5], 1, {}, "units must be integers from 0, got float64"),
        ([0.0], [-1], 1, {}, "units must be integers from 0, got int64, -1 the least"),
        ([0.0], [0], 0, {}, "width must be a positive number, got 0"),
        ([0.0], [3], 1, {"n_units": 3}, r"n_units must be above the largest unit \(3\), got 3"),
        ([0.0], [0], 1, {"windows": [[1, 0]]}, "windows must be pairs of a beginning and a later end"),
        ([0.0], [0], 1, {"windows": [0, 1]}, "windows must be pairs"),
        ([], np.empty(0, int), 1, {}, "windows must be given if there is no spike"),
    ],
)
def test_spikes_that_cannot_be_counted_are_refused(times, units, width, options, message):
    with pytest.raises(ValueError, match=message):
        bin_spikes(times, units, width, **options)


def test_trains_with_no_trial_in_a_recording_have_none():
    nothing = np.zeros(0, dtype=int)
    trains = SpikeTrains(np.array([1.0]), np.array([0]), np.array([0]), ("a",), ("r",), np.zeros((0, 2)), nothing)
    assert trains.counts(0.1) == []


@needs("mocap_cmu_35_16.npz")
def test_the_real_walks_stand_on_the_ground():
    """Lowest points stay near the ground: within a tenth of the stature, though the bones are those of another body."""
    captures = load_cmu_walks()
    assert (len(captures.trials), len(captures.X)) == (49, 4028)
    for motion in captures.motions():
        height = motion.positions(ends=True)[..., 1]
        assert np.abs(height.min(axis=1)).max() < 3.1
        assert 25 < height.max(axis=1).mean() < 33


@needs("spikes_locust20010214_odors.npz")
def test_no_spike_of_the_real_locusts_is_outside_of_its_trial():
    trains = load_locust_odors()
    counts = trains.counts(0.01)
    assert len(counts) == 329
    assert sum(trial.sum() for trial in counts) >= 816_307 - 329  # what is left of a window is less than a bin
