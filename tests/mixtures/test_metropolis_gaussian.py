"""Gaussian mixtures as a target, and the posterior of their parameters, against closed forms and Gibbs sampling."""

import copy
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.inference import mcmc
from pluri.inference.mcmc.accept_reject.random_walk import RandomWalk
from pluri.inference.mcmc.gibbs import Gibbs
from pluri.mixtures.gaussian.density import GaussianMixtureDensity
from pluri.mixtures.gaussian.metropolis import MetropolisGaussianMixture
from pluri.mixtures.gaussian.posterior import MixturePosterior, MixturePrior, relabelled

TWO = GaussianMixtureDensity([0.4, 0.6], [[4, 0], [-4, 0]], [[[2, 1], [1, 1]], np.eye(2)])
LINE = GaussianMixtureDensity([0.3, 0.7], [[3.0], [-3.0]], np.ones((2, 1, 1)))


def test_log_density_and_gradient():
    rng = np.random.default_rng(0)
    X = rng.normal(0, 4, size=(20, 2))
    exact = np.log(sum(
        weight * stats.multivariate_normal(mean, covariance).pdf(X)
        for weight, mean, covariance in zip(TWO.weights, TWO.means, TWO.covariances)
    ))  # fmt: skip
    np.testing.assert_allclose(TWO(X), exact, rtol=1e-10)
    for x in X:
        value, gradient = TWO.value_and_grad(x)
        assert value == pytest.approx(TWO(x))
        numeric = [(TWO(x + step) - TWO(x - step)) / 2e-6 for step in 1e-6 * np.eye(2)]
        np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-7)


def test_exact_draws_have_the_stated_moments():
    X, labels = TWO.sample(40_000, random_state=0)
    np.testing.assert_allclose(TWO.mean, [-0.8, 0.0])
    np.testing.assert_allclose(TWO.covariance, [[16.76, 0.4], [0.4, 1.0]])
    np.testing.assert_allclose(X.mean(axis=0), TWO.mean, atol=0.1)
    np.testing.assert_allclose(np.cov(X.T), TWO.covariance, atol=0.25)
    assert labels.mean() == pytest.approx(0.6, abs=0.02)


def test_a_random_walk_with_variance_ten_visits_both_modes_of_the_line():
    # Mean -1.2 and variance 8.56, three chains of 5000 after a tenth of them; 5.5 standard errors.
    kernel = RandomWalk(LINE, step_size=math.sqrt(10), adapt=False)
    x = mcmc.sample(kernel, np.zeros(1), n_draws=5000, n_warmup=500, n_chains=3, random_state=0, warn=False)["x"]
    x = x[..., 0]
    assert x.mean() == pytest.approx(-1.2, abs=5.5 * mcmc.mcse_mean(x))
    assert x.var() == pytest.approx(8.56, abs=5.5 * 2 * x.std() * mcmc.mcse_sd(x))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5, 0.6], np.zeros((2, 1)), np.ones((2, 1, 1))), "sum to 1"),
        (([0.5, 0.5], np.zeros((3, 1)), np.ones((2, 1, 1))), "means must"),
        (([0.5, 0.5], np.zeros((2, 1)), np.ones((2, 2, 2))), "covariances must have shape"),
        (([0.5, 0.5], np.zeros((2, 1)), np.zeros((2, 1, 1))), "positive definite"),
    ],
)
def test_what_is_no_mixture_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GaussianMixtureDensity(*arguments)


PRIOR = MixturePrior(1.5, np.array([0.3, -0.2]), 0.5, 5.0, np.array([[2.0, 0.3], [0.3, 1.0]]))


