"""First centres of clusters: apart from each other, and as many as there are groups."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans

from pluri.processes.dpp import DPP
from pluri.processes.dpp.selection.seeding import diverse_seeds

CENTRES = np.array([[0, 0], [60, 0], [0, 60], [60, 60], [30, 100]])
SIZES = (20, 12, 8, 6, 4)


def groups(spread, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(centre, spread, size=(size, 2)) for centre, size in zip(CENTRES, SIZES)])


def test_clusters_are_not_worse_than_from_random_rows():
    rows = groups(4.0)
    drawn = [KMeans(5, init=diverse_seeds, n_init=1, random_state=seed).fit(rows).inertia_ for seed in range(40)]
    random = [KMeans(5, init="random", n_init=1, random_state=seed).fit(rows).inertia_ for seed in range(40)]
    # Random rows end 2.2 times as high on average, 4.3 standard errors from being equal: false alarm 1e-5.
    assert np.mean(drawn) < np.mean(random)
    greedy = KMeans(5, init=partial(diverse_seeds, method="map"), n_init=1).fit(rows)
    assert greedy.inertia_ <= 1.001 * min(drawn)


def test_number_of_rows_drawn_estimates_the_number_of_groups():
    # Within 1 of the truth in 93 of 100 draws: fewer than 80 of 100 among 200 draws is 7 standard errors away.
    rows = groups(1.0)
    rng = np.random.default_rng(1)
    sizes = [len(diverse_seeds(rows, random_state=rng, kernel_params={"length_scale": 15.0})) for _ in range(200)]
    assert np.mean(np.abs(np.array(sizes) - 5) <= 1) >= 0.8


def test_each_group_is_hit_with_the_odds_that_were_asked_for():
    # Points that coincide: the law is that of independent coins, one for each group, however many rows it has.
    rows = np.repeat(CENTRES.astype(float), SIZES, axis=0)
    rng = np.random.default_rng(2)
    draws = [diverse_seeds(rows, random_state=rng, odds=3.0, kernel_params={"length_scale": 1.0}) for _ in range(400)]
    hits = np.array([[(draw == centre).all(axis=1).sum() for centre in CENTRES] for draw in draws])
    assert hits.max() == 1
    # Five frequencies of 400 draws within 5.5 standard errors of 3/4: false alarm 2e-7.
    assert (np.abs(hits.mean(axis=0) - 0.75) < 5.5 * np.sqrt(0.75 * 0.25 / 400)).all()


def test_balanced_kernel_is_that_of_a_random_walk():
    rows = np.random.default_rng(3).normal(size=(12, 2))
    similarity = np.exp(-0.5 * ((rows[:, None] - rows) ** 2).sum(axis=2))
    crowd = similarity.sum(axis=1)
    law = DPP(10.0 * similarity / np.sqrt(crowd * crowd[:, None]))
    rng = np.random.default_rng(4)
    sizes = [len(diverse_seeds(rows, random_state=rng, kernel_params={"length_scale": 1.0})) for _ in range(400)]
    # Mean of 400 draws within 5.5 standard errors: false alarm 4e-8.
    assert abs(np.mean(sizes) - law.expected_size) < 5.5 * np.sqrt(law.size_variance / 400)


def test_sparse_rows_are_seeds_of_sparse_k_means():
    rows = sparse.csr_array(np.repeat(np.eye(4), 5, axis=0) + 0.01)
    seeds = diverse_seeds(rows, 4, random_state=0, kernel="cosine")
    assert isinstance(seeds, np.ndarray)
    assert sorted(seeds.argmax(axis=1)) == [0, 1, 2, 3]
    init = partial(diverse_seeds, kernel="linear")
    labels = KMeans(4, init=init, n_init=1, random_state=0).fit_predict(sparse.csr_matrix(rows))
    assert len(set(labels.reshape(4, 5).T[0])) == 4
    balanced = diverse_seeds(rows, kernel="cosine", random_state=0, method="map", odds=50.0)
    assert len(balanced) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "kernel_params must give the length_scale of 'rbf' where n_clusters is None"),
        ({"n_clusters": 7}, r"n_clusters must be at most the number of rows \(n_samples = 6\), got 7"),
        ({"n_clusters": 2.5}, "n_clusters must be a whole number or None, got 2.5"),
        ({"n_clusters": 4}, "n_clusters must be at most 3, the number of the 6 rows that this kernel tells apart"),
        ({"kernel_params": {"length_scale": 1.0}, "odds": -1.0}, "odds must be a positive number, got -1.0"),
        ({"kernel": "linear"}, "kernel must give non-negative similarities where n_clusters is None"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(arguments, message):
    rows = np.array([[0.0], [0.0], [1.0], [1.0], [-3.0], [-3.0]])
    with pytest.raises(ValueError, match=message):
        diverse_seeds(rows, **arguments)
