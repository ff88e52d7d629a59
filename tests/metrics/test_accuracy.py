"""Accuracies of anonymous states against brute force and against their laws."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score

from pluri.metrics import many_to_one_accuracy, one_to_one_accuracy

labellings = st.integers(1, 40).flatmap(
    lambda n: st.tuples(*[st.lists(st.integers(0, 5), min_size=n, max_size=n) for _ in range(2)])
)


def brute_force_one_to_one(y_true, y_pred, k):
    """Largest agreement over all renamings of the predicted states; ``k`` covers both sets of labels."""
    return max(np.mean(np.array(renaming)[y_pred] == y_true) for renaming in permutations(range(k)))


@pytest.mark.parametrize(("n_true", "n_pred"), [(2, 2), (3, 5), (5, 3), (4, 4), (5, 5), (1, 4)])
def test_one_to_one_equals_the_best_of_all_permutations(n_true, n_pred):
    rng = np.random.default_rng(n_true * 10 + n_pred)
    for _ in range(5):
        y_true, y_pred = rng.integers(n_true, size=60), rng.integers(n_pred, size=60)
        expected = brute_force_one_to_one(y_true, y_pred, max(n_true, n_pred))
        assert one_to_one_accuracy(y_true, y_pred) == pytest.approx(expected, abs=1e-12)


@given(labellings)
def test_plain_below_one_to_one_below_many_to_one_below_one(pair):
    y_true, y_pred = pair
    one, many = one_to_one_accuracy(y_true, y_pred), many_to_one_accuracy(y_true, y_pred)
    assert accuracy_score(y_true, y_pred) <= one + 1e-12
    assert one <= many + 1e-12
    assert many <= 1 + 1e-12


@given(labellings, st.permutations(range(6)), st.permutations(range(6)))
def test_renaming_the_labels_changes_nothing(pair, rename_true, rename_pred):
    y_true, y_pred = (np.array(labels) for labels in pair)
    for metric in (one_to_one_accuracy, many_to_one_accuracy):
        renamed = metric(np.array(rename_true)[y_true], np.array(rename_pred)[y_pred])
        assert renamed == pytest.approx(metric(y_true, y_pred), abs=1e-12)


@given(labellings, st.permutations(range(6)))
def test_a_renamed_truth_is_perfect(pair, rename):
    y_true = np.array(pair[0])
    assert one_to_one_accuracy(y_true, np.array(rename)[y_true]) == 1.0


@given(labellings)
def test_one_to_one_is_symmetric(pair):
    assert one_to_one_accuracy(*pair) == pytest.approx(one_to_one_accuracy(*pair[::-1]), abs=1e-12)


@given(labellings, st.data())
def test_integer_weights_equal_repeated_tokens(pair, data):
    y_true, y_pred = (np.array(labels) for labels in pair)
    n = y_true.size
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n).filter(any)))
    for metric in (one_to_one_accuracy, many_to_one_accuracy):
        repeated = metric(np.repeat(y_true, weight), np.repeat(y_pred, weight))
        assert metric(y_true, y_pred, sample_weight=weight) == pytest.approx(repeated, abs=1e-12)


def test_a_constant_labelling_scores_the_share_of_the_largest_class():
    y_true = [0] * 5 + [1] * 3 + [2] * 2
    assert one_to_one_accuracy(y_true, [0] * 10) == 0.5
    assert many_to_one_accuracy(y_true, [0] * 10) == 0.5


def test_unknown_labels_are_left_out_on_either_side():
    y_true, y_pred = [0, 0, 1, -1, 1], [1, 1, 0, 0, -1]
    assert one_to_one_accuracy(y_true, y_pred) == 1.0
    assert many_to_one_accuracy(y_true, y_pred) == 1.0


def test_strings_objects_and_booleans_are_labels_too():
    tags = ["noun", "verb", "noun"]
    assert one_to_one_accuracy(tags, [1, 0, 1]) == 1.0
    assert one_to_one_accuracy(np.array(tags, dtype=object), [True, False, True]) == 1.0
    assert one_to_one_accuracy(tags, np.array([1.0, 0.0, 1.0])) == 1.0


@pytest.mark.parametrize("metric", [one_to_one_accuracy, many_to_one_accuracy])
@pytest.mark.parametrize(
    ("y_true", "y_pred", "weight", "message"),
    [
        ([], [], None, "y_true must hold at least one label"),
        ([-1, -1], [0, 1], None, "at least one known label"),
        ([0, 1], [0, 1, 1], None, "equal lengths, got 2 and 3"),
        ([[0, 1]], [0, 1], None, r"one axis, got shape \(1, 2\)"),
        ([0.5, 1], [0, 1], None, "whole numbers"),
        ([np.nan, 1], [0, 1], None, "whole numbers"),
        ([1j, 1], [0, 1], None, "dtype complex128"),
        (np.array([None, 1]), [0, 1], None, "other objects"),
        ([0, 1], [0, 1], [1, -1], "not negative"),
        ([0, 1], [0, 1], [1, 1, 1], r"shape \(2,\)"),
        ([0, 1], [0, 1], [0, 0], "positive weight"),
    ],
)
def test_bad_input_is_named(metric, y_true, y_pred, weight, message):
    with pytest.raises(ValueError, match=message):
        metric(y_true, y_pred, sample_weight=weight)
