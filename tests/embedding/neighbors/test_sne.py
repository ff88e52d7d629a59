"""SNE: what it finds, where new objects are placed, what it is given, and what it refuses."""

import contextlib
import warnings

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import optimize, sparse
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.embedding import SNE, neighbor_probabilities
from pluri.embedding.neighbors.dense import DenseCost
from pluri.embedding.neighbors.distributions import from_dissimilarities
from pluri.embedding.neighbors.fitting import spectral_solver, stages, step_rates
from pluri.embedding.neighbors.optimizers import Settings, run_jitter, run_spectral
from pluri.embedding.neighbors.placing import divergences, place, place_among_images
from pluri.embedding.neighbors.threads import Threads
from pluri.inference import History
from pluri.metrics import neighborhood_preservation, trustworthiness

RNG = np.random.default_rng(2)
LABELS = np.repeat(np.arange(3), 20)
X = RNG.normal(size=(60, 5)) + 8.0 * np.eye(3, 5)[LABELS]
OPTIMIZERS = ("lbfgs", "spectral", "momentum", "jitter", "wormholes")


def agreement(points, labels):
    """Share of points whose nearest other point has their label."""
    d = cdist(points, points)
    np.fill_diagonal(d, np.inf)
    return float((labels[d.argmin(axis=1)] == labels).mean())


