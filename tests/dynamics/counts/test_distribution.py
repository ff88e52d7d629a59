"""The generalized count distribution against SciPy, known moments and its own definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from pluri.dynamics import GeneralizedCount

K = np.arange(40)
#: (theta, mean, variance) on 0..39, for a linear, a concave and a convex shape.
KNOWN = {
    0.0: [(-1, 0.3679, 0.3679), (0, 1.0, 1.0), (1, 2.7183, 2.7183)],
    -0.05: [(-1, 0.3556, 0.3439), (0, 0.9162, 0.8422), (1, 2.2007, 1.8147)],
    0.01: [(-1, 0.3706, 0.3734), (0, 1.0208, 1.0423), (1, 2.8813, 3.0596)],
}


@pytest.mark.parametrize("bend", KNOWN)
def test_moments_are_the_known_ones(bend):
    for theta, mean, variance in KNOWN[bend]:
        found = GeneralizedCount(theta, bend * K * (K - 1))
        assert_allclose([found.mean(), found.var()], [mean, variance], atol=5.1e-5)


def test_special_cases_are_those_of_scipy():
    k = np.arange(30)
    cases = [
        (GeneralizedCount.from_poisson(2.3), stats.poisson(2.3)),
        (GeneralizedCount.from_negative_binomial(3.0, 0.4), stats.nbinom(3.0, 0.6)),
        (GeneralizedCount.from_bernoulli(0.3), stats.bernoulli(0.3)),
        (GeneralizedCount.from_com_poisson(2.3, 1.0), stats.poisson(2.3)),
        (GeneralizedCount.from_com_poisson(0.4, 0.0), stats.geom(0.6, loc=-1)),
        (GeneralizedCount.from_com_poisson(0.4, 60.0), stats.bernoulli(0.4 / 1.4)),
    ]
    for ours, theirs in cases:
        assert_allclose(ours.pmf(k), theirs.pmf(k), rtol=1e-10, atol=1e-14)
        assert_allclose(ours.cdf(k), theirs.cdf(k), rtol=1e-10)
        assert_allclose([ours.mean(), ours.var()], theirs.stats("mv"), rtol=1e-9)
        levels = [0.01, 0.3, 0.5, 0.9, 0.999]
        assert_allclose(ours.ppf(levels), theirs.ppf(levels))


def test_the_negative_binomial_has_its_mean_and_variance():
    found = GeneralizedCount.from_negative_binomial(3, 0.4)
    assert_allclose([found.mean(), found.var()], [2.0, 10.0 / 3.0])


@given(st.floats(-3, 3), st.floats(-0.2, 0.1))
def test_derivatives_of_the_normalizer_are_mean_and_variance(theta, bend):
    g, h = bend * K * (K - 1), 1e-4
    low, middle, high = (GeneralizedCount(theta + step, g) for step in (-h, 0.0, h))
    slope = (high.log_normalizer() - low.log_normalizer()) / (2 * h)
    assert_allclose(slope, middle.mean(), rtol=1e-5, atol=1e-7)
    assert_allclose((high.mean() - low.mean()) / (2 * h), middle.var(), rtol=1e-5, atol=1e-7)
    if bend < 0:
        assert middle.var() <= middle.mean() * (1 + 1e-9)


def test_an_array_of_parameters_is_as_many_distributions():
    theta = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, -2.0]])
    g = -0.1 * K[:9] ** 2
    many = GeneralizedCount(theta, g)
    for place in np.ndindex(theta.shape):
        one = GeneralizedCount(theta[place], g)
        assert_allclose(many.mean()[place], one.mean())
        assert_allclose(many.probabilities()[place], one.pmf(K[:9]))
        assert_allclose(many.logpmf(3)[place], one.logpmf(3))


def test_draws_have_the_probabilities_of_their_counts():
    # Chi-squared with a false-alarm rate of 1e-6.
    g = np.array([0.0, 0.4, -np.inf, 0.1, -1.0])
    found = GeneralizedCount(0.6, g)
    draws = found.sample(20_000, random_state=3)
    observed = np.bincount(draws, minlength=5)
    assert observed[2] == 0
    kept = [0, 1, 3, 4]
    assert stats.chisquare(observed[kept], 20_000 * found.pmf(kept)).pvalue > 1e-6


def test_impossible_counts_have_probability_zero():
    found = GeneralizedCount(0.0, [0.0, -np.inf, 1.0])
    assert_allclose(found.pmf([-1, 1, 3, 0.5]), 0.0)
    assert_allclose(found.probabilities().sum(), 1.0)


def test_a_huge_parameter_does_not_overflow():
    found = GeneralizedCount([-1e4, 1e4], np.zeros(50))
    assert_allclose(found.mean(), [0.0, 49.0])
    assert np.isfinite(found.log_normalizer()).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GeneralizedCount(0.0, lambda k: k**2), "converge"),
        (lambda: GeneralizedCount(0.0, [1.0, 0.0]), r"g\[0\]"),
        (lambda: GeneralizedCount(0.0, [0.0, np.nan]), "finite"),
        (lambda: GeneralizedCount(0.0, []), "one axis"),
        (lambda: GeneralizedCount(np.inf, [0.0, 1.0]), "theta"),
        (lambda: GeneralizedCount(0.0, [0.0, 1.0], max_count=3), "max_count"),
        (lambda: GeneralizedCount.from_poisson(0.0), "rate"),
        (lambda: GeneralizedCount.from_negative_binomial(2.0, 1.0), "probability"),
        (lambda: GeneralizedCount.from_com_poisson(1.2, 0.0), "below 1"),
        (lambda: GeneralizedCount.from_com_poisson(1.2, -0.5), "exponent"),
        (lambda: GeneralizedCount.from_bernoulli(1.5), "probability"),
        (lambda: GeneralizedCount.from_poisson(1.0).ppf(1.5), "between 0 and 1"),
    ],
)
def test_what_is_no_distribution_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
