"""Histograms and the number of states in use."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from pluri.metrics import effective_states, state_histogram

states = st.lists(st.integers(-1, 7), min_size=1, max_size=60).filter(lambda labels: max(labels) >= 0)


@given(states)
def test_the_histogram_equals_a_counter(labels):
    counter = Counter(labels)
    histogram = state_histogram(labels, n_states=8)
    np.testing.assert_array_equal(histogram, [counter[state] for state in range(8)])
    np.testing.assert_array_equal(state_histogram(labels, 8, sort=True), sorted(histogram, reverse=True))
    assert state_histogram(labels, normalize=True).sum() == pytest.approx(1)


@given(states, st.integers(1, 10))
def test_the_count_equals_a_filtered_counter(labels, threshold):
    counter = Counter(label for label in labels if label >= 0)
    expected = sum(count >= threshold for count in counter.values())
    assert effective_states(labels, threshold=threshold) == expected
    assert effective_states(occupancy=state_histogram(labels), threshold=threshold) == expected


@given(states)
def test_the_perplexity_is_the_exponential_entropy_and_never_above_the_count(labels):
    perplexity = effective_states(labels, method="perplexity")
    assert perplexity == pytest.approx(np.exp(entropy(state_histogram(labels))))
    assert 1 - 1e-12 <= perplexity <= effective_states(labels, threshold=1) + 1e-9


def test_a_share_and_a_number_of_tokens_are_both_thresholds():
    labels = np.repeat([0, 1, 2, 3], [1000, 700, 50, 50])
    assert effective_states(labels, threshold=50) == 4
    assert effective_states(labels, threshold=51) == 2
    assert effective_states(labels, threshold=50 / 1800) == 4
    assert effective_states(labels, threshold=0.03) == 2
    assert effective_states(labels) == 4


def test_weights_count_as_repeated_tokens():
    np.testing.assert_array_equal(state_histogram([0, 1, 1], sample_weight=[2, 0.5, 1]), [2, 1.5])
    assert effective_states([0, 1, 2], sample_weight=[5, 5, 0.5], threshold=1) == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: state_histogram([]), "at least one label"),
        (lambda: state_histogram([-1]), "at least one known label"),
        (lambda: state_histogram(["a"]), "state numbers"),
        (lambda: state_histogram([0, 5], n_states=3), r"exceed the largest label \(5\), got 3"),
        (lambda: effective_states(), "exactly one of labels and occupancy"),
        (lambda: effective_states([0], occupancy=[1]), "exactly one of labels and occupancy"),
        (lambda: effective_states([0], method="median"), "one of 'count', 'perplexity', got 'median'"),
        (lambda: effective_states([0], threshold=0), "threshold must be a positive number"),
        (lambda: effective_states(occupancy=[0, 0]), "not all zero"),
        (lambda: effective_states(occupancy=[[1]]), "one axis"),
        (lambda: effective_states(occupancy=[1], sample_weight=[1]), "sample_weight must be None"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
