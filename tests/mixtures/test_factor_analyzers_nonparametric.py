"""Nonparametric mixture of factor analysers: ranks that are found, samplers that are exact, a bound that is one."""

import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from pluri.engine import ArraySource, Batch
from pluri.factors import factor_analysis
from pluri.inference import expectation_maximization, mcmc
from pluri.mixtures.factor_analyzers import (
    FactorAnalyzerMixture,
    FactorMixtureGibbs,
    NonparametricFactorAnalyzerMixture,
)
from pluri.mixtures.factor_analyzers.nonparametric_gibbs import FactorMixturePriors, log_joint_rows
from pluri.mixtures.factor_analyzers.nonparametric_mean_field import FactorMixtureMeanField
from pluri.priors import Gamma
from pluri.processes.stick_draws import draw_sticks
from pluri.testing import SamplerProblem, simulation_based_calibration

PRIORS = FactorMixturePriors(
    concentration=Gamma(2.0, 2.0), **{name: Gamma(3.0, 2.0) for name in ("noise", "factor", "loading", "mean")}
)


def planes(rng, n=150, D=20, noise=0.1):
    """Planes of ranks 1, 2 and 3."""
    parts = [rng.normal(size=(n, r)) @ rng.normal(size=(r, D)) + rng.normal(size=D) for r in (1, 2, 3)]
    return np.vstack(parts) + noise * rng.normal(size=(3 * n, D)), np.repeat([1, 2, 3], n)


