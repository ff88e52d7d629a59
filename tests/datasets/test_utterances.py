"""Loaders of spoken vowels and digits on small files of the same layout; on the real files where there are any."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from pluri.datasets import data_home, load_japanese_vowels, load_spoken_digits

VOWELS = {
    "X_train": np.arange(10.0, dtype=np.float32).reshape(5, 2), "len_train": [2, 3], "y_train": [1, 2],
    "X_test": np.ones((4, 2), np.float32), "len_test": [1, 3], "y_test": [2, 2],
}  # fmt: skip
DIGITS = {
    "X": np.arange(12, dtype=np.float16).reshape(6, 2), "length": [1, 2, 3], "digit": [0, 1, 1],
    "speaker": ["george", "lucas", "lucas"], "index": [0, 4, 5],
}  # fmt: skip


def needs(name):
    """Skip the test where the data folder (``PLURI_DATA``) has no such file."""
    return pytest.mark.skipif(not (data_home() / name).is_file(), reason=f"no {name} in the folder PLURI_DATA names")


def test_vowels_of_both_parts_are_one_list_of_sequences(tmp_path):
    np.savez(tmp_path / "japanese_vowels.npz", **VOWELS)
    vowels = load_japanese_vowels(tmp_path)
    assert vowels.X.dtype == np.float64
    assert vowels.lengths.tolist() == [2, 3, 1, 3]
    assert vowels.y.tolist() == vowels.speaker.tolist() == [1, 2, 2, 2]
    assert vowels.is_test.tolist() == [False, False, True, True]
    assert [len(part) for part in vowels.sequences(vowels.is_test)] == [1, 3]
    assert_array_equal(np.concatenate(vowels.sequences()), vowels.X)
    assert_array_equal(vowels.sequences([1])[0], np.arange(4.0, 10.0).reshape(3, 2))


def test_digits_have_speakers_and_the_usual_test_part(tmp_path):
    np.savez(tmp_path / "fsdd_mfcc13.npz", **DIGITS)
    digits = load_spoken_digits(tmp_path)
    assert digits.speaker.tolist() == ["george", "lucas", "lucas"]
    assert digits.is_test.tolist() == [True, True, False]
    assert digits["y"].tolist() == [0, 1, 1]
    assert list(digits) == ["X", "lengths", "y", "speaker", "is_test"]
    assert repr(digits) == "Utterances(3 utterances of 1 to 3 frames, 2 features, 2 classes, 2 speakers)"
    with pytest.raises(KeyError):
        digits["words"]


@pytest.mark.parametrize(
    ("load", "name", "arrays", "wrong"),
    [
        (load_japanese_vowels, "japanese_vowels", VOWELS, {"len_test": [1, 2]}),
        (load_japanese_vowels, "japanese_vowels", VOWELS, {"y_train": [1, 2, 3]}),
        (load_spoken_digits, "fsdd_mfcc13", DIGITS, {"length": [0, 3, 3]}),
        (load_spoken_digits, "fsdd_mfcc13", DIGITS, {"speaker": ["george"]}),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(tmp_path, load, name, arrays, wrong):
    np.savez(tmp_path / f"{name}.npz", **arrays | wrong)
    with pytest.raises(ValueError, match=f"{name}.npz must hold frames"):
        load(tmp_path)


@pytest.mark.parametrize("load", [load_japanese_vowels, load_spoken_digits])
def test_a_missing_file_is_told_with_the_place_to_get_it(tmp_path, load):
    with pytest.raises(FileNotFoundError, match="which is not there"):
        load(tmp_path)


@needs("japanese_vowels.npz")
def test_the_vowels_are_those_of_the_literature():
    vowels = load_japanese_vowels()
    assert (~vowels.is_test).sum() == 270
    assert np.bincount(vowels.y[vowels.is_test])[1:].tolist() == [31, 35, 88, 44, 29, 24, 40, 50, 29]
    assert (vowels.lengths.min(), vowels.lengths.max(), vowels.X.shape[1]) == (7, 29, 12)


@needs("fsdd_mfcc13.npz")
def test_the_digits_are_balanced():
    digits = load_spoken_digits()
    assert (np.unique(digits.y, return_counts=True)[1] == 250).all()
    assert (np.unique(digits.speaker, return_counts=True)[1] == 500).all()
    assert digits.is_test.sum() == 250