@parametrize_with_checks([SNE(perplexity=2, max_iter=50, tol=0.01)])
def test_scikit_learn_is_content(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("init", ["pca", "random"])
def test_every_optimizer_separates_groups_that_are_far_apart(optimizer, init):
    model = SNE(perplexity=8, optimizer=optimizer, init=init, random_state=0).fit(X)
    nothing = 60 * np.log(59 / 8)
    assert 0 < model.kl_divergence_ < 0.5 * nothing
    assert agreement(model.embedding_, LABELS) == 1.0
    assert_allclose(model.embedding_.mean(axis=0), 0.0, atol=1e-10)
    cost = DenseCost(from_dissimilarities(cdist(X, X, "sqeuclidean"), 8.0), Threads())(model.embedding_)
    assert_allclose(model.kl_divergence_, cost.value, rtol=1e-8)
    assert_allclose(model.kl_per_sample_, cost.per_row, atol=1e-8)
    if optimizer != "jitter":
        assert np.abs(cost.gradient).max() < 0.5
    assert isinstance(model.history_, History)
    assert len(model.history_.objective) == model.n_iter_
    assert model.history_.objective[-1] == pytest.approx(-model.kl_divergence_, rel=0.02)


@pytest.mark.parametrize("settings", [{"perplexity_start": 19.0}, {"extra_dimensions": 1},
                                      {"perplexity_start": 19.0, "extra_dimensions": 2, "optimizer": "jitter"},
                                      {"extra_dimensions": 1, "method": "neighbors"}])  # fmt: skip
def test_annealed_fits_end_where_plain_ones_do(settings):
    model = SNE(perplexity=8, random_state=0, **settings).fit(X)
    assert model.embedding_.shape == (60, 2)
    if "method" not in settings:
        cost = DenseCost(from_dissimilarities(cdist(X, X, "sqeuclidean"), 8.0), Threads())(model.embedding_)
        assert_allclose(model.kl_divergence_, cost.value, rtol=1e-8)
    assert agreement(model.embedding_, LABELS) == 1.0
    assert model.n_iter_ <= model.max_iter
    assert_array_equal(model.history_.iteration, np.arange(model.n_iter_) + 1)


def test_stages_fall_to_what_is_asked_for():
    parts = stages(10.0, 100.0, 1)
    assert [part.perplexity for part in parts][::10] == pytest.approx([100.0, 10.0])
    assert [parts[0].penalty, parts[-2].penalty, parts[-1].penalty] == pytest.approx([1e-4, 1e2, 0.0])
    assert sum(part.share for part in parts) == pytest.approx(1.0)
    assert len(stages(10.0, None, 0)) == 1


def test_small_steps_without_noise_never_raise_the_cost():
    cost = DenseCost(from_dissimilarities(cdist(X, X, "sqeuclidean"), 8.0), Threads())
    settings = Settings(60, 0.0, np.full((60, 1), 0.02))
    found = run_jitter(lambda y: cost(y)[:2], RNG.normal(size=(60, 2)), settings, np.random.default_rng(0))
    assert len(found.rows) == 60
    assert (np.diff([-row.objective for row in found.rows]) <= 1e-9).all()


def test_steps_that_would_diverge_are_halved_without_noise():
    cost = DenseCost(from_dissimilarities(cdist(X, X, "sqeuclidean"), 8.0), Threads())
    start = RNG.normal(size=(60, 2))
    found = run_jitter(lambda y: cost(y)[:2], start, Settings(300, 0.0, np.full((60, 1), 5.0)), RNG)
    assert found.value < 0.7 * cost(start).value


def test_the_automatic_step_is_shorter_for_hubs():
    rates = step_rates(np.array([0.5, 1.0, 9.0, 99.0]), "auto").ravel()
    assert_allclose(rates, [0.2, 0.2, 0.045, 0.0045])
    assert_allclose(step_rates(np.ones(2), 0.7).ravel(), 0.7)


def test_a_star_whose_hub_is_the_neighbour_of_all_does_not_make_the_automatic_step_diverge():
    """Leaves pick the hub and the hub picks leaves: steps of 0.9 / (1 + in-degree) diverge here."""
    d = np.full((40, 40), 30.0)
    d[:, 0] = d[0] = 1.0
    neighbors = from_dissimilarities(d, None)
    cost = DenseCost(neighbors, Threads())
    start = RNG.normal(size=(40, 2))

    def after(rates):
        settings = Settings(100, 0.0, rates, 1e-3, 100)
        return run_jitter(lambda y: cost(y)[:2], start, settings, np.random.default_rng(0)).value

    nothing = cost(np.zeros((40, 2))).value
    assert after(step_rates(neighbors.in_degree, "auto")) < nothing
    # It may diverge so far that there is no number.
    with np.errstate(over="ignore", invalid="ignore"), contextlib.suppress(FloatingPointError):
        assert after(0.9 / (1 + neighbors.in_degree)[:, None]) > 10 * nothing


def test_the_spectral_direction_solves_with_the_curvature_of_the_attraction():
    P = neighbor_probabilities(X[:, 3:], 6.0)  # groups that are not connected would have a curvature of nothing
    gradient = RNG.normal(size=(60, 2))
    gradient -= gradient.mean(axis=0)
    W = P + P.T
    curvature = 2 * (np.diag(W.sum(axis=1)) - W)
    expected = np.linalg.pinv(curvature) @ gradient
    found = spectral_solver(P)(gradient)
    assert_allclose(curvature @ found, gradient, atol=2e-4)
    rough = spectral_solver(sparse.csr_matrix(P))(gradient)
    assert np.linalg.norm(curvature @ rough - gradient) < 0.15 * np.linalg.norm(gradient)
    assert np.linalg.norm(found - found.mean(axis=0) - expected) < 0.05 * np.linalg.norm(expected)


def test_the_line_search_of_the_spectral_direction_never_raises_the_cost():
    neighbors = from_dissimilarities(cdist(X, X, "sqeuclidean"), 8.0)
    cost = DenseCost(neighbors, Threads())
    settings = Settings(40, 0.0, np.full((60, 1), 0.1))
    found = run_spectral(lambda y: cost(y)[:2], RNG.normal(size=(60, 2)), settings, spectral_solver(neighbors.P))
    assert (np.diff([-row.objective for row in found.rows]) <= 1e-9).all()


def test_points_of_a_plane_are_mapped_to_a_plane():
    flat = RNG.uniform(-2.0, 2.0, size=(150, 2))
    model = SNE(perplexity=None, tol=1e-9, max_iter=3000, init=flat + 0.05 * RNG.normal(size=flat.shape)).fit(flat)
    assert model.kl_divergence_ < 1e-3
    assert trustworthiness(flat, model.embedding_) > 0.99
    assert neighborhood_preservation(flat, model.embedding_) > 0.97
    # From principal components too, where neighbourhoods are the nearest ten alone.
    free = SNE(perplexity=10, random_state=0).fit(flat)
    assert trustworthiness(flat, free.embedding_) > 0.99


@pytest.mark.slow
def test_digits_are_mapped_as_in_the_prototype():
    """Cost at most 0.32 of that of no map, and neighbours of the same class: 901 digits, the published optimiser."""
    data, labels = load_digits(return_X_y=True)
    data, labels = data[labels < 5], labels[labels < 5]
    nothing = 901 * np.log(900 / 15)
    for settings in ({"optimizer": "jitter", "init": "random", "max_iter": 1000}, {}):
        model = SNE(perplexity=15, random_state=0, **settings).fit(data)
        assert model.kl_divergence_ < 0.32 * nothing
        assert agreement(model.embedding_, labels) > 0.98


def test_the_sparse_method_finds_a_map_as_good_as_that_of_all_pairs():
    data, _ = load_digits(return_X_y=True)
    data = data[:500]
    exact = SNE(perplexity=10, method="exact", random_state=0).fit(data)
    near = SNE(perplexity=10, method="neighbors", random_state=0).fit(data)
    assert (exact.method_, near.method_) == ("exact", "neighbors")
    kept = [neighborhood_preservation(data, model.embedding_) for model in (exact, near)]
    assert abs(kept[0] - kept[1]) < 0.08


def test_places_of_new_objects_are_minima_that_another_optimiser_finds():
    points = RNG.normal(size=(40, 2)) * 2
    P = RNG.dirichlet(np.full(40, 0.3), size=6)
    found = place(P, points)
    for row, own in zip(P, found, strict=True):
        best = min(
            (
                optimize.minimize(lambda y, row=row: divergences(y[None], row[None], points)[0][0], start, tol=1e-12)
                for start in (np.zeros(2), np.array([3.0, -3.0]))
            ),
            key=lambda result: result.fun,
        )
        assert_allclose(own, best.x, atol=1e-4)
        value, Q = divergences(own[None], row[None], points)
        assert value[0] <= best.fun + 1e-10
        assert_allclose(Q[0] @ points, row @ points, atol=1e-8)


def test_an_object_whose_only_neighbour_is_at_the_rim_stays_finite():
    points = RNG.normal(size=(20, 2))
    P = np.zeros((1, 20))
    P[0, np.argmax(points[:, 0])] = 1.0
    assert np.isfinite(place(P, points)).all()


def test_images_of_weight_one_are_points():
    points = RNG.normal(size=(30, 2))
    P = RNG.dirichlet(np.full(30, 0.5), size=4)
    found = place_among_images(P, points[:, None], np.zeros((30, 1)), np.zeros((4, 2)))
    assert_allclose(found, place(P, points), atol=1e-5)


def test_new_objects_lie_among_their_like_and_known_ones_where_they_are():
    model = SNE(perplexity=8, random_state=0).fit(X)
    assert_array_equal(model.transform(X), model.embedding_)
    new = RNG.normal(size=(30, 5)) + 8.0 * np.eye(3, 5)[LABELS[::2]]
    nearest = LABELS[cdist(model.transform(new), model.embedding_).argmin(axis=1)]
    assert_array_equal(nearest, LABELS[::2])
    one_by_one = np.vstack([model.transform(row[None]) for row in new])
    assert_allclose(one_by_one, model.transform(new), atol=1e-5)
    with pytest.warns(UserWarning, match="row 0"):  # so far away that all others are equally near
        assert np.isfinite(model.transform(np.full((1, 5), 1e200))).all()


def test_dissimilarities_of_new_objects_are_taken():
    d = cdist(X, X, "sqeuclidean")
    model = SNE(perplexity=8, metric="precomputed", init="random", random_state=0).fit(d)
    vectors = SNE(perplexity=8, init="random", random_state=0).fit(X)
    assert_allclose(model.kl_divergence_, vectors.kl_divergence_, rtol=0.2)
    new = cdist(X[:7] + 0.3, X, "sqeuclidean")
    assert model.transform(new).shape == (7, 2)
    assert model.__sklearn_tags__().input_tags.pairwise


def test_asymmetric_dissimilarities_are_mapped_by_both_directions():
    d = cdist(X, X, "sqeuclidean") * RNG.uniform(0.5, 1.5, size=(60, 60))
    model = SNE(perplexity=8, metric="precomputed", random_state=0).fit(d)
    assert agreement(model.embedding_, LABELS) == 1.0
    cost = DenseCost(from_dissimilarities(d, 8.0), Threads())
    assert np.abs(cost(model.embedding_).gradient).max() < 0.5
    other = DenseCost(from_dissimilarities(d.T.copy(), 8.0), Threads())
    assert abs(other(model.embedding_).value - model.kl_divergence_) > 1e-3


def test_a_sparse_matrix_of_neighbours_is_mapped():
    d = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(d, np.inf)
    kept = d <= np.sort(d, axis=1)[:, 24:25]
    graph = sparse.csr_matrix(np.where(kept, d, 0.0))
    model = SNE(perplexity=8, metric="precomputed", random_state=0).fit(graph)
    assert model.method_ == "neighbors"
    assert agreement(model.embedding_, LABELS) == 1.0
    assert model.transform(cdist(X[:2] + 0.5, X)).shape == (2, 2)


def test_duplicates_constant_columns_and_integers():
    many = np.repeat(X[:20], 3, axis=0)
    model = SNE(perplexity=8, random_state=0).fit(many)
    assert np.isfinite(model.embedding_).all()
    with_constant = np.column_stack([X, np.full(60, 7.0)])
    assert_allclose(
        SNE(perplexity=8, random_state=0).fit(with_constant).kl_divergence_,
        SNE(perplexity=8, random_state=0).fit(X).kl_divergence_,
        rtol=0.02,
    )
    whole = (10 * X).astype(int)
    assert agreement(SNE(perplexity=8, random_state=0).fit(whole).embedding_, LABELS) == 1.0
    with pytest.warns(UserWarning, match="row 0"):
        nothing = SNE(perplexity=8, random_state=0).fit(np.ones((30, 3)))
    assert nothing.kl_divergence_ == pytest.approx(0.0, abs=1e-3)  # all objects are as near as all points


def test_few_objects_and_one_column():
    model = SNE(perplexity=1.5, random_state=0).fit(np.array([[0.0], [1.0], [5.0]]))
    assert model.embedding_.shape == (3, 2)
    assert SNE(1, perplexity=8, random_state=0).fit_transform(X).shape == (60, 1)
    assert SNE(4, perplexity=8, random_state=0).fit_transform(X[:, :2]).shape == (60, 4)


def test_frames_pipelines_and_clones():
    frame = pandas.DataFrame(X, columns=list("abcde"))
    model = SNE(perplexity=8, random_state=0).set_output(transform="pandas")
    found = model.fit_transform(frame)
    assert list(found.columns) == ["sne0", "sne1"] == list(model.get_feature_names_out())
    pipeline = make_pipeline(StandardScaler(), SNE(perplexity=8, random_state=0)).fit(X)
    assert pipeline.transform(X[:3]).shape == (3, 2)
    assert clone(model).get_params()["perplexity"] == 8


def test_the_answer_does_not_depend_on_the_number_of_threads():
    data = RNG.normal(size=(250, 4))
    for method in ("exact", "neighbors"):
        one = SNE(perplexity=8, method=method, random_state=0, n_jobs=1).fit(data)
        two = SNE(perplexity=8, method=method, random_state=0, n_jobs=2).fit(data)
        assert_array_equal(one.embedding_, two.embedding_)


def test_a_fit_that_is_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        model = SNE(perplexity=8, max_iter=3, random_state=0).fit(X)
    assert not model.converged_
    assert "not converged after 3 iterations" in model.summary()


BAD = [
    ({"perplexity": 59.0}, X, "perplexity must be smaller than n_samples - 1"),
    ({"perplexity": 1.0}, X, "perplexity must be a number above 1"),
    ({"perplexity": "15"}, X, "perplexity must be"),
    ({"n_components": 0}, X, "n_components must be an integer of at least 1"),
    ({"optimizer": "newton"}, X, "optimizer must be one of"),
    ({"learning_rate": 0.0}, X, "learning_rate must be"),
    ({"jitter": -0.1}, X, "jitter must be"),
    ({"max_iter": 0}, X, "max_iter must be"),
    ({"method": "tree"}, X, "method must be one of"),
    ({"neglect": 0.0}, X, "neglect must be"),
    ({"init": "spectral"}, X, "init must be one of"),
    ({"init": np.zeros((60, 3))}, X, r"init must have shape \(60, 2\), got \(60, 3\)"),
    ({"init": "pca", "metric": "precomputed"}, cdist(X, X), "init must be 'auto', 'random' or an array"),
    ({"perplexity_start": 3.0}, X, r"perplexity_start must be at least perplexity \(15.0\), got 3.0"),
    ({"perplexity_start": 70.0}, X, "perplexity must be smaller than n_samples - 1"),
    ({"n_components": 4, "method": "neighbors"}, X, "must be at most 3"),
    ({"optimizer": "wormholes", "method": "neighbors"}, X, "optimizer must not be"),
    ({"optimizer": "wormholes", "extra_dimensions": 1}, X, "must be left out"),
    ({"perplexity": None, "method": "neighbors"}, X, "perplexity must be a number with"),
    ({"metric": "precomputed"}, abs(X), r"X must be square with metric='precomputed', got shape \(60, 5\)"),
    ({"metric": "precomputed"}, -cdist(X, X), "Negative values in data"),
    ({"metric": "precomputed", "method": "exact"}, sparse.csr_matrix(cdist(X, X)), "method must be"),
    ({"metric": "precomputed"}, sparse.csr_matrix((60, 60)), "X must hold a neighbor for each row, got none in row 0"),
    ({"metric": "precomputed"}, sparse.csr_matrix(np.eye(60, k=1) + np.eye(60, k=-1)), "perplexity must be smaller"),
    ({}, np.where(np.arange(5) == 1, np.nan, X), "NaN"),
    ({}, np.where(np.arange(5) == 1, np.inf, X), "infinity"),
    ({}, X[:1], "minimum of 2 is required"),
    ({}, sparse.csr_matrix(X), "[Ss]parse"),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "data", "message"), BAD)
def test_what_cannot_be_meant_is_refused_in_one_sentence(settings, data, message):
    with pytest.raises((ValueError, TypeError), match=message):
        SNE(**settings).fit(data)


def test_weights_are_refused():
    with pytest.raises(TypeError, match="sample_weight"):
        SNE(perplexity=8).fit(X, sample_weight=np.ones(60))
