"""E-steps against dense Gaussian conditioning, finite differences, importance sampling and each other."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_normal, norm
from small_count_systems import (
    count_system,
    dense_prior,
    draw,
    log_density_of_counts,
    poisson_system,
    state_model,
)

from pluri.dynamics.counts.count_model import CountModel, hermite_nodes
from pluri.dynamics.counts.dual import JensenDual, jensen_paths
from pluri.dynamics.counts.learning import infer_paths
from pluri.dynamics.counts.paths import PathPrior, laplace_paths, variational_paths
from pluri.dynamics.counts.poisson_model import PoissonModel
from pluri.dynamics.counts.records import CountObservation, PoissonObservation, StateModel, SystemParameters
from pluri.dynamics.counts.state_updates import change_coordinates

LENGTHS = [7, 1, 0, 4]
SYSTEMS = {"poisson": poisson_system, "counts": count_system, "jensen": lambda: count_system(nodes=None)}


def test_the_prior_of_paths_is_that_of_the_recursion():
    states = state_model(drift=7)
    offsets = np.array([0, 7, 8, 8, 12])
    prior = PathPrior.of(states, offsets)
    for s in range(4):
        rows = slice(offsets[s], offsets[s + 1])
        n = offsets[s + 1] - offsets[s]
        if not n:
            continue
        mean, covariance = dense_prior(states, n)
        assert_allclose(prior.mean[rows].ravel(), mean)
        assert_allclose(prior.log_determinants[s], -np.linalg.slogdet(covariance)[1])
        away = np.random.default_rng(0).normal(size=(12, 2))
        square = prior.squares(away)[s]
        assert_allclose(square, away[rows].ravel() @ np.linalg.solve(covariance, away[rows].ravel()))
    assert_allclose(states.covariances(7)[3], dense_prior(states, 7)[1][6:8, 6:8])


def test_gaussian_sites_are_the_kalman_smoother():
    """With log-likelihoods that are Gaussian in theta, both E-steps are dense Gaussian conditioning."""
    states, rng = state_model(seed=3), np.random.default_rng(1)
    offsets = np.array([0, 6, 10])
    C, noise = rng.normal(size=(3, 2)), np.array([0.5, 1.0, 2.0])
    y = rng.normal(size=(10, 3))
    y[rng.random(y.shape) < 0.3] = np.nan
    seen = ~np.isnan(y)
    filled = np.where(seen, y, 0.0)

    def sites(mean, covariance, rows=None):
        theta = mean @ C.T
        variance = np.einsum("ia,tab,ib->ti", C, covariance, C)
        value = np.where(seen, -0.5 * ((filled - theta) ** 2 + variance) / noise - 0.5 * np.log(2 * np.pi * noise), 0.0)
        residual = np.where(seen, (filled - theta) / noise, 0.0)
        precision = np.einsum("ti,ia,ib->tab", np.where(seen, 1 / noise, 0.0), C, C)
        return value.sum(axis=1), residual @ C, precision

    prior = PathPrior.of(states, offsets)
    for found in (variational_paths(prior, sites), laplace_paths(prior, sites)):
        for s in range(2):
            rows = slice(offsets[s], offsets[s + 1])
            n = offsets[s + 1] - offsets[s]
            mean, covariance = dense_prior(states, n)
            kept = seen[rows].ravel()
            H = np.kron(np.eye(n), C)[kept]
            R = np.diag(np.tile(noise, n)[kept])
            S = H @ covariance @ H.T + R
            gain = np.linalg.solve(S, H @ covariance).T
            data = y[rows].ravel()[kept]
            smoothed = covariance - gain @ H @ covariance
            assert_allclose(found.mean[rows].ravel(), mean + gain @ (data - H @ mean), atol=1e-9)
            for t in range(n):
                block = smoothed[2 * t : 2 * t + 2, 2 * t : 2 * t + 2]
                assert_allclose(found.covariance[offsets[s] + t], block, atol=1e-9)
                if t:
                    lagged = smoothed[2 * t : 2 * t + 2, 2 * t - 2 : 2 * t]
                    assert_allclose(found.lagged[offsets[s] + t - 1], lagged, atol=1e-9)
            assert_allclose(found.bound[s], multivariate_normal(H @ mean, S).logpdf(data), atol=1e-8)


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_variational_optimum_satisfies_its_equations(system):
    params, model = SYSTEMS[system]()
    counts, offsets = draw(params, LENGTHS, missing=0.2)
    found, _ = infer_paths(model, "vb", params, counts, offsets)
    _, gradient, precision = model.sites(params.observation, counts)(found.mean, found.covariance)
    for s in range(len(LENGTHS)):
        rows = slice(offsets[s], offsets[s + 1])
        n = offsets[s + 1] - offsets[s]
        if n:
            mean, covariance = dense_prior(params.states, n)
            assert_allclose(
                np.linalg.solve(covariance, found.mean[rows].ravel() - mean), gradient[rows].ravel(), atol=2e-4
            )
            blocks = np.zeros((2 * n, 2 * n))
            for t in range(n):
                blocks[2 * t : 2 * t + 2, 2 * t : 2 * t + 2] = precision[offsets[s] + t]
            V = np.linalg.inv(np.linalg.inv(covariance) + blocks)
            assert_allclose(found.covariance[rows][-1], V[-2:, -2:], atol=2e-5)


@pytest.mark.parametrize("system", SYSTEMS)
def test_site_derivatives_are_finite_differences(system):
    """In the mean, and in the covariance, of which the precision is minus twice the derivative."""
    params, model = SYSTEMS[system]()
    counts, _ = draw(params, [3], missing=0.2)
    sites = model.sites(params.observation, counts)
    rng = np.random.default_rng(0)
    mean, root = 0.3 * rng.normal(size=(3, 2)), rng.normal(size=(3, 2, 2))
    covariance = 0.2 * np.eye(2) + 0.1 * root @ root.transpose(0, 2, 1)
    _, gradient, precision = sites(mean, covariance)
    h = 1e-5
    for a in range(2):
        step = h * np.eye(2)[a]
        slope = (sites(mean + step, covariance)[0] - sites(mean - step, covariance)[0]) / (2 * h)
        assert_allclose(gradient[:, a], slope, atol=1e-6)
        for b in range(2):
            step = np.zeros((2, 2))
            step[a, b] += 0.5 * h
            step[b, a] += 0.5 * h
            slope = (sites(mean, covariance + step)[0] - sites(mean, covariance - step)[0]) / (2 * h)
            assert_allclose(-0.5 * precision[:, a, b], slope, atol=1e-5)


def test_quadrature_is_that_of_numpy():
    params, model = count_system(K=6)
    counts, _ = draw(params, [4])
    mean, covariance = np.full((4, 2), 0.4), np.tile(np.array([[0.5, 0.1], [0.1, 0.3]]), (4, 1, 1))
    value = model.sites(params.observation, counts)(mean, covariance)[0]
    grid = np.linspace(-9, 9, 20001)
    density = norm.pdf(grid)
    k = np.arange(7)
    expected = np.zeros(4)
    for i, c in enumerate(params.observation.loadings):
        theta = c @ mean[0] + np.sqrt(c @ covariance[0] @ c) * grid
        normalizer = logsumexp(theta[:, None] * k + model.table(params.observation)[i], axis=1)
        expected += counts[:, i] * (c @ mean[0]) - np.trapezoid(density * normalizer, grid)
    assert_allclose(value, expected, atol=1e-7)


def test_a_wide_spread_of_many_counts_does_not_overflow():
    """The slow way of the loop, where powers of ratios would leave the range of numbers."""
    k = np.arange(301)
    for width in (2.0, 1.999 * 600 / (300 * 6.4)):  # beyond and within reach of powers
        observation = CountObservation(np.ones((1, 1)), 0.01 * k[None] * np.log(k + 1.0))
        model = CountModel("full", hermite_nodes(15), np.ones((1, 301), dtype=bool), np.zeros(1))
        value, gradient, precision = model.sites(observation, np.array([[3.0]]))(
            np.zeros((1, 1)), np.full((1, 1, 1), width**2)
        )
        theta = width * np.polynomial.hermite_e.hermegauss(15)[0]
        weight = np.polynomial.hermite_e.hermegauss(15)[1] / np.sqrt(2 * np.pi)
        scores = theta[:, None] * k + model.table(observation)[0]
        P = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
        assert_allclose(value, -weight @ logsumexp(scores, axis=1))
        assert_allclose(gradient[0, 0], 3 - weight @ (P @ k))
        assert_allclose(precision[0, 0, 0], weight @ (P @ k**2 - (P @ k) ** 2), rtol=1e-7)


@pytest.mark.parametrize("system", ["poisson", "counts"])
def test_the_laplace_mode_has_no_gradient_and_the_curvature_is_a_finite_difference(system):
    params, model = SYSTEMS[system]()
    counts, offsets = draw(params, [6], missing=0.1)
    found, _ = infer_paths(model, "laplace", params, counts, offsets)
    mean, covariance = dense_prior(params.states, 6)

    def log_joint(x):
        return log_density_of_counts(params, counts, x.reshape(6, 2)) + multivariate_normal(mean, covariance).logpdf(x)

    mode, h = found.mean.ravel(), 1e-4
    steps = h * np.eye(12)
    gradient = [(log_joint(mode + step) - log_joint(mode - step)) / (2 * h) for step in steps]
    assert np.abs(gradient).max() < 1e-6
    hessian = np.array(
        [
            [
                (log_joint(mode + a + b) - log_joint(mode + a - b) - log_joint(mode - a + b) + log_joint(mode - a - b))
                / (4 * h * h)
                for a in steps
            ]
            for b in steps
        ]
    )
    V = np.linalg.inv(-hessian)
    assert_allclose(found.covariance[2], V[4:6, 4:6], atol=1e-4)
    assert_allclose(found.lagged[2], V[6:8, 4:6], atol=1e-4)
    laplace = log_joint(mode) + 6 * np.log(2 * np.pi) + 0.5 * np.linalg.slogdet(V)[1]
    assert_allclose(found.bound[0], laplace, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_in_order(seed):
    """jensen <= quadrature <= log p, the last by importance sampling with a false-alarm rate below 1e-6."""
    params, model = count_system(seed=seed)
    counts, offsets = draw(params, [8], seed=seed, missing=0.1)
    quadrature, _ = infer_paths(model, "vb", params, counts, offsets)
    jensen, _ = infer_paths(count_system(seed=seed, nodes=None)[1], "vb", params, counts, offsets)
    assert jensen.bound[0] < quadrature.bound[0]
    log_p, error = importance_sampled(params, counts, quadrature, np.random.default_rng(seed))
    assert quadrature.bound[0] < log_p + 5 * error
    assert quadrature.bound[0] > log_p - 3.0  # it is a bound of use


def importance_sampled(params, counts, found, rng, n=20_000):
    """log p(counts) and its standard error, by draws from a posterior with wider tails."""
    T, p = found.mean.shape
    mean, covariance = dense_prior(params.states, T)
    draws = np.array([found.distribution.sample(rng) for _ in range(n)]) * 1.2
    # Density of the draws: the factor of the precision gives the standard normal that each came from.
    log_det = found.distribution.log_determinants()[0]
    J = np.zeros((T * p, T * p))
    for t in range(T):
        L = np.zeros((T * p, p))
        L[t * p : (t + 1) * p] = found.distribution.factors[t]
        if t + 1 < T:
            L[(t + 1) * p : (t + 2) * p] = found.distribution.couplings[t]
        J += L @ L.T
    flat = draws.reshape(n, -1)
    log_q = 0.5 * log_det - 0.5 * np.einsum("na,ab,nb->n", flat / 1.2, J, flat / 1.2)
    log_q -= 0.5 * T * p * np.log(2 * np.pi) + T * p * np.log(1.2)
    x = draws + found.mean
    ratio = (
        log_density_of_counts(params, counts, x)
        + multivariate_normal(mean, covariance).logpdf(x.reshape(n, -1))
        - log_q
    )
    top = ratio.max()
    weights = np.exp(ratio - top)
    return top + np.log(weights.mean()), weights.std() / weights.mean() / np.sqrt(n)


def test_poisson_counts_are_generalized_ones_with_a_linear_shape():
    params, model = poisson_system()
    counts, offsets = draw(params, LENGTHS, missing=0.1)
    found, _ = infer_paths(model, "vb", params, counts, offsets)
    K = int(3 * np.nanmax(counts) + 20)
    k = np.arange(K + 1)
    general = SystemParameters(
        params.states, CountObservation(params.observation.loadings, params.observation.intercept[:, None] * k), 10
    )
    other = CountModel("full", hermite_nodes(20), np.ones((4, K + 1), dtype=bool), np.zeros(4))
    same, _ = infer_paths(other, "vb", general, counts, offsets)
    assert_allclose(same.bound, found.bound, atol=1e-6)
    assert_allclose(same.mean, found.mean, atol=1e-4)
    assert_allclose(same.covariance, found.covariance, atol=1e-5)


@pytest.mark.parametrize("system", SYSTEMS)
def test_without_loadings_the_posterior_is_the_prior(system):
    params, model = SYSTEMS[system]()
    counts, offsets = draw(params, LENGTHS)
    flat = type(params.observation)(np.zeros((4, 2)), list(vars(params.observation).values())[1])
    params = SystemParameters(params.states, flat, 10)
    found, _ = infer_paths(model, "vb", params, counts, offsets)
    assert_allclose(found.mean, PathPrior.of(params.states, offsets).mean)
    assert_allclose(found.covariance[:7], params.states.covariances(7))
    independent = [log_density_of_counts(params, counts[a:b], np.zeros((b - a, 2))) for a, b in pairwise(offsets)]
    assert_allclose(found.bound, independent, atol=1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
def test_coordinates_of_the_states_do_not_matter(system):
    params, model = SYSTEMS[system]()
    counts, offsets = draw(params, LENGTHS)
    T = np.array([[1.3, 0.4], [-0.2, 0.7]])
    found, _ = infer_paths(model, "vb", params, counts, offsets)
    turned, _ = infer_paths(model, "vb", change_coordinates(params, T), counts, offsets)
    assert_allclose(turned.bound, found.bound, rtol=1e-9)
    assert_allclose(turned.mean, found.mean @ T.T, atol=1e-4)


def random_shares(rng, shape):
    scores = rng.normal(scale=2.0, size=shape)
    return scores - logsumexp(scores, axis=-1, keepdims=True)


def dual_problem(seed=0):
    params, model = count_system(n_neurons=6, K=6, seed=seed, nodes=None)
    counts, offsets = draw(params, [12, 3], seed=seed, missing=0.05)
    prior = PathPrior.of(params.states, offsets)
    dual = JensenDual(prior, counts, params.observation.loadings, model.table(params.observation))
    return dual, model.sites(params.observation, counts)


def test_the_dual_is_never_below_the_bound():
    dual, sites = dual_problem()
    best = variational_paths(dual.prior, sites).bound
    rng = np.random.default_rng(0)
    for _ in range(10):
        point = dual.visit(random_shares(rng, (15, 6, 7)))
        assert (point.dual >= best - 1e-9 * np.abs(best)).all()
        assert (point.primal <= best + 1e-9 * np.abs(best)).all()


def test_mirror_descent_closes_the_gap_from_anywhere():
    dual, sites = dual_problem()
    start = dual.visit(random_shares(np.random.default_rng(1), (15, 6, 7)))
    end = dual.descend(start, 1e-8)
    assert (end.dual <= start.dual).all()
    assert_allclose(end.dual, end.primal, rtol=1e-6)
    found = variational_paths(dual.prior, sites)
    assert_allclose(end.primal, found.bound, rtol=1e-7)
    assert_allclose(end.posterior.mean, found.mean, atol=1e-3)


def test_an_e_step_under_jensens_bound_is_certified():
    dual, sites = dual_problem()
    found, gap = jensen_paths(dual, sites, 1e-7)
    assert (gap < 1e-6 * np.abs(found.bound)).all()
    assert (gap > -1e-9 * np.abs(found.bound)).all()


def test_the_dual_gradient_and_its_convexity_by_finite_differences():
    dual, _ = dual_problem()
    rng = np.random.default_rng(2)
    first, second = (np.exp(random_shares(rng, (15, 6, 7))) for _ in range(2))

    def value(share):
        with np.errstate(divide="ignore"):
            return dual.visit(np.log(share)).dual.sum()

    middle = 0.5 * (first + second)
    assert value(middle) <= 0.5 * (value(first) + value(second))
    point = dual.visit(np.log(middle))
    seen = ~np.isnan(dual.counts)
    gradient = np.where(seen[..., None], np.log(middle) + 1.0 - point.scores, 0.0)
    h = 1e-5
    slope = (value(middle + h * (second - first)) - value(middle - h * (second - first))) / (2 * h)
    assert_allclose((gradient * (second - first)).sum(), slope, rtol=1e-5)


def test_jensens_bound_deteriorates_with_the_largest_count():
    """h = 0.3, variance 0.4 and g = 0: the exact value is 1.6487, and the bound moves away from it."""
    known = {4: 2.36, 6: 3.31, 10: 8.10, 20: 43.7, 60: 549.0}
    for K, bound in known.items():
        observation = CountObservation(np.ones((1, 1)), np.zeros((1, K + 1)))
        model = CountModel("full", None, np.ones((1, K + 1), dtype=bool), np.zeros(1))
        value = model.sites(observation, np.zeros((1, 1)))(np.full((1, 1), 0.3), np.full((1, 1, 1), 0.4))[0]
        assert_allclose(-value[0], bound, rtol=3e-3)
    many = CountModel("full", hermite_nodes(20), np.ones((1, 61), dtype=bool), np.zeros(1))
    observation = CountObservation(np.ones((1, 1)), np.zeros((1, 61)))
    value = many.sites(observation, np.zeros((1, 1)))(np.full((1, 1), 0.3), np.full((1, 1, 1), 0.4))[0]
    assert_allclose(-value[0], 1.6487, atol=1e-4)


def test_a_prior_that_expects_far_too_much_does_not_stop_the_e_step():
    """One state and one count, whose bound has its maximum where an optimiser of two numbers finds it."""
    variance = 300.0  # the prior expects exp(150) events
    states = StateModel(np.eye(1), np.eye(1), np.zeros(1), np.full((1, 1), variance), np.zeros((0, 1)))
    params = SystemParameters(states, PoissonObservation(np.ones((1, 1)), np.zeros(1)), 1)
    for y in (0.0, 3.0, 1e9):
        found, _ = infer_paths(PoissonModel(), "vb", params, np.array([[y]]), np.array([0, 1]))

        def bound(point, y=y):
            m, v = point[0], np.exp(point[1])
            kl = 0.5 * (v / variance + m**2 / variance - 1 + np.log(variance / v))
            return kl + np.exp(m + v / 2) - y * m

        best = minimize(bound, [np.log(y + 0.5), -np.log(y + 0.5)], method="Nelder-Mead",
                        options={"maxiter": 4000, "xatol": 1e-10, "fatol": 1e-10})  # fmt: skip
        assert_allclose(found.bound[0], -best.fun - gammaln(y + 1), rtol=1e-7)
        assert_allclose(found.mean[0, 0], best.x[0], atol=0.01 * np.exp(best.x[1] / 2))
        assert_allclose(found.covariance[0, 0, 0], np.exp(best.x[1]), rtol=0.01)
