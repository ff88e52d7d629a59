"""``pluri motion``: BVH files as a page."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest
from sklearn.decomposition import PCA
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.datasets import Motion, cmu_skeleton, moving_joints, read_bvh, write_bvh
from pluri.report import motion_report


def run(*arguments, code=0):
    result = CliRunner().invoke(application, ["motion", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def data_of(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8"), re.DOTALL)[1])


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    found = []
    for name, n_frames in (("walk", 40), ("run", 30)):
        frames = np.zeros((n_frames, 96))
        frames[:, :30] = np.cumsum(rng.normal(0, 3, (n_frames, 30)), axis=0)
        write_bvh(Motion(cmu_skeleton(), frames, 1 / 120), tmp_path / f"{name}.bvh")
        found.append(tmp_path / f"{name}.bvh")
    return found


def test_files_are_played_in_step(files, tmp_path):
    result = run(*files, "-o", tmp_path / "page.html", "--title", "Two & more")
    motions = [read_bvh(file) for file in files]
    assert (tmp_path / "page.html").read_text() == motion_report(motions, title="Two & more")
    assert f"70 frames of 2 motions written to {tmp_path / 'page.html'}" in result.stderr
    assert result.stdout == ""


def test_frames_are_left_out_and_time_goes_on(files, tmp_path):
    run(files[0], "-o", tmp_path / "page.html", "--every", 4)
    (motion,) = data_of(tmp_path / "page.html")["motions"]
    assert (motion["frames"], round(motion["time"], 5)) == (10, round(4 / 120, 5))


def test_the_map_is_that_of_a_method_fitted_to_the_features(files, tmp_path):
    run(*files, "-o", tmp_path / "page.html", "--method", "pca", "--set", "whiten=true")
    motions = [read_bvh(file) for file in files]
    X = np.concatenate([motion.to_features(joints=moving_joints(motions)) for motion in motions])
    X = (X - X.mean(axis=0))[:, X.std(axis=0) > 1e-9] / X.std(axis=0)[X.std(axis=0) > 1e-9]
    expected = np.split(PCA(2, whiten=True, random_state=0).fit_transform(X), [40])
    found = data_of(tmp_path / "page.html")["map"]
    for packed, path in zip(found["paths"], expected):
        places = np.frombuffer(base64.b64decode(packed), dtype="<f4").reshape(-1, 2)
        np.testing.assert_allclose(places * found["unit"] + found["middle"], path, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "best"], "--method must be one of poses, sne"),
        (["--method", "mixture-sne"], "--method must be one of poses, sne, diffusion"),
        (["--set", "a=1"], "--set must be given with another --method than poses"),
        (["--method", "pca", "--set", "k=2"], "--set must name a parameter of PCA"),
        (["-o", "page.pdf"], "--output must be a file of type .html"),
        (["--every", "0"], "--every"),
    ],
)
def test_options_that_cannot_be_meant_have_exit_code_two(files, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    shown = run(files[0], "-o", "page.html", *options, code=2).stderr
    assert message in " ".join(shown.replace("│", " ").split())
    assert not (tmp_path / "page.html").exists()


def test_files_that_cannot_be_read_have_exit_code_one(files, tmp_path):
    (tmp_path / "bad.bvh").write_text("HIERARCHY\nROOT\x1b[31m a\n")
    shown = run(files[0], tmp_path / "bad.bvh", "-o", tmp_path / "page.html", code=1).stderr
    assert "bad.bvh is no BVH file that can be read: it must have a line MOTION" in shown
    assert "\x1b" not in shown
    run(tmp_path / "none.bvh", "-o", tmp_path / "page.html", code=1)
    assert not (tmp_path / "page.html").exists()
    other = read_bvh(files[0])
    write_bvh(Motion(cmu_skeleton(9.0), other.frames, 0.1), tmp_path / "other.bvh")
    shown = run(files[0], tmp_path / "other.bvh", "-o", tmp_path / "page.html", "--method", "pca", code=1).stderr
    assert "motions must have one skeleton" in shown
