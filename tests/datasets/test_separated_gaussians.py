"""Mixtures with a wanted separation."""

import numpy as np
import pytest

from pluri.datasets.separated_gaussians import make_separated_gaussians


@pytest.mark.parametrize("separation", [0.0, 0.2, 1.0, 5.0])
@pytest.mark.parametrize("eccentricity", [1.0, 10.0])
def test_every_pair_of_means_is_far_enough_apart(separation, eccentricity):
    data = make_separated_gaussians(
        10, 6, 4, separation=separation, eccentricity=eccentricity, random_state=int(10 * separation)
    )
    for i in range(4):
        for j in range(i):
            largest = max(np.trace(data.covariances[i]), np.trace(data.covariances[j]))
            assert np.linalg.norm(data.means[i] - data.means[j]) >= separation * np.sqrt(largest)
    assert data.separation >= separation


def test_separation_is_not_exceeded_by_far():
    reached = [make_separated_gaussians(10, 20, 2, separation=1.0, random_state=draw).separation for draw in range(20)]
    assert max(reached) < 1.5


def test_no_eccentricity_gives_spheres_and_else_it_bounds_the_ratio():
    spheres = make_separated_gaussians(10, 5, 3, random_state=0)
    np.testing.assert_allclose(spheres.covariances, np.broadcast_to(0.01 * np.eye(5), (3, 5, 5)), atol=1e-15)
    stretched = make_separated_gaussians(10, 5, 3, eccentricity=10.0, random_state=0)
    eigenvalues = np.linalg.eigvalsh(stretched.covariances)
    assert eigenvalues.min() >= 0.01 * (1 - 1e-9)
    assert eigenvalues.max() <= 1.0 + 1e-9
    assert (eigenvalues[:, -1] / eigenvalues[:, 0] > 2).all()


def test_draws_have_the_moments_of_their_components():
    # Standardised sample means beyond 5 standard errors: false alarm below 1e-5 over 12 of them; the fixed draw passes.
    data = make_separated_gaussians(20_000, 4, 3, separation=3.0, eccentricity=4.0, random_state=1)
    for component in range(3):
        rows = data.X[data.labels == component]
        errors = (rows.mean(axis=0) - data.means[component]) / np.sqrt(np.diag(data.covariances[component]) / len(rows))
        assert np.abs(errors).max() < 5
        np.testing.assert_allclose(np.cov(rows.T), data.covariances[component], atol=0.15 * 0.16)
    assert np.abs(np.bincount(data.labels) / 20_000 - data.weights).max() < 5 * np.sqrt(0.25 / 20_000)
    assert (data.weights > 1 / 12).all()


def test_average_log_likelihood_of_separated_spheres_is_the_known_entropy():
    # 10 (-log(2 pi e 0.01)) - H(pi) for 20 features; the standard error with 20000 rows is sqrt(10 / 20000) = 0.022.
    data = make_separated_gaussians(20_000, 20, 2, separation=5.0, random_state=2)
    residuals = data.X - data.means[data.labels]
    own = np.log(data.weights[data.labels]) - 10 * np.log(2 * np.pi * 0.01) - 50.0 * (residuals**2).sum(axis=1)
    entropy = -(data.weights * np.log(data.weights)).sum()
    assert abs(own.mean() - (-10 * np.log(2 * np.pi * np.e * 0.01) - entropy)) < 5 * 0.022


def test_same_number_same_draw_and_one_component_works():
    first, second = (make_separated_gaussians(50, 3, 2, random_state=7) for _ in range(2))
    np.testing.assert_array_equal(first.X, second.X)
    assert make_separated_gaussians(5, 1, 1, random_state=0).separation == np.inf


@pytest.mark.parametrize(
    ("setting", "value"),
    [("n_samples", 0), ("n_components", 1.5), ("n_features", True), ("separation", -1), ("eccentricity", 0.5),
     ("separation", np.nan), ("eccentricity", "a")],
)  # fmt: skip
def test_bad_settings_are_named(setting, value):
    with pytest.raises(ValueError, match=setting):
        make_separated_gaussians(**{setting: value})
