"""Count regression: moment equations, finite differences, other libraries, and scikit-learn's contract."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats
from scipy.optimize import approx_fprime
from scipy.special import gammaln
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import pluri
from pluri.dynamics import GeneralizedCount, GeneralizedCountRegression
from pluri.dynamics.counts.regression import ImpossibleCountWarning
from pluri.dynamics.counts.regression_fit import RegressionObjective
from pluri.dynamics.counts.shapes import bent_shape, free_shape, named_shape


def data(n=400, seed=0, bend=-0.15):
    rng = np.random.default_rng(seed)
    X, k = rng.normal(size=(n, 3)), np.arange(13)
    truth = GeneralizedCount(X @ [0.5, -0.3, 0.2], 0.8 * k + bend * k * (k - 1))
    return X, truth.sample(random_state=rng)[0]


SHAPES = {
    "free": lambda K: free_shape(np.ones(K + 1, dtype=bool), 0.3),
    "with a gap": lambda K: free_shape(np.arange(K + 1) != 2, 0.3),
    "concave": lambda K: bent_shape(K, 0.3, "concave"),
    "com_poisson": lambda K: named_shape("com_poisson", K, 0.3),
    "negative_binomial": lambda K: named_shape("negative_binomial", K, 0.3),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_gradients_and_second_derivatives_are_finite_differences(kind):
    X, y = data(60)
    y = np.where(y == 2, 3, y) if kind == "with a gap" else y
    shape = SHAPES[kind](int(y.max()))
    objective = RegressionObjective(X, y, np.linspace(0.5, 2, 60), shape, 0.7, 0.3)
    point = np.concatenate([[0.2, -0.1, 0.3], shape.start - 0.1])
    gradient = objective.value_and_gradient(point)[1]
    assert_allclose(gradient, approx_fprime(point, lambda v: objective.value_and_gradient(v)[0], 1e-7), atol=1e-5)
    if not shape.is_negative_binomial:
        rows = [
            (objective.value_and_gradient(point + h)[1] - objective.value_and_gradient(point - h)[1]) / 2e-5
            for h in 1e-5 * np.eye(len(point))
        ]
        assert_allclose(objective.hessian(point), rows, atol=1e-7)


def test_without_a_penalty_the_expected_frequencies_are_the_observed_ones():
    X, y = data()
    model = GeneralizedCountRegression(smoothness=0.0).fit(X, y)
    frequencies = np.bincount(y)
    assert_allclose(model.predict_proba(X).sum(axis=0), frequencies, atol=1e-4)
    assert_allclose(X.T @ (y - model.predict(X)), 0.0, atol=1e-4)


def test_without_a_penalty_what_was_not_seen_is_impossible():
    X, y = data()
    y = np.where(y == 2, 1, y)
    model = GeneralizedCountRegression(smoothness=0.0).fit(X, y)
    assert np.isneginf(model.g_[2])
    assert_allclose(model.predict_proba(X)[:, 2], 0.0)
    assert np.isfinite(model.g_[[1, 3]]).all()


def test_an_infinite_penalty_is_a_truncated_poisson_regression():
    X, y = data()
    stiff = GeneralizedCountRegression(smoothness=1e7, max_count=30).fit(X, y)
    poisson = GeneralizedCountRegression("poisson", max_count=30).fit(X, y)
    assert_allclose(np.diff(stiff.g_, 2), 0.0, atol=1e-6)
    assert_allclose(stiff.coef_, poisson.coef_, atol=1e-5)
    theirs = PoissonRegressor(alpha=0.0, tol=1e-10, max_iter=1000).fit(X, y)
    assert_allclose(poisson.coef_, theirs.coef_, atol=1e-5)
    assert_allclose(poisson.intercept_, theirs.intercept_, atol=1e-5)
    assert_allclose(poisson.predict(X), theirs.predict(X), rtol=1e-5)


def test_a_ridge_is_that_of_scikit_learn():
    X, y = data()
    ours = GeneralizedCountRegression("poisson", alpha=40.0).fit(X, y)
    theirs = PoissonRegressor(alpha=40.0 / len(y), tol=1e-10, max_iter=1000).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)


def test_zeros_and_ones_are_logistic_regression():
    X, y = data()
    y = np.minimum(y, 1)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X, y)
    for model in (GeneralizedCountRegression(), GeneralizedCountRegression("bernoulli")):
        model.fit(X, y)
        assert_allclose(model.coef_, theirs.coef_[0], atol=1e-5)
        assert_allclose(model.intercept_, theirs.intercept_[0], atol=1e-5)
        assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-5)


def test_a_negative_binomial_recovers_its_size():
    # log size within 5 standard errors, which here are 0.09 (from 40 refits of simulated data).
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 0, size=(3000, 1))
    y = rng.negative_binomial(2.0, 1.0 - np.exp(X[:, 0] - 0.2))
    model = GeneralizedCountRegression("negative_binomial").fit(X, y)
    assert abs(np.log(model.shape_parameter_ / 2.0)) < 0.45
    assert abs(model.coef_[0] - 1.0) < 0.5


def test_a_com_poisson_exponent_maximises_the_likelihood():
    X, y = data(200)
    model = GeneralizedCountRegression("com_poisson").fit(X, y)
    k = np.arange(model.max_count_ + 1.0)

    def log_likelihood(exponent, rate_shift):
        g = (model.intercept_ + rate_shift) * k + (1 - exponent) * gammaln(k + 1)
        return GeneralizedCount(X @ model.coef_, g).logpmf(y).sum()

    best = log_likelihood(model.shape_parameter_, 0.0)
    assert_allclose(best / len(y), model.score(X, y))
    for step in (-1e-3, 1e-3):
        assert log_likelihood(model.shape_parameter_ + step, 0.0) < best
        assert log_likelihood(model.shape_parameter_, step) < best


@pytest.mark.parametrize(("shape", "bend"), [("concave", 0.1), ("convex", -0.2)])
def test_a_constraint_holds_where_the_data_are_against_it(shape, bend):
    X, y = data(bend=bend)
    y = np.minimum(y, 9)
    bends = np.diff(GeneralizedCountRegression(shape=shape).fit(X, y).g_, 2)
    assert (bends <= 1e-9).all() if shape == "concave" else (bends >= -1e-9).all()


def test_a_constraint_that_does_not_bind_changes_nothing():
    X, y = data(2000)
    y = np.minimum(y, 4)
    free = GeneralizedCountRegression(smoothness=1.0).fit(X, y)
    assert (np.diff(free.g_, 2) < 0).all()
    held = GeneralizedCountRegression(smoothness=1.0, shape="concave").fit(X, y)
    assert_allclose(held.g_, free.g_, atol=1e-3)
    assert_allclose(held.coef_, free.coef_, atol=1e-3)


def test_a_weight_is_a_row_written_out():
    X, y = data(150)
    weight = np.arange(150) % 3
    weighted = GeneralizedCountRegression(alpha=0.5).fit(X, y, sample_weight=weight)
    written = GeneralizedCountRegression(alpha=0.5).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.coef_, written.coef_, atol=1e-6)
    assert_allclose(weighted.g_, written.g_, atol=1e-5)
    assert_allclose(
        weighted.score(X, y, sample_weight=weight), written.score(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    )


def test_a_sparse_matrix_is_the_dense_one():
    X, y = data(100)
    X[np.abs(X) < 0.7] = 0.0
    # These counts vary less than Poisson ones: the dispersion of a negative binomial ends at its bound, near which the
    # maximum is so flat that rounding decides between two stops, 5e-5 apart (40 orders of rows, three BLAS kernels).
    for distribution, apart in (("general", 1e-10), ("negative_binomial", 5e-4)):
        dense = GeneralizedCountRegression(distribution).fit(X, y)
        thin = GeneralizedCountRegression(distribution).fit(sparse.csr_matrix(X), y)
        assert_allclose(thin.coef_, dense.coef_, atol=apart)
        assert_allclose(thin.predict(sparse.csr_matrix(X)), dense.predict(X), rtol=10 * apart)


def test_intervals_cover_and_quantiles_are_those_of_the_distribution():
    X, y = data(4000)
    model = GeneralizedCountRegression().fit(X[:2000], y[:2000])
    low, high = model.predict_interval(X[2000:], 0.8).T
    n_covered = int(((low <= y[2000:]) & (y[2000:] <= high)).sum())
    # At least 80 % are covered, since counts are lumps: false-alarm rate 1e-6 and a percent for the fit.
    assert n_covered > stats.binom(2000, 0.79).ppf(1e-6)
    P = model.predict_proba(X[:50]).cumsum(axis=1)
    found = model.predict_quantile(X[:50], [0.1, 0.5])
    assert_allclose(found, np.column_stack([(q > P).sum(axis=1) for q in (0.1, 0.5)]))
    assert_allclose(
        model.dispersion(X[:50]), model.distribution_of(X[:50]).var() / model.distribution_of(X[:50]).mean()
    )


def test_a_count_above_max_count_has_no_score():
    X, y = data(100)
    model = GeneralizedCountRegression(max_count=12).fit(X, y)
    y = y.copy()
    y[0] = 50
    with pytest.warns(ImpossibleCountWarning, match="50"):
        assert model.score(X, y) == -np.inf
    assert model.score(X, y, sample_weight=np.arange(100) > 0) > -np.inf


def test_nothing_but_zeros_is_a_distribution_that_is_always_zero():
    model = GeneralizedCountRegression().fit(np.eye(4), np.zeros(4))
    assert_allclose(model.predict(np.eye(4)), 0.0)
    assert_allclose(model.predict_proba(np.eye(4)), 1.0)


def test_it_comes_back_from_its_file(tmp_path):
    X, y = data(80)
    model = GeneralizedCountRegression("com_poisson").fit(X, y)
    pluri.save(model, tmp_path / "model.skops")
    assert_allclose(pluri.load(tmp_path / "model.skops").predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({}, [0, 1, 0.5], "y must hold counts"),
        ({}, [0, 1, -1], "y must hold counts"),
        ({"max_count": 2}, [0, 1, 3], "up to 2"),
        ({"distribution": "bernoulli"}, [0, 1, 2], "up to 1"),
        ({"distribution": "poisson", "shape": "concave"}, [0, 1, 2], "shape must be None"),
        ({"distribution": "normal"}, [0, 1, 2], "distribution"),
        ({"smoothness": -1.0}, [0, 1, 2], "smoothness"),
        ({}, [0, 1, 10**6], "shorter bins"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(settings, y, message):
    with pytest.raises(ValueError, match=message):
        GeneralizedCountRegression(**settings).fit(np.eye(3), y)


class OfRounded(GeneralizedCountRegression):
    """scikit-learn's checks draw real numbers for y, which are no counts: their whole parts are."""

    def fit(self, X, y, sample_weight=None):
        if y is not None and np.asarray(y).dtype.kind == "f" and np.isfinite(np.asarray(y, dtype=float)).all():
            y = np.floor(np.abs(y))
        return super().fit(X, y, sample_weight)


#: Probabilities of counts are what a classifier's `predict_proba` would be, and are checked as such.
EXPECTED_FAILURES = {
    "check_estimator_sparse_array": "a regressor has no classes, whose probabilities would be predicted",
    "check_estimator_sparse_matrix": "a regressor has no classes, whose probabilities would be predicted",
    "check_regressors_no_decision_function": "counts are numbers that have probabilities",
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        OfRounded(alpha=1.0),
        OfRounded(alpha=1.0, shape="concave", tol=1e-12),
        OfRounded("poisson", alpha=1.0),
    ],
    expected_failed_checks=lambda estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)
