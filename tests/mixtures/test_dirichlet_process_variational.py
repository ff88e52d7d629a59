"""Truncated variational inference of Dirichlet process mixtures: the bound is exact, and rises."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture

from pluri import on_interrupt
from pluri.inference.variational import coordinate_ascent
from pluri.mixtures.dirichlet_process import DirichletProcessMixture
from pluri.mixtures.dirichlet_process.variational import TruncatedMeanField, WeightedRows, expected_weights
from pluri.mixtures.dirichlet_process.variational_search import (
    best_beliefs,
    clustered_labels,
    fewer_components,
    occupied_numbers,
)
from pluri.priors.hyperpriors import Gamma, Hyperparameter
from pluri.processes import BetaBernoulli, DirichletMultinomial, GammaPoisson, NormalGamma, NormalInverseWishart
from pluri.processes.conjugate_clusters.expectations import ClusterPosteriors, divergence, expected_log_density
from pluri.processes.conjugate_clusters.prior_defaults import make_likelihood
from pluri.processes.conjugate_clusters.records import weighted_sums

RNG = np.random.default_rng(0)
REAL, COUNTS = RNG.normal(size=(40, 3)), RNG.poisson(1.5, size=(40, 4)).astype(float)
LIKELIHOODS = {
    "gaussian": (NormalInverseWishart(np.ones(3), 0.1, 4.0, np.eye(3)), REAL),
    "columns": (NormalGamma(3, mean=0.3, strength=0.2, shape=1.5, rate=0.7), REAL),
    "bernoulli": (BetaBernoulli(4, 0.5, (1.5, 1.0, 2.0, 0.3)), (COUNTS > 1).astype(float)),
    "multinomial": (DirichletMultinomial(4, 0.3), COUNTS),
    "poisson": (GammaPoisson(4, 1.2, (0.3, 0.6, 0.9, 1.2)), COUNTS),
}
POINTS = np.array([(0, 0), (0.2, -0.1), (3, 3), (3.1, 2.8), (-3, 1)])


def five_clusters(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    means = np.array([(-8, -8), (-8, 8), (0, 0), (8, -8), (8, 8)])
    labels = rng.integers(0, 5, size=n)
    return means[labels] + rng.normal(size=(n, 2)), labels


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_expected_density_less_divergence_is_the_marginal_density(name):
    likelihood, X = LIKELIHOODS[name]
    weights = np.random.default_rng(1).random((40, 3))
    sums = weighted_sums(likelihood, X, weights)
    posteriors = ClusterPosteriors(likelihood, sums)
    expected = (weights * expected_log_density(posteriors, X)).sum(axis=0)
    np.testing.assert_allclose(expected - divergence(posteriors), likelihood.log_marginal(sums), rtol=1e-10)


@pytest.mark.parametrize("learn", [False, True])
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_bound_never_falls(name, learn):
    likelihood, X = LIKELIHOODS[name]
    model = TruncatedMeanField(likelihood, 6, Hyperparameter(1.0, Gamma(2.0, 1.0) if learn else None))
    rows = WeightedRows(X, np.ones(40))
    result = coordinate_ascent(model, rows, rng=np.random.default_rng(0), max_iter=300, tol=1e-9, strict=True)
    assert np.diff(result.trace).min() > -1e-9
    assert result.converged
    assert expected_weights(result.params.sticks).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_one_component_is_the_exact_posterior(name):
    likelihood, X = LIKELIHOODS[name]
    rows = WeightedRows(X, np.ones(40))
    result = coordinate_ascent(TruncatedMeanField(likelihood, 1), rows, rng=np.random.default_rng(0))
    assert result.elbo == pytest.approx(float(likelihood.log_marginal(likelihood.statistics(X).sum(axis=0))), rel=1e-12)


def test_the_bound_lies_below_the_evidence_of_five_points():
    """The evidence sums over all 52 partitions; the truncation at five components costs next to nothing here."""
    likelihood = NormalInverseWishart([0, 0], 0.1, 4, np.eye(2))
    rows = WeightedRows(POINTS, np.ones(5))
    result = coordinate_ascent(
        TruncatedMeanField(likelihood, 5), rows, rng=np.random.default_rng(0), n_init=10, tol=1e-10, max_iter=500
    )
    assert -30 < result.elbo < -20.8296204


def test_weights_count_as_copies():
    likelihood, X = LIKELIHOODS["gaussian"]
    weights = np.random.default_rng(2).integers(0, 4, size=40).astype(float)
    model = DirichletProcessMixture(likelihood, inference="vb", max_components=5, random_state=0)
    weighted = model.fit(X, sample_weight=weights)
    bound, density = weighted.elbo_[-1], weighted.score_samples(X)
    repeated = model.fit(np.repeat(X, weights.astype(int), axis=0)[::-1])
    assert repeated.elbo_[-1] == pytest.approx(bound, rel=1e-12)
    np.testing.assert_allclose(repeated.score_samples(X), density, rtol=1e-10)


def test_five_clusters_are_found_as_by_scikit_learn():
    X, labels = five_clusters()
    ours = DirichletProcessMixture(inference="vb", max_components=12, random_state=0).fit(X)
    theirs = BayesianGaussianMixture(
        n_components=12, weight_concentration_prior=1.0, max_iter=500, random_state=0, tol=1e-4
    ).fit(X)
    assert ours.n_clusters_ == 5
    assert adjusted_rand_score(labels, ours.labels_) > 0.99
    assert adjusted_rand_score(ours.labels_, theirs.predict(X)) > 0.99
    # Their prior is wider and their score that of one set of parameters.
    assert theirs.score(X) - 0.01 < ours.score(X) < theirs.score(X) + 0.1
    assert (np.diff(ours.elbo_) > -1e-6).all()
    with pytest.raises(AttributeError, match="no draws"):
        ours.n_components_posterior()


def test_a_fit_that_was_too_short_says_so():
    with pytest.warns(UserWarning, match="max_iter=2"):
        DirichletProcessMixture(inference="vb", max_iter=2, random_state=0).fit(five_clusters(200)[0])


@pytest.mark.parametrize("seed", range(5))
def test_one_cloud_of_points_is_one_cluster(seed):
    """All starts with many clusters end in several of them, at bounds that are up to 100 lower."""
    X = np.random.default_rng(seed).normal(size=(200, 2))
    model = DirichletProcessMixture(inference="vb", random_state=0).fit(X)
    assert model.n_clusters_ == 1
    # A longer stick costs a little: its pieces and the concentration are independent in q only.
    alone = DirichletProcessMixture(inference="vb", max_components=1).fit(X).lower_bound_
    assert alone - 5 < model.lower_bound_ <= alone
    assert (np.diff(model.elbo_) > -1e-6).all()


def test_two_clouds_are_two_clusters_and_iris_has_two_or_three():
    rng = np.random.default_rng(0)
    short = rng.multivariate_normal([2, 54], [[0.07, 0.4], [0.4, 34]], 97)
    long = rng.multivariate_normal([4.3, 80], [[0.17, 0.9], [0.9, 36]], 175)
    model = DirichletProcessMixture(inference="vb", random_state=0)
    assert model.fit(np.concatenate([short, long])).n_clusters_ == 2
    assert model.fit(load_iris().data).n_clusters_ in (2, 3)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_search_is_at_least_as_good_as_any_of_its_starts(name):
    likelihood, X = LIKELIHOODS[name]
    model, rows = TruncatedMeanField(likelihood, 6, Hyperparameter(1.0, Gamma(1.0, 1.0))), WeightedRows(X, np.ones(40))
    found = best_beliefs(model, rows, np.random.default_rng(0), n_init=2, max_iter=500, tol=1e-8)
    for number in occupied_numbers(6):
        start = model.start(rows, clustered_labels(rows, number, np.random.default_rng(number)))
        run = coordinate_ascent(model, rows, rng=np.random.default_rng(0), start=[start], max_iter=500, tol=1e-8)
        assert found.elbo > run.elbo - 1e-3


def test_components_that_belong_together_are_joined():
    X, labels = five_clusters(400)
    likelihood = make_likelihood("gaussian", None, X, np.ones(400))
    model, rows = TruncatedMeanField(likelihood, 10), WeightedRows(X, np.ones(400))
    q = model.start(rows, np.where((labels == 0) & (np.arange(400) % 2 == 0), 5, labels))
    statistics, sizes = next(fewer_components(likelihood, q))
    merged = model.settled(statistics, sizes, q.alpha, rows)
    assert (sizes > 1).sum() == 5
    assert merged.bound > q.bound + 5


def test_occupied_numbers_are_powers_of_two_and_the_truncation():
    assert [occupied_numbers(most) for most in (1, 2, 3, 8, 20)] == [
        [1], [1, 2], [1, 2, 3], [1, 2, 4, 8], [1, 2, 4, 8, 16, 20],
    ]  # fmt: skip


def test_ctrl_c_keeps_the_best_start_so_far(monkeypatch):
    X, count, update = five_clusters(100)[0], iter(range(1000)), TruncatedMeanField.update

    def interrupted(self, q, rows):
        if next(count) == 25:
            raise KeyboardInterrupt
        return update(self, q, rows)

    monkeypatch.setattr(TruncatedMeanField, "update", interrupted)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model = DirichletProcessMixture(inference="vb", random_state=0).fit(X)
    assert next(count) == 26
    assert np.isfinite(model.score(X))
