"""``pluri denoise`` and ``pluri inpaint``: picture files in, picture files out."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from pluri.cli.application import application
from pluri.factors import denoise_image, inpaint_image


def run(*arguments, code=0):
    result = CliRunner().invoke(application, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result


def picture(dtype=np.uint8, shape=(24, 30)):
    rng = np.random.default_rng(0)
    values = np.clip(0.5 + 0.2 * np.sin(np.arange(shape[1]) / 3) + rng.normal(0, 0.05, shape[:2]), 0, 1)
    if len(shape) == 3:
        values = np.stack([values, values[::-1], 1 - values, values][: shape[2]], axis=2)
    return np.rint(values * np.iinfo(dtype).max).astype(dtype)


def written(values, dtype):
    return np.rint(np.clip(values, 0, 1) * np.iinfo(dtype).max).astype(dtype)


@pytest.mark.parametrize(("dtype", "shape"), [(np.uint8, (24, 30)), (np.uint16, (24, 30)), (np.uint8, (24, 30, 3))])
def test_a_file_is_denoised_as_the_function_does(tmp_path, dtype, shape):
    image = picture(dtype, shape)
    Image.fromarray(image).save(tmp_path / "noisy.png")
    result = run(
        "denoise", tmp_path / "noisy.png", "-o", tmp_path / "clean.png", "-k", 8, "--seed", 3, "-q",
        "--std", tmp_path / "std.npy", "--page", tmp_path / "page.html",
    )  # fmt: skip
    expected, std = denoise_image(image, n_components=8, random_state=3, return_std=True)
    found = np.asarray(Image.open(tmp_path / "clean.png"))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, written(expected, dtype))
    np.testing.assert_array_equal(np.load(tmp_path / "std.npy"), std)
    assert "<title>noisy.png</title>" in (tmp_path / "page.html").read_text()
    assert f"written to {tmp_path / 'clean.png'}" in result.stderr
    assert "noise of sd" in result.stderr
    assert result.stdout == ""


def test_an_alpha_channel_is_kept(tmp_path):
    image = picture(shape=(24, 30, 4))
    Image.fromarray(image).save(tmp_path / "a.png")
    run("denoise", tmp_path / "a.png", "-o", tmp_path / "b.png", "-k", 4, "-q")
    found = np.asarray(Image.open(tmp_path / "b.png"))
    np.testing.assert_array_equal(found[..., 3], image[..., 3])
    expected = denoise_image(image[..., :3], n_components=4, random_state=0)
    np.testing.assert_array_equal(found[..., :3], written(expected, np.uint8))


def test_holes_are_filled_as_the_function_does(tmp_path):
    image, mask = picture(), np.zeros((24, 30), dtype=np.uint8)
    mask[5:8, 5:8] = 255
    Image.fromarray(image).save(tmp_path / "a.png")
    Image.fromarray(np.stack([mask] * 3, axis=2)).save(tmp_path / "mask.png")
    arguments = ["inpaint", tmp_path / "a.png", "--mask", tmp_path / "mask.png", "-o", tmp_path / "b.png"]
    run(*arguments, "-k", 8, "-q")
    expected = inpaint_image(image, mask, n_components=8, random_state=0)
    np.testing.assert_array_equal(np.asarray(Image.open(tmp_path / "b.png")), written(expected, np.uint8))
    Image.fromarray(mask[:20]).save(tmp_path / "mask.png")
    shown = run(*arguments, "--force", code=2).stderr
    assert "--mask must have the size of the picture, 30 x 24, got 30 x 20" in " ".join(shown.replace("│", " ").split())


def test_progress_is_shown_unless_quiet(tmp_path):
    Image.fromarray(picture()).save(tmp_path / "a.png")
    arguments = ["denoise", tmp_path / "a.png", "-o", tmp_path / "b.png", "-k", 4, "--force"]
    assert len(run(*arguments).stderr.splitlines()) > len(run(*arguments, "-q").stderr.splitlines()) == 1


def test_places_are_checked_before_the_work(tmp_path, monkeypatch):
    Image.fromarray(picture()).save(tmp_path / "a.png")
    monkeypatch.setattr("pluri.factors.ImageDenoiser.fit", lambda *_: pytest.fail("the work had begun"))
    for options, message in (
        (["-o", tmp_path / "b.jpg"], "--output must be a file of type .png"),
        (["-o", tmp_path / "a.png"], "--output must name a new file"),
        (["-o", tmp_path / "nowhere" / "b.png"], "--output"),
        (["-o", tmp_path / "b.png", "--page", tmp_path / "b.pdf"], "--page must be a file of type .html"),
        (["-o", tmp_path / "b.png", "--std", tmp_path / "b.csv"], "--std must be a file of type .npy"),
    ):
        shown = run("denoise", tmp_path / "a.png", *options, code=2).stderr
        assert message in " ".join(shown.replace("│", " ").split())


def test_what_is_no_picture_gets_one_sentence(tmp_path):
    (tmp_path / "a.png").write_bytes(b"no picture")
    shown = run("denoise", tmp_path / "a.png", "-o", tmp_path / "b.png", code=1).stderr
    assert shown == "error: IMAGE must be a picture, got 'a.png', which is none that Pillow can read\n"
    Image.fromarray(picture(shape=(5, 30))).save(tmp_path / "a.png")
    shown = run("denoise", tmp_path / "a.png", "-o", tmp_path / "b.png", "-q", code=1).stderr
    assert shown == "error: image must have at least 8 x 8 pixels (patch_size), got (5, 30)\n"
    assert not (tmp_path / "b.png").exists()


def test_without_pillow_there_is_one_sentence(tmp_path, monkeypatch):
    Image.fromarray(picture()).save(tmp_path / "a.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    shown = run("denoise", tmp_path / "a.png", "-o", tmp_path / "b.png", code=1).stderr
    assert shown == "error: picture files need Pillow: pip install pillow\n"
