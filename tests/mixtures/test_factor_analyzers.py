"""Mixtures of factor analysers by EM: dense Gaussians, closed forms, the single analyser, and laws of EM."""

import warnings

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import multivariate_normal
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import check_estimator

from pluri.engine import ArraySource
from pluri.mixtures.factor_analyzers import FactorAnalyzerMixture


def two_planes(rng, n=200, D=6, noise=0.2, apart=3.0):
    parts = [rng.normal(size=(n // 2, 2)) @ rng.normal(size=(2, D)) + shift for shift in (-apart, apart)]
    X = np.vstack(parts) + noise * rng.normal(size=(n, D))
    order = rng.permutation(n)
    return X[order], np.repeat([0, 1], n // 2)[order]


def dense_log_joint(model, X):
    covariances = model.covariances()
    return np.column_stack(
        [np.log(w) + multivariate_normal(m, C).logpdf(X) for w, m, C in zip(model.weights_, model.means_, covariances)]
    )


@pytest.mark.parametrize("noise", ["diag", "isotropic", "shared"])
def test_queries_are_those_of_the_dense_mixture(noise):
    rng = np.random.default_rng(0)
    X, labels = two_planes(rng, apart=10.0)  # 49 between planes whose widths are about two
    model = FactorAnalyzerMixture(2, 2, noise_type=noise, random_state=0).fit(X)
    joint = dense_log_joint(model, X)
    np.testing.assert_allclose(model.score_samples(X), logsumexp(joint, axis=1), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), softmax(joint, axis=1), atol=1e-9)
    agreement = (model.predict(X) == labels).mean()
    assert max(agreement, 1 - agreement) == 1.0
    if noise == "isotropic":
        assert np.ptp(model.noise_variance_, axis=1).max() == 0
    if noise == "shared":
        assert np.ptp(model.noise_variance_, axis=0).max() == 0


@pytest.mark.parametrize("noise", ["diag", "isotropic", "shared"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_the_objective_never_falls(noise, missing):
    rng = np.random.default_rng(1)
    X, _ = two_planes(rng, 120, 5)
    X[rng.random(X.shape) < missing] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = FactorAnalyzerMixture(3, 2, noise_type=noise, init_params="random", max_iter=60, tol=0, random_state=0)
        model.fit(X)
    assert np.diff(model.lower_bounds_).min() > -1e-10


def test_one_component_is_factor_analysis():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 7)) + rng.normal(size=(300, 7)) * np.linspace(0.3, 1, 7) + 9
    model = FactorAnalyzerMixture(1, 2, tol=1e-10, max_iter=5000, random_state=0).fit(X)
    assert model.score(X) == pytest.approx(FactorAnalysis(2, tol=1e-12, max_iter=20000).fit(X).score(X), abs=1e-6)


def test_from_a_random_start_equal_noise_reaches_the_closed_form():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 0.7 * rng.normal(size=(200, 6))
    values, vectors = np.linalg.eigh(np.cov(X.T, bias=True))
    noise, top = values[:4].mean(), vectors[:, 4:]
    expected = top @ np.diag(values[4:] - noise) @ top.T + noise * np.eye(6)
    model = FactorAnalyzerMixture(
        1, 2, noise_type="isotropic", init_params="random", tol=1e-13, max_iter=5000, random_state=0
    ).fit(X)
    np.testing.assert_allclose(model.covariances()[0], expected, atol=1e-4)
    np.testing.assert_allclose(model.noise_variance_, noise, rtol=1e-5)


def test_missing_values_are_integrated_out_and_filled_in_by_their_expectation():
    rng = np.random.default_rng(4)
    X, _ = two_planes(rng)
    model = FactorAnalyzerMixture(2, 2, random_state=0).fit(X)
    row, o = X[:1].copy(), np.array([True, False, True, True, False, True])
    row[0, ~o] = np.nan
    joint, filled = np.empty(2), np.empty((2, 6))
    for j, C in enumerate(model.covariances()):
        block, e = C[np.ix_(o, o)], X[0, o] - model.means_[j, o]
        joint[j] = np.log(model.weights_[j]) + multivariate_normal(model.means_[j, o], block).logpdf(X[0, o])
        low_rank = C - np.diag(model.noise_variance_[j])
        filled[j] = model.means_[j] + low_rank[:, o] @ np.linalg.solve(block, e)
    assert model.score_samples(row)[0] == pytest.approx(logsumexp(joint), rel=1e-10)
    np.testing.assert_allclose(model.reconstruct(row)[0], softmax(joint) @ filled, rtol=1e-8)


def test_fitting_with_missing_values_finds_nearly_the_same_planes():
    rng = np.random.default_rng(5)
    X, _ = two_planes(rng, 600)
    holes = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    whole = FactorAnalyzerMixture(2, 2, random_state=0).fit(X)
    some = FactorAnalyzerMixture(2, 2, random_state=0).fit(holes)
    assert whole.score(X) - some.score(X) < 0.1
    guess = np.where(np.isnan(holes), some.reconstruct(holes), X)
    assert np.abs(guess - X)[np.isnan(holes)].mean() < 0.4  # the noise alone is 0.16, the spread of the data 3


def test_a_weight_of_two_is_a_row_twice():
    rng = np.random.default_rng(6)
    X, _ = two_planes(rng, 100)
    weight = rng.integers(1, 4, size=100).astype(float)
    options = {"tol": 1e-9, "max_iter": 3000, "acceleration": "squarem", "random_state": 0}
    one = FactorAnalyzerMixture(2, 2, **options).fit(X, sample_weight=weight)
    two = FactorAnalyzerMixture(2, 2, **options).fit(np.repeat(X, weight.astype(int), axis=0))
    assert one.lower_bound_ == pytest.approx(two.lower_bound_, abs=1e-6)
    np.testing.assert_allclose(np.sort(one.weights_), np.sort(two.weights_), atol=1e-5)


def test_batches_and_threads_give_the_same_answer():
    rng = np.random.default_rng(7)
    X, _ = two_planes(rng, 300)
    whole = FactorAnalyzerMixture(2, 2, max_iter=20, tol=1e-3, random_state=0).fit(X)
    parts = FactorAnalyzerMixture(2, 2, max_iter=20, tol=1e-3, random_state=0, n_jobs=2).fit(
        ArraySource(X, batch_size=64)
    )
    np.testing.assert_allclose(parts.covariances(), whole.covariances(), atol=1e-7)


def test_acceleration_reaches_the_same_maximum():
    rng = np.random.default_rng(8)
    X, _ = two_planes(rng)
    plain = FactorAnalyzerMixture(2, 2, tol=1e-9, max_iter=3000, random_state=0).fit(X)
    fast = FactorAnalyzerMixture(2, 2, tol=1e-9, max_iter=3000, acceleration="squarem", random_state=0).fit(X)
    assert fast.score(X) == pytest.approx(plain.score(X), abs=1e-4)


def test_learning_from_batches_one_after_another_comes_close():
    rng = np.random.default_rng(9)
    X, _ = two_planes(rng, 1200)
    model = FactorAnalyzerMixture(2, 2, random_state=0)
    for _ in range(5):
        for rows in np.split(X, 6):
            model.partial_fit(rows)
    whole = FactorAnalyzerMixture(2, 2, random_state=0).fit(X)
    assert whole.score(X) - model.score(X) < 0.05
    model.partial_fit(np.where(rng.random((200, 6)) < 0.1, np.nan, X[:200]))
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("shared", [True, False])
def test_recovered_rows_have_the_moments_of_dense_conditioning(shared):
    rng = np.random.default_rng(4)
    X = np.vstack([rng.normal(size=(40, 2)) @ rng.normal(size=(2, 6)) + shift for shift in (0.0, 2.0)])
    model = FactorAnalyzerMixture(2, 2, random_state=0).fit(X + 0.2 * rng.normal(size=X.shape))
    F, noise = rng.normal(size=(3, 6) if shared else (5, 3, 6)), 0.1
    V = rng.normal(size=(5, 3)) + 1.0
    mean, std = model.recover(V, F, 1 / noise, return_std=True)
    np.testing.assert_array_equal(model.recover(V, F, 1 / noise), mean)
    for i in range(5):
        own = F if shared else F[i]
        means, covariances, log_weights = [], [], []
        for j, C in enumerate(model.covariances()):
            # Rows and measurements together are one Gaussian: (y, v).
            joint = np.block([[C, C @ own.T], [own @ C, own @ C @ own.T + noise * np.eye(3)]])
            precision = np.linalg.inv(joint)
            gap = V[i] - own @ model.means_[j]
            covariances.append(np.linalg.inv(precision[:6, :6]))
            means.append(model.means_[j] - covariances[-1] @ precision[:6, 6:] @ gap)
            density = multivariate_normal(np.zeros(3), joint[6:, 6:]).logpdf(gap)
            log_weights.append(np.log(model.weights_[j]) + density)
        share = np.exp(log_weights - np.logaddexp.reduce(log_weights))
        expected = share @ means
        second = sum(w * (C + np.outer(m, m)) for w, m, C in zip(share, means, covariances, strict=True))
        np.testing.assert_allclose(mean[i], expected, rtol=1e-7)
        np.testing.assert_allclose(std[i] ** 2, np.diag(second) - expected**2, rtol=1e-6)


def test_recovery_from_measurements_is_the_conditional_mean_of_the_mixture():
    rng = np.random.default_rng(10)
    X, _ = two_planes(rng)
    model = FactorAnalyzerMixture(2, 2, random_state=0).fit(X)
    F = rng.normal(size=(3, 6))
    V = X[:5] @ F.T
    log_weight, means = np.empty((5, 2)), np.empty((2, 5, 6))
    for j, C in enumerate(model.covariances()):
        spread = F @ C @ F.T + np.eye(3) / 50.0
        log_weight[:, j] = np.log(model.weights_[j]) + multivariate_normal(F @ model.means_[j], spread).logpdf(V)
        means[j] = model.means_[j] + (C @ F.T @ np.linalg.solve(spread, (V - F @ model.means_[j]).T)).T
    expected = np.einsum("nj,jnd->nd", softmax(log_weight, axis=1), means)
    np.testing.assert_allclose(model.recover(V, F, 50.0), expected, rtol=1e-9)
    np.testing.assert_allclose(model.recover(X[:5], np.eye(6), 1e10), X[:5], atol=1e-5)
    with pytest.raises(ValueError, match="projection must have 6 columns"):
        model.recover(V, F[:, :4])


def test_planes_of_two_dimensions_are_preferred_by_the_bayesian_information_criterion():
    rng = np.random.default_rng(11)
    X, _ = two_planes(rng, 400, 8)
    found = {q: FactorAnalyzerMixture(2, q, noise_type="isotropic", random_state=0).fit(X).bic(X) for q in (1, 2, 3)}
    assert min(found, key=found.get) == 2


def test_factors_are_posterior_means_under_the_most_probable_component():
    rng = np.random.default_rng(12)
    X, _ = two_planes(rng)
    model = FactorAnalyzerMixture(2, 2, random_state=0).fit(X)
    j = model.predict(X)
    C = model.covariances()
    expected = [model.loadings_[j[i]].T @ np.linalg.solve(C[j[i]], X[i] - model.means_[j[i]]) for i in range(len(X))]
    np.testing.assert_allclose(model.transform(X), expected, atol=1e-9)
    assert model.get_feature_names_out().tolist() == ["factoranalyzermixture0", "factoranalyzermixture1"]


def test_samples_have_the_moments_of_the_model_and_repeat_themselves():
    rng = np.random.default_rng(13)
    X, _ = two_planes(rng)
    model = FactorAnalyzerMixture(2, 2, random_state=0).fit(X)
    drawn, labels = model.sample(20000)
    np.testing.assert_array_equal(drawn, model.sample(20000)[0])
    for j in range(2):
        np.testing.assert_allclose(np.cov(drawn[labels == j].T), model.covariances()[j], rtol=0.1, atol=0.1)
    assert "2 components of 2 factors" in model.summary()


@pytest.mark.filterwarnings("ignore")
def test_it_is_a_scikit_learn_estimator():
    check_estimator(FactorAnalyzerMixture())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_factors": 4}, "n_factors must be at most"),
        ({"n_factors": -1}, "n_factors must be an integer"),
        ({"noise_type": "full"}, "noise_type must be one of"),
        ({"init_params": "best"}, "init_params must be one of"),
        ({"noise_floor": -1}, "noise_floor must be"),
        ({"n_components": 11}, "n_components"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        FactorAnalyzerMixture(**settings).fit(np.random.default_rng(0).normal(size=(10, 3)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("start", ["kmeans", "k-means++", "random_from_data", "random"])
def test_odd_data_are_survived(start):
    rng = np.random.default_rng(14)
    duplicates = np.repeat(rng.normal(size=(4, 3)), 5, axis=0)
    constant = np.column_stack([rng.normal(size=(20, 2)), np.ones(20)])
    unseen = np.where(np.arange(20)[:, None] % 4 == [0, 1, 2], np.nan, rng.normal(size=(20, 3)))
    for X in (duplicates, constant, np.ones((20, 3)), unseen, 1e6 + rng.normal(size=(20, 3))):
        for noise in ("diag", "isotropic", "shared"):
            model = FactorAnalyzerMixture(2, 1, noise_type=noise, init_params=start, max_iter=30, random_state=0).fit(X)
            assert np.isfinite(model.score_samples(X)).all()
