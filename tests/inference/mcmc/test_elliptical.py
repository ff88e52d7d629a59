"""Elliptical slice sampling against the prior, an exact posterior, and quadrature."""

import math

import numpy as np
import pytest
from scipy import stats

from pluri.inference import mcmc
from pluri.inference.mcmc.elliptical import EllipticalSlice


def smooth_covariance(n, jitter=1e-8):
    x = np.linspace(0, 1, n)
    return np.exp(-0.5 * (x[:, None] - x) ** 2 / 0.3**2) + jitter * np.eye(n)


def test_a_constant_likelihood_accepts_at_once_and_gives_the_prior():
    covariance = np.array([[2.0, 0.7], [0.7, 0.5]])
    kernel = EllipticalSlice(lambda f: 0.0, covariance, mean=[1.0, -2.0])
    trace = mcmc.sample(kernel, np.array([1.0, -2.0]), n_draws=2000, n_warmup=0, random_state=0)
    assert (trace.stats["n_evaluations"] == 1).all()
    white = np.linalg.solve(np.linalg.cholesky(covariance), (trace.flat("x") - [1.0, -2.0]).T)
    for row in white:
        assert stats.kstest(row[::5], "norm").pvalue > 1e-7
    # Signs have no memory, squares have: five and a half standard errors with the effective number of draws, 1e-7.
    gap = trace["x"] - [1.0, -2.0]
    for i, j in ((0, 0), (0, 1), (1, 1)):
        products = gap[..., i] * gap[..., j]
        assert products.mean() == pytest.approx(covariance[i, j], abs=5.5 * mcmc.mcse_mean(products))


@pytest.mark.parametrize("form", ["covariance", "cholesky"])
def test_a_gaussian_likelihood_gives_the_exact_posterior(form):
    # Five and a half standard errors for each of twelve means and standard deviations: a false alarm in a million.
    n, noise = 6, 0.5
    covariance = smooth_covariance(n)
    rng = np.random.default_rng(0)
    mean = np.linspace(-1, 1, n)
    y = mean + np.linalg.cholesky(covariance) @ rng.standard_normal(n) + noise * rng.standard_normal(n)
    gain = covariance @ np.linalg.inv(covariance + noise**2 * np.eye(n))
    exact_mean, exact_covariance = mean + gain @ (y - mean), covariance - gain @ covariance
    prior = {"covariance": covariance} if form == "covariance" else {"cholesky": np.linalg.cholesky(covariance)}
    kernel = EllipticalSlice(lambda f: -0.5 * float((y - f) @ (y - f)) / noise**2, mean=mean, **prior)
    trace = mcmc.sample(kernel, mean, n_draws=3000, n_warmup=100, random_state=1, warn=False)
    for index in range(n):
        draws = trace["x"][..., index]
        assert draws.mean() == pytest.approx(exact_mean[index], abs=5.5 * mcmc.mcse_mean(draws))
        assert draws.std() == pytest.approx(math.sqrt(exact_covariance[index, index]), abs=5.5 * mcmc.mcse_sd(draws))


def test_independent_coordinates_may_be_given_by_their_variances():
    def log_likelihood(f):
        return -float(np.logaddexp(0, -f).sum())

    spread = [4.0, 0.25]
    runs = [
        mcmc.sample(EllipticalSlice(log_likelihood, given), np.zeros(2), n_draws=50, random_state=0, warn=False)
        for given in (spread, np.diag(spread))
    ]
    np.testing.assert_allclose(runs[0]["x"], runs[1]["x"], rtol=1e-9)
    # Posterior mean of the first coordinate by quadrature.
    grid = np.linspace(-15, 15, 4001)
    weight = np.exp(-0.5 * grid**2 / 4.0 - np.logaddexp(0, -grid))
    exact = float((grid * weight).sum() / weight.sum())
    kernel = EllipticalSlice(log_likelihood, spread)
    draws = mcmc.sample(kernel, np.zeros(2), n_draws=4000, n_warmup=50, random_state=2)["x"][..., 0]
    assert draws.mean() == pytest.approx(exact, abs=5.5 * mcmc.mcse_mean(draws))


def test_the_log_density_is_that_of_the_posterior():
    covariance = smooth_covariance(5, 1e-2)
    kernel = EllipticalSlice(lambda f: -float((f**4).sum()), covariance, mean=0.3)
    rng = np.random.default_rng(3)
    state = kernel.init(rng, np.zeros(5))
    normal = stats.multivariate_normal(np.full(5, 0.3), covariance)
    constant = normal.logpdf(np.full(5, 0.3))
    for _ in range(200):
        state, _ = kernel.step(rng, state)
    expected = normal.logpdf(state.position) - constant - float((state.position**4).sum())
    assert state.log_density == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"covariance": np.zeros((2, 2))}, "of zeros"),
        ({"covariance": np.zeros(2)}, "of zeros"),
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
        ({}, "either covariance or cholesky"),
        ({"covariance": np.eye(2), "cholesky": np.eye(2)}, "either covariance or cholesky"),
        ({"cholesky": [[1.0, 1.0], [0.0, 1.0]]}, "lower triangular"),
        ({"covariance": np.eye(2), "mean": [0.0, 0.0, 0.0]}, "mean must be"),
        ({"covariance": np.eye(3)}, "as many entries as the prior"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        EllipticalSlice(lambda f: 0.0, **options).init(None, np.zeros(2))


def test_a_likelihood_that_is_nan_everywhere_else_is_refused():
    kernel = EllipticalSlice(lambda f: 0.0 if not f.any() else math.nan, np.eye(2))
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="shrank 200 times"):
        kernel.step(rng, kernel.init(rng, np.zeros(2)))
