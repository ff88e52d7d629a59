"""Loaders on small files of the same layout; the real counts are checked only where the data folder has the files."""

from __future__ import annotations

import gzip
import io
import sys
import types

import numpy as np
import pytest

from pluri.datasets import data_home, load_ocr_letters, load_treebank_sample
from pluri.datasets.treebank import GROUP_COUNTS


def needs(name):
    """Skip the test where the data folder (``PLURI_DATA``) has no such file."""
    return pytest.mark.skipif(not (data_home() / name).is_file(), reason=f"no {name} in the folder PLURI_DATA names")


TABLE = """sentence\tword\ttag\ttag15
0\tThe\tDT\t7
0\t"cat\tNN\t1
0\t.\t.\t2
1\tthe\tDT\t7
1\tDogs\tNNS\t1
1\tran\tVBD\t6
1\t.\t.\t2
"""


@pytest.fixture
def no_data(monkeypatch, tmp_path):
    """An empty data folder, and no NLTK even where it is installed."""
    monkeypatch.setenv("PLURI_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "nltk", None)
    monkeypatch.setitem(sys.modules, "nltk.data", None)
    return tmp_path


def write_table(folder, text=TABLE):
    (folder / "ptb_wsj_sample.tsv.gz").write_bytes(gzip.compress(text.encode()))


def letters(rng, n=7):
    return rng.integers(2, size=(n, 128), dtype=np.uint8), np.array([2, 0, 1, 25, 2, 0, 1]), [3, 4], [0, 9]


def fake_nltk(monkeypatch, files):
    """A stand-in for ``nltk.data.find`` that serves byte streams and counts what was asked for."""
    asked = []

    def find(name):
        asked.append(name)
        text = files.get(name.rsplit("/", 1)[1], "")
        return types.SimpleNamespace(open=lambda: io.BytesIO(text.encode()))

    data = types.ModuleType("nltk.data")
    data.find = find
    package = types.ModuleType("nltk")
    package.data = data
    monkeypatch.setitem(sys.modules, "nltk", package)
    monkeypatch.setitem(sys.modules, "nltk.data", data)
    return asked


def test_the_argument_comes_before_the_variable_before_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("PLURI_DATA", str(tmp_path / "variable"))
    assert data_home(tmp_path / "argument") == tmp_path / "argument"
    assert data_home() == tmp_path / "variable"
    monkeypatch.setenv("PLURI_DATA", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert data_home() == tmp_path / "pluri_data"
    assert data_home("~/x") == tmp_path / "x"
    assert not data_home().exists()


def test_packed_letters_are_unpacked(no_data):
    X, y, lengths, folds = letters(np.random.default_rng(0))
    np.savez(no_data / "ocr_letters.npz", X=np.packbits(X, axis=1), y=y, lengths=lengths, folds=folds)
    words = load_ocr_letters()
    np.testing.assert_array_equal(words.X, X)
    assert words.X.dtype == np.uint8
    np.testing.assert_array_equal(words.y, y)
    np.testing.assert_array_equal(words.folds, folds)
    assert ["".join(words.letters[states]) for _, states in words.sequences()] == ["cab", "zcab"]


@pytest.mark.parametrize("name", ["letter.data.gz", "letter.data"])
def test_the_original_table_gives_the_same_letters_as_the_packed_file(no_data, name):
    X, y, lengths, folds = letters(np.random.default_rng(1))
    lines, row = [], 0
    for word, (length, fold) in enumerate(zip(lengths, folds)):
        for position in range(length):
            following = -1 if position == length - 1 else row + 2
            pixels = "\t".join(map(str, X[row]))
            lines.append(
                f"{row + 1}\t{chr(97 + y[row])}\t{following}\t{word + 1}\t{position + 1}\t{fold}\t{pixels}\t\n"
            )
            row += 1
    text = "".join(lines).encode()
    (no_data / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    words = load_ocr_letters(no_data)
    np.testing.assert_array_equal(words.X, X)
    np.testing.assert_array_equal(words.states, y)
    np.testing.assert_array_equal(words.lengths, lengths)
    np.testing.assert_array_equal(words.folds, folds)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths": [3, 3]}, "fold per word"),
        ({"folds": [0]}, "fold per word"),
        ({"y": np.full(7, 26)}, "a letter a-z"),
        ({"X": np.zeros((7, 15), dtype=np.uint8)}, "128 pixels"),
    ],
)
def test_letters_that_do_not_fit_are_refused(no_data, change, message):
    X, y, lengths, folds = letters(np.random.default_rng(0))
    arrays = {"X": np.packbits(X, axis=1), "y": y, "lengths": lengths, "folds": folds} | change
    np.savez(no_data / "ocr_letters.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        load_ocr_letters()


def test_incomplete_letter_files_are_refused(no_data):
    np.savez(no_data / "ocr_letters.npz", X=np.zeros((1, 16), dtype=np.uint8))
    with pytest.raises(ValueError, match=r"none named \['folds', 'lengths', 'y'\]"):
        load_ocr_letters()
    (no_data / "ocr_letters.npz").unlink()
    (no_data / "letter.data").write_text("1\ta\t-1\n")
    with pytest.raises(ValueError, match="134 columns"):
        load_ocr_letters()
    (no_data / "letter.data").write_text("\t".join(["1", "a", "2", "1", "1", "0"] + ["0"] * 128))
    with pytest.raises(ValueError, match="last letter of a word"):
        load_ocr_letters()


def test_the_table_of_words_is_read_cut_and_numbered(no_data):
    write_table(no_data)
    sample = load_treebank_sample()
    np.testing.assert_array_equal(sample.lengths, [3, 4])
    assert sample.words.tolist() == ["the", '"cat', ".", "the", "dogs", "ran", "."]
    assert sample.X.shape == (7, 1)
    assert [sample.tags[state] for state in sample.states[:3]] == ["determiner", "noun", "punctuation"]
    assert sample.states.tolist() == [6, 0, 1, 6, 0, 5, 1]


def test_case_and_full_tags_can_be_kept(no_data):
    write_table(no_data)
    sample = load_treebank_sample(lowercase=False, tags="full")
    assert sample.words.tolist() == ["The", '"cat', ".", "the", "Dogs", "ran", "."]
    assert sample.tags[sample.states].tolist() == ["DT", "NN", ".", "DT", "NNS", "VBD", "."]


def test_nltk_files_are_cut_at_full_stops_and_leftovers_dropped(no_data, monkeypatch):
    files = {
        "wsj_0001.pos": "\n[ The/DT cat/NN ]\nsat/VBD ?/. \n=====\n[ 1\\/2/CD ]\n./. \nleft/VBN over/RP",
        "wsj_0199.pos": "[ Dogs/NNS ] ran/VBD ./. ",
    }
    asked = fake_nltk(monkeypatch, files)
    sample = load_treebank_sample()
    assert len(asked) == 199
    assert asked[0] == "corpora/treebank/tagged/wsj_0001.pos"
    np.testing.assert_array_equal(sample.lengths, [6, 3])
    assert sample.words.tolist() == ["the", "cat", "sat", "?", "1\\/2", ".", "dogs", "ran", "."]


def test_a_file_is_preferred_unless_nltk_is_asked_for(no_data, monkeypatch):
    write_table(no_data)
    fake_nltk(monkeypatch, {"wsj_0001.pos": "Only/RB ./."})
    assert load_treebank_sample().lengths.size == 2
    assert load_treebank_sample(source="nltk").words.tolist() == ["only", "."]


def test_what_is_missing_and_how_to_get_it_is_said(no_data):
    with pytest.raises(FileNotFoundError, match=r"must hold ocr_letters\.npz or letter\.data\.gz.*PLURI_DATA"):
        load_ocr_letters()
    for source in ("auto", "file"):
        with pytest.raises(FileNotFoundError, match=r"nltk\.downloader treebank.*make_zipf_tagging"):
            load_treebank_sample(source=source)
    with pytest.raises(FileNotFoundError, match="source='nltk' needs NLTK"):
        load_treebank_sample(source="nltk")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\n1\t2\n", "columns sentence, word and tag"),
        ("sentence\tword\ttag\n", "at least one word"),
        ("sentence\tword\ttag\n0\tx\tXX\n", r"TAG_GROUPS when tags='merged', got \['XX'\]"),
    ],
)
def test_a_table_of_another_layout_is_refused(no_data, text, message):
    write_table(no_data, text)
    with pytest.raises(ValueError, match=message):
        load_treebank_sample()


