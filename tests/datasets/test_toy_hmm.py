"""The toy problem: its stated constants, its marginals, its determinism."""

from __future__ import annotations

import numpy as np
import pytest

from pluri.datasets import make_toy_hmm
from pluri.metrics import bhattacharyya_diversity


def expected_occupancy(toy, length):
    """Expected visits of each state in one sequence: the sum of ``startprob transmat^t``."""
    return sum(toy.startprob @ np.linalg.matrix_power(toy.transmat, t) for t in range(length))


def test_the_defaults_are_the_published_sizes():
    toy = make_toy_hmm(random_state=0)
    assert toy.X.shape == (1800, 1)
    np.testing.assert_array_equal(toy.lengths, np.full(300, 6))
    assert toy.states.shape == (1800,)
    np.testing.assert_array_equal(toy.means, [[1], [2], [3], [4], [5]])
    np.testing.assert_array_equal(toy.covars, np.full((5, 1), 0.025))


def test_parameters_are_distributions_with_the_stated_diversity_and_occupancy():
    toy = make_toy_hmm(random_state=0)
    assert toy.startprob.sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(toy.transmat.sum(axis=1), 1, atol=1e-15)
    assert bhattacharyya_diversity(toy.transmat).mean == pytest.approx(0.5308, abs=5e-5)
    np.testing.assert_array_equal(np.rint(300 * expected_occupancy(toy, 6)), [321, 379, 352, 312, 436])


def test_state_frequencies_and_transitions_are_those_of_the_parameters():
    """Each of 35 estimates lies within 5 standard errors; false alarms below 35 x 6e-7 = 2e-5."""
    toy = make_toy_hmm(20000, 6, random_state=1)
    paths = toy.states.reshape(20000, 6)
    visits = np.stack([(paths == state).sum(axis=1) for state in range(5)], axis=1)
    error = visits.std(axis=0) / np.sqrt(20000)
    assert (np.abs(visits.mean(axis=0) - expected_occupancy(toy, 6)) < 5 * error).all()
    first = np.bincount(paths[:, 0], minlength=5)
    assert (np.abs(first / 20000 - toy.startprob) < 5 * np.sqrt(toy.startprob * (1 - toy.startprob) / 20000)).all()
    for state, row in enumerate(toy.transmat):
        following = paths[:, 1:][paths[:, :-1] == state]
        share = np.bincount(following, minlength=5) / following.size
        assert (np.abs(share - row) < 5 * np.sqrt(row * (1 - row) / following.size)).all()


def test_emissions_have_the_mean_and_variance_of_their_state():
    """Ten estimates within 5 standard errors; false alarms below 6e-6."""
    toy = make_toy_hmm(5000, 6, 0.5, random_state=2)
    for state in range(5):
        values = toy.X[toy.states == state, 0]
        assert abs(values.mean() - toy.means[state, 0]) < 5 * np.sqrt(0.5 / values.size)
        assert abs(values.var() - 0.5) < 5 * 0.5 * np.sqrt(2 / values.size)


def test_the_same_seed_gives_the_same_data_and_another_seed_other_data():
    first, again, other = (make_toy_hmm(10, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.X, again.X)
    np.testing.assert_array_equal(first.states, again.states)
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize("bad", [{"n_sequences": 0}, {"length": 0}, {"variance": 0}, {"variance": np.nan}])
def test_bad_sizes_are_refused(bad):
    with pytest.raises(ValueError, match=f"{next(iter(bad))}.* must be"):
        make_toy_hmm(**bad)


def test_the_record_reads_like_a_bunch():
    toy = make_toy_hmm(4, 3, random_state=0)
    assert toy["X"] is toy.X
    assert toy.y is toy.states
    assert set(dict(**toy)) == {"X", "lengths", "states", "startprob", "transmat", "means", "covars"}
    pieces = list(toy.sequences())
    assert len(pieces) == 4
    np.testing.assert_array_equal(np.concatenate([X for X, _ in pieces]), toy.X)
    with pytest.raises(KeyError, match="nothing"):
        toy["nothing"]
