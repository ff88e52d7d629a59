"""MixtureSNE: one image is SNE, ambiguous objects split, a circle is cut, and what it refuses."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.embedding import SNE, MixtureSNE
from pluri.embedding.neighbors.dense import DenseCost
from pluri.embedding.neighbors.distributions import from_dissimilarities
from pluri.embedding.neighbors.image_problem import ImageProblem
from pluri.embedding.neighbors.threads import Threads
from pluri.embedding.neighbors.wormholes import through_wormholes

RNG = np.random.default_rng(3)
LABELS = np.repeat(np.arange(3), 15)
X = RNG.normal(size=(45, 5)) + 8.0 * np.eye(3, 5)[LABELS]


@parametrize_with_checks([MixtureSNE(perplexity=2, max_iter=30, tol=0.01)])
def test_scikit_learn_is_content(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("optimizer", ["lbfgs", "momentum", "jitter"])
def test_one_image_is_plain_embedding(optimizer):
    settings = {"perplexity": 6, "optimizer": optimizer, "max_iter": 60, "tol": 0.0, "jitter": 0.1, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plain = SNE(**settings).fit(X)
        found = MixtureSNE(n_images=1, attraction=0.0, **settings).fit(X)
    assert_allclose(found.kl_divergence_, plain.kl_divergence_, rtol=1e-3)  # one step is the same to all digits
    assert_array_equal(found.images_[:, 0], found.embedding_)
    assert not found.split_objects_.any()


@pytest.mark.parametrize("optimizer", ["lbfgs", "momentum", "jitter"])
@pytest.mark.parametrize("proportions", ["equal", "learn"])
def test_what_is_stored_belongs_together(optimizer, proportions):
    settings = {"optimizer": optimizer, "proportions": proportions, "n_images": 3, "attraction": 0.01}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = MixtureSNE(perplexity=6, max_iter=400, random_state=0, **settings).fit(X)
    assert model.images_.shape == (45, 3, 2)
    assert_allclose(model.proportions_.sum(axis=1), 1.0)
    assert_allclose(model.images_.mean(axis=(0, 1)), 0.0, atol=1e-10)
    if proportions == "equal":
        assert_allclose(model.proportions_, 1 / 3)
    Q = model.neighbor_probabilities()
    P = from_dissimilarities(cdist(X, X, "sqeuclidean"), 6.0).P
    off = ~np.eye(45, dtype=bool)
    kept = off & (P > 1e-12)
    rows = np.where(kept, P * np.log(np.where(kept, P, 1.0) / np.where(kept, Q, 1.0)), 0.0).sum(axis=1)
    assert_allclose(model.kl_per_sample_, rows, atol=1e-6)
    assert_allclose(model.kl_divergence_, rows.sum(), rtol=1e-6)
    apart = np.array([cdist(images, images).max() for images in model.images_])
    assert_allclose(model.separation_, apart, rtol=1e-9, atol=1e-9)
    assert_array_equal(model.split_objects_, apart > 1.0)
    assert "more than 1 apart" in model.summary()
    assert model.transform(X[:4] + 0.2).shape == (4, 2)
    assert_array_equal(model.transform(X), model.embedding_)


def ambiguous_objects(seed):
    """Three groups of objects known by their dissimilarities, and six that belong to the first two as much."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(3), 15)
    d = np.where(labels[:, None] == labels, 0.5, 12.0)
    to_groups = np.where(labels < 2, 0.5, 12.0)
    whole = np.full((51, 51), 12.0)
    whole[:45, :45] = d
    whole[45:, :45] = to_groups
    whole[:45, 45:] = to_groups[:, None]
    return whole * rng.uniform(0.8, 1.2, size=whole.shape), labels


def test_objects_of_two_groups_split_and_others_do_not():
    """Ambiguous objects split more often, in each of five seeds; their images lie in the two groups they belong to.

    One start in about fifty ends where nothing is split, at a higher cost: the best of three fails once in 1e5.
    """
    for seed in range(5):
        d, labels = ambiguous_objects(seed)
        starts = [
            MixtureSNE(
                metric="precomputed", perplexity=None, attraction=0.1, optimizer="lbfgs", random_state=10 * seed + start
            ).fit(d)
            for start in range(3)
        ]
        model = min(starts, key=lambda model: model.kl_divergence_)
        assert model.split_objects_[45:].mean() > model.split_objects_[:45].mean()
        split = 45 + np.flatnonzero(model.split_objects_[45:])
        for images in model.images_[split]:
            nearest = cdist(images, model.images_[:45].reshape(-1, 2)).argmin(axis=1) // 2
            assert set(labels[nearest]) <= {0, 1}


