"""Uncertainty from draws of probabilities, and the adapter for other frameworks: nothing here needs JAX."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import rel_entr

from pluri.networks import MCDropout, PredictiveUncertainty

draws = arrays(
    np.float64,
    array_shapes(min_dims=3, max_dims=3, max_side=4),
    elements=st.floats(0, 1).filter(lambda value: value == 0 or value > 1e-300),
).map(lambda one: (one + 1e-12) / (one + 1e-12).sum(axis=-1, keepdims=True))


@settings(max_examples=200, deadline=None)
@given(draws)
def test_mutual_information_is_between_zero_and_the_entropy(samples):
    found = PredictiveUncertainty.from_samples(samples)
    assert (found.mutual_information >= 0).all()
    assert (found.mutual_information <= found.entropy).all()
    assert (found.entropy <= np.log(samples.shape[-1]) + 1e-12).all()


@settings(max_examples=100, deadline=None)
@given(draws)
def test_mutual_information_is_the_mean_divergence_from_the_mean(samples):
    found = PredictiveUncertainty.from_samples(samples)
    divergence = rel_entr(samples, samples.mean(axis=0)).sum(axis=-1).mean(axis=0)
    assert_allclose(found.mutual_information, divergence, atol=1e-12)


def test_one_draw_has_the_entropy_of_its_probabilities_and_no_information():
    p = np.array([[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]])
    found = PredictiveUncertainty.from_samples(p[None])
    assert_allclose(found.entropy, [-(p[0] * np.log(p[0])).sum(), 0])
    assert_array_equal(found.mutual_information, 0)
    assert_array_equal(found.mean, p)


def test_criteria_are_what_their_names_say():
    found = PredictiveUncertainty.from_samples([[[0.9, 0.1]], [[0.5, 0.5]]])
    assert_array_equal(found.acquisition(), found.mutual_information)
    assert_array_equal(found.acquisition("entropy"), found.entropy)
    assert_allclose(found.acquisition("variation_ratio"), 0.3)
    with pytest.raises(ValueError, match="criterion must be one of 'bald', 'entropy', 'variation_ratio', got 'best'"):
        found.acquisition("best")


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.ones((2, 3)) / 3, r"samples must have shape \(n_predictive, n_samples, n_classes\)"),
        (np.ones((0, 2, 3)), "none of them 0"),
        (np.full((1, 1, 2), 0.6), "sum to 1"),
        (np.array([[[1.5, -0.5]]]), "sum to 1"),
        (np.array([[[np.nan, 1.0]]]), "sum to 1"),
    ],
)
def test_draws_that_are_no_probabilities_are_refused(samples, message):
    with pytest.raises(ValueError, match=message):
        PredictiveUncertainty.from_samples(samples)


def coin(rng):
    """A network that says (1, 0) or (0, 1) with equal odds, for each row on its own."""
    return lambda X: np.eye(2)[rng.integers(2, size=len(X))]


def test_the_mean_over_calls_converges_as_the_root_of_their_number():
    """Means of 50 and of 5,000 fair coins for 200 rows: their variances are 1/4 over the number of calls.

    The bounds are 5 standard errors of a variance of 200 values (a tenth of it); false alarms below 1e-6.
    """
    for n_predictive in (50, 5000):
        model = MCDropout(coin(np.random.default_rng(0)), n_predictive)
        variance = model.predict_proba(np.zeros((200, 1)))[:, 0].var() * 4 * n_predictive
        assert abs(variance - 1) < 0.5


def test_labels_and_numbers_of_classes():
    X = np.zeros((3, 1))
    assert MCDropout(lambda X: np.tile([0.1, 0.9], (len(X), 1))).predict(X).tolist() == [1, 1, 1]
    named = MCDropout(lambda X: np.tile([0.1, 0.9], (len(X), 1)), classes=["no", "yes"])
    assert named.predict(X).tolist() == ["yes"] * 3
    assert named.predict_proba_samples(X, 7).shape == (7, 3, 2)
    assert_array_equal(named.acquisition(X), 0)


def test_single_precision_is_near_enough():
    logits = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert_allclose(MCDropout(lambda X: p, 3).predict_proba(logits).sum(axis=1), 1, rtol=1e-15)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MCDropout(None), "predict_stochastic must be callable"),
        (lambda: MCDropout(len, 0), "n_predictive must be an integer of at least 1"),
        (lambda: MCDropout(lambda X: [0.5, 0.5]).predict([1]), r"must return shape \(n_samples, n_classes\)"),
        (lambda: MCDropout(lambda X: [[2.0, 1.0]]).predict([1]), "must be probabilities"),
        (lambda: MCDropout(lambda X: [[0.5, 0.5]], classes=[1, 2, 3]).predict([1]), "a column for each of 3 classes"),
    ],
)
def test_functions_that_cannot_be_meant_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_without_jax_the_adapter_works_and_a_network_says_what_to_install():
    code = """
import sys
sys.modules["jax"] = None
from pluri.networks import MCDropout
print(MCDropout(lambda X: [[0.5, 0.5]], 2).predict_proba([0]).tolist())
try:
    from pluri.networks import BiLSTMClassifier
except ImportError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert found[0] == "[[0.5, 0.5]]"
    assert 'pip install "pluri[jax]"' in found[1]
