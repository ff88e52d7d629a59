"""Logistic PCA against direct maximisation, finite differences, the saturated likelihood and scikit-learn."""

import warnings

import numpy as np
import pytest
from scipy import optimize, sparse
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from pluri import on_interrupt
from pluri.factors import logistic_pca_fit
from pluri.factors.binary_completion import BinaryRows, pattern
from pluri.factors.logistic_pca import LogisticPCA
from pluri.factors.logistic_pca_fit import Loadings, alternate, balanced, fold_in, fold_in_listed, start
from pluri.io import load, save

RNG = np.random.default_rng(0)
X = (RNG.random((40, 12)) < expit(RNG.normal(size=(40, 2)) @ RNG.normal(size=(2, 12)) * 2 - 1)).astype(float)
HOLES = np.where(RNG.random(X.shape) < 0.15, np.nan, X)


def as_rows(data):
    missing = np.isnan(data)
    return BinaryRows(pattern(data == 1), pattern(missing) if missing.any() else None)


def log_likelihood(data, theta):
    return float(np.nansum(log_expit((2 * data - 1) * theta)))


def fitted(data=X, k=2, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LogisticPCA(k, **settings).fit(data)


def test_tangents_are_the_slope_of_the_bound():
    """tanh(t/2)/t with its limit, and the bound: below everywhere, touching at t."""
    from pluri.factors._logistic_kernels import tangents

    theta = np.array([[0.0, 1e-12, -1e-4, 9.9e-4, 1.01e-3, 0.3, -2.0, 40.0, -800.0]])
    T = np.empty_like(theta)
    total = tangents(theta, np.exp(-np.abs(theta)), T)
    assert T[0, 0] == 0.5
    np.testing.assert_allclose(T[0, 1:], np.tanh(theta[0, 1:] / 2) / theta[0, 1:], rtol=1e-12)
    assert total == pytest.approx(-log_expit(-theta).sum(), rel=1e-13)
    t = 1.3
    others = np.linspace(-6, 6, 101)
    bound = log_expit(t) + (others - t) / 2 - np.tanh(t / 2) / (4 * t) * (others**2 - t**2)
    assert (bound <= log_expit(others) + 1e-12).all()
    near = t + np.array([-1e-4, 1e-4])
    touching = log_expit(t) + (near - t) / 2 - np.tanh(t / 2) / (4 * t) * (near**2 - t**2)
    np.testing.assert_allclose(touching, log_expit(near), atol=1e-7)


@pytest.mark.parametrize("data", [X, HOLES], ids=["complete", "holes"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_objective_is_the_penalised_likelihood_and_never_falls(data, fit_intercept, monkeypatch):
    monkeypatch.setattr(logistic_pca_fit, "BLOCK", 100)  # several blocks
    rows = as_rows(data)
    scores, loadings = start(rows, 3, fit_intercept, np.random.default_rng(0))
    last = -np.inf
    for _ in range(60):
        new, after, objective = alternate(rows, scores, loadings, 0.05, fit_intercept)
        squares = 0.05 * ((new**2).sum() + (loadings.components**2).sum())
        squares += logistic_pca_fit.INTERCEPT_PENALTY * (loadings.intercept**2).sum()
        expected = log_likelihood(data, loadings.natural(new)) - squares / 4
        assert objective == pytest.approx(expected, rel=1e-10)
        assert objective >= last - 1e-9
        scores, loadings, last = new, after, objective


def test_blocks_do_not_change_the_fit(monkeypatch):
    whole = fitted(HOLES, max_iter=20)
    monkeypatch.setattr(logistic_pca_fit, "BLOCK", 30)
    np.testing.assert_allclose(np.abs(fitted(HOLES, max_iter=20).components_), np.abs(whole.components_), atol=1e-8)


def test_fit_is_a_stationary_point():
    """Against a quasi-Newton search over scores, loadings and intercepts at a time, started where the fit ended."""
    model = fitted(tol=1e-10, max_iter=3000, alpha=1.0)
    scores = fold_in(as_rows(X), Loadings(model.components_, model.intercept_), 0.5)[0]
    (n, d), s = X.shape, logistic_pca_fit.INTERCEPT_PENALTY

    def loss(vector):
        U, V, m = vector[: 2 * n].reshape(n, 2), vector[2 * n : 2 * n + 2 * d].reshape(2, d), vector[2 * n + 2 * d :]
        theta = U @ V + m
        slope = expit(theta) - X
        gradient = np.concatenate(
            [(slope @ V.T + U / 2).ravel(), (U.T @ slope + V / 2).ravel(), slope.sum(0) + s * m / 2]
        )
        return -log_likelihood(X, theta) + ((U**2).sum() + (V**2).sum() + s * m @ m) / 4, gradient

    point = np.concatenate([scores.ravel(), model.components_.ravel(), model.intercept_])
    assert -loss(point)[0] == pytest.approx(model.objective_, rel=1e-6)
    assert np.abs(loss(point)[1]).max() < 1e-3
    assert loss(point)[0] <= optimize.minimize(loss, point, jac=True).fun + 1e-4


def test_full_rank_without_penalty_reaches_the_saturated_likelihood():
    model = fitted(X[:10, :6], 6, alpha=1e-6, max_iter=2000, tol=0.0, fit_intercept=False)
    assert model.score(X[:10, :6]) > -1e-3
    assert (model.inverse_transform(model.transform(X[:10, :6])).round() == X[:10, :6]).all()


def test_balanced_factors_have_the_same_product_and_a_smaller_penalty():
    scores, components = RNG.normal(size=(20, 3)), RNG.normal(size=(3, 7))
    moved, loadings = balanced(scores, Loadings(components, np.zeros(7)))
    np.testing.assert_allclose(moved @ loadings.components, scores @ components, atol=1e-12)
    assert (moved**2).sum() + (loadings.components**2).sum() < (scores**2).sum() + (components**2).sum()
    products = loadings.components @ loadings.components.T
    np.testing.assert_allclose(products, np.diag(np.diagonal(products)), atol=1e-12)


def test_scores_of_new_rows_equal_logistic_regression():
    """Loadings as inputs, a row as the outcome, ridge penalty: scikit-learn on the known entries."""
    model = fitted(alpha=0.3)
    loadings = Loadings(model.components_, np.zeros(12))
    scores, values = fold_in(as_rows(HOLES), loadings, 0.15)
    for row in range(5):
        known = ~np.isnan(HOLES[row])
        peer = LogisticRegression(C=1 / 0.15, fit_intercept=False, tol=1e-10, max_iter=1000)
        peer.fit(model.components_.T[known], HOLES[row, known])
        np.testing.assert_allclose(scores[row], peer.coef_[0], atol=1e-5)
        theta = scores[row] @ model.components_
        assert values[row] == pytest.approx(log_likelihood(HOLES[row], theta), abs=1e-10)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_completed_rows_are_at_the_maximum_of_the_known_entries(fit_intercept):
    model = fitted(fit_intercept=fit_intercept, fold_in_alpha=0.2)
    for present, absent in (([1, 5], None), ([0], [2, 3]), ([], [4]), ([], None), (range(12), None)):
        known = np.full(12, np.nan)
        known[list(present)] = 1.0
        known[absent or []] = 0.0
        seen = ~np.isnan(known)
        answer = model.predict_missing(present, absent)
        assert answer.shape == (12,)
        np.testing.assert_array_equal(answer[seen], known[seen])

        def loss(u, known=known):
            return -log_likelihood(known, u @ model.components_ + model.intercept_) + 0.1 * u @ u

        best = optimize.minimize(loss, np.zeros(2), tol=1e-10).x
        expected = expit(best @ model.components_ + model.intercept_)
        np.testing.assert_allclose(answer[~seen], expected[~seen], atol=1e-5)
        np.testing.assert_allclose(model.predict_missing_rows(known[None])[0], answer, atol=1e-9)


def test_gradient_of_the_fold_in_is_zero():
    loadings = Loadings(5 * RNG.normal(size=(3, 8)), RNG.normal(size=8))
    ones = pattern(np.array([[1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1.0]]))
    zeros = pattern(np.array([[0, 0, 0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0.0]]))
    for penalty in (1e-4, 0.1, 10.0):
        u = fold_in_listed(ones, zeros, loadings, penalty)
        slope = ones.toarray() * expit(-loadings.natural(u)) - zeros.toarray() * expit(loadings.natural(u))
        assert np.abs(slope @ loadings.components.T - penalty * u).max() < 1e-6


def test_permuted_rows_and_columns_give_permuted_answers():
    rows, columns = RNG.permutation(40), RNG.permutation(12)
    model, other = fitted(), fitted(X[rows][:, columns])
    place = np.argsort(columns)
    np.testing.assert_allclose(model.predict_missing([3])[columns], other.predict_missing([place[3]]), atol=1e-8)
    twice = fitted(np.column_stack([X, X[:, 4]])).predict_missing([0])
    assert twice[4] == pytest.approx(twice[12], abs=1e-8)


def test_sparse_starting_values_agree_with_dense_ones(monkeypatch):
    wide = (RNG.random((60, 30)) < 0.2).astype(float)
    dense = fitted(wide, 3, max_iter=30)
    monkeypatch.setattr(logistic_pca_fit, "BLOCK", 100)
    np.testing.assert_allclose(fitted(wide, 3, max_iter=30).objective_, dense.objective_, rtol=1e-8)


def test_scikit_learn_accepts_it():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(LogisticPCA(2, max_iter=20))


def test_kinds_of_input_give_the_same_fit():
    model = fitted()
    for same in (
        X.tolist(), X.astype(bool), X.astype(np.float32), X.astype(object), 3 * X, sparse.csr_matrix(X),
        sparse.coo_array(X), sparse.csc_array(X),
    ):  # fmt: skip
        np.testing.assert_allclose(fitted(same).predict_missing([0]), model.predict_missing([0]), atol=1e-9)
    np.testing.assert_allclose(model.transform(sparse.csr_array(X)), model.transform(X))
    assert fitted(X[:1], 5).transform(X[:1]).shape == (1, 5)
    assert np.isfinite(fitted(np.zeros((5, 3)), 2).predict_missing([])).all()
    assert np.isfinite(fitted(np.full((5, 3), np.nan), 2).components_).all()


def test_a_saved_model_answers_as_before(tmp_path):
    model = fitted()
    save(model, tmp_path / "model.skops", trusted=[LogisticPCA])
    other = load(tmp_path / "model.skops", trusted=[LogisticPCA])
    np.testing.assert_array_equal(other.predict_missing([1]), model.predict_missing([1]))
    assert "component" in other.summary()


def test_too_few_sweeps_warn_and_ctrl_c_keeps_what_is_there(monkeypatch):
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        LogisticPCA(2, max_iter=2, tol=1e-9).fit(X)
    from pluri.factors import logistic_pca

    calls = []

    def stops(*arguments):
        calls.append(0)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return alternate(*arguments)

    monkeypatch.setattr(logistic_pca, "alternate", stops)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model = LogisticPCA(2).fit(X)
    assert model.n_iter_ == 3
    assert model.predict_missing([0]).shape == (12,)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"n_components": 0}, "n_components"), ({"alpha": 0.0}, "alpha must be a positive number, got 0.0"),
     ({"fold_in_alpha": 0}, "fold_in_alpha"),
     ({"max_iter": 0}, "max_iter"), ({"tol": -1.0}, "tol"), ({"binarize": "x"}, "binarize")],
)  # fmt: skip
def test_wrong_settings_get_a_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        LogisticPCA(**settings).fit(X)


