"""BVH files as programs write them, and files that no program should have written."""

from __future__ import annotations

import numpy as np
import pytest

from pluri.datasets import Motion, Skeleton, cmu_skeleton, read_bvh, write_bvh

GOOD = """HIERARCHY
ROOT Hips
{
\tOFFSET 0.0 1.0 0.0
\tCHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
\tJOINT Left Leg
\t{
\t\tOFFSET 1.0 -2.0 0.5
\t\tCHANNELS 3 Zrotation Xrotation Yrotation
\t\tEnd Site
\t\t{
\t\t\tOFFSET 0 -4 0
\t\t}
\t}
\tJOINT Head
\t{
\t\tOFFSET 0 6 0
\t\tCHANNELS 1 Yrotation
\t}
}
MOTION
Frames: 2
Frame Time: 0.0083333
1 2 3 4 5 6 7 8 9 10
-1 2e1 3 4 5 6 7 8 9 .5
"""


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "some walk.bvh"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_bvh(path)

    return read_text


def test_a_file_is_read(read):
    motion = read(GOOD)
    skeleton = motion.skeleton
    assert (motion.name, motion.frame_time) == ("some walk", 0.0083333)
    assert skeleton.joints == ("Hips", "Left Leg", "Head")
    assert skeleton.parents.tolist() == [-1, 0, 0]
    np.testing.assert_array_equal(skeleton.offsets, [[0, 1, 0], [1, -2, 0.5], [0, 6, 0]])
    assert skeleton.channels[1:] == (("Zrotation", "Xrotation", "Yrotation"), ("Yrotation",))
    assert (skeleton.end_parents.tolist(), skeleton.end_offsets.tolist()) == ([1], [[0, -4, 0]])
    np.testing.assert_array_equal(motion.frames[1], [-1, 20, 3, 4, 5, 6, 7, 8, 9, 0.5])
    assert skeleton.bones.tolist() == [[0, 1], [0, 2], [1, 3]]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: text.rstrip("\n"),
        lambda text: text + "\n\n  \n",
        lambda text: text.replace(" ", "\t\t "),
        lambda text: text.replace("\n\t{", " {").replace("ROOT Hips\n{", "ROOT Hips{"),
        lambda text: text.replace("HIERARCHY", "Hierarchy").replace("CHANNELS", "Channels"),
        lambda text: text.replace("rotation", "Rotation").replace("JOINT", "joint"),
        lambda text: text.replace("Frame Time:", "Frame Time :").replace("Frames:", "frames:\t"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\n\n"),
    ],
)  # fmt: skip
def test_small_differences_between_programs_do_not_matter(read, change):
    expected, motion = read(GOOD), read(change(GOOD))
    assert motion.skeleton.equals(expected.skeleton)
    np.testing.assert_array_equal(motion.frames, expected.frames)
    assert motion.frame_time == expected.frame_time


