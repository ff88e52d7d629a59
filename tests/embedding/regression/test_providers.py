"""Random walks and spectral coordinates."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap

from pluri.embedding.regression.providers import diffusion_coordinates, random_walk, spectral_coordinates

ROWS = np.random.default_rng(0).normal(size=(40, 3))


def test_steps_are_a_reversible_random_walk():
    steps, stationary = random_walk(ROWS, 7)
    np.testing.assert_allclose(steps.sum(axis=1), 1.0, rtol=1e-12)
    flow = stationary[:, None] * steps
    np.testing.assert_allclose(flow, flow.T, atol=1e-15)
    distances = squareform(pdist(ROWS))
    width = np.sort(distances, axis=1)[:, 7]
    kernel = np.exp(-(distances**2) / np.outer(width, width))
    np.testing.assert_allclose(steps, kernel / kernel.sum(axis=1, keepdims=True), rtol=1e-10)


def test_diffusion_coordinates_are_eigenvectors_of_the_walk():
    walk = random_walk(ROWS, 7)
    values, scales = diffusion_coordinates(walk, 5)
    np.testing.assert_allclose(walk.steps @ values, scales * values, atol=1e-12)
    assert (np.diff(scales) <= 0).all()
    assert scales[0] < 1
    gram = values.T @ (walk.stationary[:, None] * values)
    np.testing.assert_allclose(gram, np.eye(5), atol=1e-10)
    np.testing.assert_allclose(walk.stationary @ values, 0.0, atol=1e-12)  # the constant vector is left out


def test_diffusion_distances_are_those_of_the_walk():
    """All coordinates of a small walk: ``sum_k lam_k^2 (psi_ik - psi_jk)^2 = sum_l (W_il - W_jl)^2 / pi_l``."""
    walk = random_walk(ROWS[:8], 3)
    values, scales = diffusion_coordinates(walk, 7)
    found = squareform(pdist(values * scales, "sqeuclidean"))
    expected = squareform(pdist(walk.steps / np.sqrt(walk.stationary), "sqeuclidean"))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_rows_in_two_places_are_no_walk():
    apart = np.concatenate([ROWS, ROWS + 1e3])
    with pytest.raises(ValueError, match="got 2 parts"):
        random_walk(apart, 5)


def test_copies_of_rows_are_walked_between():
    steps, _ = random_walk(np.repeat(ROWS[:4], 10, axis=0), 5)
    assert np.isfinite(steps).all()


@pytest.mark.parametrize("spectral", ["isomap", "diffusion", "lle", "kernel_pca"])
def test_coordinates_know_no_unit_but_their_own(spectral):
    one = spectral_coordinates(spectral, ROWS, 3, 12)
    other = spectral_coordinates(spectral, 64.0 * ROWS, 3, 12)
    assert one.values.shape == (40, 3)
    factor = 64.0 if spectral == "isomap" else 1.0
    np.testing.assert_allclose(other.values, factor * one.values, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.scales, one.scales, rtol=1e-9)


def test_an_estimator_and_its_coordinates_are_the_same():
    model = Isomap(n_neighbors=12, n_components=4, eigen_solver="dense")
    by_model = spectral_coordinates(model, ROWS, 3, 5)
    by_array = spectral_coordinates(model.fit_transform(ROWS), ROWS, 3, 5)
    np.testing.assert_allclose(by_model.values, by_array.values)
    np.testing.assert_allclose(by_model.values, spectral_coordinates("isomap", ROWS, 3, 12).values, rtol=1e-8)


@pytest.mark.parametrize("given", [np.zeros((39, 2)), np.full((40, 2), np.nan), np.zeros((40, 0))])
def test_coordinates_that_do_not_fit_the_rows_are_refused(given):
    with pytest.raises(ValueError, match="spectral must give finite coordinates of shape"):
        spectral_coordinates(given, ROWS, 2, 5)
