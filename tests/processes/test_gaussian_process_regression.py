"""Gaussian-process regression against published numbers, scikit-learn, closed forms and finite differences."""

import math
import warnings

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor as Reference
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.utils.estimator_checks import check_estimator

from pluri.processes.gaussian_process_regression import GaussianProcessRegressor
from pluri.processes.gp_inference.covariance import Asked, as_matrix, covariance_at

X3 = np.array([[-1.0], [0.0], [1.0]])
Y3 = np.array([0.5, -0.3, 0.8])
SE = ConstantKernel(1.0) * RBF(1.0)

KERNELS = [
    ConstantKernel(2.0) * RBF(0.7),
    RBF([0.5, 2.0]) * ConstantKernel(0.3),
    ConstantKernel(2.0) * Matern(0.7, nu=0.5),
    ConstantKernel(2.0) * Matern([0.7, 1.4], nu=0.5),
    ConstantKernel(2.0) * Matern([0.7, 1.4], nu=1.5),
    Matern(0.9, nu=1.5) + ConstantKernel(0.4, constant_value_bounds="fixed"),
    ConstantKernel(2.0) * Matern([0.7, 1.4], nu=2.5),
    Matern(0.9, nu=2.5),
    Matern(0.9, nu=math.inf),
    RBF(1.1, length_scale_bounds="fixed") * ConstantKernel(2.0) + WhiteKernel(0.2),
    ConstantKernel(1.5) * RBF(1.0) + ConstantKernel(0.5) * Matern(0.3, nu=0.5) * DotProduct(1.0),
    ExpSineSquared(1.0, 2.0) * RBF(3.0),
    RationalQuadratic(1.0, 0.5),
    ConstantKernel(0.5),
    WhiteKernel(0.3) + DotProduct(0.5),
    Matern(1.0, nu=0.8),
]


