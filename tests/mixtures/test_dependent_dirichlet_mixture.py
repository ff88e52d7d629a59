"""The dependent Dirichlet process mixture: one batch against enumeration, with and without a past, then many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linear_sum_assignment
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.datasets.moving_clusters import make_moving_clusters
from pluri.inference import mcmc
from pluri.mixtures.batches.dependent_dirichlet_mixture import DependentDirichletMixture
from pluri.mixtures.batches.dependent_gibbs import ClusterMemory, ClusterPrior, DependentClusterGibbs
from pluri.processes import ChineseRestaurantProcess
from pluri.testing import DiscretePosterior, SamplerProblem, set_partitions

X5 = np.array([[0.0, 0.0], [0.4, -0.3], [2.0, 1.5], [2.3, 1.0], [-2.0, 1.0]])
PRIOR = ClusterPrior(1.3, 0.8, 0.5, np.array([0.2, 0.1]), 3.0, 0.4)
PAST = ClusterMemory(
    np.array([3, 8]), np.array([4, 1]), np.array([[0.3, 0.2], [2.5, 1.0]]), np.array([0.1, 0.3]), np.array([1, 3])
)


def log_density_of_cluster(rows, mean, variance, noise):
    """Normal rows whose common centre has the given mean and variance, one direction after the other."""
    n = len(rows)
    covariance = noise * np.eye(n) + variance
    return sum(stats.multivariate_normal(np.full(n, m), covariance).logpdf(column) for m, column in zip(mean, rows.T))


def labellings(n, n_known):
    """All ways to give n points to remembered clusters and to new ones, new ones in the order of first points."""
    for partition in set_partitions(n):
        blocks = np.asarray(partition)
        n_blocks = int(blocks.max()) + 1
        for old in np.ndindex(*(n_known + 1,) * n_blocks):
            used = [k for k in old if k < n_known]
            if len(set(used)) == len(used):
                names, fresh = [], n_known
                for k in old:
                    names.append(k if k < n_known else fresh)
                    fresh += k == n_known
                yield tuple(np.array(names)[blocks].tolist())


def exact_posterior(X, memory):
    n_known = len(memory.counts)

    def log_joint(z):
        labels = np.array(z)
        total = 0.0
        for k in np.unique(labels):
            own = X[labels == k]
            if k < n_known:
                again = memory.ages[k] * math.log(0.8) + math.lgamma(memory.counts[k] + len(own))
                total += again - math.lgamma(memory.counts[k])
                variance = memory.variances[k] + memory.ages[k] * 0.4
                total += log_density_of_cluster(own, memory.means[k], variance, 0.5)
            else:
                total += math.log(1.3) + math.lgamma(len(own))
                total += log_density_of_cluster(own, PRIOR.base_mean, 3.0, 0.5)
        return total

    configurations = list(labellings(len(X), n_known))
    logs = np.array([log_joint(z) for z in configurations])
    evidence = np.logaddexp.reduce(logs)
    return DiscretePosterior(configurations, logs - evidence, float(evidence))


def compare(kernel, posterior, n_draws, random_state):
    """Share of every labelling of more than 1 % against 6 estimated standard errors."""
    trace = mcmc.sample(kernel, kernel.start, n_draws=n_draws, n_warmup=100, random_state=random_state, warn=False)
    base = 1 + max(max(z) for z in posterior.configurations)
    powers = base ** np.arange(len(kernel.X))
    codes = trace["labels"] @ powers
    probability = np.exp(posterior.log_probability)
    checked = 0.0
    for z, p in zip(posterior.configurations, probability):
        if p > 0.01:
            hits = (codes == np.array(z) @ powers).astype(float)
            assert abs(hits.mean() - p) < 6 * mcmc.mcse_mean(hits)
            checked += p
    assert checked > 0.5
    return trace


def test_one_batch_is_a_dirichlet_process_mixture():
    nothing = ClusterMemory.none(2)
    posterior = exact_posterior(X5, nothing)
    assert len(posterior.configurations) == 52
    kernel = DependentClusterGibbs(X5, PRIOR)
    trace = compare(kernel, posterior, 3000, 0)
    # The prior is the restaurant up to its constant, and the log densities agree with a direct sum.
    restaurant = ChineseRestaurantProcess(1.3)
    for z, p in zip(posterior.configurations, posterior.log_probability):
        labels = np.array(z)
        constant = math.lgamma(1.3) - math.lgamma(1.3 + 5)
        assert kernel.log_prior(labels) + constant == pytest.approx(restaurant.logpmf(labels))
        assert kernel.log_joint(labels) == pytest.approx(p + posterior.log_evidence)
    n_clusters = trace.stats["n_clusters"]
    expected = posterior.expectation(lambda z: max(z) + 1)
    assert abs(n_clusters.mean() - expected) < 6 * mcmc.mcse_mean(n_clusters)


def test_a_batch_with_a_past_has_its_exact_posterior():
    posterior = exact_posterior(X5, PAST)
    kernel = DependentClusterGibbs(X5, PRIOR, PAST)
    compare(kernel, posterior, 3000, 1)
    for z, p in zip(posterior.configurations, posterior.log_probability):
        assert kernel.log_joint(np.array(z)) == pytest.approx(p + posterior.log_evidence)


def sampler_problem():
    """Geweke's test of a batch of four points with two remembered clusters; labels of the prior by enumeration."""
    kernel = DependentClusterGibbs(np.zeros((4, 2)), PRIOR, PAST)
    configurations = list(labellings(4, 2))
    logs = np.array([kernel.log_prior(np.array(z)) for z in configurations])
    prior = DiscretePosterior(configurations, logs - np.logaddexp.reduce(logs), float(np.logaddexp.reduce(logs)))

    def statistics(theta, X):
        labels = theta["labels"]
        return {
            "first": (labels == 0).mean(), "second": (labels == 1).mean(), "clusters": len(np.unique(labels)),
            "together": float(labels[0] == labels[1]), "X": X.mean(axis=0), "spread": X.var(),
        }  # fmt: skip

    return SamplerProblem(
        "DependentClusterGibbs",
        prior=lambda rng: {"labels": np.array(prior.sample(rng))},
        data=kernel.sample_data,
        transition=kernel.sweep,
        statistics=statistics,
        log_likelihood=lambda theta, X: kernel.log_likelihood(theta["labels"], X),
        n_steps=3,
    )


