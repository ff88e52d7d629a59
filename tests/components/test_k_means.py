"""k-means for starting values: every row at the nearest centre, weights as repeated rows, as good as scikit-learn's."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from pluri.components import k_means as module
from pluri.components.k_means import k_means


def within(X, labels, centers, weight=None):
    squares = ((X - centers[labels]) ** 2).sum(axis=1)
    return squares.sum() if weight is None else squares @ weight


@pytest.mark.parametrize(("n", "d", "k", "n_init"), [(30, 1, 2, 1), (200, 2, 5, 3), (400, 6, 4, 10)])
def test_rows_are_at_the_nearest_centre_and_centres_are_means(n, d, k, n_init):
    X = make_blobs(n, d, centers=k, cluster_std=2.0, random_state=n)[0]
    labels, centers = k_means(X, None, k, np.random.default_rng(0), n_init=n_init)
    distances = ((X[:, None] - centers) ** 2).sum(axis=2)
    np.testing.assert_array_equal(labels, distances.argmin(axis=1))
    for cluster in range(k):
        np.testing.assert_allclose(centers[cluster], X[labels == cluster].mean(axis=0), atol=1e-10)


def test_clusters_are_as_tight_as_those_of_scikit_learn():
    # Sums of the within-cluster squares over 30 data sets, each the best of three starts by the same rule: their ratio
    # is 1 with a standard deviation of .006 over sets of seeds, so that the bound fails once in a million. Without
    # k-means++ it is 1.07 to 1.15.
    ours = theirs = 0.0
    for seed in range(30):
        X = make_blobs(150, 3, centers=8, cluster_std=1.5, random_state=seed)[0]
        ours += within(X, *k_means(X, None, 8, np.random.default_rng(seed), n_init=3))
        theirs += KMeans(8, n_init=3, random_state=seed).fit(X).inertia_
    assert ours < 1.03 * theirs


def test_a_weight_counts_as_repeated_rows():
    rng = np.random.default_rng(1)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(8.0, 1.0, size=(40, 2))])
    weight = rng.integers(1, 4, size=80).astype(float)
    _, weighted = k_means(X, weight, 2, np.random.default_rng(0), n_init=5)
    _, repeated = k_means(np.repeat(X, weight.astype(int), axis=0), None, 2, np.random.default_rng(0), n_init=5)
    np.testing.assert_allclose(np.sort(weighted, axis=0), np.sort(repeated, axis=0), rtol=1e-10)


def test_rows_without_weight_draw_no_centre():
    X = np.array([[0.0], [0.1], [5.0], [5.1], [1000.0]])
    _, centers = k_means(X, np.array([1.0, 1.0, 1.0, 1.0, 0.0]), 2, np.random.default_rng(0), n_init=5)
    np.testing.assert_allclose(np.sort(centers[:, 0]), [0.05, 5.05])


def test_fewer_distinct_rows_than_clusters_are_no_error():
    labels, centers = k_means(np.repeat([[0.0], [1.0]], 10, axis=0), None, 4, np.random.default_rng(0), n_init=3)
    assert np.isfinite(centers).all()
    np.testing.assert_allclose(centers[labels][:, 0], np.repeat([0.0, 1.0], 10))


def test_values_far_from_zero_keep_their_digits():
    X = 1e9 + np.repeat([[0.0], [1.0], [2.0]], 20, axis=0)
    labels, _ = k_means(X, None, 3, np.random.default_rng(0), n_init=5)
    assert len(set(labels.tolist())) == 3


def test_many_rows_and_sparse_rows_go_to_scikit_learn(monkeypatch):
    X = make_blobs(120, 2, centers=3, cluster_std=0.5, random_state=0)[0]
    _, small = k_means(X, None, 3, np.random.default_rng(0), n_init=5)
    _, of_sparse = k_means(sparse.csr_array(X), None, 3, np.random.default_rng(0), n_init=5)
    monkeypatch.setattr(module, "FEW", 10)
    _, of_many = k_means(X, None, 3, np.random.default_rng(0), n_init=5)
    for other in (of_sparse, of_many):
        np.testing.assert_allclose(other[np.argsort(other[:, 0])], small[np.argsort(small[:, 0])], rtol=1e-6)
