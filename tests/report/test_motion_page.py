"""The page that plays motion: what is in it, what is refused, and that nothing of it runs or is loaded."""

from __future__ import annotations

import base64
import hashlib
import json
import re

import numpy as np
import pytest

from pluri.datasets import Markers, Motion, Skeleton, cmu_skeleton
from pluri.report import motion_report

BAD = "</script><img src=x onerror=\"document.documentElement.dataset.ran='yes'\"><!--"


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def numbers_of(text, kind="<f4"):
    return np.frombuffer(base64.b64decode(text), dtype=kind)


def places_of(motion):
    whole = numbers_of(motion["places"], "<i2").reshape(motion["frames"], motion["points"], 3)
    return np.where(whole == -32768, np.nan, motion["origin"] + motion["unit"] * whole)


def paths_of(data):
    found = data["map"]
    return [
        None if path is None else numbers_of(path).reshape(-1, 2) * found["unit"] + found["middle"]
        for path in found["paths"]
    ]


def walk(n_frames=30, seed=0, name="walk", frame_time=0.02):
    """A body that moves at random over some ground."""
    rng = np.random.default_rng(seed)
    frames = np.cumsum(rng.normal(0, 3, (n_frames, 96)), axis=0)
    frames[:, 2] += np.arange(n_frames)
    return Motion(cmu_skeleton(), frames, frame_time, name)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_page_holds_the_places_of_all_points():
    motion = walk()
    found = data_of(motion_report(motion))["motions"][0]
    expected = motion.positions(ends=True)
    np.testing.assert_allclose(places_of(found), expected, atol=np.ptp(expected, axis=(0, 1)).max() / 65_000)
    lengths = np.linalg.norm(np.diff(expected[0][motion.skeleton.bones], axis=1)[:, 0], axis=1)
    assert np.array(found["bones"]).reshape(-1, 2).tolist() == motion.skeleton.bones[lengths > 0].tolist()
    head = motion.skeleton.joints.index("Head")
    assert (found["head"][0], found["time"]) == (head, 0.02)


def test_limbs_are_left_and_right_by_their_names():
    names = (
        "hips",
        "LowerBack",
        "LeftArm",
        "elbow",
        "RThumb",
        "Bip01 L Thigh",
        "arm_r",
        "Root",
        "lShin",
        "mixamo:RightLeg",
    )
    parents = [-1, 0, 1, 2, 1, 0, 1, 0, 0, 0]
    offsets = np.ones((10, 3))
    channels = (("Xposition",), *((),) * 9)
    skeleton = Skeleton(names, parents, offsets, channels, [4], [[1, 0, 0]])
    found = data_of(motion_report(Motion(skeleton, [[0.0]], 0.1)))["motions"][0]["sides"]
    assert found == [0, 1, 1, 2, 1, 2, 0, 1, 2, 2]  # the elbow hangs on a left arm; the last is the end of the thumb


def test_markers_stand_upright_and_may_be_missing(rng):
    places = rng.normal(size=(6, 4, 3))
    places[2, 1] = np.nan
    for up, order in (("z", [1, 2, 0]), ("y", [0, 1, 2]), ("x", [2, 0, 1])):
        page = motion_report(Markers(places, tuple("abcd"), 0.1, up, "dots"))
        found = places_of(data_of(page)["motions"][0])
        np.testing.assert_allclose(found, places[:, :, order], atol=1e-4)
        assert data_of(page)["map"] is None  # no pose is known in each frame
    assert "Left limbs" not in page


def test_the_map_has_the_coordinates_that_were_given(rng):
    latent = [1e5 + rng.normal(size=(30, 4)), rng.normal(size=(20, 1)), None]
    motions = [walk(), walk(20, 1, "run"), walk(10, 2, "other")]
    page = motion_report(motions, latent=latent)
    first, second, third = paths_of(data_of(page))
    np.testing.assert_allclose(first, latent[0][:, :2], atol=0.02)
    np.testing.assert_allclose(second, np.column_stack([latent[1], np.zeros(20)]), atol=0.02)
    assert third is None
    by_name = motion_report(motions, latent={"walk": latent[0], "run": latent[1]})
    assert data_of(by_name)["map"] == data_of(page)["map"]
    assert data_of(motion_report(motions, latent=False))["map"] is None


