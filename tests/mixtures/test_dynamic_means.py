"""Dynamic means: the cost against brute force and DP-means, moving clusters with births, deaths and returns."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri import on_interrupt
from pluri.datasets.moving_clusters import make_moving_clusters
from pluri.mixtures.batches.dynamic_means import DynamicMeans, StoredClusters, cluster_batch
from pluri.mixtures.dp_means import DPMeans
from pluri.testing import set_partitions


def accuracy(truth, labels):
    """Share of points whose identity is right, identities matched once for all batches."""
    truth, labels = np.concatenate(truth), np.concatenate(labels)
    table = np.zeros((truth.max() + 1, labels.max() + 1))
    np.add.at(table, (truth, labels), 1)
    return table[linear_sum_assignment(-table)].sum() / len(truth)


def dp_means_cost(X, labels, penalty):
    return sum(
        penalty + ((X[labels == k] - X[labels == k].mean(axis=0)) ** 2).sum() for k in np.unique(labels)
    )  # fmt: skip


def dp_means(X, penalty, rng, max_iter=100):
    """DP-means as a textbook has it, without stored clusters: labels after passes in random orders, and the cost."""
    labels, centres, cost = np.full(len(X), -1), {}, np.inf
    for _ in range(max_iter):
        before = labels.copy()
        for i in rng.permutation(len(X)):
            labels[i] = -1
            centres = {k: centre for k, centre in centres.items() if (labels == k).any()}
            distances = {k: ((X[i] - centre) ** 2).sum() for k, centre in centres.items()}
            best = min(distances, key=distances.get, default=None)
            if best is None or distances[best] > penalty:
                best = next(k for k in range(len(X)) if k not in centres)
                centres[best] = X[i]
            labels[i] = best
        centres = {k: X[labels == k].mean(axis=0) for k in np.unique(labels).tolist()}
        cost, last = dp_means_cost(X, labels, penalty), cost
        if (labels == before).all() or (last < np.inf and last - cost <= 1e-12 * abs(last)):
            break
    return labels, cost


@pytest.mark.parametrize("penalty", [0.2, 1.0, 4.0, 60.0])
def test_one_batch_is_dp_means_in_the_same_order(penalty):
    rng = np.random.default_rng(1)
    for n in (1, 8, 40):
        X = rng.normal(size=(n, 2)) * 1.5
        labels, cost = dp_means(X, penalty, np.random.default_rng(5))
        found = cluster_batch(X, StoredClusters.none(2), penalty, 0.0, 0.0, np.random.default_rng(5))
        assert found.costs[-1] == pytest.approx(cost, rel=1e-12)
        assert ((found.labels[:, None] == found.labels) == (labels[:, None] == labels)).all()


@pytest.mark.parametrize(("penalty", "reached"), [(0.2, False), (1.0, False), (4.0, True), (60.0, True)])
def test_the_cost_of_one_batch_is_bounded_by_all_partitions(penalty, reached):
    # 8 points in a plane have 4140 partitions. With a small penalty the best merges points that never meet.
    X = np.random.default_rng(1).normal(size=(8, 2)) * 1.5
    model = DynamicMeans(penalty, n_init=60, drift=0.0, survival=np.inf, random_state=0).fit(X)
    best = min(dp_means_cost(X, np.asarray(labels), penalty) for labels in set_partitions(8))
    assert model.cost_history_[0][-1] >= best - 1e-9
    assert model.cost_history_[0][-1] <= 1.05 * best
    if reached:
        assert model.cost_history_[0][-1] == pytest.approx(best, abs=1e-9)
    assert dp_means_cost(X, model.labels_, penalty) == pytest.approx(model.cost_history_[0][-1], abs=1e-9)


def batch_cost(X, labels, stored, penalty, aging, drift):
    """Least cost for given labels: those below ``len(stored)`` are stored clusters."""
    total = 0.0
    for k in np.unique(labels):
        own = X[labels == k]
        if k < len(stored.ages):
            pull = 1 / (1 / stored.weights[k] + stored.ages[k] * drift)
            centre = (pull * stored.centers[k] + own.sum(axis=0)) / (pull + len(own))
            total += aging * stored.ages[k] + pull * ((centre - stored.centers[k]) ** 2).sum()
        else:
            centre = own.mean(axis=0)
            total += penalty
        total += ((own - centre) ** 2).sum()
    return total


@pytest.mark.parametrize("penalty", [0.5, 3.0])
def test_a_later_batch_reaches_the_least_cost_of_all_assignments(penalty):
    # 6 points, two stored clusters of which each may be used or not: all partitions with two blocks singled out.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6, 2)) * 1.5
    stored = StoredClusters(
        np.array([4, 7]), np.array([[0.5, 0.0], [-2.0, 1.0]]), np.array([3.0, 10.0]), np.array([1, 3])
    )
    aging, drift = penalty / 5, 0.2
    best = np.inf
    for partition in set_partitions(6):
        blocks = np.asarray(partition)
        n = blocks.max() + 1
        for first in range(-1, n):
            for second in range(-1, n):
                if first == second >= 0:
                    continue
                names = 2 + np.arange(n)
                if first >= 0:
                    names[first] = 0
                if second >= 0:
                    names[second] = 1
                best = min(best, batch_cost(X, names[blocks], stored, penalty, aging, drift))
    found = [cluster_batch(X, stored, penalty, aging, drift, rng) for _ in range(80)]
    assert min(one.costs[-1] for one in found) == pytest.approx(best, abs=1e-9)
    for one in found:
        assert one.costs[-1] == pytest.approx(batch_cost(X, one.labels, stored, penalty, aging, drift), abs=1e-9)
        assert (np.diff(one.costs) <= 1e-9).all()
        assert (np.bincount(one.labels, minlength=8) == one.counts).all()


def test_one_batch_costs_what_dp_means_pays():
    X = np.random.default_rng(3).normal(size=(60, 2)) + 6 * np.repeat(np.eye(3, 2), 20, axis=0)
    model = DynamicMeans(25.0, n_init=10, random_state=0).fit(X)
    other = DPMeans(25.0, n_init=10, random_state=0).fit(X)
    assert dp_means_cost(X, other.labels_, 25.0) == pytest.approx(model.cost_history_[0][-1])


def test_limits_of_the_penalty_are_one_cluster_and_singletons():
    X = np.random.default_rng(4).normal(size=(30, 3))
    one = DynamicMeans(1e9, random_state=0).fit(X)
    assert one.n_clusters_ == 1
    assert one.cluster_centers_[0] == pytest.approx(X.mean(axis=0))
    assert DynamicMeans(0.0, random_state=0).fit(X).n_clusters_ == 30


@pytest.mark.parametrize("state", range(3))
def test_moving_clusters_keep_their_identities(state):
    data = make_moving_clusters(min_distance=2.0, random_state=np.random.default_rng(state))
    model = DynamicMeans(4.0, survival=6.8, drift=0.1, random_state=0).fit(data.batches)
    assert model.n_clusters_ == 5
    assert accuracy(data.labels, model.labels_) > 0.999
    for costs in model.cost_history_:
        assert (np.diff(costs) <= 1e-9).all()
    for track in model.tracks_.values():
        assert (track.birth, track.last_seen, len(track.steps)) == (0, 29, 30)
        assert (track.sizes == 15).all()


def test_births_and_deaths_are_found():
    data = make_moving_clusters(
        40, min_distance=3.0, birth_rate=0.3, death_rate=0.06, random_state=np.random.default_rng(0)
    )
    model = DynamicMeans(4.0, survival=2.0, drift=0.1, random_state=0).fit(data.batches)
    assert data.n_clusters > 12
    assert model.n_clusters_ == data.n_clusters
    assert accuracy(data.labels, model.labels_) > 0.99
    lives = {k: [t for t, alive in enumerate(data.alive) if k in alive] for k in range(data.n_clusters)}
    found = sorted((track.birth, track.last_seen) for track in model.tracks_.values())
    assert found == sorted((steps[0], steps[-1]) for steps in lives.values())


def test_a_cluster_that_returns_in_time_is_the_same_and_later_another():
    here, there = np.zeros((5, 1)), np.full((5, 1), 50.0)
    together = np.vstack([here, there])
    in_time = DynamicMeans(4.0, survival=3.0, random_state=0).fit([together, there, there, together])
    assert in_time.n_clusters_ == 2
    assert in_time.labels_[3].tolist() == in_time.labels_[0].tolist()
    too_late = DynamicMeans(4.0, survival=3.0, random_state=0).fit([together, there, there, there, together])
    assert too_late.n_clusters_ == 3
    assert too_late.labels_[4][5:].tolist() == too_late.labels_[0][5:].tolist()
    assert too_late.tracks_[2].steps.tolist() == [4]
    # Time also passes in batches without points.
    nothing = np.empty((0, 1))
    assert DynamicMeans(4.0, survival=3.0).fit([together, *[nothing] * 3]).cluster_identities_.size == 0
    assert DynamicMeans(4.0, survival=3.0).fit([together, *[nothing] * 2]).cluster_ages_.tolist() == [3, 3]


def test_memory_has_the_weights_and_centres_of_the_formula():
    first, second = np.array([[0.0], [1.0]]), np.array([[2.0]])
    model = DynamicMeans(100.0, survival=4.0, drift=0.5, random_state=0).fit([first, second])
    pull = 1 / (1 / 2 + 0.5)
    assert model.cluster_weights_ == pytest.approx([pull + 1])
    assert model.cluster_centers_[0] == pytest.approx([(pull * 0.5 + 2.0) / (pull + 1)])
    cost = 25.0 + pull * (model.cluster_centers_[0, 0] - 0.5) ** 2 + (2.0 - model.cluster_centers_[0, 0]) ** 2
    assert model.cost_history_[1][-1] == pytest.approx(cost)


def test_one_call_of_fit_and_many_of_partial_fit_agree():
    data = make_moving_clusters(6, random_state=1)
    whole = DynamicMeans(4.0, random_state=3).fit(data.batches)
    parts = DynamicMeans(4.0, random_state=3)
    for batch, labels in zip(data.batches, whole.labels_):
        assert (parts.partial_fit(batch).labels_ == labels).all()
    assert (parts.cluster_centers_ == whole.cluster_centers_).all()
    assert parts.n_batches_seen_ == 6
    assert (whole.predict(whole.cluster_centers_) == whole.cluster_identities_).all()
    assert "clusters in 6 batches" in whole.summary()
    assert (whole.fit(data.batches[0]).labels_ == parts.fit(data.batches[:1]).labels_[0]).all()
    assert whole.n_batches_seen_ == 1


def test_lengths_cut_one_matrix_into_the_same_batches():
    batches = make_moving_clusters(n_batches=4, min_distance=2.0, random_state=0).batches
    batches = [batches[0], batches[1][:5], np.empty((0, 2)), *batches[2:]]
    lengths = [len(batch) for batch in batches]
    expected = DynamicMeans(4.0, random_state=0).fit(batches)
    X = np.concatenate(batches)
    for arguments in ({"lengths": lengths}, {"y": lengths}, {"y": np.array(lengths, dtype=np.uint8)}):
        model = DynamicMeans(4.0, random_state=0).fit(X, **arguments)
        assert model.n_batches_seen_ == 5
        np.testing.assert_array_equal(model.labels_, np.concatenate(expected.labels_))
        np.testing.assert_array_equal(model.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(DynamicMeans(4.0, random_state=0).fit_predict(X, lengths), model.labels_)
    import pandas

    frame = pandas.DataFrame(X, columns=["x", "y"])
    np.testing.assert_array_equal(DynamicMeans(4.0, random_state=0).fit(frame, lengths).labels_, model.labels_)
    one = DynamicMeans(4.0, random_state=0).fit(X, np.zeros(len(X), dtype=int))
    assert one.n_batches_seen_ == 1, "one entry for each row is a y to ignore"


def test_three_axes_are_a_list_of_batches_for_fit_and_predict():
    X = np.random.default_rng(0).normal(size=(3, 8, 2))
    for cube in (X, X.tolist()):
        model, same = DynamicMeans(random_state=0).fit(cube), DynamicMeans(random_state=0).fit(list(X))
        assert [labels.tolist() for labels in model.labels_] == [labels.tolist() for labels in same.labels_]
        found = model.predict(cube)
        assert len(found) == 3
        np.testing.assert_array_equal(np.concatenate(found), model.predict(X.reshape(-1, 2)))
    assert [len(labels) for labels in model.predict([X[0], np.empty((0, 2))])] == [8, 0]


@pytest.mark.parametrize(
    ("X", "lengths", "message"),
    [
        (np.zeros((6, 2)), [3, 4], r"lengths must sum to the number of rows of X \(6\), got the sum 7"),
        (np.zeros((6, 2)), [7, -1], "lengths must be a list of non-negative integers"),
        (np.zeros((6, 2)), [3.0, 3.0], "lengths must be a list of non-negative integers"),
        (np.zeros((6, 2)), [], "lengths must be a list of non-negative integers"),
        ([np.zeros((6, 2))], [6], "lengths must not be given with a list of batches"),
        ([np.zeros((6, 2)), np.zeros(2)], None, "X must be a list of batches with two axes .* got 1 in batch 1"),
        ([[[0.0], [1.0, 2.0]], [[1.0]]], None, "X must hold rows of equal length in each batch"),
    ],
)
def test_wrong_lengths_and_batches_get_one_sentence(X, lengths, message):
    with pytest.raises(ValueError, match=message):
        DynamicMeans().fit(X, lengths=lengths)


def test_a_failed_refit_loses_nothing():
    data = make_moving_clusters(3, random_state=1)
    model = DynamicMeans(4.0, random_state=3).fit(data.batches)
    before = model.cluster_centers_.copy()
    with pytest.raises(ValueError, match="NaN"):
        model.fit([data.batches[0], np.full((3, 2), np.nan)])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(np.zeros((3, 5)))
    assert (model.cluster_centers_ == before).all()
    assert len(model.tracks_[0].steps) == 3


def test_ctrl_c_keeps_the_batches_that_are_done(monkeypatch):
    data = make_moving_clusters(5, random_state=1)
    model = DynamicMeans(4.0, random_state=3)
    advance = DynamicMeans._advance

    def stopped(self, X):
        if self.n_batches_seen_ == 2:
            raise KeyboardInterrupt
        return advance(self, X)

    monkeypatch.setattr(DynamicMeans, "_advance", stopped)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted after 2 batches"):
        model.fit(data.batches)
    assert len(model.labels_) == 2


def test_for_ever_and_too_few_passes_give_warnings():
    data = make_moving_clusters(2, random_state=1)
    with pytest.warns(UserWarning, match="kept for ever"):
        DynamicMeans(4.0, survival=np.inf).fit(data.batches)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        DynamicMeans(0.5, max_iter=1, n_init=1, random_state=0).fit(data.batches[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": -1.0}, "penalty must be"),
        ({"penalty": np.inf}, "penalty must be"),
        ({"survival": 0.0}, "survival must be"),
        ({"drift": "far"}, "drift must be"),
        ({"n_init": 0}, "n_init must be"),
    ],
)
def test_wrong_settings_get_one_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        DynamicMeans(**settings).fit(np.zeros((3, 2)))


def test_the_generator_gives_what_it_says():
    data = make_moving_clusters(20, 4, 10, birth_rate=0.5, death_rate=0.1, min_distance=1.0, random_state=2)
    assert len(data) == 20
    for points, labels, centres, alive in zip(data.batches, data.labels, data.centers, data.alive):
        assert sorted(set(labels.tolist())) == sorted(alive.tolist())
        place = {name: centres[i] for i, name in enumerate(alive.tolist())}
        assert np.abs(points - [place[k] for k in labels.tolist()]).max(initial=0) < 0.3 * 6
    assert data.n_clusters > 4
    with pytest.raises(ValueError, match="death_rate must be"):
        make_moving_clusters(death_rate=2.0)
    with pytest.raises(ValueError, match="n_batches must be"):
        make_moving_clusters(0)


@parametrize_with_checks([DynamicMeans(random_state=0)])
def test_it_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)
