"""Bhattacharyya diversity: known answers, determinants by another route, invariances, degenerate rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluri.metrics import bhattacharyya_distances, bhattacharyya_diversity


def random_rows(seed, n_rows, n_outcomes):
    return np.random.default_rng(seed).dirichlet(np.full(n_outcomes, 0.7), size=n_rows)


def test_the_two_state_example_is_half_a_determinant():
    diversity = bhattacharyya_diversity([[0.9, 0.1], [0.2, 0.8]])
    assert diversity.mean == pytest.approx(0.346574, abs=5e-7)
    assert diversity.minimum == diversity.mean
    assert diversity.log_det == pytest.approx(np.log(0.5), abs=1e-12)


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(0, 4))
def test_the_record_equals_loops_and_a_plain_determinant(seed, n_rows, extra):
    rows = random_rows(seed, n_rows, n_rows + extra)
    diversity = bhattacharyya_diversity(rows)
    coefficient = np.array([[sum(np.sqrt(a * b) for a, b in zip(x, y)) for y in rows] for x in rows])
    pairs = [-np.log(coefficient[i, j]) for i in range(n_rows) for j in range(i)]
    np.testing.assert_allclose(diversity.distances, -np.log(np.minimum(coefficient, 1)), atol=1e-9)
    if pairs:
        assert diversity.mean == pytest.approx(np.mean(pairs), abs=1e-9)
        assert diversity.minimum == pytest.approx(np.min(pairs), abs=1e-9)
    determinant = np.linalg.det(coefficient)
    if determinant > 1e-6:
        assert diversity.log_det == pytest.approx(np.log(determinant), rel=1e-6, abs=1e-9)
    assert diversity.log_det <= 0


@given(st.integers(0, 1000))
def test_reordering_rows_and_columns_changes_no_summary(seed):
    rng = np.random.default_rng(seed)
    rows = random_rows(seed, 4, 6)
    before, after = (
        bhattacharyya_diversity(rows),
        bhattacharyya_diversity(rows[rng.permutation(4)][:, rng.permutation(6)]),
    )
    assert after.mean == pytest.approx(before.mean, abs=1e-10)
    assert after.minimum == pytest.approx(before.minimum, abs=1e-10)
    assert after.log_det == pytest.approx(before.log_det, rel=1e-6, abs=1e-9)


def test_disjoint_rows_reach_the_floor_and_a_zero_log_determinant():
    diversity = bhattacharyya_diversity(np.eye(4)[[2, 0, 3, 1]])
    assert diversity.minimum == pytest.approx(300 * np.log(10))
    assert diversity.log_det == pytest.approx(0.0, abs=1e-12)


def test_equal_or_too_many_rows_have_no_determinant():
    rows = random_rows(1, 3, 5)
    twice = bhattacharyya_diversity(rows[[0, 1, 1]])
    assert twice.minimum == pytest.approx(0.0, abs=1e-12)
    assert twice.log_det == -np.inf
    assert bhattacharyya_diversity(random_rows(2, 5, 3)).log_det == -np.inf


def test_a_single_row_has_no_pairs():
    diversity = bhattacharyya_diversity([[0.3, 0.7]])
    assert np.isnan(diversity.mean)
    assert np.isnan(diversity.minimum)
    assert diversity.log_det == pytest.approx(0.0, abs=1e-12)


def test_distances_are_symmetric_with_a_zero_diagonal():
    distances = bhattacharyya_distances(random_rows(3, 8, 8))
    np.testing.assert_array_equal(distances, distances.T)
    np.testing.assert_array_equal(np.diag(distances), 0)
    assert (distances >= 0).all()


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([0.5, 0.5], "two axes"),
        (np.empty((0, 3)), "at least one row"),
        ([[0.5, np.nan]], "finite"),
        ([[1.5, -0.5]], "not negative"),
        ([[0.5, 0.5], [0.5, 0.4]], "sum to 1, got a sum of 0.9"),
    ],
)
def test_rows_that_are_no_distributions_are_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        bhattacharyya_diversity(matrix)
