"""The determinantal prior for any kernel: gradients, agreement with the diversity prior, diagnoses."""

import copy
import pickle

import numpy as np
import pytest

from pluri.priors import Diversity, DiversityWarning
from pluri.priors.determinantal import DeterminantalPrior
from pluri.priors.kernels import (
    CosineKernel,
    ExponentialCosineKernel,
    LinearKernel,
    ProbabilityProductKernel,
    RBFKernel,
    SubspaceKernel,
)

RNG = np.random.default_rng(0)
COVARIANCES = np.array([root @ root.T / 3 + 0.5 * np.eye(3) for root in RNG.normal(size=(4, 3, 3))])
MEANS = RNG.normal(size=(4, 3))
POINTS = RNG.normal(size=(4, 5))
ROWS = RNG.dirichlet(np.full(5, 4.0), size=4)
PROBABILITIES = RNG.uniform(0.05, 0.95, size=(4, 3))
RATES = RNG.gamma(3.0, 2.0, size=(4, 2))
LOADINGS = RNG.normal(size=(4, 5, 2))


def cases():
    for rho in (0.3, 0.5, 1.0, 1.8):
        for normalized in (True, False):
            options = {"rho": rho, "normalized": normalized}
            yield ProbabilityProductKernel("bernoulli", **options), PROBABILITIES
            yield ProbabilityProductKernel("poisson", **options), RATES
            yield ProbabilityProductKernel("poisson", **options), RATES[:, 0]
            yield ProbabilityProductKernel("gaussian", **options), (MEANS, COVARIANCES)
            yield ProbabilityProductKernel("gaussian", **options), (MEANS, COVARIANCES[0])
            yield ProbabilityProductKernel("gaussian", **options), (MEANS, RNG.gamma(3.0, size=(4, 3)))
            yield ProbabilityProductKernel("gaussian", **options), (MEANS, RNG.gamma(3.0, size=4))
        yield ProbabilityProductKernel("categorical", rho), ROWS
    yield LinearKernel(), POINTS
    yield CosineKernel(), POINTS
    yield ExponentialCosineKernel(1.4), POINTS
    yield RBFKernel(1.7), POINTS
    yield RBFKernel((0.5, 1.0, 2.0, 3.0, 1.0)), POINTS
    yield SubspaceKernel(0.4, weighted=True), LOADINGS


CASES = list(cases())
NAMES = [f"{index}-{type(kernel).__name__}" for index, (kernel, _) in enumerate(CASES)]


def arrays(parameters):
    return parameters if isinstance(parameters, tuple) else (parameters,)


def shifted(parameters, which, change):
    moved = tuple(values + change if index == which else values for index, values in enumerate(arrays(parameters)))
    return moved if isinstance(parameters, tuple) else moved[0]


def difference(function, parameters, which, direction, step=1e-5):
    ahead, behind = (function(shifted(parameters, which, sign * step * direction)) for sign in (1, -1))
    return (ahead - behind) / (2 * step)


def random_direction(rng, values, kernel, which):
    direction = rng.normal(size=values.shape)
    is_matrix = which == 1 and getattr(kernel, "family", "") == "gaussian" and values.shape[-2:] == (3, 3)
    return direction + np.swapaxes(direction, -1, -2) if is_matrix else direction


@pytest.mark.parametrize(("kernel", "parameters"), CASES, ids=NAMES)
def test_gradient_equals_differences(kernel, parameters):
    prior = DeterminantalPrior(kernel, weight=1.5)
    rng = np.random.default_rng(1)
    gradients = arrays(prior.gradient(parameters))
    for which, (values, gradient) in enumerate(zip(arrays(parameters), gradients)):
        assert gradient.shape == values.shape
        for _ in range(3):
            direction = random_direction(rng, values, kernel, which)
            expected = difference(prior.log_density, parameters, which, direction)
            assert np.sum(gradient * direction) == pytest.approx(expected, rel=2e-6, abs=2e-7)


@pytest.mark.parametrize(("kernel", "parameters"), CASES, ids=NAMES)
def test_pullback_equals_differences_for_any_sensitivity(kernel, parameters):
    rng = np.random.default_rng(2)
    sensitivity = rng.normal(size=(4, 4))
    pulled = arrays(kernel.pullback(parameters, sensitivity))
    for which, (values, gradient) in enumerate(zip(arrays(parameters), pulled)):
        direction = random_direction(rng, values, kernel, which)
        expected = difference(lambda theta: np.sum(sensitivity * kernel(theta)), parameters, which, direction)
        assert np.sum(gradient * direction) == pytest.approx(expected, rel=2e-6, abs=2e-8)