def test_without_coordinates_poses_are_mapped_whatever_their_heading():
    """The map of one motion, and of the same motion elsewhere and turned about, are the same path twice."""
    motion = walk(40)
    turned = motion.frames.copy()
    turn = np.radians(130)
    places = motion.translations()[:, 0]
    turned[:, 0] = np.cos(turn) * places[:, 0] + np.sin(turn) * places[:, 2] + 50
    turned[:, 2] = -np.sin(turn) * places[:, 0] + np.cos(turn) * places[:, 2]
    root = (
        np.array([[np.cos(turn), 0, np.sin(turn)], [0, 1, 0], [-np.sin(turn), 0, np.cos(turn)]])
        @ motion.rotations()[:, 0]
    )
    # Rz Ry Rx, read off the matrix
    turned[:, 3] = np.degrees(np.arctan2(root[:, 1, 0], root[:, 0, 0]))
    turned[:, 4] = np.degrees(np.arcsin(-root[:, 2, 0]))
    turned[:, 5] = np.degrees(np.arctan2(root[:, 2, 1], root[:, 2, 2]))
    first, second = paths_of(data_of(motion_report([motion, motion.with_frames(turned, "turned")])))
    np.testing.assert_allclose(first, second, atol=1e-4 * np.abs(first).max())
    middle = motion.positions(ends=True)
    middle = middle - middle.mean(axis=1, keepdims=True)
    assert np.linalg.norm(first, axis=1).max() <= 2 * np.linalg.norm(middle, axis=(1, 2)).max()


def test_gaps_hand_overs_and_regimes_are_told_of_each_motion():
    motions = {"a": walk(30), "b": walk(20, 1)}
    missing = np.zeros(20, dtype=bool)
    missing[[0, 1, 7]] = True
    page = motion_report(
        motions, gaps={"a": [(20, 25), (3, 6)], "b": missing}, hand_overs=[[5, (9, "walk  to run")], None],
        regimes=[np.repeat([3.0, np.nan, 12.0], 10), None],
    )  # fmt: skip
    data = data_of(page)
    assert data["gaps"] == [[[3, 6], [20, 25]], [[0, 2], [7, 8]]]
    assert data["handOvers"] == [[[5, ""], [9, "walk to run"]], []]
    assert data["regimes"]["names"] == ["3", "12"]
    assert data["regimes"]["codes"][1] is None
    assert numbers_of(data["regimes"]["codes"][0], "u1").tolist() == [0] * 10 + [255] * 10 + [1] * 10
    alone = data_of(motion_report(walk(30), gaps=[(3, 6)], hand_overs=5, regimes=["x"] * 30, latent=np.zeros((30, 2))))
    assert (alone["gaps"], alone["handOvers"], alone["regimes"]["names"]) == ([[[3, 6]]], [[[5, ""]]], ["x"])


def test_names_are_made_different_and_make_the_title():
    page = motion_report([walk(), walk(), walk(name="")])
    assert [motion["name"] for motion in data_of(page)["motions"]] == ["walk", "walk (2)", "motion 3"]
    assert "<title>walk and 2 other motions</title>" in page
    assert "<title>walk and run</title>" in motion_report([walk(), walk(name="run")])


def test_figures_of_the_same_bones_have_the_same_size():
    crouched = walk(seed=3)
    small = Motion(cmu_skeleton(3.0), crouched.frames, 0.02, "small")
    sizes = [motion["size"] for motion in data_of(motion_report([walk(), crouched, small]))["motions"]]
    assert sizes[0] == sizes[1] > 5 * sizes[2]


def test_a_thousand_frames_need_less_than_a_megabyte(tmp_path):
    page = motion_report(walk(1000), tmp_path / "walk.html", regimes=np.arange(1000) % 7, latent=np.zeros((1000, 2)))
    assert (tmp_path / "walk.html").stat().st_size < 500_000
    assert (tmp_path / "walk.html").read_text(encoding="utf-8") == page