@pytest.mark.parametrize("n_components", [1, 3])
def test_the_posterior_is_likelihood_times_prior(n_components):
    # Differences between two parameter values, against densities of SciPy.
    rng = np.random.default_rng(1)
    X = rng.normal(0, 2, size=(15, 2))
    posterior = MixturePosterior(X, PRIOR, n_components)
    space = posterior.space

    def by_hand(values):
        weights = values.get("weights", np.ones(1))
        covariances = values["factors"] @ np.swapaxes(values["factors"], 1, 2)
        total = GaussianMixtureDensity(weights, values["means"], covariances)(X).sum()
        if n_components > 1:
            total += stats.dirichlet(np.full(n_components, PRIOR.concentration)).logpdf(weights)
        for mean, covariance, factor in zip(values["means"], covariances, values["factors"]):
            total += stats.invwishart(PRIOR.degrees_of_freedom, PRIOR.scale).logpdf(covariance)
            total += stats.multivariate_normal(PRIOR.mean, covariance / PRIOR.mean_precision).logpdf(mean)
            total += 2 * np.log(factor[0, 0]) + np.log(factor[1, 1])  # |d L L' / d L|
        return total

    points = [space.constrain(rng.normal(0, 0.5, size=space.size)) for _ in range(4)]
    differences = [posterior(values)[0] - by_hand(values) for values in points]
    np.testing.assert_allclose(differences, differences[0], rtol=1e-9)
    target = space.value_and_grad(posterior)
    free = rng.normal(0, 0.5, size=space.size)
    numeric = [(target(free + step)[0] - target(free - step)[0]) / 2e-6 for step in 1e-6 * np.eye(space.size)]
    np.testing.assert_allclose(target(free)[1], numeric, rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_component_has_the_conjugate_posterior():
    # Six estimated standard errors of each posterior mean.
    rng = np.random.default_rng(2)
    X = rng.normal([1.0, -1.0], [1.0, 2.0], size=(25, 2))
    model = MetropolisGaussianMixture(
        1, mean_prior=[0.0, 0.0], mean_precision_prior=2.0, degrees_of_freedom_prior=6.0,
        covariance_prior=np.eye(2), n_draws=200, n_warmup=200, random_state=0,
    ).fit(X)  # fmt: skip
    center, scatter = X.mean(axis=0), (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    n, k0 = len(X), 2.0
    mean = n * center / (n + k0)
    covariance = (np.eye(2) + scatter + k0 * n / (k0 + n) * np.outer(center, center)) / (6.0 + n - 3)
    for name, exact in (("means", mean[None]), ("covariances", covariance[None])):
        draws = model.trace_[name]
        for index in np.ndindex(exact.shape):
            values = draws[(slice(None), slice(None), *index)]
            assert values.mean() == pytest.approx(exact[index], abs=6 * mcmc.mcse_mean(values)), (name, index)
    np.testing.assert_array_equal(model.weights_, [1.0])


def gibbs_for(x, prior):
    """Gibbs sampling of the same posterior with labels, two components on the line."""
    k0, n0, s0, m0 = prior.mean_precision, prior.degrees_of_freedom, prior.scale[0, 0], prior.mean[0]

    def label(rng, position):
        log = np.log(position["weights"]) - 0.5 * np.log(position["variances"])
        log = log - 0.5 * (x[:, None] - position["means"]) ** 2 / position["variances"]
        share = 1 / (1 + np.exp(log[:, 0] - log[:, 1]))
        return (rng.random(len(x)) < share).astype(int)

    def weights(rng, position):
        return rng.dirichlet(prior.concentration + np.bincount(position["labels"], minlength=2))

    def components(rng, position):
        means, variances = np.empty(2), np.empty(2)
        for k in range(2):
            mine = x[position["labels"] == k]
            n, center = len(mine), mine.mean() if len(mine) else 0.0
            scale = s0 + ((mine - center) ** 2).sum() + k0 * n / (k0 + n) * (center - m0) ** 2
            variances[k] = scale / rng.chisquare(n0 + n)
            means[k] = rng.normal((n * center + k0 * m0) / (n + k0), math.sqrt(variances[k] / (n + k0)))
        return {"means": means, "variances": variances}

    return Gibbs({"labels": label, "weights": weights, ("means", "variances"): components})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# The random walk is a second opinion: NUTS shows that the posterior is right, `test_every_sampler` that RandomWalk is.
@pytest.mark.parametrize("inference", ["nuts", pytest.param("metropolis", marks=pytest.mark.thorough)])
def test_the_posterior_agrees_with_gibbs_sampling(inference):
    # Six joint standard errors for weights, means and variances of ordered components.
    rng = np.random.default_rng(3)
    x = np.concatenate([rng.normal(-2, 0.7, size=20), rng.normal(2, 1.0, size=30)])
    n_draws, n_warmup = (300, 300) if inference == "nuts" else (3000, 1000)
    model = MetropolisGaussianMixture(
        2, inference=inference, weight_concentration=2.0, mean_precision_prior=0.1, n_draws=n_draws, n_warmup=n_warmup,
        random_state=0,
    )  # fmt: skip
    model.fit(x[:, None])
    start = {"labels": (x > 0).astype(int), "weights": [0.5, 0.5], "means": [-2.0, 2.0], "variances": [1.0, 1.0]}
    gibbs = mcmc.sample(gibbs_for(x, model.prior_), start, n_draws=1500, n_warmup=100, n_chains=2, random_state=1,
                        record=lambda p: {name: p[name] for name in ("weights", "means", "variances")})  # fmt: skip
    pairs = [(model.trace_["weights"], gibbs["weights"]), (model.trace_["means"][..., 0], gibbs["means"]),
             (model.trace_["covariances"][..., 0, 0], gibbs["variances"])]  # fmt: skip
    for ours, theirs in pairs:
        for k in range(2):
            one, other = np.log(np.abs(ours[..., k])), np.log(np.abs(theirs[..., k]))  # logarithms: lighter tails
            error = math.hypot(mcmc.mcse_mean(one), mcmc.mcse_mean(other))
            assert one.mean() == pytest.approx(other.mean(), abs=6 * error)


def test_draws_with_swapped_names_are_put_in_order():
    rng = np.random.default_rng(4)
    true = rng.normal(0, 5, size=(4, 3))
    shuffles = np.array([rng.permutation(4) for _ in range(200)])
    features = true[shuffles] + 0.3 * rng.standard_normal((200, 4, 3))
    order = relabelled(features, start=0)
    back = np.take_along_axis(shuffles, order, axis=1)
    assert (back == back[0]).all()


@pytest.fixture(scope="module")
def fitted():
    X, labels = TWO.sample(120, random_state=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MetropolisGaussianMixture(2, n_draws=300, n_warmup=200, n_chains=2, random_state=0).fit(X)
    return model, X, labels


def test_a_clear_mixture_is_recovered(fitted):
    model, X, labels = fitted
    # About six standard errors of 48 rows; a row in two thousand lies on the other side.
    np.testing.assert_allclose(model.means_, [[-4, 0], [4, 0]], atol=1.2)
    np.testing.assert_allclose(model.weights_, [0.6, 0.4], atol=0.27)
    assert (model.predict(X) == 1 - labels).mean() > 0.93
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.trace_.summary()["r_hat"].max() < 1.25
    assert "means[1, 1]" in model.summary()


def test_scores_are_the_posterior_predictive_density(fitted):
    model, X, _ = fitted
    densities = [
        GaussianMixtureDensity(*parts)
        for parts in zip(*(model.trace_.flat(name) for name in ("weights", "means", "covariances")))
    ]
    exact = np.log(np.mean([np.exp(density(X[:5])) for density in densities], axis=0))
    of_all = copy.copy(model).set_params(n_predictive=len(densities))
    np.testing.assert_allclose(of_all.score_samples(X[:5]), exact, rtol=1e-8)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean())
    # It integrates to one.
    grid = np.stack(np.meshgrid(np.linspace(-12, 12, 121), np.linspace(-7, 7, 71)), axis=-1).reshape(-1, 2)
    assert np.exp(model.score_samples(grid)).sum() * 0.2 * 0.2 == pytest.approx(1.0, abs=0.01)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_units_do_not_matter(fitted):
    _, X, _ = fitted
    # A power of two: exact in floating point, so that the chains make the same moves.
    options = {"n_draws": 15, "n_warmup": 30, "n_chains": 1, "random_state": 0}
    plain = MetropolisGaussianMixture(2, **options).fit(X)
    large = MetropolisGaussianMixture(2, **options).fit(1024 * X)
    np.testing.assert_allclose(large.means_, 1024 * plain.means_, rtol=1e-6)
    np.testing.assert_allclose(large.predict_proba(1024 * X), plain.predict_proba(X), rtol=1e-6)


def test_a_fitted_model_survives_pickling(fitted):
    model, X, _ = fitted
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_names_by_order(fitted):
    _, X, _ = fitted
    model = MetropolisGaussianMixture(2, relabel="order", n_draws=60, n_warmup=100, n_chains=2, random_state=1)
    with pytest.warns(ConvergenceWarning, match="effective|R-hat"):
        model.fit(X)
    assert (np.diff(model.trace_["means"][..., 0], axis=-1) > 0).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be"),
        ({"n_components": 30}, r"number of samples \(10\)"),
        ({"inference": "magic"}, "inference must be one of"),
        ({"mean_precision_prior": 0.0}, "mean_precision_prior must be a positive number"),
        ({"mean_prior": [0.0]}, "mean_prior must have 2 entries"),
        ({"degrees_of_freedom_prior": 1.0}, "degrees_of_freedom_prior must be above"),
        ({"covariance_prior": np.zeros((2, 2))}, "covariance_prior must be symmetric and positive definite"),
    ],
)
def test_settings_that_cannot_work_are_refused_in_one_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        MetropolisGaussianMixture(**options).fit(np.random.default_rng(0).normal(size=(10, 2)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_column_that_never_varies_is_no_problem():
    X = np.column_stack([np.random.default_rng(6).normal(size=30), np.ones(30)])
    model = MetropolisGaussianMixture(1, n_draws=100, n_warmup=200, n_chains=2, random_state=0)
    model.fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert model.means_[0, 1] == pytest.approx(1.0, abs=0.01)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        MetropolisGaussianMixture(n_draws=6, n_warmup=8, n_chains=1, inference=inference)
        for inference in ("nuts", "metropolis")
    ]
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
