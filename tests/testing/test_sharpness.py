"""What the tests see: bounds on a scale, wrong variances, and how often they say that they would."""

import numpy as np
import pytest
from scipy import stats

from pluri.testing import SamplerProblem, check_sampler, compare_samples, geweke_test, goodness_of_fit
from pluri.testing.agreement import hypergeometric
from pluri.testing.comparison import overall_p_value
from pluri.testing.power import power_of_variance


def autoregression(rng, n_draws, rho, n_chains=4):
    """Chains whose stationary distribution is standard normal."""
    noise = rng.normal(size=(n_draws, n_chains)) * np.sqrt(1 - rho**2)
    chain = [rng.normal(size=n_chains)]
    for step in noise[1:]:
        chain.append(rho * chain[-1] + step)
    return np.array(chain).T[:, :, None]


def test_a_standard_deviation_that_is_ten_percent_wrong_is_seen():
    # Caught with probability 0.86 each (of 300): fewer than 19 of 30 has a chance below 1e-3. By Kolmogorov-Smirnov and
    # Cramer-von Mises alone it was 2 of 10.
    caught = sum(
        not goodness_of_fit(1.1 * np.random.default_rng(seed).normal(size=1000), cdf=stats.norm).passed
        for seed in range(30)
    )
    assert caught >= 19


@pytest.mark.parametrize("rho", [None, -0.5, 0.0, 0.9])
def test_correct_draws_fail_as_seldom_as_stated(rho):
    # At a rate of 0.05 at most 10 of 200 are expected, and more than 22 with probability below 1e-3.
    failed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        draws = rng.normal(size=300) if rho is None else autoregression(rng, 300, rho)
        failed += not goodness_of_fit(draws, cdf=stats.norm, independent=rho is None, alpha=0.05).passed
    assert failed <= 22


def test_heavy_tails_and_skewness_have_tests_of_their_own():
    rng = np.random.default_rng(0)
    heavy = goodness_of_fit(rng.standard_t(4, size=4000) / np.sqrt(2.0), cdf=stats.norm, independent=True)
    skewed = goodness_of_fit((rng.gamma(20.0, size=4000) - 20.0) / np.sqrt(20.0), cdf=stats.norm, independent=True)
    values = {(c.test, which): c.p_value for which, r in (("h", heavy), ("s", skewed)) for c in r.comparisons}
    assert values["tails", "h"] < 1e-6
    assert values["skewness", "s"] < 1e-6
    assert values["skewness", "h"] > 1e-4


def test_the_stated_power_of_a_known_distribution_is_right():
    # 150 trials: the share lies within 0.12 of its mean but for a chance below 2e-3, and the formula is off by about
    # 0.02, as it leaves out what other tests notice.
    error = 0.18
    scale = np.sqrt(1 + error)
    results = [
        goodness_of_fit(scale * np.random.default_rng(seed).normal(size=1000), cdf=stats.norm, independent=True)
        for seed in range(150)
    ]
    share = np.mean([not result.passed for result in results])
    assert abs(share - results[0].power(error)) < 0.14
    assert "is noticed with probability" in str(results[0])
    unknown = goodness_of_fit(np.random.default_rng(0).normal(size=50), gradient=lambda x: -x, independent=True)
    assert np.isnan(unknown.power())


def test_the_stated_power_of_two_samples_is_right():
    n, alpha, error = 500, 0.05, 0.5
    caught = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        found = compare_samples({"x": np.sqrt(1 + error) * rng.normal(size=n)}, {"x": rng.normal(size=n)})
        caught += overall_p_value(found) <= alpha
    assert abs(caught / 200 - power_of_variance(error, n, n, n_comparisons=5, alpha=alpha)) < 0.12


def test_power_rises_with_stages_replications_and_error():
    base = power_of_variance(0.3, 300, 300)
    assert power_of_variance(0.3, 300, 300, max_stages=3) > base
    assert power_of_variance(0.3, 1000, 1000) > base
    assert power_of_variance(0.6, 300, 300) > base
    assert power_of_variance(0.0, 300, 300, alpha=0.01) == pytest.approx(0.01)


# A scale that is not let below a bound --------------------------------------------------------------------------------


def draw(rng):
    return {"mean": rng.normal(), "scale": abs(rng.normal())}


def observe(rng, theta):
    return rng.normal(theta["mean"], theta["scale"], size=5)


def log_posterior(mean, scale, y):
    return -0.5 * mean**2 - 0.5 * scale**2 - 5 * np.log(scale) - 0.5 * ((y - mean) ** 2).sum() / scale**2


def bounded(bound):
    def transition(rng, theta, y):
        mean, scale = theta["mean"], theta["scale"]
        moved = mean + 0.5 * rng.normal()
        if np.log(rng.random()) < log_posterior(moved, scale, y) - log_posterior(mean, scale, y):
            mean = moved
        wider = scale * np.exp(0.5 * rng.normal())
        ratio = log_posterior(mean, wider, y) - log_posterior(mean, scale, y) + np.log(wider / scale)
        return {"mean": mean, "scale": max(wider if np.log(rng.random()) < ratio else scale, bound)}

    return transition


def test_a_scale_bounded_below_is_caught_by_the_report_as_often_as_by_its_test():
    # Both were caught in 6 of 6 seeds; before values at the ends were counted, in one and none of 6.
    for seed in range(2):
        assert not geweke_test(draw, observe, bounded(0.1), random_state=seed).passed
        assert not check_sampler(SamplerProblem("bounded", draw, observe, bounded(0.1)), random_state=seed).passed


def test_the_report_says_what_it_would_notice():
    report = check_sampler(SamplerProblem("free", draw, observe, bounded(0.0)), random_state=0)
    assert report.passed
    assert "Would notice a variance that ends 10% too large with probability" in str(report)
    assert report["geweke"].power == report.power < 0.5
    assert 0.1 < report["geweke"].noticeable < 1.0


def test_ends_and_atoms_have_exact_levels():
    # Ties of a rounded quantity, equal in both sets: at 0.05 at most 10 of 200 are expected, 22 at 1e-3.
    failed = {"low tail": 0, "high tail": 0, "atom": 0}
    for seed in range(200):
        rng = np.random.default_rng(seed)
        one, other = (np.maximum(rng.normal(size=150), -1.5) for _ in range(2))
        for found in compare_samples({"x": one}, {"x": other}):
            if found.test in failed:
                failed[found.test] += found.p_value <= 0.05
    assert max(failed.values()) <= 22
    assert hypergeometric(30, 30, 100, 200)[1] < 1e-9
    assert hypergeometric(15, 30, 100, 200)[1] == 1.0
