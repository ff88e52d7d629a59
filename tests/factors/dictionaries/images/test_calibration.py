"""Standard deviations of restored pixels: their parts against other computations, and how much they cover."""

from __future__ import annotations

import numpy as np
import pytest

from pluri.factors import ImageDenoiser, ImageInpainter
from pluri.factors.dictionaries.images import restoration
from pluri.factors.dictionaries.images.calibration import (
    LEAST,
    N_HIDDEN,
    WIDTH,
    calibrated_noisy,
    factor_that_covers,
    hidden_pixels,
    predict_hidden,
    windows,
)
from pluri.factors.dictionaries.images.learning import PatchModel
from pluri.factors.dictionaries.images.patches import PatchGrid
from pluri.factors.dictionaries.images.restoration import restore

SMALL = {"n_components": 24, "n_warmup": 20, "n_draws": 5, "n_predictive": 6}


def textured(seed, side=56):
    """A picture with edges and with a texture that no small dictionary has, in [0, 1]."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:side, :side]
    return 0.2 + 0.5 * ((x + 2 * y) // 11 % 2) + 0.15 * np.sin(x * y / 40) + 0.03 * rng.normal(size=(side, side))


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_factor_is_the_smallest_that_covers_so_many_errors(noise):
    rng = np.random.default_rng(0)
    errors, variances = rng.standard_t(3, size=99), rng.random(99) + 0.2

    def covered(factor):
        return int((np.abs(errors) <= WIDTH * np.sqrt(factor**2 * variances + noise)).sum())

    factor = factor_that_covers(errors, variances, noise)
    assert covered(factor * (1 + 1e-9)) == 90  # 0.9 of 99 + 1
    assert covered(factor * (1 - 1e-6)) == 89
    assert factor_that_covers(errors[:15], variances[:15]) == 1.0
    assert factor_that_covers(errors, variances, 1e6) == LEAST


@pytest.mark.parametrize("n_channels", [1, 3])
def test_hidden_pixels_lack_what_missing_ones_lack(n_channels):
    rng = np.random.default_rng(1)
    missing = np.zeros((30, 40, n_channels), dtype=bool)
    missing[rng.random((30, 40)) < 0.5, -1] = True  # of colours, one channel
    hidden = hidden_pixels(rng, missing)
    pixels = hidden.any(axis=2)
    assert pixels.sum() == int(0.1 * (~missing.any(axis=2)).sum())
    assert not (pixels & missing.any(axis=2)).any()
    assert not hidden[..., :-1].any()
    assert not hidden_pixels(rng, np.zeros((30, 40, 1), dtype=bool)).any()
    assert hidden_pixels(rng, np.eye(200, dtype=bool)[..., None]).sum() == N_HIDDEN


def test_hidden_pixels_are_told_as_if_they_were_missing(monkeypatch):
    """With a rule in the place of draws, the patches that have a hidden pixel give what all patches give."""
    monkeypatch.setattr(
        restoration, "code_patches", lambda rng, patches, observed, *_: (0.5 * patches * observed, 1 + patches**2)
    )
    rng = np.random.default_rng(2)
    picture = rng.normal(size=(14, 17, 1))
    picture[rng.random(picture.shape) < 0.3] = np.nan
    hidden = ~np.isnan(picture) & (rng.random(picture.shape) < 0.05)
    grid, model = PatchGrid.of(picture.shape, 4), PatchModel(np.zeros((1, 16)), np.zeros(1), 5.0, 1.0, 1.0)
    values, variances = predict_hidden(rng, picture, hidden, grid, model, 1)
    whole = restore(rng, np.where(hidden, np.nan, picture), grid, model, 1)
    np.testing.assert_allclose(values, whole.values[hidden])
    np.testing.assert_allclose(variances, whole.std[hidden] ** 2)


def test_errors_of_a_plain_average_are_those_of_its_weights():
    """Without atoms a restored pixel is an average with known weights, and so is the variance of its error.

    Over 60 other seeds the variance given, beside the exact one, was 0.995 with an sd of 0.128: the bound is five
    standard errors of the mean of 30, a false alarm in a million. As patches state it, it would be 1.9 times too large.
    """
    side, size, noise = 40, 3, 0.04
    grid, model = PatchGrid.of((side, side, 1), size), PatchModel(np.zeros((1, 9)), np.zeros(1), 1.0, 1.0, 1.0)
    model = model._replace(noise_precision=1 / (noise * (size**2 - 1) / size**2))
    weights = np.zeros((side * side, side * side))
    for place in range(side * side):
        unit = np.zeros(side * side)
        unit[place] = 1.0
        total, count = np.zeros((side, side, 1)), np.zeros((side, side, 1))
        patches = grid.extract(unit.reshape(side, side, 1))
        grid.add(total, np.repeat(patches.mean(axis=1), size**2).reshape(patches.shape))
        grid.add(count, np.ones_like(patches))
        weights[:, place] = (total / count).ravel()
    exact = noise * (weights**2).sum(axis=1).mean()
    ratios, stated = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        picture = 7.0 + np.sqrt(noise) * rng.standard_normal((side, side, 1))
        first = restore(rng, picture, grid, model, 2)
        found = calibrated_noisy(rng, picture, first, grid, model, 2, noise)
        ratios.append((found.std**2).mean() / exact)
        stated.append((first.std**2).mean() / exact)
    assert abs(np.mean(ratios) - 1) < 0.12
    np.testing.assert_allclose(stated, noise / size**2 / exact)
    assert stated[0] > 1.8


def test_windows_lie_within_the_picture():
    rng = np.random.default_rng(3)
    assert windows(rng, (100, 120, 1), 8) == [(slice(None), slice(None))]
    for shape in ((300, 300, 1), (20, 5000, 3)):
        found = windows(rng, shape, 8)
        assert len(found) == 4
        for rows, columns in found:
            part = np.zeros(shape)[rows, columns]
            assert min(part.shape[:2]) >= min(shape[0], 80)
            assert part.shape[2] == shape[2]


def coverage_of_filled(seed):
    """Share of the missing pixels that is within intervals of 90 %."""
    clean = textured(seed)
    missing = np.random.default_rng(seed).random(clean.shape) < 0.5
    model = ImageInpainter(**SMALL, random_state=seed).fit(clean, mask=missing)
    filled, std = model.inpaint(clean, missing, return_std=True)
    return (np.abs(filled - clean) < 1.645 * std)[missing].mean()


def coverage_of_noisy(seed, sd=0.2):
    """Share of the pixels without noise that is within intervals of 90 %."""
    clean = textured(seed)
    noisy = clean + np.random.default_rng(seed).normal(0, sd, clean.shape)
    restored, std = ImageDenoiser(**SMALL, random_state=seed).fit(noisy).denoise(noisy, return_std=True)
    return (np.abs(restored - clean) < 1.645 * std).mean()


def test_intervals_of_filled_pixels_cover_what_they_should():
    """The share was 0.884 with an sd of 0.024 (20 other seeds; this file as a program): five sd of a mean of four."""
    assert 0.82 < np.mean([coverage_of_filled(seed) for seed in range(100, 104)]) < 0.95


@pytest.mark.parametrize("unit", [1e-90, 1e-17, 1e-3, 1e30, 1e90])
def test_the_unit_of_a_picture_does_not_matter(unit):
    clean = textured(0, 24)
    clean[5:8, 5:9] = np.nan
    tiny = {**SMALL, "n_components": 8, "n_warmup": 4}
    plain = ImageDenoiser(**tiny, random_state=0).fit(clean).denoise(clean, return_std=True)
    found = ImageDenoiser(**tiny, random_state=0).fit(unit * clean).denoise(unit * clean, return_std=True)
    for one, other in zip(plain, found):
        np.testing.assert_allclose(other / unit, one, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("make", [ImageDenoiser, ImageInpainter])
def test_a_picture_without_any_noise_is_kept(make):
    """Codes of such patches leave a precision of the atoms that is not positive definite in single precision.

    The largest error was 8e-7; with single precision, where that did not fail, 0.013.
    """
    y, x = np.mgrid[:24, :28]
    clean = 0.3 + 0.4 * ((x + y) // 7 % 2)
    model = make(64, n_warmup=40, random_state=0).fit(clean)
    assert np.abs(model.transform(clean) - clean).max() < 1e-3
    assert model.noise_sd_ < 1e-3


if __name__ == "__main__":
    for name, coverage in (("filled", coverage_of_filled), ("noisy", coverage_of_noisy)):
        found = np.array([coverage(seed) for seed in range(20)])
        print(name, found.mean(axis=0).round(3), found.std(axis=0).round(3), found.min(axis=0), found.max(axis=0))
