"""Functions that compiled loops of topic models share, called from a compiled loop as they are there."""

import numpy as np
import pytest
from scipy import special

from pluri.engine.compiled import compiled
from pluri.topics import _draws, _special_functions

X = np.concatenate([np.logspace(-6, 9, 400), [0.5, 1.0, 1.5, 2.0]])


@compiled()
def tabulate_digamma(x, out):
    for i in range(len(x)):
        out[i] = _special_functions.digamma(x[i])


@compiled()
def tabulate_log_gamma(x, out):
    for i in range(len(x)):
        out[i] = _special_functions.log_gamma(x[i])


@compiled()
def tabulate_picks(state, weights, n, out):
    for i in range(len(out)):
        out[i] = _draws.pick(weights, n, _draws.uniform(state))


@compiled()
def tabulate_first_above(targets, rising, out):
    for i in range(len(targets)):
        out[i] = _draws.first_above(targets[i], rising)


@pytest.mark.parametrize(
    ("tabulate", "known"), [(tabulate_digamma, special.digamma), (tabulate_log_gamma, special.gammaln)]
)
def test_the_gamma_family_is_that_of_scipy(tabulate, known):
    found = np.empty(len(X))
    tabulate(X, found)
    np.testing.assert_allclose(found, known(X), rtol=1e-12, atol=1e-12)


def test_places_are_picked_by_their_weights_and_never_where_there_is_none():
    """Chi-square of 20,000 draws, exceeded once in a million random states; none at zero weights or behind n."""
    weights = np.array([0.0, 1.0, 0.0, 3.0, 0.5, 0.0, 9.0])
    found = np.empty(20_000, dtype=np.int64)
    tabulate_picks(np.array([5], dtype=np.uint64), weights, 6, found)
    seen, expected = np.bincount(found, minlength=7), 20_000 * weights[:6] / weights[:6].sum()
    assert set(np.unique(found)) == {1, 3, 4}
    there = expected > 0
    statistic = ((seen[:6] - expected)[there] ** 2 / expected[there]).sum()
    assert special.chdtrc(2, statistic) > 1e-6


def test_the_first_running_sum_above_a_target_is_found():
    rising = np.array([0.0, 0.5, 0.5, 2.0])
    targets = np.array([0.0, 0.49, 0.5, 1.9, 2.0, 5.0])
    found = np.empty(6, dtype=np.int64)
    tabulate_first_above(targets, rising, found)
    assert found.tolist() == [1, 1, 3, 3, 3, 3]
