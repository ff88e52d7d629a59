"""Points on a grid in the unit square: how far apart they are, against points drawn independently."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

from pluri.processes.dpp import DPP

SIDE = 30
GRID = np.stack(np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij"), axis=-1).reshape(-1, 2) / (SIDE - 1)


@pytest.fixture(scope="module")
def process():
    return DPP.from_kernel(GRID, "rbf", length_scale=0.08, expected_size=50)


def nearest_neighbour_distance(items):
    return cKDTree(GRID[items]).query(GRID[items], k=2)[0][:, 1].mean()


def test_points_lie_further_apart_than_independent_ones(process):
    rng = np.random.default_rng(0)
    draws = process.sample(200, random_state=rng)
    wins = [
        nearest_neighbour_distance(draw) > nearest_neighbour_distance(rng.choice(len(GRID), draw.size, replace=False))
        for draw in draws
    ]
    assert np.mean(wins) >= 0.95


def test_the_pair_correlation_of_neighbours_is_that_of_the_marginal_kernel(process):
    draws = process.sample(3000, random_state=1)
    included = np.zeros((len(draws), len(GRID)))
    for row, draw in enumerate(draws):
        included[row, draw] = 1.0
    left = np.arange(len(GRID)).reshape(SIDE, SIDE)[:, :-1].ravel()
    right = left + 1
    K = process.K
    expected = K[left, left] * K[right, right] - K[left, right] ** 2
    # The number of pairs of neighbours in each draw; false-alarm rate 4e-8 of a normal approximation.
    counts = (included[:, left] * included[:, right]).sum(axis=1)
    error = counts.std(ddof=1) / np.sqrt(len(draws))
    assert abs(counts.mean() - expected.sum()) < 5.5 * error
    assert process.pair_correlation(left[40], right[40]) == pytest.approx(
        1 - K[left[40], right[40]] ** 2 / (K[left[40], left[40]] * K[right[40], right[40]])
    )
