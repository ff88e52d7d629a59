"""Pictures become patches and come back; what is no picture is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.image import extract_patches_2d, reconstruct_from_patches_2d

from pluri.factors import PatchExtractor, denoise_image, inpaint_image


@pytest.mark.parametrize("shape", [(9, 11), (9, 11, 3)])
def test_patches_are_those_of_scikit_learn(shape):
    image = np.random.default_rng(0).random(shape)
    extractor = PatchExtractor(4).fit(image)
    patches = extractor.transform(image)
    expected = extract_patches_2d(image, (4, 4))
    np.testing.assert_array_equal(patches, expected.reshape(len(expected), -1))
    changed = patches + np.random.default_rng(1).normal(size=patches.shape)
    np.testing.assert_allclose(
        extractor.inverse_transform(changed), reconstruct_from_patches_2d(changed.reshape(expected.shape), shape)
    )
    row, column = extractor.locations_[17]
    np.testing.assert_array_equal(image[row : row + 4, column : column + 4].ravel(), patches[17])


@given(
    st.integers(3, 12), st.integers(3, 12), st.integers(1, 3), st.integers(1, 5), st.booleans(), st.floats(0, 0.9),
    st.integers(0, 1000),
)  # fmt: skip
def test_a_picture_comes_back_bit_for_bit(height, width, size, stride, in_color, missing, seed):
    rng = np.random.default_rng(seed)
    image = rng.normal(size=(height, width, 3) if in_color else (height, width)) * 10.0 ** rng.integers(-5, 5)
    image[rng.random(image.shape) < missing] = np.nan
    extractor = PatchExtractor(size, stride=min(stride, size)).fit(image)
    np.testing.assert_array_equal(extractor.inverse_transform(extractor.transform(image)), image)


def test_overlapping_patches_are_averaged_without_what_is_missing():
    extractor = PatchExtractor(2).fit(np.zeros((2, 3)))
    patches = np.array([[1.0, 2.0, np.nan, 4.0], [6.0, 5.0, np.nan, 7.0]])
    np.testing.assert_array_equal(extractor.inverse_transform(patches), [[1.0, 4.0, 5.0], [np.nan, 4.0, 7.0]])


def test_integers_are_scaled_as_in_scikit_image():
    for dtype, largest in ((np.uint8, 255), (np.uint16, 65535)):
        image = np.full((2, 2), largest, dtype=dtype)
        assert PatchExtractor(2).fit(image).transform(image).tolist() == [[1.0] * 4]


def test_another_picture_has_other_patches_but_the_same_channels():
    extractor = clone(PatchExtractor(2)).fit(np.zeros((4, 4)))
    assert extractor.transform(np.ones((3, 5))).shape == (8, 4)
    with pytest.raises(ValueError, match=r"like the one fitted, \(4, 4\), got shape \(4, 4, 3\)"):
        extractor.transform(np.zeros((4, 4, 3)))
    with pytest.raises(ValueError, match=r"patches must have shape \(9, 4\)"):
        extractor.inverse_transform(np.zeros((8, 4)))


def test_patches_that_leave_pixels_out_are_refused():
    with pytest.raises(ValueError, match=r"stride must be at most patch_size \(2\), or pixels are left out, got 3"):
        PatchExtractor(2, stride=3).fit(np.zeros((9, 9)))


def _no_picture():
    grey = np.zeros((10, 10))
    return {
        "1-D": (np.zeros(10), r"shape \(height, width\) or \(height, width, 3\), got \(10,\)"),
        "two channels": (np.zeros((10, 10, 2)), r"got \(10, 10, 2\)"),
        "RGBA": (np.zeros((10, 10, 4)), "must have no alpha channel"),
        "too small": (np.zeros((10, 7)), r"at least 8 x 8 pixels \(patch_size\), got \(10, 7\)"),
        "infinity": (grey + np.inf, "finite numbers"),
        "int64": (grey.astype(np.int64), "uint8, uint16, Booleans or floating-point numbers, got int64"),
        "text": (np.full((10, 10), "a"), "got <U1"),
        "huge": (grey + 1e200, "at most 1e100"),
    }


@pytest.mark.parametrize("name", _no_picture())
@pytest.mark.parametrize("function", [denoise_image, inpaint_image, lambda image: PatchExtractor().fit(image)])
def test_what_is_no_picture_is_refused(function, name):
    image, message = _no_picture()[name]
    with pytest.raises(ValueError, match=message):
        function(image)