def test_nothing_on_the_page_is_loaded_and_one_program_may_run():
    skeleton = Skeleton((BAD, BAD), [-1, 0], np.ones((2, 3)), (("Xposition",), ()))
    motion = Motion(skeleton, np.zeros((4, 1)), 0.1, BAD)
    page = motion_report(
        motion,
        title=BAD,
        hand_overs=[(1, BAD)],
        regimes=[BAD, "a", "b", BAD],
        facts={BAD: BAD},
        latent=np.zeros((4, 2)),
    )
    assert page.count("<script") == 2  # the data and the program
    assert "<img" not in page
    assert "src=x" not in re.sub(r"&lt;img src=x|\\u003cimg src=x", "", page)
    assert not re.search(r"(src|href)=.?(https?:|//)", page)
    program = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert data_of(page)["handOvers"] == [[[1, BAD]]]


ONE, TWO = walk(5), [walk(5), walk(6, name="run")]


@pytest.mark.parametrize(
    ("motions", "options", "error", "message"),
    [
        ([], {}, TypeError, "motions must be a Motion, a list of them or a mapping of names to them, got none"),
        (3, {}, TypeError, "got int"),
        ([ONE, 3], {}, TypeError, "motions must hold Motion or Markers, got int"),
        (TWO, {"latent": [np.zeros((5, 2))]}, ValueError, "latent must be a list with one entry for .* got 1"),
        (TWO, {"latent": {"jump": 1}}, ValueError, r"latent must have names of motions \(walk, run\), got 'jump'"),
        (TWO, {"gaps": 3}, ValueError, "gaps must be a list with one entry for each of 2 motions, got int"),
        (ONE, {"latent": np.zeros((4, 2))}, ValueError, r"for each of 5 frames, got float64 of shape \(4, 2\)"),
        (ONE, {"latent": np.full((5, 2), np.nan)}, ValueError, "must be finite, got NaN or infinity in frame 0"),
        (ONE, {"latent": np.full((5, 2), 1e200)}, ValueError, r"numbers up to 1e\+150, got 1e\+200"),
        (ONE, {"gaps": [(2, 2)]}, ValueError, "gaps of 'walk' must be pairs .* 0 <= start < stop <= 5"),
        (ONE, {"gaps": [(2, 9)]}, ValueError, "gaps of 'walk' must be pairs"),
        (ONE, {"gaps": [3]}, ValueError, "gaps of 'walk' must be pairs"),
        (ONE, {"gaps": [True, False]}, ValueError, "or a Boolean for each frame"),
        (ONE, {"hand_overs": [5]}, ValueError, "hand_overs of 'walk' must be frames from 0 to 4, .* got 5"),
        (ONE, {"hand_overs": [(1, 2)]}, ValueError, r"got \(1, 2\)"),
        (ONE, {"hand_overs": (7, "x")}, ValueError, r"got \(7, 'x'\)"),
        (ONE, {"hand_overs": [1.5]}, ValueError, "got 1.5"),
        (ONE, {"regimes": [1, 2]}, ValueError, r"regimes of 'walk' must be one for each of 5 frames, got shape \(2,\)"),
        (walk(300), {"regimes": np.arange(300)}, ValueError, "regimes must be at most 250 different ones, got 300"),
        (Markers(np.zeros((3, 2, 2)), ("a", "b"), 0.1), {}, ValueError, r"places .* must be \(n_frames, 2, 3\)"),
        (Markers(np.zeros((3, 1, 3)), ("a",), 0.1, "up"), {}, ValueError, "up of .* must be x, y or z, got 'up'"),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said(motions, options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        motion_report(motions, tmp_path / "walk.html", **options)
    assert not list(tmp_path.iterdir())


def test_markers_that_are_never_seen_are_refused():
    with pytest.raises(ValueError, match="must have a marker that was seen in each frame"):
        motion_report(Markers(np.full((3, 2, 3), np.nan), ("a", "b"), 0.1))