@pytest.mark.parametrize("rho", [0.4, 0.5, 1.0])
def test_gradient_of_the_unnormalized_categorical_kernel_on_the_simplex(rho):
    kernel = ProbabilityProductKernel(rho=rho, normalized=False)
    prior = DeterminantalPrior(kernel)
    rng = np.random.default_rng(3)
    assert prior.log_density(ROWS) == pytest.approx(np.linalg.slogdet(kernel(ROWS))[1])
    sensitivity = rng.normal(size=(4, 4))
    for function, gradient in (
        (prior.log_density, prior.gradient(ROWS)),
        (lambda rows: np.sum(sensitivity * kernel(rows)), kernel.pullback(ROWS, sensitivity)),
    ):
        direction = rng.normal(size=ROWS.shape)
        direction -= direction.mean(axis=1, keepdims=True)  # rows go on summing to 1
        expected = difference(function, ROWS, 0, direction, step=1e-6)
        assert np.sum(gradient * direction) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("rho", [0.3, 0.5, 1.0, 2.0])
def test_categorical_prior_is_the_diversity_prior(rho):
    rng = np.random.default_rng(4)
    prior, known = DeterminantalPrior(ProbabilityProductKernel(rho=rho), 2.5), Diversity(2.5, rho)
    for n_rows, n_columns in ((2, 2), (4, 4), (3, 7)):
        rows = rng.dirichlet(np.ones(n_columns), size=n_rows)
        rows[0, 0] = 0.0
        rows /= rows.sum(axis=1, keepdims=True)
        assert prior.log_density(rows) == known.log_density(rows)
        np.testing.assert_array_equal(prior.gradient(rows), known.gradient(rows))
        interior = np.maximum(rows, 1e-3)
        kernel = ProbabilityProductKernel(rho=rho)
        general = 2.5 * kernel.pullback(interior, np.linalg.inv(kernel(interior)))
        np.testing.assert_allclose(general, known.gradient(interior), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("kernel", "parameters"), CASES, ids=NAMES)
def test_weight_zero_is_exactly_no_prior(kernel, parameters):
    prior = DeterminantalPrior(kernel, weight=0)
    assert prior.log_density(parameters) == 0.0
    for values, gradient in zip(arrays(parameters), arrays(prior.gradient(parameters))):
        np.testing.assert_array_equal(gradient, np.zeros(values.shape))


@pytest.mark.parametrize(("kernel", "parameters"), CASES, ids=NAMES)
def test_log_density_is_the_log_determinant_and_does_not_see_the_order_of_parts(kernel, parameters):
    prior = DeterminantalPrior(kernel, weight=2.0)
    value = prior.log_density(parameters)
    assert value == pytest.approx(2 * np.linalg.slogdet(kernel(parameters))[1], rel=1e-8, abs=1e-9)
    order = [2, 0, 3, 1]
    turned = tuple(v[order] if len(v) == 4 else v for v in arrays(parameters))
    assert prior.log_density(turned if isinstance(parameters, tuple) else turned[0]) == pytest.approx(value, rel=1e-8)


def test_log_density_and_gradient_survive_where_the_kernel_itself_underflows():
    rng = np.random.default_rng(5)
    means = rng.normal(size=(3, 500))
    prior = DeterminantalPrior(ProbabilityProductKernel("gaussian", 1.0, normalized=False))
    parameters = means, np.full(3, 400.0)
    assert not prior.kernel(parameters).any()
    units = np.exp(-((means[:, None] - means) ** 2).sum(axis=2) / 1600)
    expected = np.linalg.slogdet(units)[1] - 3 * 250 * np.log(4 * np.pi * 400.0)
    assert prior.log_density(parameters) == pytest.approx(expected, rel=1e-10)
    slope, _ = prior.gradient(parameters)
    direction = rng.normal(size=means.shape)
    assert np.sum(slope * direction) == pytest.approx(difference(prior.log_density, parameters, 0, direction), rel=1e-5)


def test_parts_that_coincide_have_density_zero_and_a_warned_gradient():
    prior = DeterminantalPrior(RBFKernel())
    points = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    assert prior.log_density(points) == -np.inf
    with pytest.warns(DiversityWarning, match="singular"):
        slope = prior.gradient(points)
    assert np.isfinite(slope).all()
    with pytest.warns(DiversityWarning, match="singular"):
        zeros = DeterminantalPrior(CosineKernel()).gradient(np.array([[0.0, 0.0], [1.0, 0.0]]))
    assert np.isfinite(zeros).all()


