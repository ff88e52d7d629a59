from itertools import pairwise

import numpy as np
import pytest
from scipy.special import gammaln

from pluri.testing import (
    binary_matrices,
    canonical_labels,
    enumerate_posterior,
    feature_allocations,
    left_ordered,
    set_partitions,
)


def test_there_are_as_many_partitions_as_bell_says():
    for n, bell in enumerate((1, 1, 2, 5, 15, 52, 203)):
        partitions = [tuple(p) for p in set_partitions(n)]
        assert len(set(partitions)) == bell
        assert all(tuple(canonical_labels(p)) == p for p in partitions if p)
    assert sum(1 for _ in set_partitions(5, max_blocks=2)) == 16  # 1 + S(5, 2)


def test_the_chinese_restaurant_sums_to_one():
    alpha, n = 0.7, 6

    def log_prior(labels):
        sizes = np.bincount(labels)
        return len(sizes) * np.log(alpha) + gammaln(sizes).sum() + gammaln(alpha) - gammaln(alpha + n)

    posterior = enumerate_posterior(log_prior, configurations=set_partitions(n))
    assert posterior.log_evidence == pytest.approx(0.0, abs=1e-12)
    expected = sum(alpha / (alpha + i) for i in range(n))
    assert posterior.expectation(lambda z: z.max() + 1) == pytest.approx(expected)
    assert posterior.distribution(lambda z: z[0] == z[1])[True] == pytest.approx(1 / (1 + alpha))


def test_the_indian_buffet_sums_to_one_but_for_what_is_left_out():
    alpha, n, most = 0.5, 2, 6
    harmonic = sum(1 / i for i in range(1, n + 1))

    def log_prior(Z):
        owners = Z.sum(axis=0)
        _, repeats = np.unique(Z, axis=1, return_counts=True) if Z.shape[1] else (None, np.array([]))
        each = gammaln(n - owners + 1) + gammaln(owners) - gammaln(n + 1)
        return float(Z.shape[1] * np.log(alpha) - alpha * harmonic - gammaln(repeats + 1).sum() + each.sum())

    posterior = enumerate_posterior(log_prior, configurations=feature_allocations(n, most))
    mean = alpha * harmonic
    kept = sum(np.exp(-mean + k * np.log(mean) - gammaln(k + 1)) for k in range(most + 1))  # features are Poisson
    assert np.exp(posterior.log_evidence) == pytest.approx(kept)


def test_allocations_are_left_ordered_and_left_ordering_ignores_columns():
    rng = np.random.default_rng(0)
    for Z in feature_allocations(3, 2):
        np.testing.assert_array_equal(left_ordered(Z), Z)
        shuffled = np.column_stack([Z[:, rng.permutation(Z.shape[1])], np.zeros(3, dtype=int)])
        np.testing.assert_array_equal(left_ordered(shuffled), Z)
    assert len({Z.tobytes() for Z in binary_matrices(2, 2)}) == 16


def ising_chain(z):
    return 0.8 * sum(a * b for a, b in pairwise(z)) + 0.3 * z[0]


def test_a_chain_of_spins_has_its_closed_form():
    posterior = enumerate_posterior(ising_chain, [[-1, 1]] * 5)
    expected = np.log(2 * np.cosh(0.3)) + 4 * np.log(2 * np.cosh(0.8))
    assert posterior.log_evidence == pytest.approx(expected)
    assert posterior.expectation(lambda z: z[0]) == pytest.approx(np.tanh(0.3))
    assert posterior.expectation(lambda z: z[1] * z[3]) == pytest.approx(np.tanh(0.8) ** 2)
    assert posterior.marginal(4)[1] == pytest.approx((1 + np.tanh(0.3) * np.tanh(0.8) ** 4) / 2)
    assert posterior.probability([1] * 5) == pytest.approx(np.exp(4 * 0.8 + 0.3 - expected))
    assert posterior.probability([2] * 5) == 0.0
    np.testing.assert_allclose(
        posterior.expectation(lambda z: np.outer(z, z)).diagonal(), 1.0, rtol=1e-12
    )  # arrays are averaged entry by entry


def test_names_give_mappings():
    posterior = enumerate_posterior(lambda z: float(z["rain"] and not z["wet"]) * -9.0, {"rain": [0, 1], "wet": [0, 1]})
    assert set(posterior.marginal("rain")) == {0, 1}
    assert posterior.probability({"wet": 1, "rain": 1}) == pytest.approx(1 / (3 + np.exp(-9)))


def test_exact_draws_fit_and_others_do_not():
    """False-alarm rate 1e-6 each."""
    posterior = enumerate_posterior(ising_chain, [[-1, 1]] * 4)
    rng = np.random.default_rng(1)
    draws = posterior.sample(rng, 2000)
    assert posterior.compare(draws, independent=True, alpha=1e-6).passed
    assert posterior.compare(draws, function=lambda z: z.sum(), independent=True, alpha=1e-6).passed
    assert not posterior.compare([np.array(rng.choice([-1, 1], size=4)) for _ in range(500)], independent=True).passed
    assert posterior.compare([np.zeros(4, dtype=int)]).p_value == 0.0


def test_chains_are_compared_by_their_effective_size():
    """Each draw repeated twenty times: 4000 draws are worth 200 (false-alarm rate 1e-6)."""
    posterior = enumerate_posterior(ising_chain, [[-1, 1]] * 3)
    draws = [z for z in posterior.sample(2, 200) for _ in range(20)]
    result = posterior.compare(draws, alpha=1e-6)
    assert result.passed
    assert 50 < result.n_effective < 600


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "exactly one of support and configurations"),
        ({"support": [[0, 1]] * 40}, "at most 2000000 configurations"),
        ({"configurations": []}, "at least one configuration"),
    ],
)
def test_bad_supports_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        enumerate_posterior(lambda z: 0.0, **arguments)


@pytest.mark.parametrize(("value", "message"), [(np.nan, "finite or -inf, got nan"), (-np.inf, "-inf at every")])
def test_bad_densities_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        enumerate_posterior(lambda z: value, [[0, 1]])


def test_bad_sizes_are_refused():
    with pytest.raises(ValueError, match="between 0 and 24"):
        next(binary_matrices(5, 6))
    with pytest.raises(ValueError, match="n must be"):
        next(set_partitions(-1))
    with pytest.raises(ValueError, match="n_rows"):
        next(feature_allocations(0, 1))
    with pytest.raises(ValueError, match="empty"):
        enumerate_posterior(lambda z: 0.0, [[0, 1]]).compare([])