def some_data(n=12, n_features=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


def test_three_points_with_noise_have_the_known_answers():
    model = GaussianProcessRegressor(SE, noise_variance="learn", hyper_inference="fixed").fit(X3, Y3)
    value, gradient = model.log_marginal_likelihood(eval_gradient=True)
    assert value == pytest.approx(-3.7403289, abs=1e-7)
    assert model.log_marginal_likelihood_value_ == pytest.approx(-3.7403289, abs=1e-7)
    assert model.parameter_names_ == ["signal_variance", "length_scale", "noise_variance"]
    np.testing.assert_allclose(gradient, [-0.4054002, -1.1560221, 0.1434170], atol=1e-7)
    mean, std = model.predict([[0.5], [3.0]], return_std=True)
    np.testing.assert_allclose(mean, [0.18282428, 0.19562349], atol=1e-8)
    np.testing.assert_allclose(std**2, [0.08239524, 0.97699630], atol=1e-8)


def test_three_points_without_noise_have_the_known_answers():
    model = GaussianProcessRegressor(SE, noise_variance=0.0, hyper_inference="fixed").fit(X3, Y3)
    mean, std = model.predict([[0.5], [3.0]], return_std=True)
    np.testing.assert_allclose(mean, [0.11649493, 0.27450901], atol=1e-8)
    np.testing.assert_allclose(std**2, [0.01789237, 0.97065359], atol=1e-8)


@pytest.mark.parametrize(
    ("nu", "value"), [(0.5, 0.36787944), (1.5, 0.48335772), (2.5, 0.52399411), (50.0, 0.60198), (math.inf, 0.60653066)]
)
def test_matern_at_one_length_scale(nu, value):
    part, _ = covariance_at(Matern(1.0, nu=nu), np.array([[0.0], [1.0]])).evaluate(np.zeros(1))
    assert part[0, 1] == pytest.approx(value, abs=5e-6 if nu == 50.0 else 1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_prepared_covariance_equals_scikit_learn(kernel):
    X, _ = some_data()
    X[3] = X[7]
    prepared = covariance_at(kernel, X)
    assert prepared.n_parameters == kernel.n_dims
    for shift in (0.0, 0.3, -0.8):
        theta = kernel.theta + shift
        part, slopes = prepared.evaluate(theta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value, gradient = kernel.clone_with_theta(theta)(X, eval_gradient=True)
        np.testing.assert_allclose(as_matrix(part, len(X)), value, atol=1e-13)
        assert len(slopes) == gradient.shape[2]
        for index, slope in enumerate(slopes):
            # scikit-learn differentiates nu = 0.8 by finite differences, and so do we where it is asked.
            np.testing.assert_allclose(as_matrix(slope, len(X)), gradient[:, :, index], atol=1e-12)


def test_a_subclass_of_a_kernel_is_asked_itself():
    class Odd(RBF):
        pass

    assert isinstance(covariance_at(Odd(1.0), X3), Asked)


@pytest.mark.parametrize("kernel", KERNELS[:-1], ids=str)
@pytest.mark.parametrize("noise", ["learn", 0.1])
def test_gradient_equals_finite_differences(kernel, noise):
    # The periodic kernel is positive definite on a line only.
    X, y = some_data(n_features=1 if "Sine" in str(kernel) else 2)
    model = GaussianProcessRegressor(kernel, hyper_inference="fixed", noise_variance=noise).fit(X, y)
    _, gradient = model.log_marginal_likelihood(eval_gradient=True)
    for index, step in enumerate(1e-5 * np.eye(len(model.theta_))):
        above, below = (model.log_marginal_likelihood(model.theta_ + sign * step) for sign in (1, -1))
        assert gradient[index] == pytest.approx((above - below) / 2e-5, rel=1e-6, abs=1e-7)


def test_without_noise_the_mean_interpolates_and_far_away_the_prior_returns():
    X = np.array([[-4.0], [-2.5], [0.0], [1.0], [4.0]])
    y = np.sin(X[:, 0])
    model = GaussianProcessRegressor(2.0 * RBF(1.0), noise_variance=0.0, hyper_inference="fixed").fit(X, y)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, y, atol=1e-7)
    assert (std < 1e-4).all()
    mean, std = model.predict([[200.0]], return_std=True)
    assert (mean[0], std[0]) == pytest.approx((0.0, math.sqrt(2.0)), abs=1e-12)


@pytest.mark.parametrize(("length", "noise", "expected"), [(1.0, 0.2, 5.8070), (10.0, 0.8, 1.4676)])
def test_effective_degrees_of_freedom_of_seven_points(length, noise, expected):
    X = np.linspace(-6, 6, 7)[:, None]
    model = GaussianProcessRegressor(RBF(length), noise_variance=noise, hyper_inference="fixed").fit(X, np.zeros(7))
    assert model.effective_degrees_of_freedom_ == pytest.approx(expected, abs=5e-5)


def test_linear_kernel_is_bayesian_linear_regression():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.standard_normal(6)
    variance, noise, new = np.array([2.0, 0.5]), 0.3, np.array([1.0, 2.0])
    precision = X.T @ X / noise + np.diag(1 / variance)
    mean_w = np.linalg.solve(precision, X.T @ y / noise)
    root = np.sqrt(variance)
    kernel = DotProduct(1e-8, sigma_0_bounds="fixed")
    model = GaussianProcessRegressor(kernel, noise_variance=noise, hyper_inference="fixed").fit(X * root, y)
    mean, std = model.predict([new * root], return_std=True)
    assert mean[0] == pytest.approx(new @ mean_w, abs=1e-7)
    assert std[0] ** 2 == pytest.approx(new @ np.linalg.solve(precision, new), abs=1e-7)
    assert (mean[0], std[0] ** 2) == pytest.approx((-2.19779, 0.37351), abs=1e-5)


def test_agrees_with_scikit_learn_and_includes_noise_only_if_asked():
    X, y = some_data(30)
    kernel = ConstantKernel(1.3) * RBF([0.8, 1.7])
    ours = GaussianProcessRegressor(kernel, noise_variance=0.2, hyper_inference="fixed").fit(X, y)
    theirs = Reference(kernel, alpha=0.2, optimizer=None).fit(X, y)
    new = np.random.default_rng(3).normal(size=(9, 2))
    mean, covariance = ours.predict(new, return_cov=True)
    expected_mean, expected_covariance = theirs.predict(new, return_cov=True)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-8)
    np.testing.assert_allclose(covariance, expected_covariance, atol=1e-8)
    noisy = ours.predict(new, return_std=True, include_noise=True)[1] ** 2
    np.testing.assert_allclose(noisy, np.diagonal(covariance) + 0.2, atol=1e-12)
    np.testing.assert_allclose(ours.predict(new, return_cov=True, include_noise=True)[1], covariance + 0.2 * np.eye(9))


def test_type_two_maximum_equals_that_of_scikit_learn():
    X, y = some_data(40)
    ours = GaussianProcessRegressor(n_init=3, random_state=0).fit(X, y)
    theirs = Reference(ConstantKernel() * RBF() + WhiteKernel(0.1), n_restarts_optimizer=2, random_state=0).fit(X, y)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-5)
    np.testing.assert_allclose(ours.theta_, theirs.kernel_.theta, atol=5e-3)
    assert np.abs(ours.log_marginal_likelihood(eval_gradient=True)[1]).max() < 1e-3


