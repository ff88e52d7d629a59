"""Renumbering of states: recovered permutations, rectangular problems, parameters that follow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluri.metrics import StateAlignment, align_rows, align_states, one_to_one_accuracy, permute_states


@given(st.permutations(range(6)), st.integers(0, 1000))
def test_a_permuted_labelling_is_put_back(permutation, seed):
    truth = np.concatenate([np.arange(6), np.random.default_rng(seed).integers(6, size=30)])
    alignment = align_states(truth, np.array(permutation)[truth])
    np.testing.assert_array_equal(alignment.relabel(np.array(permutation)[truth]), truth)
    np.testing.assert_array_equal(alignment.order, permutation)
    assert alignment.matched.all()


@given(st.integers(0, 1000), st.integers(1, 6), st.integers(1, 6))
def test_relabelled_accuracy_is_the_one_to_one_accuracy(seed, n_true, n_pred):
    rng = np.random.default_rng(seed)
    truth, pred = rng.integers(n_true, size=50), rng.integers(n_pred, size=50)
    alignment = align_states(truth, pred, n_true=n_true, n_pred=n_pred)
    assert np.mean(alignment.relabel(pred) == truth) == pytest.approx(one_to_one_accuracy(truth, pred))
    assert alignment.matched.sum() == min(n_true, n_pred)
    np.testing.assert_array_equal(np.sort(alignment.order), np.arange(n_pred))
    assert np.unique(alignment.mapping).size == n_pred


def test_states_without_a_partner_come_last():
    alignment = align_states([0, 0, 1, 1, 1], [3, 3, 1, 1, 0], n_pred=5)
    np.testing.assert_array_equal(alignment.mapping, [2, 1, 3, 0, 4])
    np.testing.assert_array_equal(alignment.order, [3, 1, 0, 2, 4])
    np.testing.assert_array_equal(alignment.matched, [False, True, False, True, False])


def test_a_weight_can_turn_the_matching():
    truth, pred = [0, 0, 1, 1], [0, 1, 0, 1]
    np.testing.assert_array_equal(align_states(truth, pred, sample_weight=[1, 9, 9, 1]).mapping, [1, 0])
    np.testing.assert_array_equal(align_states(truth, pred, sample_weight=[9, 1, 1, 9]).mapping, [0, 1])


def test_unknown_labels_are_ignored_and_kept():
    alignment = align_states([0, -1, 1, 1], [1, 1, -1, 0])
    np.testing.assert_array_equal(alignment.relabel([1, -1, 0]), [0, -1, 1])


def test_rows_are_matched_by_distance_whatever_their_order():
    rng = np.random.default_rng(5)
    means = rng.normal(size=(6, 3)) * 10
    permutation = rng.permutation(6)
    alignment = align_rows(means, means[permutation] + 0.01 * rng.normal(size=(6, 3)))
    np.testing.assert_array_equal(permutation[alignment.order], np.arange(6))


def test_a_permuted_chain_keeps_its_law():
    """Stationary distribution and diagonal move with the states, which only a two-sided permutation ensures."""
    rng = np.random.default_rng(2)
    transmat = rng.dirichlet(np.ones(5), size=5)
    order = rng.permutation(5)
    moved = permute_states(transmat, order)

    def stationary(matrix):
        return np.linalg.matrix_power(matrix, 200)[0]

    np.testing.assert_allclose(stationary(moved), stationary(transmat)[order], rtol=1e-10)
    np.testing.assert_array_equal(np.diag(moved), np.diag(transmat)[order])


def test_one_axis_is_permuted_alone_and_the_input_is_untouched():
    means = np.arange(6.0).reshape(3, 2)
    alignment = StateAlignment(np.array([1, 2, 0]), np.array([2, 0, 1]), np.ones(3, dtype=bool))
    np.testing.assert_array_equal(permute_states(means, alignment, axes=(0,)), [[4, 5], [0, 1], [2, 3]])
    np.testing.assert_array_equal(permute_states(np.arange(3), alignment, axes=(0,)), [2, 0, 1])
    np.testing.assert_array_equal(means, np.arange(6.0).reshape(3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: align_states(["a"], [0]), "y_true must hold state numbers"),
        (lambda: align_states([0, 1], [0]), "equal lengths"),
        (lambda: align_states([-1], [0]), "at least one known label"),
        (lambda: align_states([0, 3], [0, 1], n_true=2), "n_true must be at least 4"),
        (lambda: align_states([0, 1], [0, 1]).relabel([2]), r"below the number of states \(2\), got 2"),
        (lambda: align_rows([[0.0]], [[0.0, 1.0]]), "equally many columns"),
        (lambda: align_rows([[np.nan]], [[0.0]]), "finite"),
        (lambda: permute_states(np.eye(2), [0, 0]), "permutation"),
        (lambda: permute_states(np.eye(3), [1, 0]), "2 entries along axis 0"),
        (lambda: permute_states(np.ones(2), [1, 0]), "axis 1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
