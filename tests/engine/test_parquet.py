"""Parquet: the batches are those of the same table in memory, wherever chunks and files end."""

import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pluri.engine import ArraySource, ParquetSource

pa = pytest.importorskip("pyarrow")
ds = pytest.importorskip("pyarrow.dataset")
pq = pytest.importorskip("pyarrow.parquet")


def table(lengths, seed=0):
    rng = np.random.default_rng(seed)
    n = int(np.sum(lengths))
    return pa.table(
        {
            "walk": np.repeat([f"walk {i}" for i in range(len(lengths))], lengths),
            "x": rng.normal(size=n),
            "state": rng.integers(0, 3, size=n),
            "y": rng.integers(0, 100, size=n).astype(np.int32),
        }
    )


def assert_same_batches(one, other):
    one, other = [item.load() for item in one.batches()], [item.load() for item in other.batches()]
    assert len(one) == len(other)
    for left, right in zip(one, other):
        for name in ("X", "lengths", "labels"):
            np.testing.assert_array_equal(getattr(left, name), getattr(right, name))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=25),
    batch_size=st.integers(1, 12),
    row_group_size=st.integers(1, 15),
    n_files=st.integers(1, 3),
    with_sequences=st.booleans(),
)
def test_files_give_the_batches_of_the_array(tmp_path, lengths, batch_size, row_group_size, n_files, with_sequences):
    data = table(lengths)
    bounds = np.linspace(0, len(data), n_files + 1).astype(int)
    paths = [tmp_path / f"{i}.parquet" for i in range(n_files)]
    for path, start, stop in zip(paths, bounds[:-1], bounds[1:]):
        pq.write_table(data.slice(start, stop - start), path, row_group_size=row_group_size)
    source = ParquetSource(
        paths, ["y", "x"], sequence="walk" if with_sequences else None, label="state", batch_size=batch_size
    )
    X = np.column_stack([data["y"].to_numpy(), data["x"].to_numpy()])
    in_memory = ArraySource(
        X, lengths if with_sequences else None, labels=data["state"].to_numpy(), batch_size=batch_size
    )
    assert source.n_features == 2
    for _ in range(2):  # the second pass no longer checks the identifiers
        assert_same_batches(source, in_memory)


@pytest.mark.parametrize("kind", ["int", "dictionary", "timestamp"])
def test_sequences_can_be_named_by_any_type(kind, tmp_path):
    lengths = np.array([3, 1, 4, 2])
    names = np.repeat([5, 3, 9, 7], lengths)
    column = {
        "int": lambda: pa.array(names),
        "dictionary": lambda: pa.array(names.astype(str)).dictionary_encode(),
        "timestamp": lambda: pa.array(names.astype("datetime64[s]")),
    }[kind]()
    x = np.arange(10.0)
    pq.write_table(pa.table({"id": column, "x": x}), tmp_path / "a.parquet", row_group_size=2)
    source = ParquetSource(tmp_path / "a.parquet", "x", sequence="id", batch_size=4)
    assert_same_batches(source, ArraySource(x[:, None], lengths, batch_size=4))


def test_a_folder_and_an_open_dataset_are_read_in_order(tmp_path):
    data = table([4, 6, 2])
    for i in range(12):
        pq.write_table(data.slice(i, 1), tmp_path / f"part-{i:02d}.parquet")
    in_memory = ArraySource(data["x"].to_numpy()[:, None], [4, 6, 2], batch_size=5)
    assert_same_batches(ParquetSource(tmp_path, ["x"], sequence="walk", batch_size=5), in_memory)
    opened = ds.dataset(str(tmp_path), format="parquet")
    assert_same_batches(ParquetSource(opened, ["x"], sequence="walk", batch_size=5), in_memory)
    filtered = opened.filter(ds.field("walk") != "walk 1")
    rest = ArraySource(data["x"].to_numpy()[[0, 1, 2, 3, 10, 11], None], [4, 2], batch_size=5)
    assert_same_batches(ParquetSource(filtered, ["x"], sequence="walk", batch_size=5), rest)
    assert_same_batches(ParquetSource(ds.dataset(data), ["x"], sequence="walk", batch_size=5), in_memory)