def test_order_of_rows_does_not_matter():
    X, y = some_data(20)
    order = np.random.default_rng(1).permutation(20)
    first = GaussianProcessRegressor(hyper_inference="fixed").fit(X, y)
    second = GaussianProcessRegressor(hyper_inference="fixed").fit(X[order], y[order])
    new = X[:5] + 0.1
    np.testing.assert_allclose(first.predict(new), second.predict(new), atol=1e-12)


def test_posterior_covariance_lies_between_zero_and_the_prior():
    X, y = some_data(25)
    new = np.random.default_rng(5).normal(size=(15, 2))
    model = GaussianProcessRegressor(hyper_inference="fixed").fit(X, y)
    covariance = model.predict(new, return_cov=True)[1]
    assert np.linalg.eigvalsh(covariance).min() > -1e-10
    assert np.linalg.eigvalsh(model.kernel_(new) - covariance).min() > -1e-10


def test_equal_inputs_have_independent_noise():
    X = np.array([[0.0], [0.0], [0.0], [1.0]])
    model = GaussianProcessRegressor(RBF(1.0), noise_variance=0.5, hyper_inference="fixed").fit(X, [1.0, 2.0, 3.0, 0.0])
    # Three observations of one value are one observation of their mean, with a third of the noise.
    k = math.exp(-0.5)
    together = np.linalg.solve([[1 + 0.5 / 3, k], [k, 1.5]], [2.0, 0.0])
    assert model.predict([[0.0]])[0] == pytest.approx(together @ [1.0, k], abs=1e-9)


def test_equal_inputs_without_noise_get_jitter_and_contradictions_are_not_hidden():
    X = np.array([[0.0], [0.0], [1.0]])
    model = GaussianProcessRegressor(RBF(1.0), noise_variance=0.0, hyper_inference="fixed").fit(X, [1.0, 1.0, 0.0])
    assert model.predict([[0.0]])[0] == pytest.approx(1.0, abs=1e-4)
    with pytest.raises(np.linalg.LinAlgError, match="duplicated inputs without noise"):
        GaussianProcessRegressor(RBF(1.0), noise_variance=0.0, hyper_inference="fixed", jitter=0.0).fit(
            X, [1.0, 1.0, 0.0]
        )


def test_a_mean_function_is_taken_off_and_put_back():
    X, y = some_data(20)

    def line(inputs):
        return 2.0 + 3.0 * inputs[:, 0]

    plain = GaussianProcessRegressor(hyper_inference="fixed").fit(X, y)
    lifted = GaussianProcessRegressor(hyper_inference="fixed", mean=line).fit(X, y + line(X))
    np.testing.assert_allclose(lifted.predict(X + 1), plain.predict(X + 1) + line(X + 1), atol=1e-10)
    np.testing.assert_allclose(lifted.sample_y(X, 3) - line(X)[:, None], plain.sample_y(X, 3), atol=1e-10)


def test_normalised_observations_change_the_units_only():
    X, y = some_data(20)
    far = GaussianProcessRegressor(hyper_inference="fixed", normalize_y=True).fit(X, 1000.0 + 50.0 * y)
    near = GaussianProcessRegressor(hyper_inference="fixed").fit(X, (y - y.mean()) / y.std())
    mean, std = near.predict(X + 0.5, return_std=True, include_noise=True)
    far_mean, far_std = far.predict(X + 0.5, return_std=True, include_noise=True)
    scale = 50.0 * y.std()
    np.testing.assert_allclose(far_mean, 1000.0 + 50.0 * y.mean() + scale * mean, rtol=1e-10)
    np.testing.assert_allclose(far_std, scale * std, rtol=1e-10)


