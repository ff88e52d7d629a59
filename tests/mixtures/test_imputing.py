"""Missing values of rows, filled: against integration, sums over all values, and draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats

from pluri.components.gaussian import COVARIANCE_TYPES
from pluri.mixtures import CategoricalMixture, GaussianMixture, PoissonMixture


def two_groups(n=200):
    rng = np.random.default_rng(0)
    turned = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 0.3], [0.0, 0.0, 2.0]])
    return turned + np.repeat([[0.0, 0.0, 1e3], [3.0, -3.0, 1e3]], n // 2, axis=0)


@pytest.mark.parametrize("kind", COVARIANCE_TYPES)
def test_moments_are_those_of_the_density_of_what_is_missing(kind):
    """Numerical integration of the joint density over the one value that is missing."""
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(two_groups())
    row = np.array([1.5, np.nan, 1e3 + 1])
    filled, std = model.impute(row[None], return_std=True)
    grid = np.linspace(-30, 30, 60_001)
    rows = np.tile(row, (len(grid), 1))
    rows[:, 1] = grid
    density = np.exp(model.score_samples(rows))
    mean = (grid * density).sum() / density.sum()
    assert_allclose(filled[0, 1], mean, atol=1e-6)
    assert_allclose(std[0, 1] ** 2, ((grid - mean) ** 2 * density).sum() / density.sum(), rtol=1e-6)
    assert_array_equal(filled[0, [0, 2]], row[[0, 2]])
    assert_array_equal(std[0, [0, 2]], 0.0)


@pytest.mark.parametrize("kind", COVARIANCE_TYPES)
def test_a_row_of_nothing_has_the_moments_of_the_mixture(kind):
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(two_groups())
    filled, std = model.impute(np.full((1, 3), np.nan), return_std=True)
    drawn = model.sample(200_000, random_state=1)[0]
    # Five standard errors of draws, of means and of variances (whose error is at most twice that of a normal here).
    assert_allclose(filled[0], drawn.mean(axis=0), atol=5 * (drawn.std(axis=0) / np.sqrt(len(drawn))).max())
    assert_allclose(std[0] ** 2, drawn.var(axis=0), rtol=10 * np.sqrt(2 / len(drawn)))


def test_counts_are_those_of_sums_over_all_values():
    rng = np.random.default_rng(0)
    X = rng.poisson(np.repeat([[2.0, 9.0], [15.0, 1.0]], 80, axis=0)).astype(float)
    model = PoissonMixture(2, random_state=0).fit(X)
    filled, std = model.impute([[6.0, np.nan], [3.0, 2.0]], return_std=True)
    values = np.arange(200.0)
    joint = (model.weights_ * stats.poisson.pmf(6.0, model.rates_[:, 0])) @ stats.poisson.pmf(
        values, model.rates_[:, 1, None]
    )
    chance = joint / joint.sum()
    assert_allclose(filled[0, 1], chance @ values, rtol=1e-10)
    assert_allclose(std[0, 1] ** 2, chance @ values**2 - (chance @ values) ** 2, rtol=1e-9)
    assert_array_equal(filled[1], [3.0, 2.0])
    with pytest.raises(TypeError, match="X must be dense"):
        model.impute(sparse.csr_array(X))


def test_categories_are_the_most_probable_ones():
    rng = np.random.default_rng(0)
    side = rng.integers(2, size=300)
    X = np.stack([np.where(rng.random(300) < 0.9, side, 1 - side), 2 * side + rng.integers(2, size=300)], axis=1)
    model = CategoricalMixture(2, random_state=0).fit(X)
    holed = np.array([[0.0, np.nan], [np.nan, 3.0], [1.0, 2.0], [np.nan, np.nan]])
    filled = model.impute(holed)
    chance = [model.predict_proba(holed) @ table for table in model.probabilities_]
    assert filled[0, 1] == chance[1][0].argmax()
    assert filled[1, 0] == chance[0][1].argmax() == 1
    assert_array_equal(filled[2], holed[2])
    assert_array_equal(filled[3], [chance[0][3].argmax(), chance[1][3].argmax()])
    assert np.isnan(holed[0, 1])  # what came is as it was


def test_categories_that_fit_did_not_see_stay_unless_they_are_missing():
    X = [["red", "hot"], ["red", "hot"], ["blue", "cold"], ["blue", "cold"]]
    rows = np.array([["green", None]], dtype=object)
    assert CategoricalMixture(2, random_state=0).fit(X).impute(rows)[0, 0] == "green"
    taken = CategoricalMixture(2, unseen="missing", random_state=0).fit(X).impute(rows)
    assert taken[0, 0] in ("red", "blue")
    assert taken[0, 1] in ("hot", "cold")