def test_names_in_another_encoding_are_read(read):
    assert read(GOOD.replace("Head", "Tête").encode("latin-1")).skeleton.joints[2] == "Tête"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("HIERARCHY", "SKELETON", "must begin with HIERARCHY, got 'SKELETON' in line 1"),
        ("MOTION", "FRAMES", "must have a line MOTION, got none in 26 lines"),
        ("ROOT Hips\n{", "ROOT Hips\nROOT Other\n{", "opening bracket after the name of a joint in line 3"),
        ("ROOT Hips", "JOINT Hips", "one ROOT with JOINTs inside it, got 'JOINT Hips' in line 2"),
        ("JOINT Head", "ROOT Head", "one ROOT with JOINTs inside it, got 'ROOT Head' in line 15"),
        ("}\nMOTION", "}\n}\nMOTION", "no more brackets than it opens, got another in line 21"),
        ("}\nMOTION", "MOTION", "must close all brackets before MOTION, got 1 open"),
        ("OFFSET 0 -4 0", "OFFSET 0 -4", "must have 3 numbers in line 12, got 2"),
        ("OFFSET 0 -4 0", "OFFSET 0 -4 far", "must have finite numbers in line 12, got 'far'"),
        ("\t\tOFFSET 0 6 0\n", "", "an OFFSET in each pair of brackets, got none in those that end in line 18"),
        ("OFFSET 0 6 0", "OFFSET 0 6 0\nOFFSET 1 1 1", "one OFFSET for each joint, got another in line 18"),
        ("CHANNELS 1 Yrotation", "CHANNELS 2 Yrotation", "got '2 Yrotation' in line 18"),
        ("CHANNELS 1 Yrotation", "CHANNELS 1 Wrotation", "got '1 Wrotation' in line 18"),
        ("CHANNELS 1 Yrotation", "CHANNELS 2 Yrotation Yrotation", "as many different names such as Xrotation"),
        ("CHANNELS 1 Yrotation", "CHANNELS", "must have CHANNELS, their number"),
        ("CHANNELS 1 Yrotation", "LENGTH 3", "where they belong, got 'LENGTH 3' in line 18"),
        ("Frames: 2", "Frames: two", "a positive number, got 'two' in line 22"),
        ("Frames: 2", "Frames: 0", "a positive number, got '0' in line 22"),
        ("Frames: 2\n", "", "must have a line 'Frames: ...' after MOTION, got none"),
        ("Frame Time: 0.0083333\n", "", "must have a line 'Frame Time: ...'"),
        ("Frame Time: 0.0083333", "Frame Time: -1", "must have a positive Frame Time, got -1 in line 23"),
        ("Frames: 2", "Frames: 3", "must have 3 frames, as line 22 says, got 2, the last in line 25"),
        ("9 .5\n", "9 .5\n1 2 3 4 5 6 7 8 9 10\n", "must have 2 frames, as line 22 says, got 3, the last in line 26"),
        ("9 10\n", "9\n", "must have 10 numbers in line 24, got 9"),
        ("9 10\n", "9 10 11\n", "must have 10 numbers in line 24, got 11"),
        ("9 10\n", "9 nan\n", "must have finite numbers in line 24, got 'nan'"),
        ("1 2 3 4 5 6", "NaN 2 3 4 5 6", "must have finite numbers in line 24, got 'NaN'"),
        ("9 10\n", "9 1,5\n", "must have finite numbers in line 24, got '1,5'"),
        ("9 10\n", "9 inf\n", "must have finite numbers in line 24, got 'inf'"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_with_its_line(read, old, new, message):
    assert old in GOOD
    with pytest.raises(ValueError, match=r"some walk\.bvh is no BVH file that can be read: it") as caught:
        read(GOOD.replace(old, new, 1))
    assert message in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00", b"HIERARCHY\nMOTION\nFrames: 1\nFrame Time: 1\n\n"])
def test_files_of_another_kind_are_refused(read, content):
    with pytest.raises(ValueError, match="is no BVH file that can be read"):
        read(content)


def test_a_file_of_ten_thousand_joints_is_read(read):
    """No joint calls a function for the next: a deep chain breaks nothing."""
    n = 10_000
    begin = "".join(f"{'JOINT' if k else 'ROOT'} j{k}\n{{\nOFFSET 0 0 1\n" for k in range(n))
    motion = read(f"HIERARCHY\n{begin}CHANNELS 1 Xrotation\n{'}' * n}\nMOTION\nFrames: 1\nFrame Time: 1\n90\n")
    assert motion.skeleton.parents[-1] == n - 2


def test_what_is_written_is_read_again(tmp_path):
    rng = np.random.default_rng(0)
    skeleton = cmu_skeleton()
    motion = Motion(skeleton, rng.uniform(-180, 180, (5, 96)), 1 / 30)
    write_bvh(motion, tmp_path / "a.bvh")
    again = read_bvh(tmp_path / "a.bvh")
    assert again.skeleton.joints == skeleton.joints
    assert again.skeleton.channels == skeleton.channels
    np.testing.assert_allclose(again.frames, motion.frames, atol=5.1e-7)
    np.testing.assert_allclose(again.positions(ends=True), motion.positions(ends=True), atol=1e-4)
    write_bvh(motion, tmp_path / "b.bvh", decimals=12)
    np.testing.assert_allclose(read_bvh(tmp_path / "b.bvh").frames, motion.frames, atol=1e-12)


def test_joints_in_another_order_keep_their_channels(tmp_path):
    """Files need all that hangs on a joint right after it; here it comes level by level."""
    skeleton = Skeleton(
        ("root", "left", "right", "left tip", "{odd}\nname"), [-1, 0, 0, 1, 2], np.arange(15).reshape(5, 3),
        (("Yposition",), ("Xrotation",), ("Zrotation",), ("Yrotation", "Xrotation"), ()),
    )  # fmt: skip
    motion = Motion(skeleton, np.random.default_rng(1).uniform(-90, 90, (3, 5)).round(3), 0.1)
    write_bvh(motion, tmp_path / "a.bvh")
    again = read_bvh(tmp_path / "a.bvh")
    assert again.skeleton.joints == ("root", "left", "left tip", "right", "_odd_ name")
    np.testing.assert_allclose(again.positions(), motion.positions()[:, [0, 1, 3, 2, 4]], atol=1e-9)
