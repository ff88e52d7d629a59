"""Sources: every sequence once, in order, uncut, however the data are stored."""

import os
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluri.engine import ArraySource, Batch, IterableSource, LazyBatch, NpySlice, NpySource


def greedy(lengths, batch_size):
    """The rule, one sequence at a time: a batch takes sequences as long as they fit."""
    groups = []
    for length in lengths:
        if groups and (length == 0 or sum(groups[-1]) == 0 or sum(groups[-1]) + length <= batch_size):
            groups[-1].append(length)
        else:
            groups.append([length])
    return groups


def loaded(source):
    return [item.load() for item in source.batches()]


def numbered(n_samples, n_features=2):
    return np.arange(float(n_samples * n_features)).reshape(n_samples, n_features)


lengths_and_size = st.tuples(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 12))


@given(lengths_and_size)
def test_batches_cover_each_sequence_once_in_order(case):
    lengths, batch_size = case
    X = numbered(sum(lengths))
    weight, labels = np.arange(len(lengths)) + 0.5, np.arange(sum(lengths))
    batches = loaded(ArraySource(X, lengths, sample_weight=weight, labels=labels, batch_size=batch_size))
    assert [batch.lengths.tolist() for batch in batches] == greedy(lengths, batch_size)
    np.testing.assert_array_equal(np.concatenate([batch.X for batch in batches]), X)
    np.testing.assert_array_equal(np.concatenate([batch.weight for batch in batches]), weight)
    np.testing.assert_array_equal(np.concatenate([batch.labels for batch in batches]), labels)


@given(lengths_and_size)
def test_no_batch_is_larger_than_it_must_be_nor_without_samples(case):
    lengths, batch_size = case
    batches = loaded(ArraySource(numbered(sum(lengths)), lengths, batch_size=batch_size))
    for batch in batches:
        assert batch.n_samples <= batch_size or np.count_nonzero(batch.lengths) == 1
        assert batch.n_samples > 0 or sum(lengths) == 0


@given(lengths_and_size)
def test_a_list_of_sequences_is_grouped_as_the_array_of_them_is_cut(case):
    lengths, batch_size = case
    X = numbered(sum(lengths))
    sequences = np.split(X, np.cumsum(lengths)[:-1])
    together = loaded(ArraySource(X, lengths, batch_size=batch_size))
    apart = loaded(IterableSource(sequences, batch_size=batch_size))
    assert len(together) == len(apart)
    for one, other in zip(together, apart):
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.lengths, other.lengths)


@given(st.integers(1, 40), st.integers(1, 50))
def test_independent_rows_are_cut_into_equal_batches(n_samples, batch_size):
    X = numbered(n_samples)
    batches = loaded(ArraySource(X, sample_weight=X[:, 0], batch_size=batch_size))
    np.testing.assert_array_equal(np.concatenate([batch.X for batch in batches]), X)
    np.testing.assert_array_equal(np.concatenate([batch.weight for batch in batches]), X[:, 0])
    assert {batch.n_samples for batch in batches[:-1]} <= {batch_size}
    assert all(batch.lengths is None for batch in batches)


def test_batches_of_an_array_are_views():
    X = numbered(100)
    source = ArraySource(X, [30, 70], batch_size=40)
    assert all(np.shares_memory(batch.X, X) for batch in loaded(source))
    assert source.n_features == 2


@pytest.mark.parametrize("batch_size", [0, -3, 2.5, True, None])
def test_a_bad_batch_size_is_refused(batch_size):
    with pytest.raises(ValueError, match="batch_size must be a positive integer"):
        ArraySource(numbered(4), batch_size=batch_size)


# Files ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.random.default_rng(0).normal(size=(1000, 4)))
    return path


def test_a_npy_file_gives_the_batches_of_its_array(path):
    lengths = np.array([100, 0, 250, 650])
    from_file = loaded(NpySource(path, lengths, batch_size=300))
    from_memory = loaded(ArraySource(np.load(path), lengths, batch_size=300))
    assert len(from_file) == len(from_memory) == 3
    for one, other in zip(from_file, from_memory):
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.lengths, other.lengths)


def test_a_mapped_batch_is_a_view_here_and_pickles_small(path):
    mapped = np.load(path, mmap_mode="r")
    for lazy in ArraySource(mapped, [400, 600], batch_size=500).batches():
        assert isinstance(lazy, NpySlice)
        assert np.shares_memory(lazy.load().X, mapped)
        message = pickle.dumps(lazy)
        assert len(message) < 1000
        np.testing.assert_array_equal(pickle.loads(message).load().X, lazy.load().X)


