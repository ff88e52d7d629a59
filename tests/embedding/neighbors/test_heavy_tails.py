"""Maps with heavy tails: the cost by all pairs and by a mesh, places of new objects, and the estimator."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import approx_fprime, minimize
from scipy.spatial.distance import cdist, squareform
from sklearn.datasets import load_digits

import pluri
from pluri.embedding import SNE
from pluri.embedding.neighbors import heavy_tails
from pluri.embedding.neighbors.distributions import Neighbors, from_dissimilarities, from_graph, nearest_graph
from pluri.embedding.neighbors.heavy_tails import DenseHeavyCost, HeavyMeshCost
from pluri.embedding.neighbors.optimizers import Settings, run_lbfgs
from pluri.embedding.neighbors.placing_heavy import heavy_divergences, place_with_heavy_tails, slopes
from pluri.embedding.neighbors.threads import Threads
from pluri.metrics import neighborhood_preservation

RNG = np.random.default_rng(0)
ONE = Threads(1)


def brute_cost(P, points, attraction=1.0):
    """n times the divergence of the joint distributions, row by row, and the gradient by the formula of t-SNE."""
    n = len(points)
    w = 1 / (1 + cdist(points, points, "sqeuclidean"))
    np.fill_diagonal(w, 0.0)
    Q = w / w.sum()
    rows = [
        sum(p * np.log(p) - attraction * p * np.log(v) for p, v in zip(a, b, strict=True) if p > 0)
        for a, b in zip(P, w, strict=True)
    ]
    M = (attraction * (P + P.T) / 2 - n * Q) * w
    return np.array(rows) + np.log(w.sum() / n), 4 * (M.sum(axis=1)[:, None] * points - M @ points)


def neighbors_of(n):
    graph = from_graph(nearest_graph(RNG.normal(size=(n, 4)), 20, "euclidean"), 6.0)
    return graph, Neighbors(graph.P.toarray(), graph.scales, graph.entropy)


@pytest.fixture
def meshes(monkeypatch):
    """Few points go over the mesh too."""
    monkeypatch.setattr(heavy_tails, "PAIRS_PER_NODE", 1e-9)


@pytest.mark.parametrize("n_components", [1, 2, 3, 5])
@pytest.mark.parametrize("attraction", [1.0, 4.0])
def test_cost_and_gradient_are_those_of_the_definition(n_components, attraction):
    neighbors = from_dissimilarities(RNG.random((30, 30)) * 4, 5.0)  # not symmetric
    points = 3 * RNG.normal(size=(30, n_components))
    found = DenseHeavyCost(neighbors, ONE, attraction)(points)
    rows, gradient = brute_cost(neighbors.P, points, attraction)
    assert_allclose(found.per_row, rows, rtol=1e-10, atol=1e-10)
    assert_allclose(found.gradient, gradient, atol=1e-11)
    assert_allclose(found.value, rows.sum(), rtol=1e-12)


def test_the_gradient_is_that_of_finite_differences():
    neighbors = from_dissimilarities(RNG.random((15, 15)) * 4, 4.0)
    points = RNG.normal(size=(15, 2))
    cost = DenseHeavyCost(neighbors, ONE)
    for place in np.ndindex(15, 2):
        step = np.zeros((15, 2))
        step[place] = 1e-5
        slope = (cost(points + step).value - cost(points - step).value) / 2e-5
        assert abs(slope - cost(points).gradient[place]) < 1e-8


def test_with_symmetric_neighbours_the_cost_is_that_of_scikit_learn():
    from sklearn.manifold._t_sne import _kl_divergence

    turn = np.exp(2j * np.pi * np.arange(24) / 24)
    neighbors = from_dissimilarities(np.abs(turn[:, None] - turn) ** 2, 5.0)
    assert_allclose(neighbors.P, neighbors.P.T, atol=1e-9)
    points = 4 * RNG.normal(size=(24, 2))
    value, gradient = _kl_divergence(points.ravel(), squareform(neighbors.P / 24, checks=False), 1.0, 24, 2)
    found = DenseHeavyCost(neighbors, ONE)(points)
    assert_allclose(found.value, 24 * value, rtol=1e-9)
    assert_allclose(found.gradient.ravel(), 24 * gradient, atol=1e-8)


def test_asymmetric_neighbours_have_the_gradient_of_their_mean():
    neighbors = from_dissimilarities(RNG.random((20, 20)) * 4, 5.0)
    mean = Neighbors((neighbors.P + neighbors.P.T) / 2, neighbors.scales, neighbors.entropy)
    points = RNG.normal(size=(20, 2))
    found, other = DenseHeavyCost(neighbors, ONE)(points), DenseHeavyCost(mean, ONE)(points)
    assert_allclose(found.gradient, other.gradient, atol=1e-12)
    assert_allclose(found.value, other.value, rtol=1e-12)


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("spread", [0.01, 1.0, 6.0])
def test_the_mesh_tends_to_all_pairs(meshes, n_components, spread):
    graph, whole = neighbors_of(150)
    points = spread * RNG.normal(size=(150, n_components))
    expected = DenseHeavyCost(whole, ONE)(points)
    scale = np.abs(expected.gradient).max()
    # Largest of 45 maps of five seeds: 0.013 of the largest slope and 1.2e-4 of the cost; 4.7e-4 and 1e-7.
    for neglect, gradient_error, cost_error in ((1e-3, 0.1, 1e-3), (1e-5, 3e-3, 1e-5)):
        found = HeavyMeshCost(graph, ONE, neglect)(points)
        assert np.abs(found.gradient - expected.gradient).max() < gradient_error * scale
        assert_allclose(found.value, expected.value, rtol=cost_error)


def test_the_gradient_of_the_mesh_is_that_of_its_own_cost(meshes):
    """However coarse it is: line searches are not misled by its errors."""
    graph, _ = neighbors_of(40)
    cost = HeavyMeshCost(graph, ONE, 0.09)
    points = 3 * RNG.normal(size=(40, 2))
    gradient = cost(points).gradient
    for place in np.ndindex(40, 2):
        step = np.zeros((40, 2))
        step[place] = 1e-5
        assert abs((cost(points + step).value - cost(points - step).value) / 2e-5 - gradient[place]) < 1e-6


@pytest.mark.parametrize("n_components", [1, 3])
def test_huge_maps_are_computed_with_all_pairs(n_components):
    graph, whole = neighbors_of(60)
    points = RNG.normal(size=(60, n_components))
    points[5] = 1e7
    found, expected = HeavyMeshCost(graph, ONE)(points), DenseHeavyCost(whole, ONE)(points)
    assert_allclose(found.value, expected.value, rtol=1e-12)
    assert_allclose(found.gradient, expected.gradient, atol=1e-12)


def test_the_number_of_threads_changes_no_bit(meshes):
    graph, whole = neighbors_of(600)
    points = 3 * RNG.normal(size=(600, 2))
    for make, neighbors in ((HeavyMeshCost, graph), (DenseHeavyCost, whole)):
        with Threads(2) as two:
            many = make(neighbors, two)(points)
        alone = make(neighbors, ONE)(points)
        assert many.value == alone.value
        assert (many.gradient == alone.gradient).all()


def divergence_of_one(probabilities, points):
    return lambda place: heavy_divergences(place[None], probabilities[None], points, 0.3)[0][0]


def test_new_objects_have_the_divergence_and_the_slopes_of_the_definition():
    points = 4 * RNG.normal(size=(30, 2))
    P = RNG.dirichlet(np.full(30, 0.3), 4)
    places = 3 * RNG.normal(size=(4, 2))
    values, weights = heavy_divergences(places, P, points, 0.3)
    gradients, hessians = slopes(places, P, weights, points, 0.3)
    for i in range(4):
        w = 1 / (1 + ((places[i] - points) ** 2).sum(axis=1))
        assert_allclose(values[i], -(P[i] * np.log(w)).sum() + 0.3 * w.sum())
        alone = divergence_of_one(P[i], points)
        assert_allclose(gradients[i], approx_fprime(places[i], alone, 1e-7), atol=1e-5)
        for axis in range(2):
            step = 1e-5 * np.eye(2)[axis]
            sides = []
            for moved in (places[i] + step, places[i] - step):
                _, w = heavy_divergences(moved[None], P[i : i + 1], points, 0.3)
                sides.append(slopes(moved[None], P[i : i + 1], w, points, 0.3)[0][0])
            assert_allclose(hessians[i, axis], (sides[0] - sides[1]) / 2e-5, atol=1e-7)


def test_new_objects_are_placed_at_minima_no_worse_than_where_their_neighbours_are():
    points = 4 * RNG.normal(size=(30, 2))
    P = RNG.dirichlet(np.full(30, 0.1), 12)
    places = place_with_heavy_tails(P, points, 0.3)
    values = heavy_divergences(places, P, points, 0.3)[0]
    for i in range(12):
        alone = divergence_of_one(P[i], points)
        again = minimize(alone, places[i], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
        assert values[i] <= again.fun + 1e-9
        for start in (P[i] @ points, points[P[i].argmax()]):
            assert values[i] <= alone(start) + 1e-12
    assert place_with_heavy_tails(P[:0], points, 0.3).shape == (0, 2)


@pytest.fixture(scope="module")
def digits():
    data = load_digits()
    return data.data[:600], data.target[:600]


def test_heavy_tails_keep_more_of_the_nearest_neighbours(digits):
    X, _ = digits
    kept = [
        neighborhood_preservation(X, SNE(kernel=kernel, random_state=0).fit(X).embedding_, 5)
        for kernel in ("gaussian", "student_t")
    ]
    assert kept[1] > kept[0] + 0.05


def test_the_sparse_method_and_files(digits, tmp_path, meshes):
    X, y = digits
    model = SNE(kernel="student_t", method="neighbors", random_state=0).fit(X[:500])
    assert model.method_ == "neighbors"
    assert_allclose(model.kl_per_sample_.sum(), model.kl_divergence_)
    places = model.transform(X[500:])
    nearest = np.linalg.norm(places[:, None] - model.embedding_, axis=2).argmin(axis=1)
    assert (y[nearest] == y[500:]).mean() > 0.8  # a tenth by chance: 100 rows, so that this is no accident
    assert_allclose(model.transform(X[:7]), model.embedding_[:7])
    pluri.save(model, tmp_path / "map.skops")
    assert_allclose(pluri.load(tmp_path / "map.skops").transform(X[500:]), places, atol=1e-6)


def test_no_iteration_moves_a_point_farther_than_is_allowed():
    """A quadratic whose minimum is a thousand units away: L-BFGS would jump there at its second step."""
    seen = [np.zeros((3, 2))]

    def objective(points):
        seen.append(points.copy())
        return 0.5 * float(((points - 1000.0) ** 2).sum()), points - 1000.0

    found = run_lbfgs(objective, np.zeros((3, 2)), Settings(400, 1e-12, np.ones((3, 1)), farthest=10.0))
    assert_allclose(found.points, 1000.0, rtol=1e-3)
    best = [min(seen[: k + 1], key=lambda points: ((points - 1000.0) ** 2).sum()) for k in range(len(seen))]
    assert max(np.abs(b - a).max() for a, b in pairwise(best)) <= 10.0


def test_what_cannot_be_meant_is_refused_in_one_sentence(digits):
    X, _ = digits
    with pytest.raises(ValueError, match="kernel must be one of 'gaussian', 'student_t', got 'cauchy'"):
        SNE(kernel="cauchy").fit(X)
    with pytest.raises(ValueError, match='kernel must be "gaussian" with optimizer="wormholes", got \'student_t\''):
        SNE(kernel="student_t", optimizer="wormholes").fit(X)
