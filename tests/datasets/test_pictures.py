"""Photographs are read by name."""

import numpy as np
import pytest

from pluri.datasets import load_bsds_color, load_bsds_gray, load_test_images

GREY = np.arange(12, dtype=np.uint8).reshape(3, 4)


def test_test_images_have_names_without_their_size(tmp_path):
    np.savez(tmp_path / "test_images_gray.npz", house256=GREY, boat512=GREY + 1)
    found = load_test_images(tmp_path)
    assert sorted(found) == ["boat", "house"]
    np.testing.assert_array_equal(found["boat"], GREY + 1)


def test_photographs_are_as_stored(tmp_path):
    color = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    np.savez(tmp_path / "bsds68_gray_first24.npz", img00=GREY)
    np.savez(tmp_path / "bsds_color_castle_horses_mushroom.npz", castle=color)
    np.testing.assert_array_equal(load_bsds_gray(tmp_path)["img00"], GREY)
    np.testing.assert_array_equal(load_bsds_color(tmp_path)["castle"], color)


def test_what_is_no_photograph_is_refused(tmp_path):
    np.savez(tmp_path / "bsds68_gray_first24.npz", img00=GREY / 255)
    with pytest.raises(ValueError, match=r"uint8 of shape \(height, width\), got float64"):
        load_bsds_gray(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"must hold test_images_gray\.npz"):
        load_test_images(tmp_path)