def test_a_stronger_attraction_splits_fewer_objects():
    d, _ = ambiguous_objects(0)
    counts = [
        MixtureSNE(metric="precomputed", perplexity=None, attraction=force, optimizer="lbfgs", random_state=0)
        .fit(d)
        .split_objects_.sum()
        for force in (0.0, 0.1, 10.0)
    ]
    assert counts[0] >= counts[1] >= counts[2] == 0


def kept_neighbours(Q, n_neighbors=2):
    """Share of the nearest neighbours on a circle that are the most probable on the map."""
    n = len(Q)
    best = np.argsort(-Q, axis=1)[:, :n_neighbors]
    steps = np.abs(best - np.arange(n)[:, None])
    return float((np.minimum(steps, n - steps) <= n_neighbors // 2).mean())


def circle_on_a_line(n_images, seed):
    angles = 2 * np.pi * np.arange(60) / 60
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    model = MixtureSNE(1, n_images=n_images, perplexity=6, attraction=0.025, optimizer="lbfgs", random_state=seed)
    return model.fit(circle)


def test_two_images_keep_more_of_a_circle_on_a_line_than_one():
    """A circle does not fit on a line; with two images of each point it can be cut, or folded and doubled.

    Of five seeds the means are compared, and the cost of two is lower in each.
    """
    kept = {1: [], 2: []}
    for seed in range(5):
        models = {count: circle_on_a_line(count, seed) for count in (1, 2)}
        assert models[2].kl_divergence_ < models[1].kl_divergence_
        for count, model in models.items():
            kept[count].append(kept_neighbours(model.neighbor_probabilities()))
    assert np.mean(kept[2]) > np.mean(kept[1])


def test_wormholes_leave_one_image_at_a_minimum_of_the_plain_cost():
    neighbors = from_dissimilarities(cdist(X, X, "sqeuclidean"), 6.0)
    cost = DenseCost(neighbors, Threads())
    start = 0.01 * RNG.normal(size=(45, 2))
    found = through_wormholes(cost, Threads(), start, 1000, 1e-7, np.random.default_rng(0), 0)
    assert found.points.shape == (45, 2)
    assert found.converged
    assert_allclose(found.value, cost(found.points).value, rtol=1e-10)
    assert np.abs(cost(found.points).gradient).max() < 0.05


def test_images_begin_together():
    neighbors = from_dissimilarities(cdist(X, X, "sqeuclidean"), 6.0)
    problem = ImageProblem(neighbors, Threads(), 2, 2, learns_proportions=True)
    points = RNG.normal(size=(45, 2))
    images, logits = problem.split(problem.start(points, np.random.default_rng(0)))
    assert 0 < np.abs(images - points[:, None]).max() < 0.1
    assert (logits == 0).all()


BAD = [
    ({"n_images": 0}, X, "n_images must be an integer of at least 1"),
    ({"proportions": "free"}, X, "proportions must be one of"),
    ({"attraction": -1.0}, X, "attraction must be"),
    ({"attraction_threshold": 0.0}, X, "attraction_threshold must be a positive number"),
    ({"split_distance": -1.0}, X, "split_distance must be"),
    ({"optimizer": "spectral"}, X, "optimizer must be one of"),
    ({"perplexity": 44.0}, X, "perplexity must be smaller than n_samples - 1"),
    ({"metric": "precomputed"}, sparse.csr_matrix(cdist(X, X)), "X must be a dense array"),
    ({}, np.where(np.arange(5) == 1, np.nan, X), "NaN"),
]


@pytest.mark.parametrize(("settings", "data", "message"), BAD)
def test_what_cannot_be_meant_is_refused_in_one_sentence(settings, data, message):
    with pytest.raises(ValueError, match=message):
        MixtureSNE(**settings).fit(data)
