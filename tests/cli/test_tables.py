"""Reading comma-separated files, against what NumPy and the csv module make of them."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from pluri.cli import tables
from pluri.cli.tables import csv_names, read_csv


@pytest.fixture
def write(tmp_path):
    def write(text, name="data.csv", **options):
        path = tmp_path / name
        path.write_text(text, **({"encoding": "utf-8"} | options))
        return path

    return write


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("chunk", [7, 65_536])
def test_numbers_are_those_that_were_written(write, monkeypatch, delimiter, chunk):
    monkeypatch.setattr(tables, "CHUNK", chunk)
    values = np.random.default_rng(0).normal(size=(50, 3)) * 10.0 ** np.arange(-150, 151, 150)
    lines = [delimiter.join(map(repr, row)) for row in values.tolist()]
    path = write(delimiter.join("abc") + "\n" + "\n".join(lines) + "\n")
    columns = read_csv(path)
    assert list(columns) == csv_names(path) == ["a", "b", "c"]
    np.testing.assert_array_equal(np.column_stack(list(columns.values())), values)


def test_a_first_line_of_numbers_is_data_unless_told_otherwise(write):
    path = write("1,2\n3,4\n")
    assert {name: column.tolist() for name, column in read_csv(path).items()} == {"0": [1, 3], "1": [2, 4]}
    assert {name: column.tolist() for name, column in read_csv(path, header=True).items()} == {"1": [3], "2": [4]}
    words = write("dog\ncat\n")
    assert read_csv(words)["dog"].tolist() == ["cat"]
    assert read_csv(words, header=False)["0"].tolist() == ["dog", "cat"]


def test_missing_cells_are_nan_among_numbers_and_none_among_words(write):
    columns = read_csv(write("x,w\n1,a\n,\nNA,NA\nnull,none\n-2.5,b\n"))
    np.testing.assert_array_equal(columns["x"], [1, np.nan, np.nan, np.nan, -2.5])
    assert columns["w"].tolist() == ["a", None, "NA", "none", "b"], "NA may be a word"


def test_a_column_that_turns_into_text_keeps_what_was_written(write, monkeypatch):
    monkeypatch.setattr(tables, "CHUNK", 2)
    path = write("n,w\n1,007\n2,1e3\n3,5\n4,dog\n")
    columns = read_csv(path)
    assert columns["w"].tolist() == ["007", "1e3", "5", "dog"]
    assert columns["n"].tolist() == [1, 2, 3, 4]
    assert read_csv(path, text=["n"])["n"].tolist() == ["1", "2", "3", "4"]


def test_quotes_spaces_and_marks_at_the_beginning_of_a_file(write):
    path = write('\ufeff"a, b", c \n"1","x ""y"""\n 2 ,z\n')
    columns = read_csv(path)
    assert list(columns) == ["a, b", "c"]
    assert columns["a, b"].tolist() == [1, 2]
    assert columns["c"].tolist() == ['x "y"', "z"]
    with open(path, encoding="utf-8-sig", newline="") as file:
        assert columns["c"].tolist() == [row[1] for row in csv.reader(file)][1:]


def test_blank_lines(write):
    np.testing.assert_array_equal(read_csv(write("x\n1\n\n3\n\n\n"))["x"], [1, np.nan, 3])
    assert read_csv(write("x,y\n1,2\n\n3,4\n\n"))["x"].tolist() == [1, 3]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must have at least one row, got an empty file"),
        ("a,b\n", "must have at least one row, got only the names a, b"),
        ("a,b\n1,2\n3\n", "line 3 of .* must have 2 cells, got 1"),
        ("a,a\n1,2\n", "must have columns of different names, got a, a"),
        ("a,b\n1,2\x00\n\"", "must be a table of comma-separated values|line 3"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused_in_a_sentence(write, text, words):
    with pytest.raises(ValueError, match=words):
        read_csv(write(text))


def test_other_encodings_are_refused(write):
    with pytest.raises(ValueError, match="must be text in UTF-8, got other bytes at position"):
        read_csv(write("naïve\nété\n", encoding="latin-1"))
    assert csv_names(write("naïve\n", encoding="latin-1")) == []
