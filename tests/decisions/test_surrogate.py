"""The model of an expensive function: against scikit-learn, closed forms and differences."""

import math

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

from pluri.decisions import Categorical, Integer, Real
from pluri.decisions.bayesian_optimization.space import Space
from pluri.decisions.bayesian_optimization.surrogate import (
    SurrogateSettings,
    evidence_of,
    learn_surrogate,
    parameters_and_priors,
    standardisation,
)
from pluri.processes.gp_inference.covariance import radial
from pluri.processes.gp_inference.exact import ExactPosterior

NUMBERS = Space.of({"a": Real(0, 1), "b": Real(0, 1), "c": Real(0, 1)})
MIXED = Space.of({"a": Real(0, 1), "fixed": Integer(3, 3), "kind": Categorical(list("xyz")), "n": Integer(0, 10)})


def data(space, n=12, seed=0):
    rng = np.random.default_rng(seed)
    rows = space.sample(rng, n)
    return rows, np.sin(5 * rows[:, 0]) + 0.5 * rows[:, -1] + 10.0


@pytest.mark.parametrize(("kernel", "nu"), [("matern52", 2.5), ("rbf", math.inf)])
def test_predictions_equal_scikit_learn(kernel, nu):
    rows, values = data(NUMBERS)
    model = learn_surrogate(NUMBERS, rows, values, SurrogateSettings(kernel), np.random.default_rng(0))
    theta = model.thetas[0]
    lengths = np.exp(theta[1:-1])
    stationary = RBF(lengths) if nu == math.inf else Matern(lengths, nu=nu)
    peer = GaussianProcessRegressor(
        ConstantKernel(math.exp(theta[0])) * stationary, alpha=math.exp(theta[-1]), optimizer=None
    ).fit(rows, (values - model.offset) / model.scale)
    new = NUMBERS.sample(np.random.default_rng(1), 40)
    mean, std = peer.predict(new, return_std=True)
    ours_mean, ours_std = model.moments(new)
    np.testing.assert_allclose(ours_mean, model.offset + model.scale * mean, rtol=1e-6)
    np.testing.assert_allclose(ours_std, model.scale * std, rtol=1e-3, atol=1e-5)


