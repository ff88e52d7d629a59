"""Priors of hyper-parameters, their charts, and posteriors of hyper-parameters against quadrature."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.priors.hyperpriors import Gamma, HalfNormal, LogNormal, LogUniform, Uniform
from pluri.processes.gaussian_process_regression import GaussianProcessRegressor
from pluri.processes.gp_inference.covariance import covariance_at
from pluri.processes.gp_inference.exact import MarginalLikelihood
from pluri.processes.gp_inference.learning import Charts, Posterior, sample_posterior
from pluri.processes.gp_inference.parameters import choose_priors, parameters_of

PRIORS = [
    Uniform(0.0, 10.0),
    Uniform(0.5, 2.0),
    LogUniform(math.exp(-10), math.exp(5)),
    LogNormal(0.3, 0.8),
    Gamma(2.5, 1.5),
    HalfNormal(1.7),
]
#: The model of the published experiment.
WIDE = {
    "length_scale": Uniform(0.0, 10.0),
    "signal_variance": LogUniform(math.exp(-10), math.exp(5)),
    "noise_variance": LogUniform(math.exp(-10), math.exp(5)),
}


def made_data(seed=0, n=20, length=0.3, noise=0.01):
    rng = np.random.default_rng(seed)
    X = np.sort(3.0 * rng.random(n))[:, None]
    covariance = np.exp(-0.5 * (X - X.T) ** 2 / length**2) + noise * np.eye(n)
    return X, np.linalg.cholesky(covariance) @ rng.standard_normal(n)


def quadrature(X, y, n_lengths=150, n_variances=120):
    """Posterior of (l, log signal, log noise) on a grid over the whole prior box, by eigenvalues of the kernel."""
    lengths = 10.0 * (np.arange(n_lengths) + 0.5) ** 2 / n_lengths**2  # finer near zero
    width = 10.0 * 2.0 * (np.arange(n_lengths) + 0.5) / n_lengths**2
    logs = -10.0 + 15.0 * (np.arange(n_variances) + 0.5) / n_variances
    signal, noise = np.exp(logs)[:, None, None], np.exp(logs)[None, :, None]
    table = np.empty((n_lengths, n_variances, n_variances))
    for index, length in enumerate(lengths):
        values, vectors = np.linalg.eigh(np.exp(-0.5 * (X - X.T) ** 2 / length**2))
        square = (vectors.T @ y) ** 2
        spectrum = signal * np.maximum(values, 0.0) + noise
        table[index] = -0.5 * (square / spectrum + np.log(spectrum)).sum(axis=2)
    weights = np.exp(table - table.max()) * width[:, None, None]
    weights /= weights.sum()
    return {
        "length_scale": weights.sum(axis=(1, 2)) @ lengths,
        "log_signal": weights.sum(axis=(0, 2)) @ logs,
        "log_noise": weights.sum(axis=(0, 1)) @ logs,
    }


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_a_prior_is_a_density_and_its_gradient_is_its_slope(prior):
    low, high = prior.support
    points = [1e-3, 0.1, 1.0] if low < 0.1 else None
    mass, _ = integrate.quad(lambda x: math.exp(prior.log_density(x)), low, min(high, 200.0), points=points, limit=500)
    assert mass == pytest.approx(1.0, abs=1e-6)
    assert prior.log_density(-1.0) == -math.inf
    for value in (0.7, 1.3):
        slope = (prior.log_density(value + 1e-6) - prior.log_density(value - 1e-6)) / 2e-6
        assert prior.gradient(value) == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize("s", [-4.0, -0.3, 0.0, 1.1, 3.0])
def test_a_chart_has_the_density_of_its_prior_and_right_derivatives(prior, s):
    charted = prior.chart(s)
    above, below = prior.chart(s + 1e-5), prior.chart(s - 1e-5)
    slope = (above.log_value - below.log_value) / 2e-5
    assert charted.slope == pytest.approx(slope, rel=1e-7)
    assert charted.gradient == pytest.approx((above.log_density - below.log_density) / 2e-5, abs=1e-7)
    value = math.exp(charted.log_value)
    assert charted.log_density == pytest.approx(prior.log_density(value) + math.log(value * slope), abs=1e-7)
    assert prior.coordinate(value) == pytest.approx(s, abs=1e-7)


def test_charts_do_not_underflow():
    charted = Uniform(0.0, 10.0).chart(-900.0)
    assert charted.log_value == pytest.approx(math.log(10.0) - 900.0)
    assert charted.slope == 1.0
    assert math.isfinite(LogUniform(1e-5, 1e5).chart(900.0).log_density)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(1.0, 1.0), r"Uniform\(low, high\) must have low < high, .* got 1.0 and 1.0"),
        (lambda: Uniform(-1.0, 1.0), "low >= 0"),
        (lambda: LogUniform(2.0, 2.0), "an interval of some width"),
        (lambda: LogUniform(0.0, 2.0), "low > 0"),
        (lambda: LogNormal(0.0, 0.0), "scale of LogNormal must be positive and finite, got 0.0"),
        (lambda: LogNormal(math.nan, 1.0), "mean of LogNormal must be finite"),
        (lambda: Gamma(0.0, 1.0), "shape of Gamma must be positive"),
        (lambda: HalfNormal(math.inf), "scale of HalfNormal must be positive and finite"),
    ],
)
def test_a_prior_without_width_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_names_find_their_priors():
    kernel = ConstantKernel() * RBF([1.0, 1.0]) + ConstantKernel() * RBF(1.0)
    parameters = parameters_of(kernel, (1e-5, 1e5))
    names = [parameter.name for parameter in parameters]
    assert names == ["k1__k1__constant_value", "k1__k2__length_scale", "k2__k1__constant_value",
                     "k2__k2__length_scale", "noise_variance"]  # fmt: skip
    given = {"k1__k2__length_scale": Gamma(2, 1), "length_scale": HalfNormal(3.0), "signal_variance": LogNormal()}
    priors = choose_priors(parameters, given, extent=2.0, spread=4.0)
    assert priors[:5] == (LogNormal(), Gamma(2, 1), Gamma(2, 1), LogNormal(), HalfNormal(3.0))
    assert priors[5] == LogUniform(4.0 * math.exp(-10), 4.0 * math.exp(5))


def test_gradient_of_the_posterior_equals_finite_differences():
    X, y = made_data()
    kernel = ConstantKernel() * RBF()
    charts = Charts((LogUniform(1e-3, 1e2), Uniform(0.0, 10.0), Gamma(1.2, 3.0)))
    posterior = Posterior(MarginalLikelihood(covariance_at(kernel, X), y, None, "auto"), charts)
    for seed in range(5):
        position = charts.position(np.log([1.0, 0.4, 0.02])) + 0.5 * np.random.default_rng(seed).normal(size=3)
        np.testing.assert_allclose(charts.position(charts.theta(position)), position, atol=1e-8)
        value, gradient = posterior(position)
        assert posterior.log_density(position) == pytest.approx(value, abs=1e-12)
        for index, step in enumerate(1e-5 * np.eye(3)):
            slope = (posterior.log_density(position + step) - posterior.log_density(position - step)) / 2e-5
            assert gradient[index] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_a_covariance_without_factor_has_zero_density():
    evidence = MarginalLikelihood(covariance_at(RBF(), np.zeros((4, 1))), np.arange(4.0), 0.0, 0.0)
    posterior = Posterior(evidence, Charts((Uniform(0.0, 10.0),)))
    value, gradient = posterior(np.zeros(1))
    assert value == -math.inf
    assert (gradient == 0).all()
    assert posterior(np.full(1, -1e4))[0] == -math.inf


class Nothing:
    """Evidence of no data."""

    def __call__(self, theta):
        return 0.0, np.zeros(len(theta))


@pytest.mark.parametrize("how", ["nuts", "slice"])
def test_without_data_the_prior_returns(how):
    # Kolmogorov-Smirnov at 1e-7 for each of three, on draws thinned to be nearly independent.
    parameters = parameters_of(ConstantKernel() * RBF(), (1e-5, 1e5))
    priors = choose_priors(parameters, WIDE, 1.0, 1.0)
    trace = sample_posterior(
        Nothing(), parameters, priors, how, np.random.default_rng(0), n_draws=1000, n_warmup=400, n_chains=2, warn=False
    )
    thinned = {name: trace[name][:, ::8].ravel() for name in trace}
    assert stats.kstest(thinned["length_scale"] / 10.0, "uniform").pvalue > 1e-7
    for name in ("signal_variance", "noise_variance"):
        assert stats.kstest((np.log(thinned[name]) + 10.0) / 15.0, "uniform").pvalue > 1e-7


@pytest.fixture(scope="module")
def exact_means():
    return quadrature(*made_data(seed=3))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("how", ["nuts", "slice"])
def test_sampled_hyperparameters_agree_with_quadrature(how, exact_means):
    # Within 6 Monte Carlo errors for each of three means, errors that are estimated themselves: false alarm below 1e-6
    # (the grid's own error is far less).
    X, y = made_data(seed=3)
    model = GaussianProcessRegressor(
        hyper_inference=how, priors=WIDE, n_draws=300, n_warmup=200, n_chains=3, random_state=1
    ).fit(X, y)
    draws = {
        "length_scale": model.trace_["length_scale"],
        "log_signal": np.log(model.trace_["signal_variance"]),
        "log_noise": np.log(model.trace_["noise_variance"]),
    }
    for name, values in draws.items():
        assert abs(values.mean() - exact_means[name]) < 6 * mcmc.mcse_mean(values), name
    assert "length_scale" in model.summary()


@pytest.fixture(scope="module")
def sampled():
    X, y = made_data(seed=3)
    return GaussianProcessRegressor(
        hyper_inference="nuts", priors=WIDE, n_draws=150, n_warmup=150, n_chains=2, n_predictive=20, random_state=0
    ).fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_prediction_averages_over_the_draws(sampled):
    new = np.array([[0.5], [1.7], [4.0]])
    chosen = np.unique(np.linspace(0, 299, 20).round().astype(int))
    means, covariances = [], []
    for index in chosen:
        kernel = ConstantKernel(sampled.trace_.flat("signal_variance")[index]) * RBF(
            sampled.trace_.flat("length_scale")[index]
        )
        noise = sampled.trace_.flat("noise_variance")[index]
        one = GaussianProcessRegressor(kernel, noise_variance=noise, hyper_inference="fixed")
        mean, covariance = one.fit(sampled.X_train_, sampled._residual).predict(new, return_cov=True)
        means.append(mean)
        covariances.append(covariance)
    mean, covariance = sampled.predict(new, return_cov=True)
    np.testing.assert_allclose(mean, np.mean(means, axis=0), atol=1e-8)
    np.testing.assert_allclose(
        covariance, np.mean(covariances, axis=0) + np.cov(np.transpose(means), ddof=0), atol=1e-8
    )
    np.testing.assert_allclose(sampled.predict(new, return_std=True)[1], np.sqrt(np.diagonal(covariance)), atol=1e-10)
    # 4000 draws of a heavy-tailed mixture: 6 standard errors.
    draws = sampled.sample_y(new, 4000, random_state=0)
    assert (np.abs(draws.mean(axis=1) - mean) < 6 * np.sqrt(np.diagonal(covariance) / 4000)).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_fitted_kernel_is_the_best_draw_and_a_second_fit_forgets_the_trace(sampled):
    best = np.argmax(sampled.trace_.stats["log_density"])
    assert sampled.noise_variance_ == pytest.approx(sampled.trace_.flat("noise_variance")[best])
    assert sampled.trace_["length_scale"].shape == (2, 150)
    again = GaussianProcessRegressor(**{**sampled.get_params(), "hyper_inference": "ml2"})
    again.__dict__.update({name: value for name, value in vars(sampled).items() if name.endswith("_")})
    again.fit(sampled.X_train_, sampled._residual)
    assert not hasattr(again, "trace_")


def test_the_mode_is_the_maximum_over_a_grid():
    X, y = made_data(seed=3)
    priors = {"length_scale": Gamma(3.0, 4.0), "noise_variance": HalfNormal(0.05)}
    kernel = ConstantKernel(1.0, "fixed") * RBF(1.0)
    model = GaussianProcessRegressor(kernel, hyper_inference="map", priors=priors, n_init=3, random_state=0).fit(X, y)
    lengths, noises = np.linspace(0.1, 0.8, 141), np.geomspace(1e-3, 0.1, 141)
    table = np.empty((141, 141))
    for row, length in zip(table, lengths):
        values, vectors = np.linalg.eigh(np.exp(-0.5 * (X - X.T) ** 2 / length**2))
        spectrum = np.maximum(values, 0.0) + noises[:, None]
        row[:] = -0.5 * ((vectors.T @ y) ** 2 / spectrum + np.log(spectrum)).sum(axis=1)
    table += stats.gamma.logpdf(lengths, 3.0, scale=0.25)[:, None] + stats.halfnorm.logpdf(noises, scale=0.05)
    best = np.unravel_index(table.argmax(), table.shape)
    assert math.exp(model.theta_[0]) == pytest.approx(lengths[best[0]], abs=0.005)
    assert model.noise_variance_ == pytest.approx(noises[best[1]], rel=0.035)


def test_uniform_priors_make_the_mode_the_maximum_of_the_likelihood():
    X, y = made_data(seed=3)
    mode = GaussianProcessRegressor(hyper_inference="map", priors=WIDE).fit(X, y)
    maximum = GaussianProcessRegressor(hyper_inference="ml2").fit(X, y)
    np.testing.assert_allclose(mode.theta_, maximum.theta_, atol=2e-3)


def test_interrupting_the_optimiser_keeps_the_best_so_far(monkeypatch):
    X, y = made_data(seed=3)
    calls = []
    original = MarginalLikelihood.__call__

    def counted(self, theta):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return original(self, theta)

    monkeypatch.setattr(MarginalLikelihood, "__call__", counted)
    start = GaussianProcessRegressor(hyper_inference="fixed").fit(X, y).log_marginal_likelihood_value_
    with on_interrupt("keep"), pytest.warns(UserWarning, match="best hyper-parameters so far are kept"):
        model = GaussianProcessRegressor().fit(X, y)
    assert model.log_marginal_likelihood_value_ > start
    assert np.isfinite(model.predict(X)).all()