def test_parameters_at_their_bounds_have_finite_gradients():
    for kernel, parameters in (
        (ProbabilityProductKernel("bernoulli"), np.array([[0.0, 1.0], [1.0, 0.3]])),
        (ProbabilityProductKernel("poisson"), np.array([0.0, 3.0])),
        (ProbabilityProductKernel("poisson", 0.8), np.array([0.0, 3.0])),
        (ProbabilityProductKernel("categorical", 3.0), np.eye(3)),
    ):
        assert np.isfinite(DeterminantalPrior(kernel).gradient(parameters)).all()
        assert np.isfinite(kernel.pullback(parameters, np.ones((len(parameters),) * 2))).all()


def test_climbing_the_prior_moves_gaussian_components_apart():
    prior = DeterminantalPrior(ProbabilityProductKernel("gaussian"))
    means = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.6]])
    before = prior.log_density((means, np.ones(3)))
    for _ in range(50):
        means = means + 0.1 * prior.gradient((means, np.ones(3)))[0]
        after = prior.log_density((means, np.ones(3)))
        assert after > before
        before = after


def test_diagnosis_reports_the_nearest_pair_and_the_mean_bhattacharyya_distance():
    means = np.array([[0.0], [1.0], [5.0]])
    diagnosis = DeterminantalPrior(ProbabilityProductKernel("gaussian"), 3.0).diagnose((means, np.ones(3)))
    assert diagnosis.nearest_pair == (0, 1)
    assert diagnosis.nearest_overlap == pytest.approx(np.exp(-1 / 8))
    assert diagnosis.mean_distance == pytest.approx((1 + 16 + 25) / 8 / 3)
    matrix = np.exp(-((means - means.T) ** 2) / 8)
    assert diagnosis.log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1])
    scaled = DeterminantalPrior(LinearKernel()).diagnose(np.array([[3.0, 4.0], [-40.0, -30.0]]))
    assert scaled.nearest_overlap == pytest.approx(0.96)
    disjoint = DeterminantalPrior(ProbabilityProductKernel()).diagnose(np.eye(2))
    assert disjoint.mean_distance == pytest.approx(300 * np.log(10))
    assert disjoint.nearest_overlap == 0.0
    single = DeterminantalPrior(ProbabilityProductKernel()).diagnose([[0.2, 0.8]])
    assert single.nearest_pair is None
    assert np.isnan(single.mean_distance)
    assert single.log_determinant == 0.0


def test_any_callable_serves_as_a_kernel_and_gradients_need_a_pullback():
    prior = DeterminantalPrior(lambda points: np.exp(-np.abs(points[:, None] - points)))
    assert prior.log_density(np.array([0.0, 1.0])) == pytest.approx(np.log(1 - np.exp(-2)))
    assert prior.diagnose(np.array([0.0, 1.0])).mean_distance == pytest.approx(1.0)
    with pytest.raises(TypeError, match="kernel must have the method pullback for gradients"):
        prior.gradient(np.array([0.0, 1.0]))

    class Products:
        def __call__(self, points):
            return points @ points.T

        def pullback(self, points, sensitivity):
            return 2 * sensitivity @ points

    np.testing.assert_allclose(
        DeterminantalPrior(Products()).gradient(POINTS), DeterminantalPrior(LinearKernel()).gradient(POINTS)
    )


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, True, None, "much"])
def test_bad_weights_are_refused_in_one_sentence(weight):
    with pytest.raises(ValueError, match="weight must be a non-negative number, got"):
        DeterminantalPrior(RBFKernel(), weight)


def test_other_bad_input_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match="kernel must be a similarity kernel"):
        DeterminantalPrior("rbf")
    with pytest.raises(ValueError, match="at most as many rows as columns"):
        DeterminantalPrior(ProbabilityProductKernel()).log_density(np.full((3, 2), 0.5))
    with pytest.raises(ValueError, match="the kernel matrix must be finite"):
        DeterminantalPrior(lambda points: np.full((2, 2), np.nan)).log_density(POINTS)
    with pytest.raises(ValueError, match="the kernel matrix must be square"):
        DeterminantalPrior(lambda points: np.ones((2, 3))).log_density(POINTS)
    with pytest.raises(ValueError, match="non-negative diagonal, got -1"):
        DeterminantalPrior(lambda points: -np.eye(2)).log_density(POINTS)


def test_priors_travel():
    prior = DeterminantalPrior(ProbabilityProductKernel("gaussian", 0.7), 2)
    assert copy.deepcopy(prior) == prior == pickle.loads(pickle.dumps(prior))
    assert hash(prior) == hash(DeterminantalPrior(ProbabilityProductKernel("gaussian", 0.7), 2.0))
