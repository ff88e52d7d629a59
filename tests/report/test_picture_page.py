"""The page of a picture before and after: what it holds, and how it behaves in a browser."""

from __future__ import annotations

import base64
import io
import re
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from pluri.report import picture_report
from pluri.report.picture_page import mosaic

RNG = np.random.default_rng(0)
BEFORE = RNG.integers(0, 256, (40, 60), dtype=np.uint8)
AFTER = np.linspace(0, 1, 60) * np.ones((40, 1))


def model(n_channels=1):
    return SimpleNamespace(
        components_=RNG.normal(size=(6, 16 * n_channels)), usage_=np.full(6, 0.5), n_channels_=n_channels,
        noise_sd_=0.1, noise_interval_=np.array([0.09, 0.11]),
    )  # fmt: skip


def picture_of(page, name):
    found = re.search(f'id="{name}" src="data:image/png;base64,([^"]*)"', page)[1]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(found))))


def test_the_page_holds_both_pictures_and_what_is_known(tmp_path):
    page = picture_report(
        BEFORE, AFTER, tmp_path / "page.html", std=AFTER / 10, model=model(), title="a < b", facts={"camera": "old"}
    )
    np.testing.assert_array_equal(picture_of(page, "before"), BEFORE)
    np.testing.assert_array_equal(picture_of(page, "after"), np.rint(255 * AFTER).astype(np.uint8))
    assert picture_of(page, "std").shape == (40, 60)
    assert picture_of(page, "atoms").shape == (11, 16)
    for text in ("<title>a &lt; b</title>", "25.50 (22.95 to 28.05)", "60 x 40 pixels", "camera"):
        assert text in page
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert "http" not in page.replace("http-equiv", "")


def test_colours_and_missing_pixels_are_shown():
    image = RNG.random((10, 12, 3))
    image[2, 3] = np.nan
    page = picture_report(image, np.nan_to_num(image), std=image, model=model(3))
    assert picture_of(page, "before").shape == (10, 12, 3)
    assert (picture_of(page, "before")[2, 3] == 0).all()
    assert picture_of(page, "atoms").shape == (11, 16, 3)


def test_atoms_have_full_contrast_with_grey_for_zero():
    sheet = mosaic(np.array([[0.0, 1.0, -1.0, 0.5], [0.0, 0.0, 0.0, 0.0]]), 1)[..., 0]
    assert sheet[1:3, 1:3].tolist() == [[128, 255], [1, 192]]
    assert (sheet[1:3, 4:6] == 128).all()


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(ValueError, match="must have the same shape"):
        picture_report(BEFORE, AFTER[:20])
    with pytest.raises(ValueError, match=r"before must be uint8, uint16 .* got int64 of \(40, 60\)"):
        picture_report(BEFORE.astype(np.int64), AFTER)
    with pytest.raises(ValueError, match="std must have the shape of the picture"):
        picture_report(BEFORE, AFTER, std=AFTER[:3])


def test_the_slider_moves_by_pointer_keys_and_address(browse):
    page = picture_report(BEFORE, AFTER, model=model())
    program = """
        const html = document.documentElement, at = () => Number(html.dataset.at);
        const box = $('#frame').getBoundingClientRect();
        const point = (kind, share) => $('#frame').dispatchEvent(new PointerEvent(kind,
            {clientX: box.left + share * box.width, clientY: box.top + 5, bubbles: true, pointerId: 1}));
        const clip = () => getComputedStyle($('#before')).clipPath;
        say.start = at(); say.clip = clip();
        point('pointermove', 0.9); say.hover = at();
        point('pointerdown', 0.25); say.down = at();
        point('pointermove', 0.75); say.moved = at(); say.moveclip = clip();
        point('pointerup', 0.75); point('pointermove', 0.1); say.released = at(); say.hash = location.hash;
        key(document.body, 'ArrowRight'); say.key = at();
        $('#slider').value = 0; $('#slider').dispatchEvent(new Event('input')); say.zero = at();
        key(document.body, 'ArrowLeft'); say.least = at();
        location.hash = '#at=80'; await wait(); say.address = at();
        say.sizes = [box.width > 100, Math.abs(box.width / box.height - 1.5) < 0.02];
    """  # fmt: skip
    attributes, _, said = browse(page, "#at=20", program)
    assert said["start"] == 20
    assert "80%" in said["clip"]
    assert [said[name] for name in ("hover", "down", "moved", "released", "hash")] == [20, 25, 75, 75, "#at=75"]
    assert "25%" in said["moveclip"]
    assert [said[name] for name in ("key", "zero", "least", "address")] == [77, 0, 0, 80]
    assert said["sizes"] == [True, True]
    assert attributes["data-ready"] == "true"
