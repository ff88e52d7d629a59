"""Clusters that pay for themselves."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.utils.estimator_checks import check_estimator

from pluri.mixtures.dp_means import DPMeans, cluster, farthest_first_penalty


def five_clusters(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    means = np.array([(-8, -8), (-8, 8), (0, 0), (8, -8), (8, 8)])
    labels = rng.integers(0, 5, size=n)
    return means[labels] + rng.normal(size=(n, 2)), labels


@pytest.mark.parametrize("penalty", [80.0, 90.0, 100.0])
def test_five_clusters_in_every_order(penalty):
    """Centres are 128 apart, squared; two rows of a cluster exceed the penalty with probability exp(-penalty / 4).

    For 10 000 rows that is 2e-5. At 36 one order in forty opens a sixth cluster.
    """
    X, labels = five_clusters()
    for seed in range(10):
        run = cluster(X, np.ones(len(X)), penalty, np.random.default_rng(seed), 300)
        assert len(run.centers) == 5
        assert adjusted_rand_score(labels, run.labels) == 1.0


def test_a_low_penalty_splits_clusters():
    X, _ = five_clusters()
    numbers = [len(cluster(X, np.ones(len(X)), 6.0, np.random.default_rng(s), 300).centers) for s in range(10)]
    assert 5 < min(numbers) <= max(numbers) < 100


@pytest.mark.parametrize("penalty", [0.5, 4.0, 30.0])
def test_the_cost_never_rises_and_is_what_it_says(penalty):
    X = np.random.default_rng(1).normal(size=(200, 3)) * 3
    model = DPMeans(penalty, random_state=0, n_init=2).fit(X)
    assert (np.diff(model.cost_history_) <= 1e-9).all()
    inertia = ((X - model.cluster_centers_[model.labels_]) ** 2).sum()
    assert model.inertia_ == pytest.approx(inertia)
    assert model.score(X) == pytest.approx(-inertia)
    assert model.cost_history_[-1] == pytest.approx(inertia + penalty * model.n_clusters_)
    for k, center in enumerate(model.cluster_centers_):
        np.testing.assert_allclose(X[model.labels_ == k].mean(axis=0), center)


def test_extreme_penalties_give_one_cluster_and_one_for_each_row():
    X, _ = five_clusters(60)
    assert DPMeans(1e9, random_state=0).fit(X).n_clusters_ == 1
    assert DPMeans(0.0, random_state=0).fit(np.repeat(X, 2, axis=0)).n_clusters_ == 60


def test_at_rest_it_is_at_rest_for_k_means_too():
    X, _ = five_clusters(300, seed=1)
    model = DPMeans(40.0, random_state=0).fit(X)
    lloyd = KMeans(model.n_clusters_, init=model.cluster_centers_, n_init=1, max_iter=1).fit(X)
    np.testing.assert_allclose(lloyd.cluster_centers_, model.cluster_centers_)
    np.testing.assert_allclose(model.transform(X).min(axis=1) ** 2, lloyd.transform(X).min(axis=1) ** 2, atol=1e-9)


def test_weights_count_as_copies_and_order_does_not():
    X, _ = five_clusters(80)
    weights = np.random.default_rng(1).integers(0, 4, size=80)
    model = DPMeans(20.0, random_state=0).fit(X, sample_weight=weights)
    repeated = DPMeans(20.0, random_state=0).fit(np.repeat(X, weights, axis=0)[::-1])
    np.testing.assert_allclose(model.cluster_centers_, repeated.cluster_centers_)
    assert model.cost_history_ == pytest.approx(repeated.cost_history_)


def test_the_penalty_can_be_chosen_for_a_number_of_clusters():
    X, labels = five_clusters()
    model = DPMeans(n_clusters=5, random_state=0).fit(X)
    assert model.penalty_ == farthest_first_penalty(X, 5)
    # The penalty is the diameter of a cluster, nearly: one order in five opens a sixth cluster.
    assert model.n_clusters_ in (5, 6, 7)
    assert adjusted_rand_score(labels, model.labels_) > 0.8


def test_the_contract_of_scikit_learn():
    check_estimator(DPMeans(), on_skip=None)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"penalty": -1.0}, "penalty must be"), ({"n_init": 0}, "n_init must be"), ({"max_iter": 0}, "max_iter must be")],
)
def test_mistakes_get_a_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        DPMeans(**settings).fit(np.eye(3))


def test_a_run_that_was_too_short_says_so():
    with pytest.warns(UserWarning, match="max_iter=1"):
        DPMeans(20.0, max_iter=1, random_state=0).fit(five_clusters(100)[0])


def test_distances_far_from_zero_keep_their_digits():
    X, _ = five_clusters(200)
    near, far = (DPMeans(50.0, random_state=0, n_init=2).fit(X + offset) for offset in (0.0, 1e8))
    rows = X + 1e8
    exact = np.linalg.norm(rows[:, None] - far.cluster_centers_, axis=2)
    np.testing.assert_allclose(far.transform(rows), exact, atol=1e-6)
    np.testing.assert_array_equal(far.predict(rows), exact.argmin(axis=1))
    assert adjusted_rand_score(near.labels_, far.labels_) == 1.0


def test_missing_entries_are_refused_with_what_to_do():
    X = np.array([[0.0, 1.0], [np.nan, 2.0]])
    with pytest.raises(ValueError, match=r"X must not contain NaN, got 1 .* leave out the rows"):
        DPMeans(penalty=1.0).fit(X)
    with pytest.raises(ValueError, match="leave out the rows"):
        DPMeans(penalty=1.0).fit(X[:1]).predict(X)
