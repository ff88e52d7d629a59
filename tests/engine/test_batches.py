"""The records: batches check themselves, statistics add up field by field."""

import math
import pickle
import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluri.engine import Batch, LazyBatch, Source, Statistics, pairwise_sum


@dataclass(frozen=True)
class Inner(Statistics):
    count: int
    log_likelihood: float = 0.0


@dataclass(frozen=True)
class Outer(Statistics):
    total: np.ndarray
    inner: Inner
    pair: tuple[np.ndarray, float]
    nothing: np.ndarray | None
    log_likelihood: float


def make_outer(seed):
    rng = np.random.default_rng(seed)
    return Outer(rng.normal(size=(2, 3)), Inner(seed), (rng.normal(size=2), float(seed)), None, rng.normal())


@dataclass(frozen=True)
class Named(Statistics):
    names: ClassVar[dict[str, int]] = {"one": 1}
    log_likelihood: float = 0.0


def test_class_variables_of_statistics_are_not_added():
    assert Named(1.0) + Named(2.0) == Named(3.0)


def test_statistics_add_field_by_field():
    first, second = make_outer(1), make_outer(2)
    total = first + second
    np.testing.assert_array_equal(total.total, first.total + second.total)
    np.testing.assert_array_equal(total.pair[0], first.pair[0] + second.pair[0])
    assert total.pair[1] == 3.0
    assert total.inner == Inner(3)
    assert total.nothing is None
    assert total.log_likelihood == first.log_likelihood + second.log_likelihood


def test_adding_statistics_leaves_the_terms_as_they_were():
    first, second = make_outer(1), make_outer(2)
    first + second
    np.testing.assert_array_equal(first.total, make_outer(1).total)


def test_builtin_sum_of_statistics_works():
    assert sum([Inner(1), Inner(2), Inner(3)]) == Inner(6)


def test_statistics_of_different_kinds_do_not_add():
    with pytest.raises(TypeError):
        Inner(1) + make_outer(1)
    with pytest.raises(TypeError):
        1 + Inner(1)


@pytest.mark.parametrize(
    "other", [np.zeros(3), 1.0, None, [1.0, 2.0], (np.zeros(2),)], ids=["shape", "number", "none", "list", "tuple"]
)
def test_a_field_that_cannot_be_added_is_named(other):
    @dataclass(frozen=True)
    class One(Statistics):
        weights: object

    with pytest.raises(TypeError, match="field weights of the statistics cannot be added"):
        One(np.zeros(2)) + One(other)


def test_offsets_delimit_the_sequences():
    batch = Batch(np.arange(10.0).reshape(5, 2), lengths=np.array([0, 3, 2]))
    parts = [batch.X[start:stop] for start, stop in zip(batch.offsets[:-1], batch.offsets[1:])]
    assert [len(part) for part in parts] == [0, 3, 2]
    np.testing.assert_array_equal(np.concatenate(parts), batch.X)
    assert batch.n_sequences == 3


def test_independent_rows_are_sequences_of_one():
    batch = Batch(np.zeros((4, 2)), weight=np.ones(4))
    assert batch.n_sequences == batch.n_samples == 4
    np.testing.assert_array_equal(np.diff(batch.offsets), 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"X": np.zeros(3)}, "2 dimensions"),
        ({"lengths": [2, 2]}, r"lengths must sum to the number of samples \(5\), got the sum 4"),
        ({"lengths": [6, -1]}, "non-negative integers"),
        ({"lengths": [2.5, 2.5]}, "non-negative integers"),
        ({"lengths": [[5]]}, "1-dimensional"),
        ({"lengths": [5], "weight": np.ones(5)}, r"one weight per sequence \(1\)"),
        ({"labels": np.zeros(4, dtype=int)}, r"one per sample \(5\)"),
        ({"labels": np.zeros(5)}, "must be integers"),
    ],
)
def test_a_batch_that_does_not_fit_together_is_refused(fields, message):
    with pytest.raises(ValueError, match=message):
        Batch(**{"X": np.zeros((5, 2)), **fields})


def test_a_batch_is_in_c_order_and_copied_only_when_it_is_not():
    rows = np.zeros((6, 2))
    assert np.shares_memory(Batch(rows[2:5]).X, rows)
    assert Batch(np.asfortranarray(rows)[2:5]).X.flags.c_contiguous


def test_a_batch_tells_dask_how_large_it_is():
    assert sys.getsizeof(Batch(np.zeros((1000, 10)))) > 80_000


def test_a_pickled_batch_is_the_same_batch():
    batch = Batch(np.arange(6.0).reshape(3, 2), [1, 2], [0.5, 2.0], [0, -1, 1])
    again = pickle.loads(pickle.dumps(batch))
    for name in ("X", "lengths", "weight", "labels"):
        np.testing.assert_array_equal(getattr(again, name), getattr(batch, name))


def test_protocols_are_recognised():
    class Mine:
        def batches(self):
            yield Batch(np.zeros((1, 1)))

    assert isinstance(Mine(), Source)
    assert isinstance(next(Mine().batches()), LazyBatch)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=70))
def test_pairwise_sum_is_close_to_the_exact_sum(terms):
    # Its error is at most log2(n) units in the last place of the sum of magnitudes (n <= 70: 7 units).
    bound = 7 * np.finfo(float).eps * math.fsum(map(abs, terms))
    assert abs(pairwise_sum(iter(terms)) - math.fsum(terms)) <= bound


@given(st.integers(1, 100))
def test_pairwise_sum_keeps_the_order_and_a_logarithmic_depth(n):
    class Term:
        def __init__(self, first, last, depth):
            self.first, self.last, self.depth = first, last, depth

        def __add__(self, other):
            assert self.last + 1 == other.first
            return Term(self.first, other.last, 1 + max(self.depth, other.depth))

    total = pairwise_sum(Term(i, i, 0) for i in range(n))
    assert (total.first, total.last) == (0, n - 1)
    assert total.depth <= math.ceil(math.log2(n)) + 1


def test_the_sum_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one batch"):
        pairwise_sum([])
