"""Bayesian linear regression against Gaussian processes, ridge regression and direct densities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.processes.bayesian_linear import BayesianLinearRegression
from pluri.processes.weight_posterior import (
    PriorRoot,
    RegressionData,
    maximize_evidence,
    scaled_prior,
    weight_posterior,
)

LEARN = {"prior_variance": "learn", "noise_variance": "learn"}


def data(seed=0, n=12, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + 0.7 + 0.3 * rng.normal(size=n)


def covariance(seed, d):
    factor = np.random.default_rng(seed).normal(size=(d, d))
    return factor @ factor.T + 0.2 * np.eye(d)


def gaussian_process(X, y, new, prior, noise):
    """Mean and covariance of the latent function at new points, kernel x^T prior x'."""
    K = X @ prior @ X.T + noise * np.eye(len(X))
    cross = new @ prior @ X.T
    return cross @ np.linalg.solve(K, y), new @ prior @ new.T - cross @ np.linalg.solve(K, cross.T)


def test_known_answer_in_both_views():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.standard_normal(6)
    new = np.array([[1.0, 2.0]])
    for prior in ([2.0, 0.5], np.diag([2.0, 0.5])):
        model = BayesianLinearRegression(prior, 0.3, fit_intercept=False).fit(X, y)
        mean, std = model.predict(new, return_std=True, noise=False)
        assert np.isclose(mean[0], -2.19779, atol=5e-6)
        assert np.isclose(std[0] ** 2, 0.37351, atol=5e-6)
        assert np.isclose(model.predict(new, return_std=True)[1][0] ** 2, 0.37351 + 0.3, atol=5e-6)


@given(st.integers(0, 10_000), st.integers(1, 12), st.integers(1, 12), st.booleans(), st.booleans())
@settings(max_examples=60)
def test_it_is_a_gaussian_process_with_a_linear_kernel(seed, n, d, full, intercept):
    X, y = data(seed, n, d)
    prior = covariance(seed, d) if full else np.random.default_rng(seed).uniform(0.2, 3.0, size=d)
    model = BayesianLinearRegression(prior, 0.4, fit_intercept=intercept, intercept_variance=5.0).fit(X, y)
    new = np.random.default_rng(seed + 1).normal(size=(4, d))
    matrix = prior if full else np.diag(prior)
    ones, whole = X, matrix
    at = new
    if intercept:
        ones, at = np.column_stack([X, np.ones(n)]), np.column_stack([new, np.ones(4)])
        whole = np.block([[matrix, np.zeros((d, 1))], [np.zeros((1, d)), np.array([[5.0]])]])
    mean, cov = gaussian_process(ones, y, at, whole, 0.4)
    ours, std = model.predict(new, return_std=True, noise=False)
    np.testing.assert_allclose(ours, mean, atol=1e-9)
    np.testing.assert_allclose(std**2, np.diag(cov), atol=1e-9)
    evidence = multivariate_normal(np.zeros(n), ones @ whole @ ones.T + 0.4 * np.eye(n)).logpdf(y)
    assert np.isclose(model.log_evidence_, evidence, rtol=1e-8, atol=1e-8)
    A = ones.T @ ones / 0.4 + np.linalg.inv(whole)
    np.testing.assert_allclose(model.coef_cov_, np.linalg.inv(A)[:d, :d], atol=1e-8)


def test_both_spaces_give_the_same_posterior():
    X, y = data(1, n=5, d=8)
    rows = RegressionData.of(X, y, np.ones(5))
    prior = PriorRoot.of(covariance(2, 8))
    assert rows.X is not None
    one, two = weight_posterior(rows, prior, 0.3), weight_posterior(rows.summed(), prior, 0.3)
    np.testing.assert_allclose(one.mean, two.mean, atol=1e-10)
    np.testing.assert_allclose(one.covariance(), two.covariance(), atol=1e-10)
    np.testing.assert_allclose(one.spread, two.spread, atol=1e-10)
    assert np.isclose(one.log_evidence, two.log_evidence)
    new = np.random.default_rng(0).normal(size=(3, 8))
    np.testing.assert_allclose(one.variance(new), two.variance(new), atol=1e-10)