def test_sampled_functions_have_the_predicted_moments():
    # 20000 draws; each of 3 means and 6 covariances is within 5 standard errors: false alarm below 1e-5.
    X, y = some_data(10, 1)
    new = np.array([[-1.0], [0.2], [1.5]])
    model = GaussianProcessRegressor(hyper_inference="fixed").fit(X, y)
    mean, covariance = model.predict(new, return_cov=True)
    draws = model.sample_y(new, 20000, random_state=1)
    error = np.sqrt(np.diagonal(covariance) / 20000)
    assert (np.abs(draws.mean(axis=1) - mean) < 5 * error).all()
    scale = np.sqrt(np.outer(np.diagonal(covariance), np.diagonal(covariance)) + covariance**2)
    assert (np.abs(np.cov(draws) - covariance) < 5 * scale / math.sqrt(20000)).all()
    noisy = model.sample_y(new, 20000, random_state=1, include_noise=True)
    assert noisy.var() > draws.var()
    prior = GaussianProcessRegressor(2.0 * RBF(1.0)).sample_prior(new, 20000, random_state=2)
    expected = (2.0 * RBF(1.0))(new)
    scale = np.sqrt(4.0 + expected**2)
    assert (np.abs(np.cov(prior) - expected) < 5 * scale / math.sqrt(20000)).all()


def test_scikit_learn_contract():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(GaussianProcessRegressor())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise_variance": -1.0}, "noise_variance must be a number of at least 0 or 'learn', got -1.0"),
        (
            {"hyper_inference": "mcmc"},
            "hyper_inference must be one of 'fixed', 'ml2', 'map', 'nuts', 'slice', got 'mcmc'",
        ),
        ({"kernel": "rbf"}, "kernel must be a kernel of sklearn.gaussian_process.kernels"),
        ({"jitter": -1e-3}, "jitter must be 'auto' or a number of at least 0"),
        ({"n_init": 0}, "n_init must be an integer of at least 1, got 0"),
        ({"mean": "linear"}, "mean must be 'zero' or a function of X"),
        ({"mean": lambda X: np.zeros(3)}, "must be 12 finite numbers"),
        ({"max_exact_n": 11}, "at most max_exact_n=11 rows for exact inference, got 12"),
        (
            {"kernel": RBF(1.0, "fixed"), "noise_variance": 0.1, "hyper_inference": "nuts"},
            "no hyper-parameter to learn",
        ),
        (
            {"hyper_inference": "map", "priors": {"lengthscale": None}},
            "which is no hyper-parameter to learn; there are",
        ),
        ({"hyper_inference": "map", "priors": {"length_scale": (0, 10)}}, "must be a prior such as"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(settings, message):
    X, y = some_data()
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        GaussianProcessRegressor(**settings).fit(X, y)


def test_bad_questions_are_refused_in_a_sentence():
    X, y = some_data()
    model = GaussianProcessRegressor(hyper_inference="fixed").fit(X, y)
    with pytest.raises(ValueError, match="cannot both be True"):
        model.predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="theta must have shape"):
        model.log_marginal_likelihood([0.0])
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
        model.sample_y(X, 0)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 1, np.nan, X), y)
    noise_free = GaussianProcessRegressor(RBF(0.1), noise_variance=0.0, hyper_inference="fixed", jitter=0.0).fit(X, y)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite at theta"):
        noise_free.log_marginal_likelihood([40.0])


def test_constant_and_single_observations_can_be_fitted():
    assert GaussianProcessRegressor(normalize_y=True).fit([[0.0], [1.0]], [3.0, 3.0]).predict([[0.5]])[0] == 3.0
    assert np.isfinite(GaussianProcessRegressor().fit([[0.0]], [1.0]).predict([[0.0]])).all()


def test_the_summary_names_what_was_learned():
    X, y = some_data()
    text = GaussianProcessRegressor(hyper_inference="fixed", noise_variance=0.1).fit(X, y).summary()
    assert "12 rows" in text
    assert "length_scale" in text
    assert "0.1 (fixed)" in text
