"""The two KL projections and the identities of the bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from pluri.inference.variational import MixtureDensity, discrete_divergence, discrete_elbo, kl_project

COVARIANCE = np.array([[0.5, 0.3], [0.3, 0.5]])
BIMODAL = MixtureDensity([0.5, 0.5], [[-2.0, -2.0], [2.0, 2.0]], [COVARIANCE, COVARIANCE])


def gaussian_divergence(mean0, cov0, mean1, cov1):
    gap, inverse = mean1 - mean0, np.linalg.inv(cov1)
    logs = np.linalg.slogdet(cov1)[1] - np.linalg.slogdet(cov0)[1]
    return 0.5 * (np.trace(inverse @ cov0) + gap @ inverse @ gap - len(gap) + logs)


def test_the_mixture_equals_scipy_and_its_gradient_equals_differences():
    X = np.random.default_rng(0).normal(size=(5, 2)) * 3
    expected = np.log(sum(0.5 * multivariate_normal(m, COVARIANCE).pdf(X) for m in BIMODAL.means))
    value, gradient = BIMODAL.value_and_gradient(X)
    np.testing.assert_allclose(value, expected, rtol=1e-10)
    for x, slope in zip(X, gradient):
        np.testing.assert_allclose(slope, approx_fprime(x, lambda v: BIMODAL(v[None])[0], 1e-7), atol=1e-4)


def test_the_forward_projection_has_the_moments_of_the_mixture():
    projection = kl_project(BIMODAL, "forward", random_state=0)
    np.testing.assert_allclose(projection.mean, 0.0, atol=1e-15)
    np.testing.assert_allclose(projection.covariance, COVARIANCE + 4.0, atol=1e-14)
    assert projection.kl > 0


def test_the_reverse_projection_locks_on_one_mode_and_misses_half_the_mass():
    projection = kl_project(BIMODAL, "reverse", random_state=0)
    np.testing.assert_allclose(np.abs(projection.mean), 2.0, atol=0.01)
    # The other mode is six standard deviations away, near enough to pull a little.
    np.testing.assert_allclose(projection.covariance, COVARIANCE, atol=0.02)
    assert 0 < np.log(2) - projection.kl < 4e-3
    modes = sorted(round(float(optimum.mean[0])) for optimum in projection.optima if optimum.kl < 0.75)
    assert modes == [-2, 2]


def test_the_reverse_divergence_equals_integration_over_a_grid():
    projection = kl_project(BIMODAL, "reverse", random_state=0)
    axis = np.linspace(-6, 6, 401)
    grid = np.stack([part.ravel() for part in np.meshgrid(axis, axis)], axis=1)
    q = MixtureDensity([1.0], projection.mean[None], projection.covariance[None])
    integral = (np.exp(q(grid)) * (q(grid) - BIMODAL(grid))).sum() * (axis[1] - axis[0]) ** 2
    assert abs(projection.kl - integral) < 1e-3


def test_modes_that_are_far_apart_leave_log_two_exactly():
    target = MixtureDensity([0.5, 0.5], [[-9.0], [9.0]], np.ones((2, 1, 1)))
    projection = kl_project(target, "reverse", random_state=0)
    np.testing.assert_allclose(projection.covariance, 1.0, atol=1e-4)
    assert abs(projection.kl - np.log(2)) < 1e-7
    assert len(projection.optima) == 2


def test_a_callable_on_a_box_gives_the_same_answers():
    def target(X):
        return BIMODAL(X) + 3.0  # unnormalised

    box = [(-6, 6), (-6, 6)]
    forward = kl_project(target, "forward", bounds=box)
    np.testing.assert_allclose(forward.mean, 0.0, atol=1e-10)
    np.testing.assert_allclose(forward.covariance, COVARIANCE + 4.0, atol=1e-6)
    assert abs(forward.kl - kl_project(BIMODAL, "forward", random_state=0).kl) < 0.02
    reverse = kl_project(target, "reverse", bounds=box, random_state=1, n_starts=3, n_samples=500)
    assert abs(reverse.kl - np.log(2)) < 5e-3
    assert abs(reverse.free_energy - (np.log(2) - 3.0)) < 5e-3  # KL - log Z, log Z = 3


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(max_examples=20)
def test_projections_of_a_gaussian_are_known(seed, size):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(size, size))
    covariance = factor @ factor.T + 0.5 * np.eye(size)
    mean = rng.normal(size=size)
    target = MixtureDensity([1.0], mean[None], covariance[None])
    options = {"n_starts": 1, "n_samples": 200, "random_state": seed}
    full = kl_project(target, "reverse", **options)
    np.testing.assert_allclose(full.covariance, covariance, atol=1e-3 * np.trace(covariance))
    assert abs(full.kl) < 1e-6
    narrow = kl_project(target, "reverse", "diagonal", **options)
    np.testing.assert_allclose(np.diag(narrow.covariance), 1 / np.diag(np.linalg.inv(covariance)), rtol=1e-3)
    expected = gaussian_divergence(narrow.mean, narrow.covariance, mean, covariance)
    np.testing.assert_allclose(narrow.kl, expected, atol=1e-6)
    wide = kl_project(target, "forward", "diagonal", random_state=0)
    np.testing.assert_allclose(np.diag(wide.covariance), np.diag(covariance), rtol=1e-12)


def test_divergence_and_bound_add_up_to_the_evidence():
    rng = np.random.default_rng(0)
    log_joint = rng.normal(size=(2, 3, 4))
    evidence = np.logaddexp.reduce(log_joint.ravel())
    posterior = np.exp(log_joint - evidence)
    for _ in range(20):
        q = rng.dirichlet(np.full(24, 0.3)).reshape(2, 3, 4)
        divergence = discrete_divergence(q, posterior)
        assert divergence >= 0
        assert abs(discrete_elbo(log_joint, q) + divergence - evidence) < 1e-12
    assert discrete_divergence(posterior, posterior) == 0.0
    assert abs(discrete_elbo(log_joint, posterior) - evidence) < 1e-12


def test_states_without_probability_cost_nothing_under_q_and_everything_under_p():
    assert discrete_divergence([1.0, 0.0], [0.5, 0.5]) == pytest.approx(np.log(2))
    assert discrete_divergence([0.5, 0.5], [1.0, 0.0]) == np.inf
    assert discrete_elbo([0.0, -np.inf], [1.0, 0.0]) == 0.0


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (BIMODAL, {"direction": "sideways"}, "direction must be"),
        (BIMODAL, {"family": "cauchy"}, "family must be"),
        (BIMODAL, {"n_starts": 0}, "at least 1"),
        (lambda X: X[:, 0], {}, "bounds must be given"),
        (lambda X: X[:, 0], {"bounds": [(1, 1)]}, "low < high"),
        (lambda X: X, {"bounds": [(0, 1)]}, "one log density per row"),
        (lambda X: np.full(len(X), np.nan), {"bounds": [(0, 1)]}, "got NaN"),
        (lambda X: X[:, 0], {"bounds": [(0, 1)] * 4, "direction": "forward"}, "at most 3 dimensions"),
    ],
)
def test_bad_arguments_are_refused(target, options, message):
    with pytest.raises(ValueError, match=message):
        kl_project(target, **options)


def test_a_mixture_of_the_wrong_shape_is_refused():
    with pytest.raises(ValueError, match="shapes"):
        MixtureDensity([1.0], [0.0], [[1.0]])
    with pytest.raises(ValueError, match="sum to 1"):
        MixtureDensity([0.7, 0.7], np.zeros((2, 1)), np.ones((2, 1, 1)))
