"""The trace form of the cost, its relaxation and its bounds, beside the best of all partitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import eigvalsh
from scipy.spatial.distance import pdist, squareform
from scipy.stats import ortho_group

from pluri.embedding import SpectralKMeans, kmeans_lower_bound
from pluri.embedding.spectral.assignment import assign_by_pivots
from pluri.embedding.spectral.eigen import WeightedRows, leading_eigenpairs, right_singular
from pluri.metrics import one_to_one_accuracy

SEEDS = st.integers(0, 2**32 - 1)


def cost(X, labels, weights=None):
    """Sum of squares about means, from its definition."""
    weights = np.ones(len(X)) if weights is None else weights
    total = 0.0
    for one in np.unique(labels):
        inside = labels == one
        mean = np.average(X[inside], axis=0, weights=weights[inside])
        total += float(weights[inside] @ ((X[inside] - mean) ** 2).sum(axis=1))
    return total


def partitions(n, k):
    """Every partition of n rows into k clusters: labels in the order of their first occurrence."""

    def grow(labels, used):
        if len(labels) == n:
            if used == k:
                yield np.array(labels)
            return
        for one in range(min(used + 1, k)):
            yield from grow([*labels, one], max(used, one + 1))

    return grow([], 0)


def optimum(X, k, weights=None):
    return min(cost(X, labels, weights) for labels in partitions(len(X), k))


def indicator(labels, weights):
    matrix = np.sqrt(weights)[:, None] * (labels[:, None] == np.arange(labels.max() + 1))
    return matrix / np.linalg.norm(matrix, axis=0)


@given(SEEDS)
def test_the_cost_is_a_difference_of_traces(seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(12, 4)), rng.uniform(0.5, 3.0, size=12)
    labels = rng.permutation(np.arange(12) % 3)
    scaled = np.sqrt(weights)[:, None] * X
    Y = indicator(labels, weights)
    assert_allclose(Y.T @ Y, np.eye(3), atol=1e-12)
    assert_allclose(cost(X, labels, weights), np.sum(scaled**2) - np.sum((scaled.T @ Y) ** 2), rtol=1e-9)


@given(SEEDS, st.integers(1, 3))
def test_no_partition_costs_less_than_the_bounds_and_the_centred_one_is_the_higher(seed, k):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 4)) + rng.normal(size=4) * 3
    plain, centred = (kmeans_lower_bound(X, k, kind=kind) for kind in ("plain", "centered"))
    assert plain <= centred + 1e-9
    assert centred <= optimum(X, k) + 1e-9


@given(SEEDS)
def test_no_weighted_partition_costs_less_than_the_weighted_bound(seed):
    rng = np.random.default_rng(seed)
    X, weights = rng.normal(size=(6, 3)), rng.integers(1, 4, size=6)
    bound = kmeans_lower_bound(X, 2, sample_weight=weights)
    assert bound <= optimum(X, 2, weights.astype(float)) + 1e-9
    assert_allclose(bound, kmeans_lower_bound(np.repeat(X, weights, axis=0), 2), rtol=1e-9)


def test_bounds_and_optimum_of_nine_rows_in_three_clusters():
    X = 3 * np.repeat(np.eye(3), 3, axis=0) + np.random.default_rng(0).normal(size=(9, 3))
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    assert_allclose(kmeans_lower_bound(X, 3), (singular[2:] ** 2).sum())
    assert kmeans_lower_bound(X, 3, kind="plain") == 0.0  # rank three
    best = optimum(X, 3)
    model = SpectralKMeans(3, random_state=0).fit(X)
    assert model.lower_bound_ <= best <= model.inertia_ + 1e-9
    assert_allclose(model.gap_, model.inertia_ / model.lower_bound_ - 1)


def test_bounds_of_several_numbers_of_clusters_are_those_of_each():
    X = np.random.default_rng(1).normal(size=(30, 6))
    for kind in ("plain", "centered"):
        together = kmeans_lower_bound(X, [1, 2, 5, 30], kind=kind)
        assert_allclose(together, [kmeans_lower_bound(X, k, kind=kind) for k in (1, 2, 5, 30)], atol=1e-9)


def test_orthogonal_clusters_are_recovered_exactly():
    rng = np.random.default_rng(2)
    labels = rng.permutation(np.repeat(np.arange(4), 8))
    X = np.zeros((32, 20))
    for row, label in enumerate(labels):
        X[row, 5 * label : 5 * label + 5] = rng.uniform(0.5, 1.0, size=5)
    for assign in ("pqr", "cluster_qr"):
        model = SpectralKMeans(4, assign=assign, center=False, refine=False).fit(X)
        assert one_to_one_accuracy(labels, model.labels_) == 1.0


@given(SEEDS)
def test_labels_depend_neither_on_rotations_nor_on_signs_of_coordinates(seed):
    rng = np.random.default_rng(seed)
    Z = np.linalg.qr(rng.normal(size=(25, 3)))[0]
    expected = assign_by_pivots(Z, 3).labels(Z)
    turned = Z @ ortho_group.rvs(3, random_state=rng)
    flipped = Z * [1, -1, -1]
    assert_array_equal(assign_by_pivots(turned, 3).labels(turned), expected)
    assert_array_equal(assign_by_pivots(flipped, 3).labels(flipped), expected)


@given(SEEDS)
def test_every_label_occurs_since_each_pivot_has_its_own(seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(15, 5))
    for n_clusters in (5, 3):
        rule = assign_by_pivots(Z, n_clusters)
        assert_array_equal(rule.labels(Z)[rule.pivots], np.arange(n_clusters))
        assert_allclose(rule.membership(Z)[rule.pivots], np.eye(n_clusters), atol=1e-9)


def test_features_can_be_rotated_and_rows_be_reordered():
    rng = np.random.default_rng(3)
    X = 4 * np.eye(5)[np.arange(60) % 5] + rng.normal(size=(60, 5))
    for settings in ({"assign": "pqr"}, {"assign": "pqr", "center": False}, {"assign": "cluster_qr"}):
        labels = SpectralKMeans(5, **settings).fit(X).labels_
        rotated = SpectralKMeans(5, **settings).fit(X @ ortho_group.rvs(5, random_state=rng))
        order = rng.permutation(60)
        reordered = SpectralKMeans(5, **settings).fit(X[order])
        assert one_to_one_accuracy(labels, rotated.labels_) == 1.0
        assert one_to_one_accuracy(labels[order], reordered.labels_) == 1.0


def test_more_coordinates_than_clusters_are_used_by_least_squares():
    Z = np.random.default_rng(4).normal(size=(40, 6))
    rule = assign_by_pivots(Z, 3)
    basis = Z[rule.pivots].T
    expected = np.abs(np.linalg.lstsq(basis, Z.T, rcond=None)[0]).T
    assert_allclose(rule.membership(Z), expected, atol=1e-9)
    square = assign_by_pivots(Z[:, :3], 3)
    expected = np.abs(np.linalg.solve(Z[square.pivots, :3].T, Z[:, :3].T)).T
    assert_allclose(square.membership(Z[:, :3]), expected, atol=1e-9)


def test_the_other_rule_is_that_of_scikit_learn():
    from sklearn.cluster._spectral import cluster_qr

    Z = np.linalg.qr(np.random.default_rng(5).normal(size=(50, 4)))[0]
    assert_array_equal(assign_by_pivots(Z, 4, polar=True).labels(Z), cluster_qr(Z))


def test_one_cluster_is_bounded_by_its_cost_and_as_many_as_rows_by_zero():
    X = np.random.default_rng(6).normal(size=(7, 9))
    one = SpectralKMeans(1).fit(X)
    assert_allclose([one.inertia_, one.lower_bound_], ((X - X.mean(axis=0)) ** 2).sum())
    assert one.gap_ < 1e-12
    for settings in ({}, {"assign": "pqr"}):
        all_apart = SpectralKMeans(7, random_state=0, **settings).fit(X)
        assert_array_equal(np.sort(all_apart.labels_), np.arange(7))
        assert all_apart.lower_bound_ < 1e-9
        assert all_apart.inertia_ < 1e-9


@given(SEEDS)
def test_no_orthonormal_matrix_has_a_larger_trace_than_the_eigenvectors(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(8, 8))
    H = A @ A.T
    found = leading_eigenpairs(H, 3, "dense", rng)
    assert_allclose(np.trace(found.vectors.T @ H @ found.vectors), found.values.sum())
    other = np.linalg.qr(rng.normal(size=(8, 3)))[0]
    assert np.trace(other.T @ H @ other) <= found.values.sum() + 1e-9


def test_squared_distances_have_one_positive_eigenvalue_and_give_the_cost():
    X = np.random.default_rng(7).normal(size=(20, 4))
    W = squareform(pdist(X, "sqeuclidean"))
    assert (eigvalsh(W) > 1e-9).sum() == 1
    labels = np.arange(20) % 3
    pairs = sum(W[np.ix_(labels == k, labels == k)].sum() / (2 * (labels == k).sum()) for k in range(3))
    assert_allclose(pairs, cost(X, labels))


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("shape", [(40, 300), (300, 40), (30, 30)])
def test_solvers_and_formats_agree(center, shape):
    rng = np.random.default_rng(8)
    X = np.where(rng.random(shape) < 0.3, rng.normal(size=shape), 0.0)
    weights = rng.uniform(0.5, 2.0, size=shape[0])
    mean = np.average(X, axis=0, weights=weights) if center else np.zeros(shape[1])
    scaled = np.sqrt(weights)[:, None] * (X - mean)
    expected = np.linalg.svd(scaled, compute_uv=False)[:5] ** 2
    for made in (X, sparse.csr_matrix(X)):
        for solver in ("dense", "arpack"):
            found = right_singular(WeightedRows(made, np.sqrt(weights), mean), 5, solver, rng)
            assert_allclose(found.values[:5], expected, rtol=1e-9)
            assert_allclose(found.trace, (scaled**2).sum(), rtol=1e-9)
            assert_allclose(found.tail(4), (np.linalg.svd(scaled, compute_uv=False)[4:] ** 2).sum(), rtol=1e-9)
            product = scaled.T @ (scaled @ found.vectors[:, :5])
            assert_allclose(product, found.vectors[:, :5] * expected, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_clusters": 0}, "n_clusters must be an integer of at least 1, got 0"),
        ({"n_clusters": 2, "kind": "shifted"}, "kind must be one of 'centered', 'plain', got 'shifted'"),
        ({"n_clusters": 2, "sample_weight": [1.0, -1.0, 1.0]}, "sample_weight must be"),
    ],
)
def test_mistakes_in_the_bound_get_a_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        kmeans_lower_bound(np.eye(3), **arguments)


def test_greedy_matching_is_never_better_than_the_best():
    rng = np.random.default_rng(9)
    below = 0
    for _ in range(200):
        truth, labels = rng.integers(4, size=30), rng.integers(4, size=30)
        greedy = one_to_one_accuracy(truth, labels, matching="greedy")
        best = one_to_one_accuracy(truth, labels)
        assert greedy <= best + 1e-12
        below += greedy < best
        assert one_to_one_accuracy(truth, (truth + 1) % 4, matching="greedy") == 1.0
    assert below  # with 4 x 4 tables of noise, the chance that they are all equal is nil
    with pytest.raises(ValueError, match="matching must be one of"):
        one_to_one_accuracy([0, 1], [0, 1], matching="best")