@pytest.mark.parametrize(
    "view",
    [
        lambda X: X[10:],
        lambda X: X[100:900, 1:3],
        lambda X: X[::3, ::2],
        lambda X: np.asarray(X)[7:],
        lambda X: X[5:][5:][5:],
        lambda X: X[:, 2:3],
        lambda X: X.reshape(500, 8)[3:],
        lambda X: X.view(np.int64),
        lambda X: X.T,
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_another_process_reads_the_same_rows_of_any_view(view, order, tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, np.asarray(np.random.default_rng(0).normal(size=(1000, 4)), order=order))
    X = view(np.load(path, mmap_mode="r"))
    expected = np.array(X)
    lazies = list(ArraySource(X, batch_size=130).batches())
    shipped = [pickle.loads(pickle.dumps(lazy)).load().X for lazy in lazies]
    np.testing.assert_array_equal(np.concatenate(shipped), expected)
    # A view that cannot be described by the file (reshaping in Fortran order copies) falls back to memory.
    is_mapped = np.shares_memory(X, np.asarray(X.base)) and X.base is not None
    assert all(isinstance(lazy, NpySlice) for lazy in lazies) or order == "F" or not is_mapped


@pytest.mark.parametrize("offset", [0, 8, 80, 4096, 5000 * 8])
def test_a_raw_map_that_starts_anywhere_in_the_file_is_found(offset, tmp_path):
    path = tmp_path / "raw"
    values = np.arange(20_000.0)
    values.tofile(path)
    mapped = np.memmap(path, dtype=float, mode="r", offset=offset, shape=(1000, 3))[100:]
    lazies = list(ArraySource(mapped, batch_size=400).batches())
    shipped = np.concatenate([pickle.loads(pickle.dumps(lazy)).load().X for lazy in lazies])
    start = offset // 8 + 300
    np.testing.assert_array_equal(shipped.ravel(), values[start : start + 2700])
    assert isinstance(lazies[0], NpySlice)


def test_what_is_written_through_a_shared_map_is_read_elsewhere(path):
    mapped = np.load(path, mmap_mode="r+")
    mapped[3] = 17.0
    (lazy,) = ArraySource(mapped).batches()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(lazy)).load().X[3], 17.0)


def private_map(path):
    mapped = np.load(path, mmap_mode="c")
    mapped[0] = 99.0  # in this process only, not in the file
    return mapped


def deleted_map(path):
    mapped = np.load(path, mmap_mode="r")
    os.unlink(path)
    return mapped


def shortened_map(path):
    mapped = np.load(path, mmap_mode="r")
    copy = path.with_name("short.npy")
    copy.write_bytes(path.read_bytes()[:1000])
    os.replace(copy, path)
    return mapped


@pytest.mark.parametrize(
    "make",
    [
        private_map,
        deleted_map,
        shortened_map,
        lambda path: np.load(path, mmap_mode="r")[::-1],
        lambda path: np.load(path, mmap_mode="r") + 1.0,
        lambda path: np.load(path, mmap_mode="r")[[3, 1, 2]],
        lambda path: pickle.loads(pickle.dumps(np.load(path, mmap_mode="r"))),
    ],
    ids=["copy-on-write", "deleted", "shortened", "reversed", "computed", "indexed", "pickled"],
)
def test_a_map_that_its_file_does_not_describe_is_shipped_as_data(make, path):
    X = make(path)
    (batch,) = ArraySource(X).batches()
    assert isinstance(batch, Batch)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(batch)).X, X)


def test_a_file_that_a_worker_does_not_see_is_named(path):
    message = pickle.dumps(next(NpySource(path).batches()))
    os.unlink(path)
    with pytest.raises(OSError, match=r"cannot read .*X\.npy.*same file under the same path"):
        pickle.loads(message).load()


def test_an_archive_is_not_a_npy_file(tmp_path):
    np.savez(tmp_path / "X.npz", X=np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"\.npy file with one array"):
        NpySource(tmp_path / "X.npz")


# Iterables -----------------------------------------------------------------------------------------------------------


def test_a_generator_is_refused_with_the_remedy():
    with pytest.raises(TypeError, match="got a generator: pass the function that makes it"):
        IterableSource(numbered(2) for _ in range(3))


def test_a_function_that_makes_a_generator_is_read_again_and_again():
    source = IterableSource(lambda: (numbered(n) for n in (2, 3, 4)), batch_size=5)
    for _ in range(3):
        assert [batch.lengths.tolist() for batch in loaded(source)] == [[2, 3], [4]]


def test_a_function_that_gives_a_spent_iterator_is_found_out():
    spent = iter([numbered(2)])
    source = IterableSource(lambda: spent)
    loaded(source)
    with pytest.raises(ValueError, match="must make a new iterator"):
        loaded(source)


def test_kinds_of_items_can_be_mixed():
    class Lazy:
        def load(self):
            return Batch(numbered(7))

    batch = Batch(numbered(5), weight=np.ones(5))
    items = [numbered(2), (numbered(4), [1, 3]), batch, numbered(1), (numbered(3), None), Lazy()]
    source = IterableSource(items)
    result = list(source.batches())
    assert result[1] is batch
    assert isinstance(result[4], LazyBatch)
    lengths = [None if item.load().lengths is None else item.load().lengths.tolist() for item in result]
    assert lengths == [[2, 1, 3], None, [1], None, None]
    assert source.n_features == 2


def test_without_grouping_an_item_is_a_batch():
    items = [numbered(2), numbered(0), (numbered(4), [1, 3])]
    batches = loaded(IterableSource(items, group=False))
    assert [batch.lengths.tolist() for batch in batches] == [[2], [0], [1, 3]]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([numbered(2), numbered(2, 3)], r"item 1 must have as many features as the items before it \(2\), got 3"),
        ([numbered(2), np.zeros(3)], r"item 1 must be an array of 2 dimensions.*got shape \(3,\)"),
        ([(numbered(2), [3])], "lengths must sum"),
    ],
)
def test_a_bad_item_is_named(items, message):
    with pytest.raises(ValueError, match=message):
        loaded(IterableSource(items))


def test_what_is_neither_collection_nor_function_is_refused():
    with pytest.raises(TypeError, match="items must be a collection or a function"):
        IterableSource(3)