def test_the_evidence_equals_scikit_learn_and_its_gradient_differences():
    rows, values = data(NUMBERS)
    offset, scale = standardisation(values)
    residual = (values - offset) / scale
    evidence = evidence_of(NUMBERS, NUMBERS.features(rows), residual, 2.5, None)
    theta = np.array([0.3, -0.5, 0.2, 0.9, -4.0])
    kernel = ConstantKernel(math.exp(0.3)) * Matern(np.exp(theta[1:4]), nu=2.5) + WhiteKernel(math.exp(-4.0))
    peer = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(rows, residual)
    value, gradient = evidence(theta)
    np.testing.assert_allclose(value, peer.log_marginal_likelihood_value_, rtol=1e-6)
    steps = 1e-5 * np.eye(5)
    differences = [(evidence.value(theta + step) - evidence.value(theta - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, differences, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, math.inf])
def test_kernels_are_one_at_zero_positive_definite_and_have_the_derivative_they_say(nu):
    assert radial(np.zeros(1), nu)[0] == 1.0
    rows = np.random.default_rng(0).random((30, 2))
    squares = ((rows[:, None] - rows) ** 2).sum(axis=2) / 0.09
    assert np.linalg.eigvalsh(radial(squares, nu)[0]).min() > -1e-12
    total = np.linspace(0.05, 6.0, 20)
    slope = (radial(total + 1e-6, nu)[0] - radial(total - 1e-6, nu)[0]) / 2e-6
    np.testing.assert_allclose(radial(total, nu)[1], -2 * slope, rtol=1e-6)


@pytest.mark.parametrize("hyper_inference", ["map", "slice"])
@pytest.mark.parametrize("space", [NUMBERS, MIXED], ids=["numbers", "mixed"])
def test_slopes_equal_differences(space, hyper_inference):
    rows, values = data(space)
    settings = SurrogateSettings(hyper_inference=hyper_inference, n_draws=3, n_warmup=5, thin=1)
    model = learn_surrogate(space, rows, values, settings, np.random.default_rng(0))
    dimensions = np.flatnonzero(space.continuous)
    row = space.sample(np.random.default_rng(5), 1)[0]
    mean, std, mean_slope, std_slope = model.slopes(row, dimensions)
    means, stds = model.predict(row[None])
    np.testing.assert_allclose(mean, means[:, 0], rtol=1e-10)
    np.testing.assert_allclose(std, stds[:, 0], rtol=1e-8)
    for place, dimension in enumerate(dimensions):
        step = np.zeros(space.n_dimensions)
        step[dimension] = 1e-5
        up, down = model.predict((row + step)[None]), model.predict((row - step)[None])
        np.testing.assert_allclose(mean_slope[:, place], (up[0] - down[0])[:, 0] / 2e-5, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(std_slope[:, place], (up[1] - down[1])[:, 0] / 2e-5, rtol=1e-3, atol=1e-5)


def test_a_further_row_of_the_factor_equals_factoring_anew():
    rng = np.random.default_rng(0)
    points = rng.random((15, 2))
    covariance = radial(((points[:, None] - points) ** 2).sum(axis=2) / 0.1, 2.5)[0] + 0.01 * np.eye(15)
    values = rng.normal(size=15)
    posterior = ExactPosterior.of(covariance[:1, :1], values[:1], 0.0, 0.0)
    for n in range(1, 15):
        posterior = posterior.extended(covariance[:n, n], covariance[n, n], values[: n + 1])
    whole = ExactPosterior.of(covariance, values, 0.0, 0.0)
    np.testing.assert_allclose(posterior.factor, whole.factor, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(posterior.weights, whole.weights, rtol=1e-8)
    noiseless = ExactPosterior.of(np.ones((1, 1)), np.ones(1), 0.0, 0.0)
    with pytest.raises(np.linalg.LinAlgError, match="duplicated inputs"):
        noiseless.extended(np.ones(1), 1.0, np.ones(2))


def test_an_observation_more_equals_conditioning_on_all():
    rows, values = data(MIXED, 14)
    model = learn_surrogate(MIXED, rows[:10], values[:10], SurrogateSettings(), np.random.default_rng(0))
    grown = model
    for row, value in zip(rows[10:], values[10:]):
        grown = grown.extended(row, value)
    peer = GaussianProcessRegressor(
        ConstantKernel(math.exp(model.thetas[0, 0]))
        * Matern(np.exp(model.thetas[0, 1:-1])[MIXED.feature_dimension], nu=2.5),
        alpha=math.exp(model.thetas[0, -1]),
        optimizer=None,
    ).fit(MIXED.features(rows), (values - model.offset) / model.scale)
    new = MIXED.sample(np.random.default_rng(1), 20)
    expected = model.offset + model.scale * peer.predict(MIXED.features(new))
    np.testing.assert_allclose(grown.moments(new)[0], expected, rtol=1e-5)


def test_without_noise_the_model_interpolates_and_nothing_is_to_be_gained_there():
    from pluri.decisions import expected_improvement

    rows, values = data(NUMBERS)
    settings = SurrogateSettings(noise_variance=0.0)
    model = learn_surrogate(NUMBERS, rows, values, settings, np.random.default_rng(0))
    mean, std = model.moments(rows)
    np.testing.assert_allclose(mean, values, atol=1e-5)
    assert (std < 1e-3 * model.scale).all()
    assert (expected_improvement(mean, std, values.min()) < 1e-3 * model.scale).all()


def test_predictions_do_not_depend_on_the_units_of_the_values():
    rows, values = data(NUMBERS)
    new = NUMBERS.sample(np.random.default_rng(1), 10)
    first = learn_surrogate(NUMBERS, rows, values, SurrogateSettings(), np.random.default_rng(0)).moments(new)
    scaled = learn_surrogate(NUMBERS, rows, 1e4 * values - 7, SurrogateSettings(), np.random.default_rng(0)).moments(
        new
    )
    np.testing.assert_allclose(scaled[0], 1e4 * first[0] - 7, rtol=1e-4)
    np.testing.assert_allclose(scaled[1], 1e4 * first[1], rtol=1e-2)


def test_constant_values_and_a_single_one_give_a_model():
    rows, _ = data(NUMBERS, 4)
    for count in (1, 4):
        model = learn_surrogate(
            NUMBERS, rows[:count], np.full(count, 3.0), SurrogateSettings(), np.random.default_rng(0)
        )
        mean, std = model.moments(rows)
        assert np.isfinite(mean).all()
        assert (std > 0).all()


@pytest.mark.parametrize("how", ["slice", "nuts"])
def test_draws_of_the_hyper_parameters_follow_their_posterior(how):
    # With a single observation, which standardisation makes zero, the likelihood only asks for a small signal
    # variance; the length-scale keeps its prior: log N(log 0.3, 1).
    space = Space.of({"a": Real(0, 1)})
    settings = SurrogateSettings(hyper_inference=how, n_draws=150, n_warmup=60, thin=2)
    model = learn_surrogate(space, np.array([[0.5]]), np.array([2.0]), settings, np.random.default_rng(0))
    logs = model.thetas[:, 1]
    # 150 draws, two steps apart: at least 40 are worth an independent one; five standard errors.
    assert abs(logs.mean() - math.log(0.3)) < 5 / math.sqrt(40)
    assert 0.5 < logs.std() < 1.6


def test_a_function_drawn_from_the_posterior_has_its_moments():
    rows, values = data(NUMBERS, 6)
    model = learn_surrogate(NUMBERS, rows, values, SurrogateSettings(), np.random.default_rng(0))
    new = NUMBERS.sample(np.random.default_rng(1), 5)
    rng = np.random.default_rng(2)
    drawn = np.array([model.draw(new, rng) for _ in range(2000)])
    mean, std = model.moments(new)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * std.max() / math.sqrt(2000))
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=5 / math.sqrt(2 * 2000))


def test_priors_have_an_entry_for_each_hyper_parameter():
    for n_lengths in (0, 3):
        for learns in (True, False):
            parameters, priors = parameters_and_priors(n_lengths, learns)
            assert sum(one.size for one in parameters) == len(priors) == 1 + n_lengths + learns
