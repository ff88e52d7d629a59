"""Data files become the arrays, lengths and labels that models take, whatever the format."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pluri.cli.observations import Selection, column_names, read_observations

ROWS = 60
LENGTHS = [10, 20, 5, 25]


@pytest.fixture(scope="module")
def truth():
    rng = np.random.default_rng(0)
    return {
        "id": np.repeat([3, 1, 7, 2], LENGTHS),
        "x": rng.normal(size=ROWS),
        "y": np.where(rng.random(ROWS) < 0.2, np.nan, rng.normal(size=ROWS)),
        "tag": rng.integers(3, size=ROWS),
    }


@pytest.fixture(scope="module")
def files(truth, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    lines = [",".join(truth)]
    for row in zip(*truth.values()):
        lines.append(",".join("" if value != value else repr(value.item()) for value in row))
    (folder / "data.csv").write_text("\n".join(lines))
    np.save(folder / "data.npy", np.column_stack(list(truth.values())))
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = {name: arrow.array(column, from_pandas=True) for name, column in truth.items()}
    parquet.write_table(arrow.table(table), folder / "data.parquet", row_group_size=17)
    (folder / "lengths.txt").write_text("10 20\n5, 25\n")
    np.save(folder / "lengths.npy", np.array(LENGTHS))
    return folder


FORMATS = ["csv", "npy", "parquet"]


def names_in(kind, *names):
    """Columns of a .npy file have numbers for names."""
    order = ["id", "x", "y", "tag"]
    return [str(order.index(name)) if kind == "npy" else name for name in names]


def gathered(observations):
    batches = list(observations.batches())
    X = np.concatenate([batch.X for batch in batches])
    lengths = list(itertools.chain.from_iterable(batch.lengths for batch in batches))
    labels = None if batches[0].labels is None else np.concatenate([batch.labels for batch in batches])
    return X, lengths, labels


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_data(files, truth, kind):
    columns, (sequence, label) = names_in(kind, "x", "y"), names_in(kind, "id", "tag")
    path = files / f"data.{kind}"
    assert column_names(path) == names_in(kind, "id", "x", "y", "tag")
    for chosen in (columns, None):
        observations = read_observations(path, Selection(chosen, sequence=sequence, label=label))
        X, lengths, labels = gathered(observations)
        assert observations.columns == columns
        np.testing.assert_array_equal(X, np.column_stack([truth["x"], truth["y"]]))
        assert lengths == LENGTHS
        np.testing.assert_array_equal(labels, truth["tag"])


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("lengths", ["lengths.txt", "lengths.npy"])
def test_lengths_may_come_from_a_file(files, kind, lengths):
    selection = Selection(names_in(kind, "x"), lengths=files / lengths)
    observations = read_observations(files / f"data.{kind}", selection)
    assert observations.lengths.tolist() == LENGTHS
    assert observations.X.shape == (ROWS, 1)


@pytest.mark.parametrize("kind", FORMATS)
def test_without_sequences_there_is_one(files, kind):
    assert read_observations(files / f"data.{kind}", Selection(names_in(kind, "x"))).lengths is None


def test_large_formats_stay_on_disk(files):
    mapped = read_observations(files / "data.npy", Selection(["1", "2"], sequence="0")).X
    assert isinstance(mapped, np.memmap)
    assert mapped.base is not None
    streamed = read_observations(files / "data.parquet", Selection(["x"], sequence="id"))
    assert streamed.streamed
    assert not read_observations(files / "data.parquet", Selection(["x"], sequence="id"), stream=False).streamed


def test_words_stay_words_as_they_are_written(tmp_path):
    (tmp_path / "data.csv").write_text("w,n\na,007\n,1\nb,\n")
    observations = read_observations(tmp_path / "data.csv", Selection())
    assert observations.is_text
    assert observations.X.tolist() == [["a", "007"], [None, "1"], ["b", None]]
    numbers = read_observations(tmp_path / "data.csv", Selection(["n"]))
    assert not numbers.is_text
    assert read_observations(tmp_path / "data.csv", Selection(["n"], text=True)).X.tolist() == [["007"], ["1"], [None]]


def test_words_and_labels_of_parquet_files(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    table = arrow.table({"id": [1, 1, 2], "w": ["a", None, "b"], "n": [7, 8, None], "tag": ["x", None, "y"]})
    parquet.write_table(table, tmp_path / "data.parquet")
    observations = read_observations(tmp_path / "data.parquet", Selection(["w", "n"], sequence="id", label="tag"))
    assert observations.X.tolist() == [["a", "7"], [None, "8"], ["b", None]]
    assert observations.labels.tolist() == ["x", None, "y"]
    assert observations.lengths.tolist() == [2, 1]


def test_missing_labels_are_unknown(tmp_path):
    (tmp_path / "data.csv").write_text("x,tag\n1,0\n2,\n3,2\n")
    observations = read_observations(tmp_path / "data.csv", Selection(label="tag"))
    assert observations.labels.tolist() == [0, None, 2]
    assert observations.columns == ["x"]


def test_identifiers_are_text_even_if_they_look_like_numbers(tmp_path):
    (tmp_path / "data.csv").write_text("id,x\n1,1\n1.0,2\n01,3\n")
    assert read_observations(tmp_path / "data.csv", Selection(sequence="id")).lengths.tolist() == [1, 1, 1]


def test_mistakes_are_named(files, tmp_path):
    def message(path, **choices):
        with pytest.raises((ValueError, OSError)) as caught:
            read_observations(path, Selection(**choices))
        return str(caught.value)

    assert "data must name an existing file" in message(files / "absent.csv")
    assert "got id, x, y, tag" in message(files / "data.csv", columns=["z"])
    assert "must have a column 'z'" in message(files / "data.parquet", sequence="z")
    assert "must not be given together" in message(files / "data.csv", sequence="id", lengths=files / "lengths.txt")
    assert "besides id, x" in message_of_two_columns(tmp_path, message)
    (tmp_path / "data.xyz").write_text("")
    assert "data must be a file of type .csv" in message(tmp_path / "data.xyz")
    for name in ("data.npy", "data.parquet"):
        (tmp_path / name).write_text("text")
        assert "got something else" in message(tmp_path / name)
    np.save(tmp_path / "data.npy", np.zeros((2, 2, 2)))
    assert "one or two axes, got (2, 2, 2)" in message(tmp_path / "data.npy")
    np.save(tmp_path / "data.npy", np.array([{}], dtype=object), allow_pickle=True)
    assert "got something else" in message(tmp_path / "data.npy")
    (tmp_path / "again.csv").write_text("id,x\na,1\nb,2\na,3\n")
    assert "id = a again after another sequence" in message(tmp_path / "again.csv", sequence="id")
    (tmp_path / "gap.csv").write_text("id,x\na,1\n,2\n")
    assert "must have no missing cell, got one in row 2" in message(tmp_path / "gap.csv", sequence="id")
    (tmp_path / "odd.csv").write_text("x,tag\n1,0.5\n")
    assert "must hold labels" in message(tmp_path / "odd.csv", label="tag")
    (tmp_path / "lengths").write_text("1 2 x")
    assert "must name a file of integers" in message(files / "data.csv", lengths=tmp_path / "lengths")
    (tmp_path / "lengths").write_text("1 2")
    assert "must sum to the number of rows (60), got the sum 3" in message(
        files / "data.csv", lengths=tmp_path / "lengths"
    )
    assert "--lengths must name an existing file" in message(files / "data.csv", lengths=tmp_path / "absent")


def message_of_two_columns(folder, message):
    (folder / "two.csv").write_text("id,x\na,1\n")
    return message(folder / "two.csv", sequence="id", label="x")