def test_completed_rows_are_no_surer_than_a_population_warrants():
    """Columns that rise together: against the integral over normal scores, where a weak penalty says 0.98."""
    rng = np.random.default_rng(0)
    data = (rng.random((1000, 10)) < expit(1.5 * rng.normal(size=(1000, 1)))).astype(float)
    model = fitted(data, 1)
    grid = np.linspace(-6, 6, 2001)
    for present in ([], [0], [0, 1], [0, 1, 2]):
        weight = np.exp(-0.5 * grid**2) * expit(1.5 * grid) ** len(present)
        exact = float(weight @ expit(1.5 * grid) / weight.sum())
        answer = model.predict_missing(present)[len(present) :].mean()
        assert abs(answer - exact) < 0.1
        if present:
            assert fitted(data, 1, fold_in_alpha=0.1).predict_missing(present)[5] - exact > 0.2


@pytest.mark.parametrize("k", [2, 15])
def test_the_default_penalty_is_one_over_the_mean_square_of_the_scores(k, monkeypatch):
    """Found by the optimiser of scipy; components beyond the rank have no scores."""
    kept = []
    monkeypatch.setattr("pluri.factors.logistic_pca.balanced", lambda *args: kept.append(balanced(*args)) or kept[-1])
    model = fitted(k=k)
    squares = (kept[-1][0] ** 2).mean(axis=0)
    np.testing.assert_allclose(model.score_precision_, 1 / np.maximum(squares, 1e-8))

    def loss(u):
        theta = u @ model.components_ + model.intercept_
        return -float(log_expit(theta[[1, 5]]).sum()) + 0.5 * float(model.score_precision_ @ u**2)

    best = optimize.minimize(loss, np.zeros(k), tol=1e-10).x
    expected = expit(best @ model.components_ + model.intercept_)
    np.testing.assert_allclose(np.delete(model.predict_missing([1, 5]), [1, 5]), np.delete(expected, [1, 5]), atol=1e-4)