def test_a_flat_prior_gives_least_squares_and_a_round_one_ridge():
    X, y = data(n=40)
    flat = BayesianLinearRegression(1e10, 0.5, intercept_variance=1e10).fit(X, y)
    ols = LinearRegression().fit(X, y)
    np.testing.assert_allclose(flat.coef_, ols.coef_, atol=1e-6)
    assert np.isclose(flat.intercept_, ols.intercept_, atol=1e-6)
    round_one = BayesianLinearRegression(2.0, 0.5, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(round_one.coef_, Ridge(alpha=0.25, fit_intercept=False).fit(X, y).coef_, atol=1e-10)
    with_intercept = BayesianLinearRegression(2.0, 0.5, intercept_variance=1e10).fit(X, y)
    np.testing.assert_allclose(with_intercept.coef_, Ridge(alpha=0.25).fit(X, y).coef_, atol=1e-7)


@pytest.mark.parametrize("d", [3, 30])
@pytest.mark.parametrize("learn", [False, True])
def test_batches_one_after_another_equal_all_at_once(d, learn):
    X, y = data(2, n=20, d=d)
    settings = LEARN if learn else {"prior_variance": covariance(3, d), "noise_variance": 0.2}
    whole = BayesianLinearRegression(**settings).fit(X, y)
    parts = BayesianLinearRegression(**settings)
    for rows in ([0], range(1, 9), range(9, 20)):
        parts.partial_fit(X[rows], y[rows])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-5 if learn else 1e-9)
    np.testing.assert_allclose(parts.coef_cov_, whole.coef_cov_, atol=1e-5 if learn else 1e-9)
    assert np.isclose(parts.log_evidence_, whole.log_evidence_)


def test_the_evidence_is_the_product_of_the_predictives():
    X, y = data(4, n=8, d=2)
    model = BayesianLinearRegression(1.5, 0.3).fit(X[:1], y[:1])
    total = model.log_evidence_
    for i in range(1, 8):
        mean, std = model.predict(X[i : i + 1], return_std=True)
        total += -0.5 * ((y[i] - mean[0]) / std[0]) ** 2 - np.log(std[0]) - 0.5 * np.log(2 * np.pi)
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.isclose(model.log_evidence_, total, rtol=1e-10)


@pytest.mark.parametrize(("n", "d"), [(10, 3), (4, 7)])
def test_weights_are_repetitions(n, d):
    X, y = data(5, n, d)
    weight = np.random.default_rng(0).integers(0, 4, size=n)
    for learn in (False, True) if n > d else (False,):
        one = BayesianLinearRegression(**(LEARN if learn else {})).fit(X, y, sample_weight=weight)
        two = BayesianLinearRegression(**(LEARN if learn else {})).fit(
            np.repeat(X, weight, axis=0), np.repeat(y, weight)
        )
        np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-4 if learn else 1e-9)
        assert np.isclose(one.log_evidence_, two.log_evidence_, rtol=1e-6)


