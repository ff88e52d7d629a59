from itertools import product

import numpy as np
import pytest
from scipy import stats

from pluri.testing import envelope, rank_chi_square, rank_envelope


def least_pointwise(ranks, n_values):
    n = len(ranks)
    found = []
    for edge in range(1, n_values):
        below, share = sum(rank < edge for rank in ranks), edge / n_values
        found.append(min(1.0, 2 * min(stats.binom.cdf(below, n, share), stats.binom.sf(below - 1, n, share))))
    return min(found)


def test_the_envelope_p_value_equals_enumeration():
    n_ranks, n_values = 4, 5
    every = list(product(range(n_values), repeat=n_ranks))
    levels = np.array([least_pointwise(ranks, n_values) for ranks in every])
    for ranks in ((0, 0, 0, 0), (0, 1, 1, 2), (4, 3, 4, 4), (0, 4, 2, 1), (2, 2, 2, 2)):
        level, p_value = rank_envelope(np.array(ranks), n_values)
        assert level == pytest.approx(least_pointwise(ranks, n_values))
        assert p_value == pytest.approx((levels <= level * (1 + 1e-9)).mean(), abs=1e-12)


def test_p_values_have_their_level():
    """200 sets of uniform ranks; more below 5 % than the limit have probability below 1e-6 for each test."""
    rng = np.random.default_rng(0)
    ranks = rng.integers(50, size=(200, 120))
    limit = stats.binom.isf(1e-6, 200, 0.05)
    assert sum(rank_envelope(row, 50)[1] < 0.05 for row in ranks) <= limit
    assert sum(rank_chi_square(row, 50)[1] < 0.05 for row in ranks) <= limit


@pytest.mark.parametrize("shape", [(2.0, 2.0), (0.6, 0.6), (1.4, 1.0), (1.0, 1.4)])
def test_ranks_that_are_not_uniform_are_seen(shape):
    rng = np.random.default_rng(1)
    ranks = np.floor(100 * rng.beta(*shape, size=2000)).astype(int)  # 12.9 standard errors for a tilt
    assert rank_envelope(ranks, 100)[1] < 1e-3


def test_curves_stay_in_the_envelope_as_often_as_stated():
    """2000 curves; fewer inside than the limit have probability below 1e-6."""
    rng = np.random.default_rng(2)
    places, lower, upper = envelope(100, 20, 0.9)
    ranks = np.sort(rng.integers(20, size=(2000, 100)), axis=1)
    below = np.array([np.searchsorted(row, places * 20 - 0.5) for row in ranks]) / 100
    inside = ((below >= lower - 1e-9) & (below <= upper + 1e-9)).all(axis=1).sum()
    assert inside >= stats.binom.ppf(1e-6, 2000, 0.9)
    assert inside <= stats.binom.isf(1e-6, 2000, 0.94)  # and not much wider than needed


@pytest.mark.parametrize("ranks", [[], [0.5, 1.0], [-1, 2], [1, 10]])
def test_what_is_no_rank_is_refused(ranks):
    with pytest.raises(ValueError, match="ranks must"):
        rank_envelope(np.array(ranks), 10)
    with pytest.raises(ValueError, match="coverage"):
        envelope(10, 10, 1.0)