@pytest.mark.parametrize("inference", ["vb", "gibbs"])
def test_number_of_planes_and_their_dimensions_are_found(inference):
    X, labels = planes(np.random.default_rng(0))
    model = NonparametricFactorAnalyzerMixture(
        8, 6, inference=inference, n_draws=30, n_warmup=20, random_state=0
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws may drift
        model.fit(X)
    assert model.n_components_ == 3
    assert sorted(model.ranks_.tolist()) == [1, 2, 3]
    assert adjusted_rand_score(labels, model.labels_) == 1.0
    assert [model.ranks_[model.labels_[labels == r][0]] for r in (1, 2, 3)] == [1, 2, 3]
    assert model.noise_precision_**-0.5 == pytest.approx(0.1, rel=0.05)
    if inference == "gibbs":
        assert (model.trace_["n_components"] == 3).mean() > 0.9
        assert (np.sort(model.trace_["ranks"][0, :, :3]) == [1, 2, 3]).all(axis=1).mean() > 0.8
    else:
        assert np.diff(model.elbo_).min() >= 0
    assert f"{model.n_components_} of at most 8 components" in model.summary()


def test_chains_start_apart():
    X, _ = planes(np.random.default_rng(0), n=60, D=5)
    model = FactorMixtureMeanField(8, 3)
    one, other = (model.scattered(X, np.random.default_rng(seed)) for seed in (0, 1))
    labels = [model.local(q, X)[0].argmax(axis=1) for q in (one, other)]
    # Clusters about other rows, drawn from 180: the same by chance in fewer than one case in a thousand.
    assert adjusted_rand_score(*labels) < 0.999
    begun = [model.initialize(ArraySource(X), np.random.default_rng(seed)) for seed in (0, 1)]
    assert not np.allclose(np.sort(begun[1].means[:, 0]), np.sort(other.means[:, 0]))


@pytest.mark.parametrize(("gap", "numbers", "message"), [
    (0.0, [3, 3], None),
    (60.0, [3, 4], "R-hat of n_components is inf.*3 .*, 4 "),
    (0.0, [3, 4], "R-hat of n_components is inf.*3 .*, 4 "),
    (60.0, [3, 3], "R-hat of log_density is .*3 .*, 3 "),
])  # fmt: skip
def test_chains_that_end_apart_are_no_agreement(gap, numbers, message):
    """R-hat of two chains of 1000 independent draws exceeds 1.1 with probability far below 1e-9."""
    density = np.random.default_rng(0).normal(size=(2, 1000)) - [[0.0], [gap]]
    trace = mcmc.Trace({"n_components": np.repeat(np.array(numbers)[:, None], 1000, axis=1)}, {"log_density": density})
    model = NonparametricFactorAnalyzerMixture(inference="gibbs")
    if message is None:
        assert model._chains_agree(trace)
    else:
        with pytest.warns(ConvergenceWarning, match=message):
            assert not model._chains_agree(trace)


def factor_mixture_problem():
    """Entry for the table of samplers."""
    kernel = FactorMixtureGibbs(np.zeros((5, 3)), 2, 2, PRIORS)
    return SamplerProblem(
        "FactorMixtureGibbs", prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep, n_steps=3
    )


# A second opinion: `test_every_sampler` tries the same kernel (FactorMixtureGibbs).
@pytest.mark.thorough
@pytest.mark.slow
def test_the_sampler_is_calibrated():
    """Two independent runs that both fail at 1e-3 are a false alarm in a million."""
    kernel = FactorMixtureGibbs(np.zeros((6, 2)), 2, 2, PRIORS)

    def draws(rng, y, n_draws):
        position, found = kernel.sample_prior(rng), []
        for i in range(40 + n_draws):
            position = kernel.sweep(rng, position, y)
            if i >= 40:
                found.append(position)
        return found

    def quantities(theta, y):
        return {
            "components": len(set(theta["labels"].tolist())),
            "rank": theta["support"].sum(),
            "noise": theta["noise_precision"],
            "concentration": theta["concentration"],
            "log likelihood": logsumexp(log_joint_rows(theta, y), axis=1).sum(),
        }

    def calibration(random_state):
        return simulation_based_calibration(
            kernel.sample_prior, kernel.sample_data, draws, quantities=quantities, n_simulations=80, n_draws=19,
            thin=2, alpha=1e-3, random_state=random_state,
        )  # fmt: skip

    result = calibration(0)
    result = result if result.passed else calibration(1)
    assert result.passed, result.summary()


def test_sticks_have_their_conditional_means_even_when_they_round_to_one():
    """4000 draws; limit of 6 standard errors."""
    rng = np.random.default_rng(1)
    weights = np.exp([draw_sticks(rng, np.array([5, 3, 0]), 2.0)[0] for _ in range(4000)])
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
    first, second = 6 / 11, (5 / 11) * (4 / 6)
    np.testing.assert_allclose(weights.mean(axis=0)[:2], [first, second], atol=6 * 0.15 / np.sqrt(4000))
    assert np.isfinite(draw_sticks(rng, np.array([10**6, 0, 0]), 1e-6)[0]).all()


# The bound ------------------------------------------------------------------------------------------------------------


def bound(model, q, X):
    return model.expect(q, Batch(X)).log_likelihood + model.log_prior(q)


def fitted_beliefs(max_iter=400):
    rng = np.random.default_rng(2)
    X = np.vstack([np.outer(rng.normal(size=30), [1.0, 1, 0]) - 1, rng.normal(size=(30, 3)) * 0.3 + 1])
    X = (X - X.mean(axis=0)) / X.std()
    model = FactorMixtureMeanField(3, 2, PRIORS)
    result = expectation_maximization(model, ArraySource(X), rng=rng, max_iter=max_iter, tol=1e-12)
    return model, result, X


def test_the_bound_never_falls():
    model, result, X = fitted_beliefs()
    objective = result.history.run(0).objective
    assert np.diff(objective).min() > -1e-9
    assert bound(model, result.params, X) >= objective[-1] - 1e-9


def test_the_bound_is_stationary_in_every_parameter_of_q():
    """The updates and the bound were derived separately: where updates stop, small changes do not raise the bound."""
    model, result, X = fitted_beliefs(3000)
    q = result.params
    best = bound(model, q, X)
    rng = np.random.default_rng(3)
    for field in fields(q):
        value = getattr(q, field.name)
        positive = field.name not in ("means", "loadings")
        for _ in range(6):
            noise = rng.normal(size=value.shape)
            moved = value * np.exp(0.02 * noise) if positive else value + 0.02 * noise
            if field.name == "support":
                moved = np.clip(moved, 0, 1)
            slope = bound(model, replace(q, **{field.name: moved}), X) - best
            assert slope < 1e-4, field.name


def test_the_bound_is_below_the_evidence():
    """Evidence of two rows by 5000 prior draws, whose standard error is allowed for six times."""
    X = np.array([[0.3, -0.2], [1.0, 0.4]])
    rng = np.random.default_rng(4)
    kernel = FactorMixtureGibbs(X, 2, 1, PRIORS)
    logs = np.array(
        [logsumexp(log_joint_rows(kernel.sample_prior(rng), X), axis=1).sum() for _ in range(5000)]
    )  # fmt: skip
    evidence = logsumexp(logs) - np.log(len(logs))
    error = np.exp(logs - evidence).std() / np.sqrt(len(logs))
    model = FactorMixtureMeanField(2, 1, PRIORS)
    result = expectation_maximization(model, ArraySource(X), rng=rng, max_iter=300, tol=1e-8)
    assert result.objective < evidence + 6 * error
    assert result.objective > evidence - 3.0


# Queries --------------------------------------------------------------------------------------------------------------


def test_one_component_is_probabilistic_pca():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 6)) + 0.3 * rng.normal(size=(400, 6)) + 2
    model = NonparametricFactorAnalyzerMixture(1, 4, random_state=0).fit(X)
    reference = factor_analysis.BayesianFactorAnalysis(2, noise_type="isotropic").fit(X)
    assert model.ranks_.tolist() == [2]
    np.testing.assert_allclose(model.covariances()[0], reference.get_covariance(), atol=0.03 * X.var(axis=0).max())
    assert reference.score(X) - model.score(X) < 0.01