@pytest.mark.parametrize(("n", "d"), [(12, 3), (4, 7)])
def test_the_gradient_of_the_evidence_equals_differences(n, d):
    X, y = data(6, n, d)
    gathered, prior, free = RegressionData.of(X, y, np.ones(n)), PriorRoot.of(covariance(1, d)), np.arange(d) < d - 1

    def evidence(vector):
        return weight_posterior(gathered, scaled_prior(prior, free, np.exp(vector[0])), np.exp(vector[1])).log_evidence

    # The search stops where both slopes vanish, if its own gradient is right.
    learned = maximize_evidence(gathered, PriorRoot.of(np.ones(d)), d, 1.0, max_iter=500, tol=1e-14)
    prior, free = PriorRoot.of(np.ones(d)), np.ones(d, dtype=bool)
    best = np.log([learned.prior_scale, learned.noise_variance])
    if np.log(gathered.square / n) - 19 < best[1]:  # not at the edge: more features than rows may fit exactly
        np.testing.assert_allclose(approx_fprime(best, evidence, 1e-6), 0.0, atol=1e-3)
    direct = minimize(lambda v: -evidence(v), [0.0, -1.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
    assert evidence(best) >= -direct.fun - 1e-6


def test_learned_variances_agree_with_scikit_learn():
    X, y = data(7, n=200, d=5)
    ours = BayesianLinearRegression(**LEARN, intercept_variance=1e8).fit(X, y)
    theirs = BayesianRidge(alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, tol=1e-12, max_iter=1000).fit(X, y)
    assert np.isclose(ours.noise_variance_, 1 / theirs.alpha_, rtol=2e-2)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-3)
    assert abs(ours.noise_variance_ - 0.09) < 0.03
    assert ours.log_evidence_ > BayesianLinearRegression(intercept_variance=1e8).fit(X, y).log_evidence_


@pytest.mark.parametrize(("n", "d"), [(12, 3), (4, 7)])
def test_draws_have_the_moments_of_the_posterior(n, d):
    # 40000 draws: standard errors below 0.01 for these variances; tolerances are five of them.
    X, y = data(8, n, d)
    model = BayesianLinearRegression(covariance(9, d) / d, 0.3, intercept_variance=1.0, random_state=0).fit(X, y)
    coef, intercept = model.sample_coef(40_000)
    assert coef.shape == (40_000, d)
    np.testing.assert_allclose(coef.mean(axis=0), model.coef_, atol=0.04)
    np.testing.assert_allclose(np.cov(coef.T), model.coef_cov_, atol=0.06)
    assert abs(intercept.mean() - model.intercept_) < 0.03
    lines = coef @ X[0] + intercept
    mean, std = model.predict(X[:1], return_std=True, noise=False)
    assert abs(lines.mean() - mean[0]) < 0.02
    assert abs(lines.std() / std[0] - 1) < 0.03
    np.testing.assert_array_equal(model.sample_coef(3)[0], model.sample_coef(3)[0])


def test_intervals_are_calibrated():
    # 1000 problems drawn from the prior: 90 % intervals of a new observation cover 90 % +- 5 % (five standard errors).
    rng, hits = np.random.default_rng(0), 0
    for _ in range(1000):
        X = rng.normal(size=(6, 3))
        w = rng.normal(size=3) * np.sqrt(2.0)
        y = X @ w + np.sqrt(0.5) * rng.normal(size=6)
        posterior = weight_posterior(RegressionData.of(X[:5], y[:5], np.ones(5)), PriorRoot.of(np.full(3, 2.0)), 0.5)
        hits += abs(y[5] - X[5] @ posterior.mean) < 1.6448536 * np.sqrt(posterior.variance(X[5:])[0] + 0.5)
    assert abs(hits / 1000 - 0.9) < 0.05


def test_many_features_need_no_matrix_of_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 20_000))
    y = X[:, 0] * 3
    model = BayesianLinearRegression(1e-4, 0.1).fit(X, y)  # a 20000 x 20000 matrix would take 3 GB
    mean, std = model.predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()
    assert model.sample_coef(2)[0].shape == (2, 20_000)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise_variance": 0.0}, "noise_variance must be a positive number or 'learn', got 0.0"),
        ({"prior_variance": -1.0}, "prior_variance must be positive, got -1.0"),
        ({"prior_variance": [1.0, 2.0]}, "3 numbers or a 3 x 3 matrix"),
        ({"prior_variance": np.ones((3, 3))}, "positive definite"),
        ({"prior_variance": np.triu(np.ones((3, 3)))}, "symmetric"),
        ({"intercept_variance": np.inf}, "intercept_variance"),
        ({"max_iter": 0}, "max_iter must be an integer of at least 1, got 0"),
        ({"noise_variance": "best"}, "noise_variance must be a positive number or 'learn', got 'best'"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        BayesianLinearRegression(**settings).fit(*data())


@pytest.mark.parametrize("learned", ["prior_variance", "noise_variance"])
def test_one_variance_is_learned_with_the_other_held(learned):
    X, y = data(8, n=60, d=4)
    held = "noise_variance" if learned == "prior_variance" else "prior_variance"
    model = BayesianLinearRegression(**{learned: "learn", held: 0.3}).fit(X, y)
    assert getattr(model, f"{held}_") == pytest.approx(0.3, rel=1e-12)
    best = getattr(model, f"{learned}_")
    around = [
        BayesianLinearRegression(**{learned: best * factor, held: 0.3}).fit(X, y).log_evidence_
        for factor in (0.95, 1.0, 1.05)
    ]
    assert around[1] == pytest.approx(model.log_evidence_, rel=1e-9)
    assert around[1] > max(around[0], around[2])


def test_a_search_that_is_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match="evidence had not settled"):
        BayesianLinearRegression(**LEARN, max_iter=1).fit(*data())


def test_degenerate_data_do_not_break_the_search():
    X = np.ones((5, 2))
    for y in (np.zeros(5), np.full(5, 3.0), np.arange(5.0)):
        model = BayesianLinearRegression(**LEARN).fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.log_evidence_)
    with pytest.raises(ValueError, match=r"positive sum|non-zero"):
        BayesianLinearRegression().fit(X, np.zeros(5), sample_weight=np.zeros(5))


@parametrize_with_checks([BayesianLinearRegression(), BayesianLinearRegression(**LEARN)])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("n", "spread"), [(150, 1e9), (3, 1.0)])
def test_an_intercept_that_its_prior_holds_back_is_told(n, spread):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = 250000 + X @ [50000.0, 20000.0, -30000.0] + rng.normal(0, 15000, n)
    noise = 2e8
    with pytest.warns(ConvergenceWarning, match=r"leaves out .* of every y on average: .* intercept_variance=10000"):
        held = BayesianLinearRegression(spread, noise, intercept_variance=1e4).fit(X, y)
    left = y - held.predict(X)
    offset, error = held._data.left_out(np.append(held.coef_, held.intercept_))
    assert offset == pytest.approx(left.mean())
    assert error == pytest.approx(left.std() / np.sqrt(n))
    BayesianLinearRegression(spread, noise, intercept_variance=1e11).fit(X, y)  # warnings are errors here
    BayesianLinearRegression(spread, noise).fit(X, y - 250000)


def test_learned_variances_do_not_hide_an_offset():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = 250000 + X @ [50000.0, 20000.0, -30000.0] + rng.normal(0, 15000, 150)
    with pytest.warns(ConvergenceWarning, match="subtract the mean of y"):
        BayesianLinearRegression("learn", "learn").fit(X, y)
    model = BayesianLinearRegression("learn", "learn", intercept_variance=1e12).fit(X, y)
    assert model.score(X, y) > 0.9
