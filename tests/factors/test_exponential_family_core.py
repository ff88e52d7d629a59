"""Families, expected log-likelihoods, beliefs and loadings against quadrature, closed forms and finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.integrate import quad
from scipy.special import logsumexp

from pluri.factors.exponential_family import BernoulliFamily, BinomialFamily, GaussianFamily, PoissonFamily, as_family
from pluri.factors.exponential_family.expansion import JaakkolaBound, LogNormalRate, SecondOrder, expansions
from pluri.factors.exponential_family.latents import Loadings, infer_latents
from pluri.factors.exponential_family.learning import balanced
from pluri.factors.exponential_family.loadings import Regression, climb_rows, intercept_prior
from pluri.factors.exponential_family.observations import observe
from pluri.factors.exponential_family.starts import learned_counts

FAMILIES = [BernoulliFamily(), BinomialFamily(5), PoissonFamily(), GaussianFamily(), GaussianFamily(0.5)]


def draw(family, n=40, n_features=10, width=2, seed=0, size=0.8):
    rng = np.random.default_rng(seed)
    loadings = Loadings(size * rng.normal(size=(n_features, width)), 0.3 * rng.normal(size=n_features))
    X = family.sample(rng.normal(size=(n, width)) @ loadings.weights.T + loadings.intercept, rng)
    return X, loadings


def exact_evidence(X, family, loadings, n_points=60):
    """Gauss-Hermite quadrature over the latent space."""
    nodes, weights = hermegauss(n_points)
    width = loadings.weights.shape[1]
    grid = np.stack(np.meshgrid(*[nodes] * width, indexing="ij"), axis=-1).reshape(-1, width)
    logs = np.log(np.stack(np.meshgrid(*[weights] * width, indexing="ij"), axis=-1).reshape(-1, width)).sum(axis=1)
    logs -= 0.5 * width * np.log(2 * np.pi)
    theta = grid @ loadings.weights.T + loadings.intercept
    joint = family.statistic(X) @ theta.T - family.log_partition(theta).sum(axis=1)
    return logsumexp(joint + logs, axis=1) + family.base_measure(X).sum(axis=1)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_derivatives_of_the_log_partition_agree_with_differences(family):
    theta, step = np.linspace(-4, 3, 29), 1e-5
    slope, curvature = family.derivatives(theta)
    a = family.log_partition
    np.testing.assert_allclose(slope, (a(theta + step) - a(theta - step)) / (2 * step), rtol=1e-6, atol=1e-8)
    around = family.derivatives(theta + step)[0] - family.derivatives(theta - step)[0]
    np.testing.assert_allclose(curvature, around / (2 * step), rtol=1e-6, atol=1e-8)
    assert (curvature >= 0).all()
    for one, other in zip(family.expansion(theta), (a(theta), slope, curvature)):
        np.testing.assert_allclose(one, other, rtol=1e-13)
    np.testing.assert_allclose(family.natural(slope), theta, atol=1e-9)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_draws_have_the_mean_and_variance_of_the_family(family):
    # z scores of 8 means and 8 variances beyond 5: false alarm below 1e-5.
    rng = np.random.default_rng(0)
    for theta in (-1.0, 0.5):
        statistic = family.statistic(family.sample(np.full(100_000, theta), rng))
        mean, variance = family.derivatives(np.array([theta]))
        assert abs(statistic.mean() - mean[0]) < 5 * np.sqrt(variance[0] / 1e5)
        squares = (statistic - mean[0]) ** 2
        assert abs(squares.mean() - variance[0]) < 5 * squares.std() / np.sqrt(1e5)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_densities_sum_to_one_and_match_scipy(family):
    theta = np.array([0.7])
    if isinstance(family, GaussianFamily):
        X, reference = np.linspace(-2, 3, 7), stats.norm(0.7, family.scale).logpdf
    elif isinstance(family, PoissonFamily):
        X, reference = np.arange(9.0), stats.poisson(np.exp(0.7)).logpmf
    else:
        X = np.arange(family.trials + 1.0)
        reference = stats.binom(family.trials, 1 / (1 + np.exp(-0.7))).logpmf
    logs = family.statistic(X) * theta - family.log_partition(theta) + family.base_measure(X)
    np.testing.assert_allclose(logs, reference(X), atol=1e-12)
    grid = np.linspace(-12, 12, 200_001)
    values = family.statistic(X)[:, None] * grid - family.log_partition(grid)
    np.testing.assert_allclose(family.saturated(X), values.max(axis=1), atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_conjugate_integral_agrees_with_quadrature(family):
    total, count = 2.3, 3.1
    value = quad(
        lambda t: np.exp(total * t - count * family.log_partition(np.array([t]))[0]),
        -80,
        80,
        points=[-3.0, 0.0, 3.0, 10.0],
        limit=500,
    )[0]
    assert family.log_integral(np.array(total), np.array(count)) == pytest.approx(np.log(value), abs=1e-6)


def test_huge_rates_stay_finite_and_convex():
    family = PoissonFamily()
    theta = np.array([29.0, 31.0, 100.0, 1e4])
    assert np.isfinite(family.log_partition(theta)).all()
    assert np.diff(family.log_partition(theta)).min() > 0


@pytest.mark.parametrize("expansion", [JaakkolaBound(), JaakkolaBound(4.0), LogNormalRate()], ids=repr)
def test_residual_and_curvature_are_the_derivatives_of_the_value(expansion):
    rng = np.random.default_rng(0)
    t, mean, variance, step = rng.integers(0, 2, 20) * 1.0, rng.normal(size=20), rng.uniform(0.1, 2, 20), 1e-5
    value, residual, curvature = expansion.local(t, mean, variance)
    f = expansion.value
    np.testing.assert_allclose(value, f(t, mean, variance), rtol=1e-13)
    difference = (f(t, mean + step, variance) - f(t, mean - step, variance)) / (2 * step)
    np.testing.assert_allclose(residual, difference, atol=1e-8)
    difference = (f(t, mean, variance + step) - f(t, mean, variance - step)) / (2 * step)
    np.testing.assert_allclose(curvature, -2 * difference, atol=1e-8)


def test_bounds_lie_below_the_expectation_and_exact_ones_on_it():
    nodes, weights = hermegauss(80)
    weights = weights / weights.sum()
    mean, variance = np.array([-1.5, 0.0, 2.0]), np.array([0.5, 2.0, 1.0])
    theta = mean[:, None] + np.sqrt(variance)[:, None] * nodes
    for t in (0.0, 1.0):
        exact = t * mean - BernoulliFamily().log_partition(theta) @ weights
        bound = JaakkolaBound().value(np.full(3, t), mean, variance)
        assert (bound < exact).all()
        assert (exact - bound).max() < 0.2
    exact = 2.0 * mean - np.exp(theta) @ weights
    np.testing.assert_allclose(LogNormalRate().value(np.full(3, 2.0), mean, variance), exact, rtol=1e-10)


@pytest.mark.parametrize("inference", ["laplace", "vb"])
@pytest.mark.parametrize("scale", [1.0, 0.6])
def test_gaussian_evidence_and_beliefs_are_exact_also_with_missing_entries(inference, scale):
    family = GaussianFamily(scale)
    X, loadings = draw(family)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    X[3] = np.nan
    latents = infer_latents(expansions(family, inference)[0], observe(X, family), [loadings])
    W, b = loadings.weights, loadings.intercept
    for row in range(0, 40, 3):
        seen = ~np.isnan(X[row])
        covariance = W[seen] @ W[seen].T + scale**2 * np.eye(seen.sum())
        exact = stats.multivariate_normal(b[seen], covariance).logpdf(X[row, seen]) if seen.any() else 0.0
        assert latents.evidence[row] == pytest.approx(exact, abs=1e-9)
        spread = np.linalg.inv(np.eye(2) + W[seen].T @ W[seen] / scale**2)
        np.testing.assert_allclose(latents.covariance[row], spread, atol=1e-10)
        np.testing.assert_allclose(
            latents.mean[row], spread @ W[seen].T @ (X[row, seen] - b[seen]) / scale**2, atol=1e-8
        )


def test_approximate_evidence_of_bits_is_close_to_quadrature():
    family = BernoulliFamily()
    X, loadings = draw(family, n=200, size=1.06)  # rows of length about 1.5
    exact = exact_evidence(X, family, loadings)
    data = observe(X, family)
    laplace = infer_latents(SecondOrder(family), data, [loadings])
    gap = exact - laplace.evidence
    assert abs(gap.mean() - 0.04) < 0.04
    assert gap.std() < 0.06
    bound = exact - infer_latents(JaakkolaBound(), data, [loadings]).evidence
    assert bound.min() > 0
    assert 0.05 < bound.mean() < 0.6
    points = exact - infer_latents(SecondOrder(family), data, [loadings], point=True).evidence
    assert points.mean() < -0.7  # without the determinant the evidence is far too high


def test_the_bound_for_counts_lies_below_the_evidence_and_above_its_start():
    family = PoissonFamily()
    X, loadings = draw(family, n=100, size=0.5)
    exact = exact_evidence(X, family, loadings)
    latents = infer_latents(LogNormalRate(), observe(X, family), [loadings])
    gap = exact - latents.evidence
    assert gap.min() > -1e-9
    assert gap.mean() < 0.05
    laplace = infer_latents(SecondOrder(family), observe(X, family), [loadings])
    assert abs((exact - laplace.evidence).mean()) < 0.05


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_mode_is_a_maximum_with_the_hessian_of_the_log_joint(family):
    X, loadings = draw(family, n=5)
    latents = infer_latents(SecondOrder(family), observe(X, family), [loadings])

    def log_joint(y, row):
        theta = loadings.weights @ y + loadings.intercept
        return family.statistic(X[row]) @ theta - family.log_partition(theta).sum() - 0.5 * y @ y

    step = 1e-4
    axes = step * np.eye(2)
    for row in range(5):
        y = latents.mean[row]
        slope = [(log_joint(y + e, row) - log_joint(y - e, row)) / (2 * step) for e in axes]
        np.testing.assert_allclose(slope, 0.0, atol=2e-5)
        hessian = [
            [
                log_joint(y + e + f, row) - log_joint(y + e - f, row) - log_joint(y - e + f, row)
                + log_joint(y - e - f, row)
                for f in axes
            ]
            for e in axes
        ]  # fmt: skip
        precision = -np.array(hessian) / (4 * step**2)
        np.testing.assert_allclose(np.linalg.inv(latents.covariance[row]), precision, rtol=1e-3, atol=1e-3)


def test_two_equal_sets_of_loadings_with_shares_are_one():
    family = BernoulliFamily()
    X, loadings = draw(family)
    data = observe(X, family)
    shares = np.random.default_rng(0).dirichlet([1, 1], size=len(X))
    both = infer_latents(SecondOrder(family), data, [loadings, loadings], shares=shares)
    one = infer_latents(SecondOrder(family), data, [loadings])
    np.testing.assert_allclose(both.mean, one.mean, atol=1e-7)
    np.testing.assert_allclose(both.values[:, 1] - both.divergence, one.evidence, atol=1e-9)


@pytest.mark.parametrize(("name", "inference"), [("bernoulli", "laplace"), ("bernoulli", "vb"),
                                                 ("poisson", "laplace"), ("gaussian", "laplace")])  # fmt: skip
@pytest.mark.parametrize("missing", [False, True])
def test_slopes_of_the_loadings_agree_with_differences(name, inference, missing):
    family = as_family(name)
    X, loadings = draw(family, n=30, n_features=6, size=0.4)
    if missing:
        X[np.random.default_rng(3).random(X.shape) < 0.2] = np.nan
    data = observe(X, family)
    first, second = expansions(family, inference)
    latents = infer_latents(first, data, [loadings])
    weight = np.random.default_rng(1).uniform(0.2, 1, 30)
    regression = Regression(second, data, latents, weight, intercept_prior(data, 2.0, True))
    expanded = regression.expand(loadings)
    np.testing.assert_allclose(expanded.values, regression.values(loadings, expanded.spread), rtol=1e-10)
    step = 1e-5
    for column in range(3):
        shift = np.zeros((6, 3))
        shift[:, column] = step
        ends = [
            regression.values(
                Loadings(loadings.weights + sign * shift[:, :2], loadings.intercept + sign * shift[:, 2]),
                expanded.spread,
            )
            for sign in (1, -1)
        ]
        np.testing.assert_allclose(expanded.gradient[:, column], (ends[0] - ends[1]) / (2 * step), atol=1e-5)


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "gaussian"])
def test_newton_steps_of_the_loadings_end_where_the_slope_vanishes(name):
    family = as_family(name)
    X, loadings = draw(family, n=80, n_features=5, size=0.4)
    data = observe(X, family)
    latents = replace(infer_latents(SecondOrder(family), data, [loadings], point=True))
    prior = intercept_prior(data, 1.0, True)
    regression = Regression(SecondOrder(family), data, latents, np.ones(80), prior)
    found, _ = climb_rows(regression, loadings, np.ones(2), n_steps=30)
    slope = regression.expand(found).gradient - np.column_stack([found.weights, np.zeros(5)])
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_balanced_scales_minimise_the_penalty():
    energy, square, size = (
        np.array([3.0, 2.0, 0.0, 5.0]),
        np.array([1.0, 0.0, 1.0, 0.0]),
        np.array([0.0, 4.0, 1.0, 0.0]),
    )
    c = balanced(energy, square, size)
    grid = np.geomspace(0.05, 20, 40_001)
    for i in (0, 1):
        penalty = energy[i] / (2 * grid**2) + square[i] * grid**2 / 2 + size[i] * grid
        assert c[i] == pytest.approx(grid[penalty.argmin()], rel=1e-3)
    np.testing.assert_array_equal(c[2:], 1.0)  # nothing to gain, or no prior that could say


def test_features_that_tell_classes_apart_get_few_pseudo_observations():
    rng = np.random.default_rng(0)
    classes = np.repeat(np.eye(2), 100, axis=0)
    probabilities = np.where(classes[:, :1] == 1, [0.9] * 5 + [0.3] * 45, [0.1] * 5 + [0.3] * 45)
    data = observe((rng.random((200, 50)) < probabilities).astype(float), BernoulliFamily())
    counts = learned_counts(data, classes, data.means())
    assert counts[:5].max() < 10
    assert counts[5:].min() > 100


def test_bad_data_and_families_get_a_sentence():
    with pytest.raises(ValueError, match="family must be one of"):
        as_family("beta")
    with pytest.raises(ValueError, match="between 0 and 1"):
        observe(np.array([[2.0]]), BernoulliFamily())
    with pytest.warns(UserWarning, match="fractions"):
        observe(np.array([[0.5]]), BernoulliFamily())
    with pytest.raises(ValueError, match="counts"):
        observe(np.array([[-1.0]]), PoissonFamily())
    with pytest.raises(ValueError, match="counts"):
        observe(np.array([[0.5]]), PoissonFamily())
    for wrong in (0, 1.5, True):
        with pytest.raises(ValueError, match="trials"):
            BinomialFamily(wrong)
    with pytest.raises(ValueError, match="scale"):
        GaussianFamily(0.0)