def test_the_density_integrates_to_one():
    rng = np.random.default_rng(6)
    X = np.vstack([np.outer(rng.normal(size=60), [1.0, 0.5]), np.full((60, 2), 3.0)]) + 0.3 * rng.normal(size=(120, 2))
    model = NonparametricFactorAnalyzerMixture(4, 2, random_state=0).fit(X)
    axis = np.linspace(-12, 14, 521)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    assert np.exp(model.score_samples(grid)).sum() * (axis[1] - axis[0]) ** 2 == pytest.approx(1.0, abs=1e-3)


def test_queries_agree_with_a_mixture_of_the_same_parameters():
    X, _ = planes(np.random.default_rng(7), 60, 8)
    model = NonparametricFactorAnalyzerMixture(5, 4, random_state=0).fit(X)
    other = FactorAnalyzerMixture(model.n_components_, model.loadings_.shape[2], max_iter=0, random_state=0).fit(X)
    other.weights_, other.means_, other.loadings_ = model.weights_, model.means_, model.loadings_
    other.noise_variance_ = np.full(model.means_.shape, 1 / model.noise_precision_)
    for name in ("score_samples", "predict_proba", "transform", "reconstruct"):
        np.testing.assert_allclose(getattr(model, name)(X), getattr(other, name)(X), atol=1e-8)
    F = np.random.default_rng(0).normal(size=(4, 8))
    np.testing.assert_allclose(model.recover(X @ F.T, F), other.recover(X @ F.T, F))
    drawn, labels = model.sample(500)
    np.testing.assert_array_equal(drawn, model.sample(500)[0])
    assert (model.predict(drawn) == labels).mean() > 0.9


def test_half_the_measurements_recover_rows_near_low_dimensional_planes():
    X, _ = planes(np.random.default_rng(8), noise=0.02)
    model = NonparametricFactorAnalyzerMixture(6, 5, random_state=0).fit(X)
    F = np.random.default_rng(1).normal(size=(8, 20)) / np.sqrt(20)
    found = model.recover(X @ F.T, F, 1e6)
    assert np.linalg.norm(found - X) / np.linalg.norm(X) < 0.05
    least_squares = X @ F.T @ np.linalg.pinv(F).T
    assert np.linalg.norm(least_squares - X) / np.linalg.norm(X) > 0.5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "settings", [{"max_iter": 10}, {"inference": "gibbs", "n_draws": 4, "n_warmup": 2, "n_chains": 2}]
)
def test_it_is_a_scikit_learn_estimator(settings):
    check_estimator(NonparametricFactorAnalyzerMixture(4, 2, **settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_components": 0}, "max_components must be"),
        ({"max_factors": 1.5}, "max_factors must be"),
        ({"inference": "em"}, "inference must be one of"),
        ({"noise_prior": (1.0, 1.0)}, "noise_prior must be"),
        ({"tol": -1}, "tol must be"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        NonparametricFactorAnalyzerMixture(**settings).fit(np.random.default_rng(0).normal(size=(10, 3)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("inference", ["vb", "gibbs"])
def test_odd_data_are_survived(inference):
    rng = np.random.default_rng(9)
    constant = np.column_stack([rng.normal(size=(20, 2)), np.ones(20)])
    for X in (
        constant,
        np.ones((6, 2)),
        rng.normal(size=(1, 3)),
        np.repeat(np.eye(3), 4, axis=0),
        rng.normal(size=(9, 1)),
    ):
        model = NonparametricFactorAnalyzerMixture(
            4, 2, inference=inference, n_draws=4, n_warmup=0, max_iter=20, random_state=0
        ).fit(X)
        assert np.isfinite(model.score_samples(X)).all()
        assert model.loadings_.shape[1] == X.shape[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("inference", ["vb", "gibbs"])
def test_a_concentration_that_is_a_number_stays_it(inference):
    X, _ = planes(np.random.default_rng(3), n=40, D=4)
    model = NonparametricFactorAnalyzerMixture(
        4, 2, inference=inference, concentration=0.7, n_draws=4, n_warmup=2, max_iter=20, random_state=0
    ).fit(X)
    assert model.concentration_ == pytest.approx(0.7, rel=1e-12)
    if inference == "gibbs":
        np.testing.assert_array_equal(model.trace_["concentration"], 0.7)
    wide = NonparametricFactorAnalyzerMixture(4, 2, concentration=(1.0, 1.0))
    with pytest.raises(ValueError, match="concentration must be a positive number or 'learn' or a prior"):
        wide.fit(X)