def test_centres_are_those_of_their_posterior():
    kernel = DependentClusterGibbs(X5, PRIOR, PAST)
    labels = np.array([0, 0, 2, 2, 3])
    centres, variances, counts = kernel.centres_given(labels)
    assert counts.tolist() == [2, 0, 2, 1]
    precision = 1 / (0.1 + 0.4) + 2 / 0.5
    assert variances[0] == pytest.approx(1 / precision)
    assert centres[0] == pytest.approx((PAST.means[0] / 0.5 + X5[:2].sum(axis=0) / 0.5) / precision)
    assert variances[2] == pytest.approx(1 / (1 / 3.0 + 2 / 0.5))
    assert centres[1] == pytest.approx(PAST.means[1])


def test_moving_clusters_keep_their_identities():
    data = make_moving_clusters(10, min_distance=3.0, random_state=0)
    model = DependentDirichletMixture(noise_variance=0.09, random_state=0, n_draws=40, n_warmup=60).fit(data.batches)
    truth, labels = np.concatenate(data.labels), np.concatenate(model.labels_)
    table = np.zeros((truth.max() + 1, labels.max() + 1))
    np.add.at(table, (truth, labels), 1)
    assert table[linear_sum_assignment(-table)].sum() / len(truth) > 0.99
    assert model.n_clusters_ <= 6
    main = [track for track in model.tracks_.values() if track.sizes.sum() > 100]
    assert len(main) == 5
    for track in main:
        errors = [
            np.linalg.norm(data.centers[t] - centre, axis=1).min() for t, centre in zip(track.steps, track.centers)
        ]
        assert max(errors) < 0.4
    similarity = model.similarity_matrix()
    assert similarity.shape == (75, 75)
    assert np.diagonal(similarity) == pytest.approx(np.ones(75))
    same = data.labels[-1][:, None] == data.labels[-1]
    assert similarity[same].mean() > 0.95
    assert similarity[~same].mean() < 0.05
    assert "clusters in 10 batches" in model.summary()
    assert len(model.n_clusters_trace_) == 10