def test_unknown_options_are_named(no_data):
    with pytest.raises(ValueError, match="tags must be one of 'merged', 'full', got 'some'"):
        load_treebank_sample(tags="some")
    with pytest.raises(ValueError, match="source must be one of 'auto', 'file', 'nltk', got 'web'"):
        load_treebank_sample(source="web")


@needs("ocr_letters.npz")
def test_the_real_letters_have_the_known_counts():
    words = load_ocr_letters()
    assert words.X.shape == (52152, 128)
    assert words.lengths.size == 6877
    assert set(words.lengths) == {3, *range(5, 15)}
    assert words.X.mean() == pytest.approx(0.2197, abs=5e-5)
    assert np.bincount(words.y)[[0, 4, 9, 25]].tolist() == [4034, 4955, 189, 1094]
    assert len({"".join(words.letters[states]) for _, states in words.sequences()}) == 55


@needs("ptb_wsj_sample.tsv.gz")
def test_the_real_sentences_have_the_published_counts():
    sample = load_treebank_sample()
    assert (sample.lengths.size, sample.lengths.min(), sample.lengths.max()) == (3828, 2, 250)
    assert sample.vocabulary.size == 10946
    np.testing.assert_array_equal(np.bincount(sample.states), GROUP_COUNTS)
    full = load_treebank_sample(lowercase=False, tags="full")
    assert (full.vocabulary.size, full.tags.size) == (11967, 46)
