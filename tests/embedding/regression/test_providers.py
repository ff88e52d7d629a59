"""Spectral coordinates."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap

from pluri.embedding.regression.providers import spectral_coordinates

ROWS = np.random.default_rng(0).normal(size=(40, 3))


def test_diffusion_coordinates_are_eigenvectors_of_the_walk():
    """Of the walk with the symmetric kernel of self-tuned widths, and of mean square one where the walk spends time."""
    distances = squareform(pdist(ROWS))
    width = np.sort(distances, axis=1)[:, 7]
    kernel = np.exp(-(distances**2) / np.outer(width, width))
    steps, stationary = kernel / kernel.sum(axis=1, keepdims=True), kernel.sum(axis=1) / kernel.sum()
    values, scales = spectral_coordinates("diffusion", ROWS, 5, 7)
    np.testing.assert_allclose(steps @ values, scales * values, atol=1e-10)
    assert (np.diff(scales) <= 0).all()
    assert scales[0] < 1
    np.testing.assert_allclose(values.T @ (stationary[:, None] * values), np.eye(5), atol=1e-10)
    np.testing.assert_allclose(stationary @ values, 0.0, atol=1e-10)  # the constant vector is left out


def test_rows_in_two_places_have_no_diffusion_coordinates():
    with pytest.raises(ValueError, match="connected"):
        spectral_coordinates("diffusion", np.concatenate([ROWS, ROWS + 1e6]), 2, 5)


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
