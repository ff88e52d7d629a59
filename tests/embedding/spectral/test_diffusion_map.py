"""Random walks on rows, their eigenvectors, and distances that are those of the walks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.utils.estimator_checks import parametrize_with_checks

import pluri
from pluri.embedding import DiffusionMap, walk_matrix


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([DiffusionMap()])
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def walk_of(X, scales, density_power=0.0):
    """The symmetric walk, from its definition."""
    kernel = np.exp(-cdist(X, X, "sqeuclidean") / np.outer(scales, scales))
    density = kernel.sum(axis=1) ** -density_power
    kernel = density[:, None] * kernel * density
    return kernel / kernel.sum(axis=1, keepdims=True), kernel.sum(axis=1) / kernel.sum()


@pytest.mark.parametrize("time", [1.0, 3.0])
@pytest.mark.parametrize("density_power", [0.0, 1.0])
@pytest.mark.parametrize("scale", ["neighbor", "perplexity", 1.5])
def test_distances_of_coordinates_are_distances_of_walks(scale, density_power, time):
    X = np.random.default_rng(0).normal(size=(9, 2))
    settings = {"scale": scale, "scale_neighbor": 3, "perplexity": 4.0, "density_power": density_power, "time": time}
    model = DiffusionMap(8, **settings).fit(X)
    P, pi = walk_of(X, model.scales_, density_power)
    assert_allclose(model.stationary_, pi)
    assert_allclose(pi @ P, pi)
    steps = np.linalg.matrix_power(P, int(time))
    expected = ((steps[:, None] - steps) ** 2 / pi).sum(axis=2)
    found = cdist(model.embedding_, model.embedding_, "sqeuclidean")
    assert_allclose(found, expected, atol=1e-9)
    psi = model.embedding_ / model.eigenvalues_**time
    assert_allclose(P @ psi, psi * model.eigenvalues_, atol=1e-8)
    assert_allclose(pi @ psi**2, 1.0, rtol=1e-6)
    assert_allclose(model.transform(X), model.embedding_, atol=1e-8)


def test_scales_are_distances_to_the_seventh_neighbour():
    X = np.random.default_rng(1).normal(size=(40, 3))
    model = DiffusionMap().fit(X)
    assert_allclose(model.scales_, np.sort(cdist(X, X), axis=1)[:, 7])


def test_walks_have_the_perplexity_asked_for_and_rows_sum_to_one():
    X = np.random.default_rng(2).normal(size=(50, 3))
    walk = walk_matrix(X, scale="perplexity", perplexity=8.0, threshold=0.0).toarray()
    assert_allclose(walk.sum(axis=1), 1.0)
    entropy = -np.where(walk > 0, walk * np.log(np.maximum(walk, 1e-300)), 0.0).sum(axis=1)
    assert_allclose(np.exp(entropy), 8.0, rtol=1e-6)
    scales = np.sort(cdist(X, X), axis=1)[:, 7]
    expected = np.exp(-((cdist(X, X) / scales[:, None]) ** 2))
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(walk_matrix(X, threshold=0.0).toarray(), expected, atol=1e-12)
    thinned = walk_matrix(X, threshold=0.01)
    assert_allclose(thinned.sum(axis=1), 1.0)
    assert thinned.nnz == (expected >= 0.01).sum()


def test_neighbours_alone_give_nearly_the_same_as_all_pairs():
    rng = np.random.default_rng(3)
    angle = rng.uniform(0, 2 * np.pi, size=400)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    whole, thin = DiffusionMap(2).fit(X), DiffusionMap(2, n_neighbors=40, random_state=0).fit(X)
    assert_allclose(thin.eigenvalues_, whole.eigenvalues_, atol=1e-3)
    # Each pair of coordinates of a circle may be turned: compare what turning leaves.
    assert_allclose(cdist(thin.embedding_, thin.embedding_), cdist(whole.embedding_, whole.embedding_), atol=0.05)
    new = np.column_stack([np.cos(angle[:50] + 0.01), np.sin(angle[:50] + 0.01)])
    for model in (whole, thin):
        assert_allclose(model.transform(new), model.embedding_[:50], atol=0.15)


def test_the_iterative_solver_agrees_with_the_full_one(monkeypatch):
    X = np.random.default_rng(4).normal(size=(80, 3))
    full = DiffusionMap(3).fit(X)
    monkeypatch.setattr("pluri.embedding.spectral.diffusion.DENSE", 10)
    iterative = DiffusionMap(3, random_state=0).fit(X)
    assert_allclose(iterative.eigenvalues_, full.eigenvalues_, atol=1e-9)
    assert_allclose(iterative.embedding_, full.embedding_, atol=1e-6)


def test_parts_that_no_walk_connects_are_refused_or_the_largest_is_kept():
    rng = np.random.default_rng(5)
    X = np.concatenate([rng.normal(size=(20, 2)), 1e4 + rng.normal(size=(12, 2)), -1e4 + rng.normal(size=(9, 2))])
    with pytest.raises(ValueError, match=r"3 parts that no walk connects \(the largest has 20 of 41\)"):
        DiffusionMap().fit(X)
    with pytest.warns(UserWarning, match="only the largest is fitted"):
        model = DiffusionMap(disconnected="largest").fit(X)
    assert_array_equal(model.connected_, np.arange(20))
    assert_allclose(model.embedding_[:20], DiffusionMap().fit(X[:20]).embedding_)
    assert np.isnan(model.embedding_[20:]).all()
    with pytest.raises(ValueError, match="got 21 from which no step"):
        DiffusionMap(scale=1.0).fit(X[:20]).transform(X[20:])


def test_copies_of_rows_have_the_same_coordinates():
    X = np.repeat(np.random.default_rng(6).normal(size=(15, 2)), 9, axis=0)
    model = DiffusionMap().fit(X)
    assert (model.scales_ > 0).all()
    assert_allclose(model.embedding_[::9], model.embedding_[8::9], atol=1e-9)


def test_a_map_comes_back_from_its_file(tmp_path):
    X = np.random.default_rng(7).normal(size=(30, 2))
    model = DiffusionMap().fit(X)
    pluri.save(model, tmp_path / "map.skops")
    assert_allclose(pluri.load(tmp_path / "map.skops").transform(X), model.transform(X))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"n_components": 0}, "n_components must be an integer of at least 1"),
        ({"n_components": 12}, r"n_components must be below the number of connected rows \(n_samples=12\), got 12"),
        ({"scale": 0.0}, "scale must be one of 'neighbor', 'perplexity' or a positive number, got 0.0"),
        ({"scale": "perplexity", "perplexity": 12.0}, "perplexity must be above 1 and below"),
        ({"density_power": 2.0}, "density_power must be"),
        ({"time": -1.0}, "time must be"),
        ({"n_neighbors": 1}, "n_neighbors must be"),
        ({"disconnected": "drop"}, "disconnected must be one of 'raise', 'largest', got 'drop'"),
    ],
    ids=str,
)
def test_mistakes_get_a_sentence(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        DiffusionMap(**settings).fit(np.random.default_rng(8).normal(size=(12, 2)))
