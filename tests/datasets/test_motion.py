"""Skeletons in motion: forward kinematics, continuous angles, and features there and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from pluri.datasets import Motion, Skeleton, cmu_skeleton, moving_joints
from pluri.datasets.motion.rotations import continuous_angles, from_angles, from_six, to_angles, to_six, to_vectors

AXES = "XYZ"
ORDERS = ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"]


def rotations(order):
    return tuple(f"{axis}rotation" for axis in order)


def body(rng, orders=("ZXY", "ZYX", "X", "YZ", "")):
    """A root that moves, and joints with any channels, on a random tree."""
    n = len(orders)
    parents = np.array([-1, *(int(rng.integers(0, joint)) for joint in range(1, n))])
    channels = [rotations(order) for order in orders]
    channels[0] = ("Xposition", "Yposition", "Zposition", *channels[0])
    return Skeleton(
        tuple(f"joint {joint}" for joint in range(n)), parents, rng.normal(size=(n, 3)), tuple(channels),
        np.array([n - 1, 1]), rng.normal(size=(2, 3)),
    )  # fmt: skip


def moved(skeleton, rng, n_frames=40, step=4.0):
    """A random walk of all channels."""
    start = rng.uniform(-180, 180, size=skeleton.n_channels)
    return Motion(skeleton, start + np.cumsum(rng.normal(0, step, (n_frames, skeleton.n_channels)), axis=0), 0.02)


def place_of(motion, frame, joint, offset=None):
    """A place in space by another library: from the joint to the root, turned and moved by each on the way."""
    skeleton = motion.skeleton
    at = np.zeros(3) if offset is None else np.asarray(offset)
    starts = np.cumsum([0, *map(len, skeleton.channels)])
    while joint >= 0:
        values = dict(zip(skeleton.channels[joint], motion.frames[frame, starts[joint] : starts[joint + 1]]))
        order = "".join(name[0] for name in skeleton.channels[joint] if name.endswith("rotation"))
        if order:
            at = Rotation.from_euler(order, [values[f"{axis}rotation"] for axis in order], degrees=True).apply(at)
        at = np.ravel(at) + skeleton.offsets[joint]
        if joint == 0:
            at = at + [values[f"{axis}position"] for axis in AXES]
        joint = int(skeleton.parents[joint])
    return at


def test_places_are_those_of_rotations_one_after_the_other():
    rng = np.random.default_rng(0)
    motion = moved(body(rng), rng)
    found = motion.positions(ends=True)
    n_joints = len(motion.skeleton.joints)
    for frame in (0, 7, 39):
        for joint in range(n_joints):
            np.testing.assert_allclose(found[frame, joint], place_of(motion, frame, joint), atol=1e-12)
        for end, (joint, offset) in enumerate(zip(motion.skeleton.end_parents, motion.skeleton.end_offsets)):
            np.testing.assert_allclose(found[frame, n_joints + end], place_of(motion, frame, joint, offset), atol=1e-12)
    np.testing.assert_array_equal(motion.positions(), found[:, :n_joints])


def test_position_channels_of_other_joints_take_the_place_of_their_offsets():
    skeleton = Skeleton(("a", "b"), [-1, 0], [[1, 0, 0], [0, 5, 0]], (("Xposition",), ("Yposition",)))
    np.testing.assert_array_equal(Motion(skeleton, [[10.0, 3.0]], 1.0).positions()[0], [[11, 0, 0], [11, 3, 0]])


@pytest.mark.parametrize("order", ORDERS)
def test_angles_are_found_again_also_where_two_axes_are_the_same(order):
    rng = np.random.default_rng(1)
    axes = tuple(AXES.index(axis) for axis in order)
    angles = np.concatenate(
        [rng.uniform(-np.pi, np.pi, (50, 3)), [[0.3, np.pi / 2, 0.4], [0.3, -np.pi / 2, 2.0], [0, 0, 0]]]
    )
    matrices = from_angles(angles, axes)
    np.testing.assert_allclose(matrices, Rotation.from_euler(order, angles).as_matrix(), atol=1e-12)
    np.testing.assert_allclose(from_angles(to_angles(matrices, axes), axes), matrices, atol=1e-7)
    for n in (1, 2):
        fewer = from_angles(angles[:, :n], axes[:n])
        np.testing.assert_allclose(np.exp(1j * to_angles(fewer, axes[:n])), np.exp(1j * angles[:, :n]), atol=1e-12)


def test_angles_that_jump_become_ones_that_do_not():
    """A smooth path of angles, spoilt by whole turns and by the other three angles of the same rotation."""
    rng = np.random.default_rng(2)
    smooth = rng.uniform(-3, 3, (1, 6, 3)) + np.cumsum(rng.normal(0, 0.1, (300, 6, 3)), axis=0)
    spoilt = smooth + 2 * np.pi * rng.integers(-2, 3, smooth.shape)
    flip = rng.random((300, 6)) < 0.5
    spoilt = np.where(flip[..., None], spoilt * [1, -1, 1] + np.pi, spoilt)
    spoilt[0] = smooth[0]
    np.testing.assert_allclose(continuous_angles(spoilt), smooth, atol=1e-9)


def test_continuous_motions_are_the_same_motions():
    rng = np.random.default_rng(3)
    motion = moved(body(rng), rng)
    wrapped = motion.with_frames((motion.frames + 180) % 360 - 180)
    wrapped.frames[:, :3] = motion.frames[:, :3]
    assert np.abs(np.diff(wrapped.frames, axis=0)).max() > 300
    found = wrapped.continuous()
    np.testing.assert_allclose(found.positions(ends=True), motion.positions(ends=True), atol=1e-12)
    assert np.abs(np.diff(found.frames, axis=0)).max() <= np.abs(np.diff(motion.frames, axis=0)).max() + 1e-9


def test_rotation_vectors_pass_half_a_turn_without_a_jump():
    angle = np.linspace(0, 4 * np.pi, 200)
    axis = np.array([1.0, 2.0, -2.0]) / 3
    matrices = Rotation.from_rotvec(angle[:, None] * axis).as_matrix()[:, None]
    np.testing.assert_allclose(to_vectors(matrices)[:, 0], angle[:, None] * axis, atol=1e-6)


def test_six_numbers_of_no_rotation_are_made_one():
    numbers = np.random.default_rng(4).normal(size=(20, 6))
    found = from_six(numbers)
    np.testing.assert_allclose(found @ found.transpose(0, 2, 1), np.broadcast_to(np.eye(3), (20, 3, 3)), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(found), 1.0)
    np.testing.assert_allclose(from_six(to_six(found)), found, atol=1e-12)
    with pytest.raises(ValueError, match="two different directions"):
        from_six(np.array([1.0, 0, 0, 2.0, 0, 0]))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), representation=st.sampled_from(["6d", "vector"]), n_frames=st.integers(1, 9))
def test_features_lead_back_to_the_motion(seed, representation, n_frames):
    rng = np.random.default_rng(seed)
    motion = moved(body(rng), rng, n_frames)
    back = motion.from_features(motion.to_features(representation), representation)
    np.testing.assert_allclose(back.positions(ends=True), motion.positions(ends=True), atol=1e-6)
    np.testing.assert_allclose(back.rotations(), motion.rotations(), atol=1e-7)


def test_features_do_not_depend_on_the_place_and_the_heading():
    rng = np.random.default_rng(5)
    motion = moved(body(rng), rng)
    rows = motion.to_features()
    turn = Rotation.from_euler("Y", 77, degrees=True)
    elsewhere = motion.frames.copy()
    place = motion.translations()[:, 0]
    elsewhere[:, :3] = turn.apply(place) + np.array([100, 0, -20]) - motion.skeleton.offsets[0]
    turned = turn.as_matrix() @ motion.rotations()[:, 0]
    elsewhere[:, 3:6] = np.degrees(to_angles(turned, (2, 0, 1)))
    np.testing.assert_allclose(motion.with_frames(elsewhere).to_features(), rows, atol=1e-9)


def test_features_do_not_jump_where_angles_do():
    """Two whole turns on the spot: angles jump by 360 degrees, features change evenly."""
    skeleton = Skeleton(
        ("hips", "arm"),
        [-1, 0],
        np.zeros((2, 3)),
        (("Xposition", "Yposition", "Zposition", "Yrotation"), ("Zrotation",)),
    )
    turn = np.linspace(0, 720, 145) % 360
    motion = Motion(skeleton, np.column_stack([np.zeros((145, 3)), turn, turn]), 0.1)
    rows = motion.to_features("6d")
    np.testing.assert_allclose(rows[:, 0], np.radians(5), atol=1e-12)
    assert np.abs(np.diff(rows, axis=0)).max() < 2 * np.sin(np.radians(2.5)) + 1e-12
    back = motion.from_features(rows)
    np.testing.assert_allclose(back.frames[:, 3:], np.linspace(0, 720, 145)[:, None].repeat(2, 1), atol=1e-6)


def test_joints_that_are_no_features_stay_as_they_were():
    rng = np.random.default_rng(6)
    motion = moved(body(rng), rng)
    still = motion.frames.copy()
    still[:, 6:9] = still[0, 6:9]
    still[:, 9] = still[0, 9]
    motion = motion.with_frames(still)
    joints = moving_joints([motion])
    assert joints == ("joint 3",)
    rows = motion.to_features(joints=joints)
    assert rows.shape == (40, 4 + 6 * 2)
    back = motion.from_features(rows, joints=joints)
    np.testing.assert_allclose(back.positions(ends=True), motion.positions(ends=True), atol=1e-9)


def test_the_average_body_stands_on_its_feet():
    """Legs straight down, as angles of 20 degrees make them: it is as tall as was asked for, and symmetric."""
    skeleton = cmu_skeleton(31.0)
    frames = np.zeros((1, 96))
    names = skeleton.channel_names
    frames[0, names.index("LeftUpLeg:Zrotation")], frames[0, names.index("RightUpLeg:Zrotation")] = -20, 20
    places = Motion(skeleton, frames, 1 / 30).positions(ends=True)[0]
    assert np.ptp(places[:, 1]) == pytest.approx(31.0, rel=0.06)
    mirrored = places * [-1, 1, 1]
    assert all(np.abs(places - place).sum(axis=1).min() < 1e-9 for place in mirrored)
    assert places[skeleton.joints.index("LeftHand"), 0] > 0
    thigh = places[skeleton.joints.index("LeftLeg")] - places[skeleton.joints.index("LeftUpLeg")]
    np.testing.assert_allclose(thigh, [0, -0.245 * 31, 0], atol=1e-9)


GOOD = {
    "joints": ("a", "b"), "parents": [-1, 0], "offsets": np.zeros((2, 3)), "channels": (("Xposition",), ("Xrotation",)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"joints": ()}, "joints must name at least one"),
        ({"parents": [-1, 1]}, "parents must be -1 and then 1 numbers of joints before each"),
        ({"parents": [0, 0]}, "parents must be -1"),
        ({"parents": [-1, -1]}, "parents must be -1"),
        ({"offsets": np.zeros((3, 3))}, "offsets must be 2 rows of three finite numbers"),
        ({"offsets": np.full((2, 3), np.nan)}, "offsets must be 2 rows of three finite"),
        ({"channels": (("Xposition",),)}, "channels must be given for each of 2 joints, got 1"),
        ({"channels": (("Xposition", "Xposition"), ())}, "channels of 'a' must be different ones"),
        ({"channels": (("Wposition",), ())}, "channels of 'a' must be different ones of Xposition"),
        ({"end_parents": [2], "end_offsets": np.zeros((1, 3))}, "end_parents must be numbers from 0 to 1"),
        ({"end_parents": [1]}, "end_offsets must be 1 rows"),
    ],
)
def test_skeletons_that_do_not_fit_together_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Skeleton(**(GOOD | change))


@pytest.mark.parametrize(
    ("frames", "time", "message"),
    [
        (np.zeros((3, 1)), 0.1, r"frames must have shape \(n_frames, 2\)"),
        (np.zeros((0, 2)), 0.1, "n_frames > 0"),
        (np.array([[0, 0], [0, np.nan]]), 0.1, "got nan in frame 1, channel b:Xrotation"),
        (np.zeros((1, 2)), 0.0, "frame_time must be a positive number of seconds, got 0.0"),
        (np.zeros((1, 2)), np.inf, "frame_time must be a positive"),
    ],
)
def test_frames_that_do_not_fit_the_skeleton_are_refused(frames, time, message):
    with pytest.raises(ValueError, match=message):
        Motion(Skeleton(**GOOD), frames, time)


def test_features_that_cannot_be_meant_are_refused():
    rng = np.random.default_rng(7)
    motion = moved(body(rng), rng)
    with pytest.raises(ValueError, match="the root must have three position channels, got Xposition"):
        Motion(Skeleton(**GOOD), np.zeros((1, 2)), 0.1).to_features()
    with pytest.raises(ValueError, match="representation must be one of '6d', 'vector', got 'euler'"):
        motion.to_features("euler")
    with pytest.raises(ValueError, match="joints must be a list of joints that have rotation channels, got 'joint 4'"):
        motion.to_features(joints=["joint 4"])
    with pytest.raises(ValueError, match=r"features must have shape \(n_frames, 28\)"):
        motion.from_features(np.zeros((4, 5)))
    with pytest.raises(ValueError, match="features must be finite, got NaN or infinity in row 2"):
        motion.from_features(np.where(np.arange(4)[:, None] == 2, np.nan, np.ones((4, 28))))
    with pytest.raises(ValueError, match="motions must have one skeleton"):
        moving_joints([motion, moved(body(rng), rng)])
    with pytest.raises(ValueError, match="motions must hold at least one"):
        moving_joints([])
