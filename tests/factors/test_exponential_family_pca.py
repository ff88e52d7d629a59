"""Exponential-family PCA: closed forms, recovered ranks, bounds that rise, and the estimator's contract."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri import on_interrupt
from pluri.factors.exponential_family import BinomialFamily, ExponentialFamilyPCA, GaussianFamily, as_family


def bits(n=1000, n_features=30, sizes=(6, 5, 4), seed=0):
    rng = np.random.default_rng(seed)
    loadings = np.linalg.qr(rng.normal(size=(n_features, len(sizes))))[0] * sizes
    theta = rng.normal(size=(n, len(sizes))) @ loadings.T + 0.5 * rng.normal(size=n_features)
    return (rng.random(theta.shape) < 1 / (1 + np.exp(-theta))).astype(float), loadings


def reals(n=500, n_features=20, sizes=(3.6, 3.0, 2.4), seed=0):
    rng = np.random.default_rng(seed)
    loadings = np.linalg.qr(rng.normal(size=(n_features, len(sizes))))[0] * sizes
    return rng.normal(size=(n, len(sizes))) @ loadings.T + rng.normal(size=(n, n_features)) + 1.0, loadings


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([ExponentialFamilyPCA()])
def test_the_estimator_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("inference", ["laplace", "vb"])
@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_gaussian_data_without_a_prior_give_the_closed_form_of_probabilistic_pca(inference, scale):
    X, _ = reals(sizes=(3.6, 3.0, 2.4))
    family = GaussianFamily(scale)
    model = ExponentialFamilyPCA(
        3, family=family, loading_prior=None, inference=inference, tol=1e-13, max_iter=3000
    ).fit(X)
    variances, axes = np.linalg.eigh(np.cov(X.T, bias=True))
    closed = axes[:, -3:] * np.sqrt(variances[-3:] - scale**2)
    np.testing.assert_allclose(model.components_.T @ model.components_, closed @ closed.T, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, X.mean(axis=0), atol=1e-6)
    covariance = closed @ closed.T + scale**2 * np.eye(20)
    gap = X - X.mean(axis=0)
    exact = -0.5 * np.einsum("ni,ij,nj->n", gap, np.linalg.inv(covariance), gap)
    exact -= 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    assert model.score(X) == pytest.approx(exact.mean(), abs=1e-5)


@pytest.mark.parametrize(("inference", "update"), [("laplace", "mackay"), ("laplace", "em"), ("vb", "mackay")])
def test_three_of_eight_directions_of_bits_survive(inference, update):
    X, loadings = bits()
    model = ExponentialFamilyPCA(8, family="bernoulli", inference=inference, precision_update=update, max_iter=400).fit(
        X
    )
    lengths = np.linalg.norm(model.components_, axis=1)
    assert model.effective_components_ == 3
    assert lengths[3:].max() < 0.02
    assert model.alpha_[:3].max() < 10
    assert model.alpha_[3:].min() > 3e3
    # 11 degrees is what was measured for such data; 16 leaves room for the draw.
    assert np.rad2deg(subspace_angles(model.components_[:3].T, loadings)[0]) < 16


def test_three_of_eight_directions_of_reals_survive():
    X, loadings = reals()
    model = ExponentialFamilyPCA(8).fit(X)
    assert model.effective_components_ == 3
    assert np.rad2deg(subspace_angles(model.components_[:3].T, loadings)[0]) < 8
    gram = model.components_ @ model.components_.T
    np.testing.assert_allclose(gram, np.diag(np.diagonal(gram)), atol=1e-8)


def test_noise_switches_everything_off():
    rng = np.random.default_rng(0)
    X = (rng.random((400, 15)) < rng.uniform(0.1, 0.9, 15)).astype(float)
    with pytest.warns(UserWarning, match="no structure"):
        model = ExponentialFamilyPCA(4, family="bernoulli").fit(X)
    assert model.effective_components_ == 0
    np.testing.assert_allclose(as_family("bernoulli").mean(model.intercept_), X.mean(axis=0), atol=5e-3)


@pytest.mark.parametrize(("family", "inference", "prior"), [
    ("bernoulli", "vb", "ridge"), ("bernoulli", "map", "ridge"), ("poisson", "vb", "ridge"),
    ("poisson", "map", "ridge"), ("gaussian", "vb", "ridge"), ("gaussian", "laplace", None),
    (BinomialFamily(3), "vb", "ridge"),
])  # fmt: skip
def test_objectives_that_are_bounds_never_fall(family, inference, prior):
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(120, 2)) @ rng.normal(size=(2, 12)) * 0.5
    X = as_family(family).sample(theta, rng)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = ExponentialFamilyPCA(
        3, family=family, inference=inference, loading_prior=prior, max_iter=400, tol=1e-7
    ).fit(X)
    steps = np.diff(model.objective_history_)
    assert steps.min() > -1e-8 * abs(model.lower_bound_)


def test_counts_are_modelled_better_with_their_directions():
    rng = np.random.default_rng(0)
    loadings = np.zeros((2, 12))
    loadings[0, :6], loadings[1, 4:] = 0.8, -0.7
    X = rng.poisson(np.exp(rng.normal(size=(600, 2)) @ loadings + 0.5)).astype(float)
    train, test = X[:300], X[300:]
    model = ExponentialFamilyPCA(5, family="poisson").fit(train)
    assert model.effective_components_ in (2, 3)
    assert np.rad2deg(subspace_angles(model.components_[:2].T, loadings.T)[0]) < 12
    rates = train.mean(axis=0)
    independent = as_family("poisson").base_measure(test) + test * np.log(rates) - rates
    assert model.score(test) > independent.sum(axis=1).mean() + 1.0


@pytest.mark.parametrize("family", ["bernoulli", "gaussian"])
def test_a_weight_of_two_is_the_row_twice_and_order_does_not_matter(family):
    X, _ = bits(150, 12) if family == "bernoulli" else reals(150, 12)
    weight = np.random.default_rng(0).integers(0, 3, 150)
    settings = {"n_components": 3, "family": family, "loading_prior": "ridge", "tol": 1e-11, "max_iter": 2000}
    weighted = ExponentialFamilyPCA(**settings).fit(X, sample_weight=weight)
    repeated = ExponentialFamilyPCA(**settings).fit(np.repeat(X, weight, axis=0)[::-1])
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-4)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-5)
    columns = np.random.default_rng(1).permutation(12)
    turned = ExponentialFamilyPCA(**settings).fit(X[:, columns], sample_weight=weight)
    np.testing.assert_allclose(turned.components_, weighted.components_[:, columns], atol=1e-4)
    assert turned.lower_bound_ == pytest.approx(weighted.lower_bound_, rel=1e-8)


def test_missing_entries_are_filled_better_than_by_the_mean():
    X, _ = bits(600, 20, sizes=(10, 8))
    hidden = np.random.default_rng(1).random(X.shape) < 0.1
    model = ExponentialFamilyPCA(4, family="bernoulli").fit(np.where(hidden, np.nan, X))
    assert model.effective_components_ == 2
    filled = model.inverse_transform(model.transform(np.where(hidden, np.nan, X)))
    wrong = np.mean((filled[hidden] > 0.5) != X[hidden])
    by_mean = np.mean((np.broadcast_to(X.mean(axis=0), X.shape)[hidden] > 0.5) != X[hidden])
    assert wrong < 0.75 * by_mean


def test_an_intercept_is_what_rare_features_need():
    rng = np.random.default_rng(0)
    X = (rng.random((300, 20)) < 0.05).astype(float)
    X[:150, :4] = rng.random((150, 4)) < 0.6
    with_it = ExponentialFamilyPCA(2, family="bernoulli").fit(X)
    without = ExponentialFamilyPCA(2, family="bernoulli", fit_intercept=False).fit(X)
    np.testing.assert_array_equal(without.intercept_, 0.0)
    assert with_it.score(X) > without.score(X) + 1.0


def test_samples_have_the_moments_of_the_model_and_repeat():
    X, _ = reals(300, 6, sizes=(2.0, 1.0))
    model = ExponentialFamilyPCA(2, loading_prior=None, random_state=3).fit(X)
    np.testing.assert_array_equal(model.sample(5), model.sample(5))
    draws = model.sample(40_000, random_state=0)
    covariance = model.components_.T @ model.components_ + np.eye(6)
    # 21 entries with standard error below 0.04: 0.2 is beyond five of them.
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=0.2)
    assert model.posterior_covariance(X).shape == (300, 2, 2)
    explained = model.explained_deviance_ratio_
    assert 0 < explained[1] < explained[0]
    assert explained.sum() < 1
    assert "2 active of 2 components" in model.summary()


def test_sparse_lists_and_booleans_are_read_alike():
    X, _ = bits(100, 8)
    model = ExponentialFamilyPCA(2, family="bernoulli", loading_prior="ridge").fit(X)
    for other in (sparse.csr_matrix(X), X.astype(bool), X.astype(np.float32), X.tolist()):
        same = clone(model).fit(other)
        np.testing.assert_allclose(same.components_, model.components_)


def test_constant_columns_and_single_features_are_survived():
    X, _ = bits(200, 6)
    X[:, 0], X[:, 1] = 0.0, 1.0
    for family in ("bernoulli", "poisson", "gaussian"):
        model = ExponentialFamilyPCA(2, family=family, loading_prior="ridge").fit(X)
        assert np.isfinite(model.score_samples(X)).all()
    model = ExponentialFamilyPCA(1, family="bernoulli", loading_prior="ridge").fit(X[:, [3]])
    assert np.isfinite(model.score(X[:, [3]]))


def test_a_fit_goes_on_from_the_last_one():
    X, _ = bits(300, 12)
    model = ExponentialFamilyPCA(3, family="bernoulli", warm_start=True).fit(X)
    sweeps, best = model.n_iter_, model.lower_bound_
    model.fit(X)
    assert model.n_iter_ < sweeps
    assert model.lower_bound_ == pytest.approx(best, rel=1e-3)


def test_running_out_of_sweeps_warns_and_interrupts_keep_the_model(monkeypatch):
    X, _ = bits(200, 10)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        ExponentialFamilyPCA(2, family="bernoulli", max_iter=2, tol=1e-12).fit(X)
    from pluri.factors.exponential_family import learning

    sweeps, update = [], learning.ComponentsModel.update

    def interrupted(self, state, data):
        sweeps.append(1)
        if len(sweeps) == 4:
            raise KeyboardInterrupt
        return update(self, state, data)

    monkeypatch.setattr(learning.ComponentsModel, "update", interrupted)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model = ExponentialFamilyPCA(2, family="bernoulli", tol=1e-12).fit(X)
    assert model.transform(X).shape == (200, 2)


def test_a_refit_that_fails_loses_nothing():
    X, _ = bits(100, 8)
    model = ExponentialFamilyPCA(2, family="bernoulli").fit(X)
    before = model.components_
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.fit(X[:, :5] + 3)
    assert model.components_ is before
    assert model.n_features_in_ == 8


@pytest.mark.parametrize(("settings", "words"), [
    ({"n_components": 0}, "n_components must be an integer"),
    ({"n_components": 9}, "at most min"),
    ({"family": "beta"}, "family must be one of"),
    ({"inference": "gibbs"}, "inference must be one of"),
    ({"loading_prior": "lasso"}, "loading_prior must be one of"),
    ({"loading_prior": "ard", "inference": "map"}, "loading_prior must be 'ridge' or None"),
    ({"loading_precision": -1.0}, "loading_precision must be a positive number"),
    ({"precision_update": "newton"}, "precision_update must be one of"),
    ({"init": "zeros"}, "init must be one of"),
    ({"smoothing": -1.0}, "smoothing must be a number of at least 0"),
    ({"smoothing": "auto"}, "smoothing must be a number of at least 0"),
    ({"tol": float("nan")}, "tol must be a number"),
    ({"max_iter": 0}, "max_iter must be an integer"),
])  # fmt: skip
def test_bad_settings_get_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        ExponentialFamilyPCA(**settings).fit(np.random.default_rng(0).normal(size=(20, 8)))


def test_separated_bits_without_a_prior_are_reported():
    X = np.repeat([[1.0] * 6, [0.0] * 6], 30, axis=0)
    with pytest.warns(UserWarning, match="separated perfectly"):
        ExponentialFamilyPCA(1, family="bernoulli", loading_prior=None, inference="map", tol=1e-4, smoothing=0.0).fit(X)