def test_clusters_are_forgotten_and_come_back():
    here, there = np.zeros((6, 1)), np.full((6, 1), 50.0)
    together = np.vstack([here, there])
    settings = {"noise_variance": 0.5, "base_mean": 25.0, "base_variance": 1e3, "n_draws": 20, "n_warmup": 20}
    kept = DependentDirichletMixture(survival=0.9, random_state=0, **settings).fit([together, there, there, together])
    assert kept.n_clusters_ == 2
    assert kept.labels_[3].tolist() == kept.labels_[0].tolist()
    lost = DependentDirichletMixture(survival=1e-8, random_state=0, **settings).fit([together, there, together])
    assert lost.n_clusters_ > 3
    independent = DependentDirichletMixture(survival=0.0, random_state=0, **settings).fit([together, together])
    assert independent.n_clusters_ == 4
    quiet = DependentDirichletMixture(survival=0.9, random_state=0, **settings).fit([together, np.empty((0, 1))])
    assert quiet.cluster_ages_.tolist() == [2, 2]
    assert quiet.labels_[1].shape == (0,)


def test_one_call_of_fit_and_many_of_partial_fit_agree():
    data = make_moving_clusters(4, 3, random_state=1)
    settings = {"noise_variance": 0.09, "n_draws": 10, "n_warmup": 10, "random_state": 3}
    whole = DependentDirichletMixture(**settings).fit(data.batches)
    parts = DependentDirichletMixture(**settings)
    for batch, labels in zip(data.batches, whole.labels_):
        assert (parts.partial_fit(batch).labels_ == labels).all()
    before = parts.cluster_centers_.copy()
    with pytest.raises(ValueError, match="NaN"):
        parts.partial_fit([[np.nan, 0.0]])
    assert (parts.cluster_centers_ == before).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"concentration": 0.0}, "concentration must be a positive number"),
        ({"noise_variance": None}, "noise_variance must be a positive number"),
        ({"drift_variance": -1.0}, "drift_variance must be a number of at least 0"),
        ({"base_variance": np.inf}, "base_variance must be a positive number"),
        ({"survival": 1.5}, "survival must be a number of at least 0 and at most 1"),
        ({"base_mean": [1.0, 2.0, 3.0]}, "base_mean must be a finite number"),
        ({"n_draws": 0}, "n_draws must be"),
    ],
)
def test_wrong_settings_get_one_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        DependentDirichletMixture(**settings).fit(X5)


@parametrize_with_checks([DependentDirichletMixture(n_draws=20, n_warmup=30, random_state=0)])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def test_batches_may_come_end_to_end_with_their_lengths():
    batches = [np.array([[0.0], [0.1], [9.0]]), np.array([[0.2], [9.1]])]
    model = DependentDirichletMixture(noise_variance=0.1, n_draws=50, n_warmup=20, random_state=0)
    listed = model.fit(batches)
    labels = np.concatenate(listed.labels_)
    for arguments in ({"lengths": [3, 2]}, {"y": [3, 2]}):
        np.testing.assert_array_equal(model.fit(np.concatenate(batches), **arguments).labels_, labels)
        assert model.n_batches_seen_ == 2
