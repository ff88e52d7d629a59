"""Loaders of digits and papers, on small files of the same make."""

import gzip

import numpy as np
import pytest

from pluri.datasets.digits_and_papers import load_cora_binary, load_mnist_test, load_usps


def test_usps_digits_are_read_from_their_table(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.uniform(-1, 1, (3, 256)).round(3)
    with gzip.open(tmp_path / "usps_test.txt.gz", "wt") as file:
        np.savetxt(file, np.column_stack([[7, 0, 3], pixels]))
    digits = load_usps("test", data_home=tmp_path)
    np.testing.assert_allclose(digits.X, pixels)
    assert digits.y.tolist() == [7, 0, 3]
    assert digits["image_shape"] == (16, 16)
    with pytest.raises(FileNotFoundError, match="usps_train"):
        load_usps("train", data_home=tmp_path)
    with pytest.raises(ValueError, match="subset"):
        load_usps("all", data_home=tmp_path)


def test_packed_words_and_pixels_are_unpacked(tmp_path):
    rng = np.random.default_rng(0)
    words = (rng.random((4, 1433)) < 0.1).astype(np.uint8)
    np.savez(tmp_path / "cora_binary_7class.npz", X=np.packbits(words, axis=1), y=[0, 2, 5, 6])
    papers = load_cora_binary(data_home=tmp_path)
    np.testing.assert_array_equal(papers.X, words)
    assert papers.class_names[papers.y[2]] == "Case Based"
    with pytest.raises(KeyError):
        papers["Z"]
    images = rng.integers(0, 256, (2, 28, 28)).astype(np.uint8)
    np.savez(tmp_path / "mnist_t10k_first8000.npz", X=images, y=[1, 2])
    np.testing.assert_array_equal(load_mnist_test(tmp_path).X, images.reshape(2, -1))


def test_damaged_files_get_a_sentence(tmp_path):
    np.savez(tmp_path / "cora_binary_7class.npz", X=np.zeros((2, 3), dtype=np.uint8), y=[0, 1])
    with pytest.raises(ValueError, match="1433 words"):
        load_cora_binary(data_home=tmp_path)
    np.savez(tmp_path / "cora_binary_7class.npz", X=np.zeros((2, 180), dtype=np.uint8), y=[0])
    with pytest.raises(ValueError, match="a class for each row"):
        load_cora_binary(data_home=tmp_path)
    np.savez(tmp_path / "cora_binary_7class.npz", X=np.zeros((2, 180), dtype=np.uint8))
    with pytest.raises(ValueError, match="X and y"):
        load_cora_binary(data_home=tmp_path)