def test_nulls_become_nan_and_unknown_states(tmp_path):
    path = tmp_path / "a.parquet"
    columns = {"x": [1, None, 3], "y": [None, 2.5, 3.5], "z": [True, None, False], "state": [0, None, 2]}
    pq.write_table(pa.table(columns), path)
    (batch,) = ParquetSource(path, ["x", "y", "z"], label="state").batches()
    np.testing.assert_array_equal(batch.X, [[1, np.nan, 1], [np.nan, 2.5, np.nan], [3, 3.5, 0]])
    np.testing.assert_array_equal(batch.labels, [0, -1, 2])
    (batch,) = ParquetSource(path, "state", dtype=np.float32).batches()
    assert batch.X.dtype == np.float32


def test_integers_can_stay_integers(tmp_path):
    path = tmp_path / "a.parquet"
    large = 2**62 + 1  # a float64 would round it
    pq.write_table(pa.table({"x": [1, large], "y": [1, None]}), path)
    (batch,) = ParquetSource(path, "x", dtype=np.int64).batches()
    assert batch.X.dtype == np.int64
    assert batch.X[1, 0] == large
    with pytest.raises(ValueError, match="column 'y' must have no nulls to become int64"):
        list(ParquetSource(path, "y", dtype=np.int64).batches())


def test_a_sequence_that_comes_back_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"walk": ["a", "a", "b", "a"], "x": np.zeros(4)}), path, row_group_size=1)
    source = ParquetSource(path, ["x"], sequence="walk")
    with pytest.raises(ValueError, match="walk = 'a' again after another sequence: sort the files by 'walk'"):
        list(source.batches())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["x", "z"]}, "got 'z' for a file of walk, x, state, y"),
        ({"columns": ["walk"]}, "columns must be numeric, got 'walk' of type string"),
        ({"columns": []}, "at least one column"),
        ({"columns": ["x"], "sequence": "id"}, "sequence must name columns that every file has, got 'id'"),
        ({"columns": ["x"], "label": "x"}, "label must name an integer column, got 'x' of type double"),
        ({"columns": ["x"], "batch_size": 0}, "batch_size must be a positive integer"),
    ],
)
def test_wrong_columns_are_named(arguments, message, tmp_path):
    pq.write_table(table([2, 3]), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=message):
        ParquetSource(tmp_path / "a.parquet", **arguments)


def test_a_sequence_without_a_name_is_refused(tmp_path):
    pq.write_table(pa.table({"walk": ["a", None], "x": [1.0, 2.0]}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="sequence must name a column without nulls"):
        list(ParquetSource(tmp_path / "a.parquet", ["x"], sequence="walk").batches())


def test_without_pyarrow_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)  # makes its import fail
    with pytest.raises(ImportError, match=r'ParquetSource needs pyarrow.*pip install "pluri\[dask\]"'):
        ParquetSource(tmp_path / "a.parquet", ["x"])


def test_a_file_that_lacks_a_column_is_found_out(tmp_path):
    pq.write_table(pa.table({"x": [1.0], "y": [1.0]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [1.0]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="columns must name columns that every file has, got 'y' for a file of x"):
        list(ParquetSource(tmp_path, ["x", "y"]).batches())


@pytest.mark.parametrize("opened", [False, True], ids=["path", "dataset"])  # the command opens a dataset
@pytest.mark.parametrize("row_group_size", [5_000, 1_000_000])
def test_memory_holds_a_few_batches_not_the_file(row_group_size, opened, tmp_path):
    path = tmp_path / "a.parquet"
    n = 1_000_000
    data = {f"x{i}": np.random.default_rng(i).normal(size=n) for i in range(4)}
    pq.write_table(pa.table({"id": np.arange(n) // 50, **data}), path, row_group_size=row_group_size)
    largest, before = 0, pa.total_allocated_bytes()
    file = ds.dataset(str(path), format="parquet", partitioning="hive") if opened else path
    for batch in ParquetSource(file, list(data), sequence="id", batch_size=5_000).batches():
        assert batch.n_samples == 5_000
        largest = max(largest, pa.total_allocated_bytes() - before)
    assert 0 < largest < 32 * n / 2  # the features take 32 bytes per row, and a page of each column is decoded whole
