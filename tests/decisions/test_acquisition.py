"""Acquisition functions against Monte Carlo, their limits, and their derivatives against differences."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from pluri.decisions import expected_improvement, lower_confidence_bound, probability_of_improvement
from pluri.decisions.bayesian_optimization.acquisition import Criterion, averaged, confidence_schedule

CASES = [(0.3, 0.7, 0.1, 0.0), (-1.0, 0.2, 0.5, 0.1), (2.0, 1.0, -0.5, 0.0), (0.0, 3.0, 0.0, 0.5)]


@pytest.mark.parametrize(("mean", "std", "best", "xi"), CASES)
def test_values_equal_monte_carlo(mean, std, best, xi):
    draws = np.random.default_rng(1).normal(mean, std, 400_000)
    gains = np.maximum(best - xi - draws, 0.0)
    below = draws < best - xi
    # Five standard errors: false alarm 6e-7 each.
    error = 5 * gains.std() / math.sqrt(len(draws)) + 1e-12
    assert abs(expected_improvement(mean, std, best, xi) - gains.mean()) < error
    error = 5 * math.sqrt(below.mean() * (1 - below.mean()) / len(draws)) + 1e-5
    assert abs(probability_of_improvement(mean, std, best, xi) - below.mean()) < error


@pytest.mark.parametrize("gap", [5.0, 0.0, -0.9, -1.1, -4.0, -8.0])
def test_expected_improvement_equals_the_integral_far_into_the_tail(gap):
    integral, _ = quad(lambda u: u * norm.pdf(u - gap), 0.0, max(gap, 0.0) + 40.0, epsabs=0.0, limit=200)
    np.testing.assert_allclose(expected_improvement(-gap, 1.0, 0.0), integral, rtol=1e-9)


def test_expected_improvement_is_not_negative_and_becomes_the_known_gain():
    rng = np.random.default_rng(0)
    mean, best = rng.normal(size=200), 0.2
    assert (expected_improvement(mean, np.exp(rng.normal(size=200) * 3), best) >= 0).all()
    np.testing.assert_allclose(expected_improvement(mean, 1e-9, best), np.maximum(best - mean, 0.0), atol=1e-8)
    np.testing.assert_array_equal(expected_improvement(mean, 0.0, best), np.maximum(best - mean, 0.0))
    np.testing.assert_array_equal(probability_of_improvement(mean, 0.0, best), (mean < best).astype(float))


def test_the_confidence_bound_is_high_where_the_function_may_be_low():
    np.testing.assert_allclose(lower_confidence_bound([1.0, 1.0], [0.0, 2.0], kappa=3.0), [-1.0, 5.0])
    assert confidence_schedule(100, 10) < confidence_schedule(100, 20) < confidence_schedule(1000, 20)
    np.testing.assert_allclose(confidence_schedule(50, 3, 0.1) ** 2, 2 * math.log(50 * 9 * math.pi**2 / 0.6))


@pytest.mark.parametrize("kind", ["ei", "pi", "lcb"])
@pytest.mark.parametrize("gap", [3.0, 0.1, -0.99, -1.01, -7.0, -60.0])
def test_criteria_are_logarithms_with_right_derivatives(kind, gap):
    criterion = Criterion(kind, best=0.4, xi=0.1, kappa=1.5)
    mean, std = np.array([0.3 - gap * 0.5]), np.array([0.5])
    value, by_mean, by_std = criterion.evaluate(mean, std)
    step = 1e-6
    up, down = (criterion.evaluate(mean + s, std)[0] for s in (step, -step))
    np.testing.assert_allclose(by_mean, (up - down) / (2 * step), rtol=1e-5)
    up, down = (criterion.evaluate(mean, std + s)[0] for s in (step, -step))
    np.testing.assert_allclose(by_std, (up - down) / (2 * step), rtol=1e-5)
    if gap > -8:
        public = {
            "ei": expected_improvement(mean, std, 0.4, 0.1),
            "pi": probability_of_improvement(mean, std, 0.4, 0.1),
            "lcb": lower_confidence_bound(mean, std, 1.5),
        }[kind]
        np.testing.assert_allclose(np.exp(value) if criterion.logarithmic else value, public, rtol=1e-9)


def test_averages_over_draws_are_those_of_the_values_and_their_gradients():
    rng = np.random.default_rng(0)
    logs, gradients = rng.normal(size=(4, 3)), rng.normal(size=(4, 3, 2))
    value, gradient = averaged(logs, gradients, True)
    np.testing.assert_allclose(value, np.log(np.exp(logs).mean(axis=0)))
    shares = np.exp(logs) / np.exp(logs).sum(axis=0)
    np.testing.assert_allclose(gradient, (shares[..., None] * gradients).sum(axis=0))
    np.testing.assert_allclose(averaged(logs, gradients, False)[0], logs.mean(axis=0))
    assert averaged(np.full((2, 1), -math.inf), None, True)[0] == -math.inf
