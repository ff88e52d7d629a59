"""Hierarchical Dirichlet process: prior probabilities, and both samplers against enumeration and Geweke's test."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from pluri.inference import mcmc
from pluri.processes import (
    BetaBernoulli,
    ChineseRestaurantFranchise,
    ChineseRestaurantProcess,
    DirectAssignmentGibbs,
    FranchiseGibbs,
    HierarchicalDirichletProcess,
    NormalGamma,
    Seating,
)
from pluri.testing import canonical_labels, set_partitions

SAMPLERS = [DirectAssignmentGibbs, FranchiseGibbs]


def tuple_of_labels(labels):
    return tuple(np.asarray(canonical_labels(labels)).tolist())


def seatings():
    """Every seating of two groups of two customers."""
    for first in set_partitions(2):
        for second in set_partitions(2):
            tables = np.array([*first, *(np.array(second) + max(first) + 1)])
            for dishes in set_partitions(tables.max() + 1):
                yield Seating(np.array([0, 0, 1, 1]), tables, np.array(dishes))


def test_probabilities_of_all_seatings_sum_to_one_and_give_the_pair_probabilities():
    franchise = ChineseRestaurantFranchise(alpha=2.0, gamma=1.5)
    found = list(seatings())
    p = np.exp([franchise.log_probability(seating) for seating in found])
    assert p.sum() == pytest.approx(1, abs=1e-12)
    same, across = (
        sum(p[i] for i, seating in enumerate(found) if seating.labels[a] == seating.labels[b])
        for a, b in ((0, 1), (0, 2))
    )
    assert same == pytest.approx(0.6, abs=1e-12) == franchise.probability_same_dish(True)
    assert across == pytest.approx(0.4, abs=1e-12) == franchise.probability_same_dish(False)


def test_simulated_seatings_have_the_frequencies_of_their_probabilities():
    # Chi-square over all seatings of two groups of two, 8000 draws, false alarm 1e-6.
    franchise, rng = ChineseRestaurantFranchise(2.0, 1.5), np.random.default_rng(0)
    expected = {
        (tuple(s.tables.tolist()), tuple(s.dishes.tolist())): np.exp(franchise.log_probability(s)) for s in seatings()
    }
    seen = Counter()
    for _ in range(8000):
        s = franchise.sample([2, 2], rng)
        seen[tuple(s.tables.tolist()), tuple(s.dishes.tolist())] += 1
    assert set(seen) <= set(expected)
    counts = np.array([seen[key] for key in expected])
    assert stats.chisquare(counts, 8000 * np.array(list(expected.values()))).pvalue > 1e-6


def test_tables_of_a_group_follow_a_restaurant_and_limits_are_right():
    rng = np.random.default_rng(1)
    draws = [ChineseRestaurantFranchise(1.3, 2.0).sample([5, 3], rng) for _ in range(4000)]
    tables = [s.tables[:5].max() + 1 for s in draws]
    expected = 4000 * ChineseRestaurantProcess(1.3).pmf_n_tables(5)
    assert stats.chisquare(np.bincount(tables, minlength=6)[1:], expected[1:]).pvalue > 1e-6
    apart = ChineseRestaurantFranchise(1.0, 1e9).sample([50, 50], rng)
    assert not set(apart.labels[:50]) & set(apart.labels[50:])
    assert draws[0].tables_of_dishes().sum() == len(draws[0].dishes)
    common, groups = HierarchicalDirichletProcess(1e7, 2.0).sample_weights(3, random_state=0)
    assert groups == pytest.approx(np.tile(common, (3, 1)), abs=2e-3)


def test_group_weights_have_the_moments_of_sticks():
    # E pi_jk = beta_k given beta; 3000 groups, 5.5 standard errors on 10 weights; and sums are one.
    common, groups = HierarchicalDirichletProcess(3.0, 2.0).sample_weights(3000, n_sticks=10, random_state=2)
    assert groups.sum(axis=1) == pytest.approx(np.ones(3000))
    error = np.sqrt(common * (1 - common) / 4 / 3000) + 1e-12
    assert (np.abs(groups.mean(axis=0) - common) < 5.5 * error).all()


# A second opinion: `test_every_sampler` tries both kernels by Geweke's test.
@pytest.mark.thorough
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_two_groups_of_two_points_have_the_enumerated_posterior(sampler):
    # 6000 sweeps; each of the 15 partitions within 5.5 standard errors by batches, plus a floor for rare ones.
    X, groups = np.array([[0.0], [1.5], [0.2], [2.0]]), [0, 0, 1, 1]
    likelihood = NormalGamma(1, 0.5, 0.5, 2.0, 0.3)
    franchise = ChineseRestaurantFranchise(1.2, 0.8)
    exact = {}
    for seating in seatings():
        labels = np.array(tuple_of_labels(seating.labels))
        statistics = likelihood.empty(labels.max() + 1)
        np.add.at(statistics, labels, likelihood.statistics(X))
        log_p = franchise.log_probability(seating) + float(likelihood.log_marginal(statistics).sum())
        exact.setdefault(tuple(labels.tolist()), []).append(log_p)
    logs = np.array([logsumexp(values) for values in exact.values()])
    p = np.exp(logs - logsumexp(logs))
    kernel = sampler(likelihood, X, groups, alpha=1.2, gamma=0.8)
    trace = mcmc.sample(
        kernel, kernel.sample_prior, n_draws=6000, n_warmup=50, n_chains=1, record=kernel.record, random_state=3,
        warn=False,
    )  # fmt: skip
    found = [tuple_of_labels(labels) for labels in trace["labels"][0]]
    for labels, probability in zip(exact, p):
        hits = np.array([one == labels for one in found], dtype=float)
        error = hits.reshape(60, -1).mean(axis=1).std(ddof=1) / np.sqrt(60)
        assert abs(hits.mean() - probability) < 5.5 * error + 1e-3, labels


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_shared_clusters_are_found_again(sampler):
    rng = np.random.default_rng(5)
    truth = np.concatenate([rng.choice(3, p=p, size=30) for p in ([0.8, 0.1, 0.1], [0.1, 0.1, 0.8])])
    X = np.array([[-8.0, 0.0], [0.0, 8.0], [8.0, 0.0]])[truth] + rng.normal(size=(60, 2))
    kernel = sampler(NormalGamma(2, 0.0, 0.02, 2.0, 2.0), X, np.repeat(["a", "b"], 30), "learn", "learn")
    trace = mcmc.sample(
        kernel, kernel.sample_prior, n_draws=40, n_warmup=40, n_chains=1, record=kernel.record, random_state=6,
        warn=False,
    )  # fmt: skip
    labels = trace["labels"][0]
    together = (labels[:, :, None] == labels[:, None, :]).mean(axis=0)
    assert np.mean((together > 0.5) == (truth[:, None] == truth)) > 0.98
    assert np.isfinite(trace.stats["log_density"]).all()


def test_wrong_input_gets_one_sentence():
    with pytest.raises(ValueError, match="group_sizes must be whole numbers of at least 1"):
        ChineseRestaurantFranchise(1.0, 1.0).sample([3, 0])
    with pytest.raises(ValueError, match="gamma must be a positive number"):
        ChineseRestaurantFranchise(1.0, 0.0)
    with pytest.raises(ValueError, match="groups must have one label for each"):
        DirectAssignmentGibbs(BetaBernoulli(1), [[0], [1]], [0])
    with pytest.raises(
        ValueError, match=r"alpha must be a positive number or 'learn' or a prior \(Gamma\), got \(0.0, 1.0\)"
    ):
        FranchiseGibbs(BetaBernoulli(1), [[0], [1]], [0, 1], alpha=(0.0, 1.0))
    with pytest.raises(ValueError, match="X must hold zeros and ones"):
        DirectAssignmentGibbs(BetaBernoulli(1), [[0], [2]], [0, 1])
    with pytest.warns(UserWarning, match="only one group"):
        kernel = DirectAssignmentGibbs(BetaBernoulli(1), [[0], [1]], [0, 0])
    with pytest.raises(ValueError, match="a label for each row"):
        kernel.init(np.random.default_rng(0), {"labels": np.zeros(3, int), "weights": np.ones(2) / 2})
