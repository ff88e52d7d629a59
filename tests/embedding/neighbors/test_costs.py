"""Neighbour distributions, the cost of a map and its gradient against NumPy, finite differences and closed forms."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.spatial.distance import cdist

from pluri.embedding import neighbor_probabilities
from pluri.embedding.neighbors.dense import DenseCost
from pluri.embedding.neighbors.distributions import (
    Neighbors,
    from_dissimilarities,
    from_graph,
    nearest_graph,
    row_entropy,
    squared_distances,
)
from pluri.embedding.neighbors.mesh import MeshCost, union_of_pulls
from pluri.embedding.neighbors.threads import Threads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))
ONE = Threads(1)


def squares(points):
    return cdist(points, points, "sqeuclidean")


def map_probabilities(points):
    d = squares(points)
    np.fill_diagonal(d, np.inf)
    e = np.exp(d.min(axis=1, keepdims=True) - d)
    return e / e.sum(axis=1, keepdims=True)


def brute_cost(P, points):
    """Divergences of rows, and the gradient of their sum by the published formula."""
    Q = map_probabilities(points)
    d = squares(points)
    np.fill_diagonal(d, np.inf)
    log_q = -d - np.log(np.exp(d.min(axis=1, keepdims=True) - d).sum(axis=1, keepdims=True)) + d.min(1, keepdims=True)
    rows = [sum(p * (np.log(p) - q) for p, q in zip(a, b, strict=True) if p > 0) for a, b in zip(P, log_q, strict=True)]
    M = P - Q + (P - Q).T
    return np.array(rows), 2 * (M.sum(axis=1)[:, None] * points - M @ points)


def differences(value, array, step=1e-5):
    """Central differences of a function of an array."""
    gradient = np.empty_like(array)
    for place in np.ndindex(*array.shape):
        moved = array.copy()
        moved[place] += step
        up = value(moved)
        moved[place] -= 2 * step
        gradient[place] = (up - value(moved)) / (2 * step)
    return gradient


@pytest.mark.parametrize("perplexity", [1.5, 5.0, 15.0, 37.0])
def test_rows_are_distributions_of_the_perplexity_asked_for(perplexity):
    P = neighbor_probabilities(X, perplexity)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.diag(P) == 0).all()
    assert_allclose(np.exp(row_entropy(P)), perplexity, atol=1e-6)
    # The form of each row: logarithms fall linearly with squared distances.
    d = squares(X)
    for i in range(0, 40, 7):
        others = np.arange(40) != i
        kept = others & (P[i] > 1e-12)
        slope, intercept = np.polyfit(d[i, kept], np.log(P[i, kept]), 1)
        assert_allclose(np.log(P[i, kept]), slope * d[i, kept] + intercept, atol=1e-7)
        assert slope < 0


def test_the_units_and_the_origin_of_the_data_do_not_matter():
    P = neighbor_probabilities(X, 6.0)
    for other in (1e150 * X, 1e-150 * X, X + 1e5):
        assert_allclose(neighbor_probabilities(other, 6.0), P, atol=1e-6)


def test_dissimilarities_are_used_as_they_are_without_a_perplexity_and_need_not_be_symmetric():
    d = RNG.random((12, 12)) * 3
    P = neighbor_probabilities(d, None, metric="precomputed")
    e = np.exp(-d)
    np.fill_diagonal(e, 0.0)
    assert_allclose(P, e / e.sum(axis=1, keepdims=True), rtol=1e-12)
    scaled = neighbor_probabilities(d, 4.0, metric="precomputed")
    assert_allclose(np.exp(row_entropy(scaled)), 4.0, atol=1e-6)
    assert np.abs(scaled - scaled.T).max() > 0.01


def test_metrics_of_scikit_learn_are_squared():
    P = neighbor_probabilities(X, 6.0, metric="manhattan")
    given = cdist(X, X, "cityblock") ** 2
    assert_allclose(P, neighbor_probabilities(given, 6.0, metric="precomputed"), rtol=1e-9)


def test_a_graph_of_all_pairs_is_the_same_as_all_pairs():
    d = squares(X)
    whole = sparse.csr_matrix(d + np.eye(len(d)))  # the diagonal is stored, and ignored
    graph = from_graph(whole, 7.0)
    assert_allclose(graph.P.toarray(), from_dissimilarities(d, 7.0).P, atol=1e-12)
    assert_allclose(graph.entropy, np.log(7.0), atol=1e-8)


def test_nearest_neighbours_are_the_nearest():
    graph = nearest_graph(X, 6, "euclidean")
    d = squares(X)
    np.fill_diagonal(d, np.inf)
    nearest = np.sort(d, axis=1)[:, :6]
    assert_allclose(np.sort(graph.data.reshape(40, 6), axis=1), nearest, rtol=1e-10)


def test_more_duplicates_than_the_perplexity_share_the_row_and_are_named():
    data = np.vstack([np.repeat(X[:1], 8, axis=0), X[1:20]])
    with pytest.warns(UserWarning, match=r"row 0 .*duplicates"):
        P = neighbor_probabilities(data, 3.0)
    assert_allclose(P[0, 1:8], 1 / 7)
    assert_allclose(P[0, 8:], 0.0, atol=1e-20)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        neighbor_probabilities(data, 9.0)  # there are scales of this entropy
    assert (squared_distances(data, data)[:8, :8] == 0).all()


def test_duplicates_among_others_are_at_distance_zero_exactly():
    far = np.vstack([X + 1e6, X + 1e6])
    d = squared_distances(far, far)
    assert (np.diag(d, 40) == 0).all()
    assert_allclose(d, squares(far), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_components", [1, 2, 3, 5])
def test_cost_and_gradient_are_those_of_the_definition(n_components):
    d = RNG.random((30, 30)) * 4  # not symmetric
    neighbors = from_dissimilarities(d, 5.0)
    points = RNG.normal(size=(30, n_components))
    found = DenseCost(neighbors, ONE)(points)
    rows, gradient = brute_cost(neighbors.P, points)
    assert_allclose(found.per_row, rows, rtol=1e-10)
    assert_allclose(found.gradient, gradient, atol=1e-11)
    assert_allclose(found.value, rows.sum(), rtol=1e-12)


def test_the_gradient_is_that_of_finite_differences():
    neighbors = from_dissimilarities(RNG.random((15, 15)) * 4, 4.0)
    points = RNG.normal(size=(15, 2))
    cost = DenseCost(neighbors, ONE)
    assert_allclose(cost(points).gradient, differences(lambda y: cost(y).value, points), atol=1e-8)


def test_forces_add_up_to_nothing_and_the_cost_knows_no_rigid_motion():
    neighbors = from_dissimilarities(squares(X), 6.0)
    cost = DenseCost(neighbors, ONE)
    points = RNG.normal(size=(40, 2)) * 3
    found = cost(points)
    assert_allclose(found.gradient.sum(axis=0), 0.0, atol=1e-11)
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    for moved in (points @ turn, points - 8.0, points * [1, -1]):
        assert_allclose(cost(moved).value, found.value, rtol=1e-12)
    assert abs(cost(2 * points).value - found.value) > 1.0


def test_the_cost_is_zero_where_the_map_has_the_neighbours_of_the_objects():
    points = RNG.normal(size=(25, 2)) * 2
    neighbors = from_dissimilarities(squares(points), None)
    found = DenseCost(neighbors, ONE)(points)
    assert_allclose(found.per_row, 0.0, atol=1e-12)
    assert_allclose(found.gradient, 0.0, atol=1e-12)
    assert DenseCost(neighbors, ONE)(points[::-1]).value > 1.0


def test_points_in_one_place_cost_what_no_map_costs():
    neighbors = from_dissimilarities(squares(X), 6.0)
    assert_allclose(DenseCost(neighbors, ONE)(np.ones((40, 2))).value, 40 * np.log(39 / 6.0), rtol=1e-8)


def test_a_point_far_from_all_others_has_a_finite_cost():
    neighbors = from_dissimilarities(squares(X), 6.0)
    points = RNG.normal(size=(40, 2))
    points[3] = 1e4
    found = DenseCost(neighbors, ONE)(points)
    rows, gradient = brute_cost(neighbors.P, points)
    assert_allclose(found.per_row, rows, rtol=1e-10)
    assert_allclose(found.gradient, gradient, rtol=1e-9, atol=1e-9)


def test_the_number_of_threads_changes_no_bit():
    big = RNG.normal(size=(300, 3))
    neighbors = from_dissimilarities(squares(big), 6.0)
    points = RNG.normal(size=(300, 2))
    with Threads(3) as three:
        many = DenseCost(neighbors, three)(points)
    alone = DenseCost(neighbors, ONE)(points)
    assert (many.gradient == alone.gradient).all()
    assert many.value == alone.value


def sparse_and_dense(n, n_components):
    data = RNG.normal(size=(n, 4))
    graph = from_graph(nearest_graph(data, 20, "euclidean"), 6.0)
    return graph, Neighbors(graph.P.toarray(), graph.scales, graph.entropy)


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("spread", [0.01, 1.0, 6.0])
def test_the_mesh_tends_to_all_pairs(n_components, spread):
    graph, whole = sparse_and_dense(150, n_components)
    points = spread * RNG.normal(size=(150, n_components))
    expected = DenseCost(whole, ONE)(points)
    scale = np.abs(expected.gradient).max()
    # Largest of 540 maps: an error of the gradient of 1.02e-4 where points are close together and it is small.
    for neglect, gradient_error, cost_error in ((1e-6, 5e-4, 1e-5), (1e-14, 1e-10, 1e-11)):
        found = MeshCost(graph, ONE, neglect)(points)
        assert np.abs(found.gradient - expected.gradient).max() < gradient_error * scale
        assert_allclose(found.value, expected.value, rtol=cost_error)
        assert_allclose(found.per_row, expected.per_row, atol=100 * cost_error)


def test_lonely_points_and_huge_maps_are_computed_with_all_pairs():
    graph, whole = sparse_and_dense(120, 2)
    for far in (20.0, 300.0, 1e7):
        points = RNG.normal(size=(120, 2))
        points[5], points[6] = far, -far
        expected = DenseCost(whole, ONE)(points)
        found = MeshCost(graph, ONE)(points)
        assert np.isfinite(found.gradient).all()
        assert_allclose(found.value, expected.value, rtol=1e-6)
        assert np.abs(found.gradient - expected.gradient).max() < 1e-4 * np.abs(expected.gradient).max()


def test_the_number_of_threads_changes_no_bit_of_the_mesh():
    graph, _ = sparse_and_dense(600, 2)
    points = 3 * RNG.normal(size=(600, 2))
    with Threads(2) as two:
        many = MeshCost(graph, two)(points)
    alone = MeshCost(graph, ONE)(points)
    assert many.value == alone.value
    assert (many.gradient == alone.gradient).all()


def test_pulls_of_both_directions_are_added():
    graph, whole = sparse_and_dense(50, 2)
    both, own = union_of_pulls(graph.P)
    assert_allclose(both.toarray(), whole.P + whole.P.T, atol=1e-15)
    placed = sparse.csr_matrix((own, both.indices, both.indptr), shape=both.shape)
    assert_allclose(placed.toarray(), whole.P, atol=1e-15)
