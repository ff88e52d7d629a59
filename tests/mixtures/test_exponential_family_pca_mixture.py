"""Mixtures of exponential-family PCAs: special cases that are known, laws of the fit, diversity, and the contract."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logsumexp
from sklearn.utils.estimator_checks import parametrize_with_checks

from pluri.factors.exponential_family import ExponentialFamilyPCA
from pluri.mixtures.exponential_family_pca import ExponentialFamilyPCAMixture
from pluri.mixtures.exponential_family_pca.diversified import Neighbours
from pluri.mixtures.exponential_family_pca.frames import (
    Quadratic,
    climb_frame,
    climb_scales,
    move,
    orthonormal,
    tangent,
)
from pluri.priors.determinantal import DeterminantalPrior
from pluri.priors.kernels import SubspaceKernel


def clusters(n=300, n_features=20, k=2, width=2, sizes=(6, 4), seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    X = np.zeros((n, n_features))
    for j in range(k):
        loadings = np.linalg.qr(rng.normal(size=(n_features, width)))[0] * np.array(sizes[:width])
        rows = labels == j
        theta = rng.normal(size=(rows.sum(), width)) @ loadings.T + 1.3 * rng.normal(size=n_features)
        X[rows] = rng.random(theta.shape) < expit(theta)
    return X, labels


def accuracy(truth, labels):
    size = max(truth.max(), labels.max()) + 1
    table = np.zeros((size, size))
    np.add.at(table, (truth, labels), 1)
    return table[linear_sum_assignment(-table)].sum() / len(truth)


def is_orthonormal(frames):
    grams = np.einsum("kai,kaj->kij", frames, frames)
    return np.abs(grams - np.eye(frames.shape[2])).max() < 1e-10


REASON = "the check takes the probabilities of two components for those of a classifier with four classes"
EXPECTED = dict.fromkeys(("check_estimator_sparse_array", "check_estimator_sparse_matrix"), REASON)


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [ExponentialFamilyPCAMixture(random_state=0)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_the_estimator_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("inference", ["laplace", "vb"])
def test_one_component_is_exponential_family_pca(inference):
    X, _ = clusters(200)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    settings = {"family": "bernoulli", "inference": inference}
    one = ExponentialFamilyPCAMixture(1, 3, **settings).fit(X)
    pca = ExponentialFamilyPCA(3, **settings).fit(X)
    assert one.lower_bound_ == pytest.approx(pca.lower_bound_, rel=1e-12)
    np.testing.assert_allclose(one.components_[0], pca.components_, atol=1e-9)
    np.testing.assert_allclose(one.score_samples(X), pca.score_samples(X), atol=1e-9)
    assert one.bic(X) == pytest.approx(one.hierarchical_bic(X))


@pytest.mark.parametrize("smoothing", [0.0, 2.0])
def test_without_latent_dimensions_it_is_the_latent_class_model(smoothing):
    X, _ = clusters(400, sizes=(0.1, 0.1))
    model = ExponentialFamilyPCAMixture(
        2, 0, family="bernoulli", smoothing=smoothing, tol=1e-13, max_iter=3000, random_state=0
    ).fit(X)
    # EM by hand from where it stopped: nothing may move.
    theta, weights = model.intercepts_, model.weights_
    joint = X @ theta.T - np.logaddexp(0, theta).sum(axis=1) + np.log(weights)
    q = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
    overall = (X.sum(axis=0) + 0.5) / (len(X) + 1)
    means = (q.T @ X + smoothing * overall) / (q.sum(axis=0)[:, None] + smoothing)
    np.testing.assert_allclose(expit(theta), means, atol=2e-5)
    np.testing.assert_allclose(weights, q.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(model.predict_proba(X), q, atol=1e-12)
    assert model.score(X) == pytest.approx(logsumexp(joint, axis=1).mean(), abs=1e-12)
    assert model.transform(X).shape == (400, 0)


def test_gaussian_evidence_is_that_of_a_mixture_of_probabilistic_pcas():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 6)) + 3, rng.normal(size=(80, 6)) @ np.diag([4, 2, 1, 1, 1, 1]) - 3])
    model = ExponentialFamilyPCAMixture(2, 2, loading_prior="ridge", random_state=0).fit(X)
    logs = np.column_stack(
        [
            np.log(weight) + stats.multivariate_normal(b, W.T @ W + np.eye(6)).logpdf(X)
            for weight, W, b in zip(model.weights_, model.components_, model.intercepts_)
        ]
    )
    np.testing.assert_allclose(model.score_samples(X), logsumexp(logs, axis=1), atol=1e-8)
    np.testing.assert_allclose(model.predict_proba(X), np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), atol=1e-8)
    assert model.weights_.sum() == pytest.approx(1)


def test_responsibilities_agree_with_quadrature():
    X, _ = clusters(200, 8, width=1, sizes=(3,))
    model = ExponentialFamilyPCAMixture(2, 1, family="bernoulli", random_state=0, loading_prior="ridge").fit(X)
    nodes, weights = hermegauss(60)
    logs = []
    for W, b in zip(model.components_, model.intercepts_):
        theta = nodes[:, None] * W[0] + b
        joint = X @ theta.T - np.logaddexp(0, theta).sum(axis=1) + np.log(weights / weights.sum())
        logs.append(logsumexp(joint, axis=1))
    logs = np.column_stack(logs) + np.log(model.weights_)
    exact = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(X), exact, atol=0.04)
    np.testing.assert_allclose(model.score_samples(X), logsumexp(logs, axis=1), atol=0.2)


def test_well_specified_clusters_and_their_dimensions_are_found():
    # Measured accuracies on such data: 0.972 to 0.983.
    X, labels = clusters(600, 40, k=3, sizes=(8, 6), seed=1)
    model = ExponentialFamilyPCAMixture(3, 4, family="bernoulli", random_state=0).fit(X)
    assert accuracy(labels, model.labels_) > 0.95
    assert (model.effective_components_ == 2).all()
    assert model.effective_dimension() == pytest.approx(2)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    fewer = ExponentialFamilyPCAMixture(3, 0, family="bernoulli", random_state=0).fit(X)
    assert model.hierarchical_bic(X) < model.bic(X)
    assert model.bic(X) < fewer.bic(X)


def test_order_of_rows_and_weights_for_repeated_rows_change_nothing():
    X, _ = clusters(150, 10, width=1)
    weight = np.random.default_rng(0).integers(0, 3, 150)
    settings = {
        "n_components": 2, "n_latent": 1, "family": "bernoulli", "loading_prior": "ridge", "tol": 1e-11,
        "max_iter": 2000, "random_state": 0,
    }  # fmt: skip
    weighted = ExponentialFamilyPCAMixture(**settings).fit(X, sample_weight=weight)
    repeated = ExponentialFamilyPCAMixture(**settings).fit(np.repeat(X, weight, axis=0)[::-1])
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-4)
    np.testing.assert_allclose(weighted.components_, repeated.components_, atol=1e-2)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, rel=1e-7)


@pytest.mark.parametrize("latent", ["per_component", "shared"])
@pytest.mark.parametrize("manifold", ["stiefel", "grassmann"])
@pytest.mark.parametrize("similarity", ["projection", "sum_cosine"])
@pytest.mark.parametrize(("inference", "prior"), [("map", None), ("vb", "ridge")])
def test_diversified_objectives_never_fall_and_frames_stay_orthonormal(latent, manifold, similarity, inference, prior):
    X, _ = clusters(120, 12)
    with pytest.warns(UserWarning, match="still changes"):
        model = ExponentialFamilyPCAMixture(
            2, 2, family="bernoulli", latent=latent, manifold=manifold, similarity=similarity, inference=inference,
            loading_prior=prior, diversity=50.0, sparsity=0.5, max_iter=8, tol=-1.0, random_state=0,
        ).fit(X)  # fmt: skip
    assert np.diff(model.objective_history_).min() > -1e-8
    assert is_orthonormal(model.frames_)
    np.testing.assert_allclose(np.swapaxes(model.components_, 1, 2), model.frames_ * model.scales_[:, None, :])
    assert len(model.log_det_history_) == model.n_iter_
    expected = SubspaceKernel(0.1, similarity).log_determinant(model.frames_)
    assert np.log(np.linalg.det(model.similarity_matrix_)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("family", ["poisson", "gaussian"])
def test_points_climb_for_counts_and_reals_too(family):
    rng = np.random.default_rng(0)
    X = rng.poisson(np.exp(rng.normal(size=(100, 2)) @ rng.normal(size=(2, 8)) * 0.4)).astype(float)
    model = ExponentialFamilyPCAMixture(
        2, 2, family=family, inference="map", loading_prior=None, sparsity=1.0, diversity=5.0, random_state=0, tol=1e-4
    ).fit(X)
    assert np.diff(model.objective_history_).min() > -1e-8


@pytest.mark.parametrize("latent", ["per_component", "shared"])
def test_scales_and_latents_are_balanced_at_the_optimum(latent):
    from pluri.factors.exponential_family.families import BernoulliFamily
    from pluri.factors.exponential_family.loadings import intercept_prior
    from pluri.factors.exponential_family.observations import observe
    from pluri.factors.exponential_family.relevance import WeightPrior
    from pluri.inference.variational import coordinate_ascent
    from pluri.mixtures.exponential_family_pca.diversified import DiversifiedModel

    X, _ = clusters(60, 8)
    data = observe(X, BernoulliFamily())
    prior = intercept_prior(data, 1.0, True)
    model = DiversifiedModel(data.family, "map", 2, 2, WeightPrior(None), prior, latent, sparsity=2.0)
    state = coordinate_ascent(model, data, rng=np.random.default_rng(0), max_iter=300, tol=1e-10).params
    scales, q = state.fitted.scales, state.responsibilities
    if latent == "shared":
        left, right = 2.0 * np.abs(scales).sum(axis=0), (state.latents[0].mean ** 2).sum(axis=0)
    else:
        left = 2.0 * np.abs(scales)
        right = np.stack([q[:, k] @ state.latents[k].mean ** 2 for k in range(2)])
    np.testing.assert_allclose(left, right, rtol=2e-2, atol=1e-6)
    assert scales.max() > 1


def test_one_component_without_the_new_priors_is_pca_with_points():
    X, _ = clusters(100, 8, k=1)
    settings = {"family": "bernoulli", "inference": "map", "loading_prior": "ridge", "tol": 1e-8, "max_iter": 1000}
    mixture = ExponentialFamilyPCAMixture(1, 2, sparsity=1e-9, **settings).fit(X)  # by frames
    pca = ExponentialFamilyPCA(2, **settings).fit(X)  # by rows
    assert mixture.lower_bound_ == pytest.approx(pca.lower_bound_, rel=1e-4)
    np.testing.assert_allclose(mixture.scales_[0], np.linalg.norm(pca.components_, axis=1), rtol=0.02)


def test_more_diversity_moves_subspaces_apart():
    X, _ = clusters(250, 16, sizes=(4, 3), seed=3)
    log_dets, angles = [], []
    for diversity in (0.0, 30.0, 1000.0):
        model = ExponentialFamilyPCAMixture(
            2,
            2,
            family="bernoulli",
            diversity=diversity,
            sparsity=1e-9,
            rho=0.5,
            loading_prior="ridge",
            random_state=0,
            tol=1e-5,
        ).fit(X)
        log_dets.append(np.log(np.linalg.det(model.similarity_matrix_)))
        cosines = np.linalg.svd(model.frames_[0].T @ model.frames_[1], compute_uv=False)
        angles.append(np.arccos(np.clip(cosines.max(), -1, 1)))
    assert np.diff(log_dets).min() > -1e-6
    assert angles[2] > angles[0]
    # Orthogonal subspaces are the most that the prior can ask for.
    assert log_dets[2] == pytest.approx(np.log(1 - np.exp(-2 * 0.5 * 2)), abs=1e-2)


def test_more_sparsity_drops_directions_until_none_is_left():
    X, _ = clusters(200, 14, k=1)
    settings = {
        "family": "bernoulli",
        "inference": "map",
        "loading_prior": None,
        "random_state": 0,
        "tol": 1e-5,
        "max_iter": 300,
    }
    active = []
    for sparsity in (0.3, 60.0):
        model = ExponentialFamilyPCAMixture(1, 4, sparsity=sparsity, **settings).fit(X)
        active.append(model.effective_components_.sum())
    assert active[1] < active[0]
    with pytest.warns(UserWarning, match="too strong"):
        model = ExponentialFamilyPCAMixture(1, 4, sparsity=1e4, **settings).fit(X)
    np.testing.assert_array_equal(model.scales_, 0.0)


def test_no_diversity_is_the_plain_fit_bit_for_bit():
    X, _ = clusters(120, 10)
    plain = ExponentialFamilyPCAMixture(2, 2, family="bernoulli", random_state=0).fit(X)
    other = ExponentialFamilyPCAMixture(
        2, 2, family="bernoulli", random_state=0, diversity=0.0, rho=0.7, manifold="grassmann"
    ).fit(X)
    np.testing.assert_array_equal(plain.components_, other.components_)
    np.testing.assert_array_equal(plain.objective_history_, other.objective_history_)


# Frames ---------------------------------------------------------------------------------------------------------------


def quadratic(n_features=7, width=3, seed=0):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(n_features, width, width))
    precision = roots @ np.swapaxes(roots, 1, 2) + 0.5 * np.eye(width)
    return Quadratic(rng.normal(size=(n_features, width)), rng.normal(size=(n_features, width)), precision), rng


def test_slopes_along_tangents_and_scales_agree_with_differences():
    model, rng = quadratic()
    frames = np.stack([orthonormal(rng.normal(size=(7, 3))) for _ in range(3)])
    scales, step = np.array([2.0, 0.5, 1.0]), 1e-6
    for similarity in ("projection", "sum_cosine"):
        prior = DeterminantalPrior(SubspaceKernel(0.3, similarity), 5.0)

        def value(frame, prior=prior):
            return model.value(frame * scales) + prior.log_density(np.stack([frame, *frames[1:]]))

        slope = model.slope(frames[0] * scales) * scales + prior.gradient(frames)[0]
        for manifold in ("stiefel", "grassmann"):
            along = tangent(frames[0], rng.normal(size=(7, 3)), manifold)
            ends = [value(move(frames[0], along, sign * step, manifold)) for sign in (1, -1)]
            assert np.sum(slope * along) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-5, abs=1e-6)
        seen = Neighbours.of(frames, 0, SubspaceKernel(0.3, similarity))
        np.testing.assert_allclose(5.0 * seen.slope(frames[0]), prior.gradient(frames)[0], rtol=1e-6, atol=1e-8)
        others = SubspaceKernel(0.3, similarity).log_determinant(frames[1:])
        assert 5.0 * (seen.log_determinant(frames[0]) + others) == pytest.approx(prior.log_density(frames), abs=1e-7)
    for i in range(3):
        shift = step * np.eye(3)[i]
        difference = model.value(frames[0] * (scales + shift)) - model.value(frames[0] * (scales - shift))
        slope = np.sum(frames[0][:, i] * model.slope(frames[0] * scales)[:, i])
        assert slope == pytest.approx(difference / (2 * step), rel=1e-5)


def test_steps_stay_on_the_manifold_and_signs_are_unique():
    rng = np.random.default_rng(0)
    frame = orthonormal(rng.normal(size=(9, 3)))
    for manifold in ("stiefel", "grassmann"):
        along = tangent(frame, rng.normal(size=(9, 3)), manifold)
        for size in (0.0, 0.1, 5.0):
            assert is_orthonormal(move(frame, along, size, manifold)[None])
        np.testing.assert_allclose(move(frame, along, 0.0, manifold), frame, atol=1e-12)


def test_subspace_steps_cannot_turn_a_full_frame_but_frame_steps_can():
    model, rng = quadratic(4, 4)
    start, scales = orthonormal(rng.normal(size=(4, 4))), np.array([3.0, 2.0, 1.0, 0.5])

    def value(u):
        return model.value(u * scales)

    def slope(u):
        return model.slope(u * scales) * scales

    still = climb_frame(value, slope, start, manifold="grassmann", n_steps=20, size=0.01)
    moved = climb_frame(value, slope, start, manifold="stiefel", n_steps=20, size=0.01)
    assert value(still) == pytest.approx(value(start), abs=1e-9)
    assert value(moved) > value(start) + 0.1


def test_scales_solve_their_penalised_problem():
    model, rng = quadratic()
    frame = orthonormal(rng.normal(size=(7, 3)))
    ridge, sparsity = np.array([0.5, 0.0, 1.0]), 0.8
    found = climb_scales(model, frame, np.ones(3), ridge, sparsity)

    def penalised(s):
        return model.value(frame * s) - 0.5 * ridge @ s**2 - sparsity * np.abs(s).sum()

    for step in rng.normal(size=(200, 3)):
        assert penalised(found) >= penalised(found + 0.05 * step) - 1e-10
    assert (climb_scales(model, frame, np.ones(3), ridge, 1e6) == 0).all()


def test_similarities_of_turned_frames_have_their_known_values():
    # Frames of the plane turned by 0, 45, ..., 180 degrees: the sum of cosines sees the turn, the subspaces are equal.
    rho = 0.3
    for degrees in (45, 90, 135, 180):
        c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
        frames = np.zeros((2, 3, 2))
        frames[0, :2], frames[1, :2] = np.eye(2), [[c, -s], [s, c]]
        known = np.exp(rho * (2 * c - 2))
        assert SubspaceKernel(rho, "sum_cosine")(frames)[0, 1] == pytest.approx(known)
        assert SubspaceKernel(rho)(frames)[0, 1] == pytest.approx(1.0)
    signs = np.array([-1.0, 1.0])
    flipped = np.stack([frames[0], frames[0] * signs])
    assert SubspaceKernel(rho)(flipped)[0, 1] == pytest.approx(1.0)
    assert SubspaceKernel(rho, "sum_cosine")(flipped)[0, 1] < 0.9
    assert SubspaceKernel(rho).log_determinant(frames[:1]) == pytest.approx(0.0, abs=1e-12)


# Answers --------------------------------------------------------------------------------------------------------------


def test_noise_is_taken_off_bits():
    rng = np.random.default_rng(0)
    prototypes = np.concatenate([rng.random((3, 16)) < mean for mean in (0.9, 0.5, 0.1)])
    clean = np.repeat(prototypes, 40, axis=0).astype(float)
    X = np.where(rng.random(clean.shape) < 0.1, 1 - clean, clean)
    model = ExponentialFamilyPCAMixture(3, 4, family="bernoulli", n_init=2, random_state=0).fit(X)
    # 0.02 to 0.04 was measured on such data; the noise is 0.10.
    assert ((model.reconstruct(X) > 0.5) != clean).mean() < 0.05
    hidden = rng.random(X.shape) < 0.1
    filled = model.reconstruct(np.where(hidden, np.nan, X))
    assert ((filled[hidden] > 0.5) != clean[hidden]).mean() < 0.15


def test_latents_samples_and_pruning():
    X, _ = clusters(300, 10)
    model = ExponentialFamilyPCAMixture(2, 2, family="bernoulli", random_state=0, loading_prior="ridge").fit(X)
    latent, proba = model.transform(X, component=1), model.predict_proba(X)
    np.testing.assert_allclose(model.transform(X)[:, 2:], latent * proba[:, 1:], atol=1e-10)
    means = model.inverse_transform(latent, component=1)
    np.testing.assert_allclose(means, expit(latent @ model.components_[1] + model.intercepts_[1]))
    assert model.inverse_transform(latent, component=model.labels_).shape == X.shape
    draws, labels = model.sample(20_000, random_state=0)
    np.testing.assert_array_equal(draws, model.sample(20_000, random_state=0)[0])
    # Standard error below 0.004: five of them.
    assert abs(labels.mean() - model.weights_[1]) < 0.02
    assert model.score(draws[:500]) == pytest.approx(model.score(X), abs=0.8)
    assert "2 components of 2 dimensions" in model.summary()
    smallest = np.abs(model.scales_).min() / np.abs(model.scales_).max()
    model.prune(smallest * 1.01)
    assert (model.scales_ == 0).sum() == 1
    assert model.effective_components_.sum() == 3
    with pytest.raises(ValueError, match="component must be between 0 and 1"):
        model.transform(X, component=2)
    with pytest.raises(ValueError, match="Y must have 2 columns"):
        model.inverse_transform(latent[:, :1], component=0)


def test_warm_starts_go_on_with_frames():
    X, _ = clusters(100, 8)
    model = ExponentialFamilyPCAMixture(
        2, 2, family="bernoulli", diversity=10.0, warm_start=True, random_state=0, loading_prior="ridge", tol=1e-5
    ).fit(X)
    sweeps = model.n_iter_
    model.fit(X)
    assert model.n_iter_ < sweeps


@pytest.mark.parametrize(("settings", "words"), [
    ({"n_components": 0}, "n_components must be an integer"),
    ({"n_components": 50}, "n_components must be at most"),
    ({"n_latent": 9}, "n_latent must be at most min"),
    ({"n_latent": -1}, "n_latent must be an integer"),
    ({"latent": "both"}, "latent must be one of"),
    ({"similarity": "cosine"}, "similarity must be one of"),
    ({"manifold": "sphere"}, "manifold must be one of"),
    ({"diversity": -1.0}, "diversity must be a non-negative number"),
    ({"diversity": 1.0, "n_latent": 0}, "diversity must be 0"),
    ({"sparsity": float("nan")}, "sparsity must be a non-negative number"),
    ({"rho": 0.0}, "rho must be a positive number"),
    ({"smoothing": "much"}, "smoothing must be a number of at least 0 or 'auto'"),
])  # fmt: skip
def test_bad_settings_get_a_sentence(settings, words):
    with pytest.raises(ValueError, match=words):
        ExponentialFamilyPCAMixture(**settings).fit(np.random.default_rng(0).normal(size=(20, 8)))


@pytest.mark.filterwarnings("ignore:loadings of")
def test_points_without_any_prior_are_warned_about():
    X, _ = clusters(60, 6)
    with pytest.warns(UserWarning, match="shrink to zero"):
        ExponentialFamilyPCAMixture(
            2, 1, family="bernoulli", inference="map", loading_prior=None, tol=1e-2, smoothing=1.0
        ).fit(X)
