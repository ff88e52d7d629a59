"""Clusters of rows that share probabilities of atoms: conditionals by enumeration, moments, densities, the DP prior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, log_expit

from pluri.factors import BetaProcessDictionary
from pluri.factors.dictionaries.usage import clusters
from pluri.factors.dictionaries.usage.clusters import (
    AVERAGED,
    CHOOSING,
    SETTLED,
    count_by_cluster,
    draw_labels,
    log_memberships,
    settled_within,
)
from pluri.factors.dictionaries.usage.dirichlet_process import DirichletProcessUsage
from pluri.priors import Gamma
from pluri.processes import BetaProcess, LogProbabilities
from pluri.processes.beta_process import draw_used
from pluri.testing import SamplerProblem


def brute_force_labels(process, used, labels, log_prior, uniforms):
    """Clusters drawn in turn from the evidence of the whole matrix with the row in each of them."""
    labels, n_clusters = labels.copy(), log_prior.shape[1]
    for i in range(len(used)):
        scores = np.empty(n_clusters)
        for l in range(n_clusters):
            labels[i] = l
            parts = [used[labels == h] for h in range(n_clusters)]
            evidence = sum(process.log_evidence(part.sum(axis=0), len(part)).sum() for part in parts)
            scores[l] = evidence + log_prior[i if len(log_prior) > 1 else 0, l]
        shares = np.cumsum(np.exp(scores - scores.max()))
        labels[i] = int((shares <= uniforms[i] * shares[-1]).sum())
    return labels


@pytest.mark.parametrize("shared", [True, False])
def test_the_cluster_of_a_row_has_its_conditional_by_brute_force(shared):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, K, L = int(rng.integers(1, 9)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
        process = BetaProcess(rng.uniform(0.2, 3), rng.uniform(0.2, 3), K)
        used = rng.integers(0, 2, size=(n, K)).astype(np.int8)
        labels = rng.integers(0, L, size=n)
        log_prior = np.log(rng.dirichlet(np.ones(L), size=1 if shared else n))
        found = draw_labels(np.random.default_rng(seed), process, used, labels, log_prior)
        uniforms = np.random.default_rng(seed).random(n)
        np.testing.assert_array_equal(found, brute_force_labels(process, used, labels, log_prior, uniforms))


def test_counts_and_memberships_are_those_of_a_loop():
    rng = np.random.default_rng(0)
    used, labels = rng.integers(0, 2, size=(7, 3)).astype(np.int8), rng.integers(0, 4, size=7)
    probabilities = BetaProcess(1.0, 1.0, 3).posterior(np.zeros((4, 3)), 0).sample(rng)
    ones, sizes = count_by_cluster(used, labels, 4)
    found = log_memberships(used, probabilities)
    for l in range(4):
        np.testing.assert_array_equal(ones[l], used[labels == l].sum(axis=0))
        assert sizes[l] == (labels == l).sum()
        p = np.exp(probabilities.on[l])
        np.testing.assert_allclose(found[:, l], stats.bernoulli(p).logpmf(used).sum(axis=1))


def test_rows_drawn_from_the_prior_have_the_exact_moments():
    """3000 matrices of two rows: within 5.5 standard errors, a false alarm in 1e7 each.

    Two rows are in one cluster with probability ``sum_l E w_l^2``; sticks of mean 1 / (1 + alpha) and mean square
    2 / ((1 + alpha) (2 + alpha)), the last of three takes what is left.
    """
    alpha, draws, rng = 1.7, 3000, np.random.default_rng(1)
    prior = DirichletProcessUsage(2, 4, a=2.0, b=1.5, n_clusters=3, concentration=alpha)
    found = [prior.sample(2, rng) for _ in range(draws)]
    together = np.array([state.labels[0] == state.labels[1] for state, _ in found])
    left, square = alpha / (2 + alpha), 2 / ((1 + alpha) * (2 + alpha))
    expected = square + left * square + left**2
    assert abs(together.mean() - expected) < 5.5 * np.sqrt(expected * (1 - expected) / draws)
    law = stats.beta(*prior.process.shapes)
    both = np.array([used.all(axis=0).mean() for _, used in found])
    mean = expected * law.moment(2) + (1 - expected) * law.mean() ** 2
    assert abs(both.mean() - mean) < 5.5 * both.std() / np.sqrt(draws)
    ones = np.array([used.mean() for _, used in found])
    assert abs(ones.mean() - law.mean()) < 5.5 * ones.std() / np.sqrt(draws)
    weights = np.exp([state.log_weights for state, _ in found])
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)


def beta_of_log_odds(first, second, probabilities):
    """Log density of log odds: that of SciPy for the probability, and the slope of one by the other."""
    return (stats.beta(first, second).logpdf(np.exp(probabilities.on)) + probabilities.on + probabilities.off).sum()


def test_the_log_joint_is_the_sum_of_its_parts():
    rng = np.random.default_rng(2)
    prior = DirichletProcessUsage(6, 3, a=2.0, b=1.5, n_clusters=4, concentration=Gamma(2.0, 1.5))
    state, used = prior.sample(6, rng)
    expected = Gamma(2.0, 1.5).log_density(state.concentration)
    sticks = LogProbabilities(state.log_weights[:-1] - np.append(0.0, np.cumsum(state.log_rest))[:-1], state.log_rest)
    expected += beta_of_log_odds(1.0, state.concentration, sticks)
    expected += state.log_weights[state.labels].sum() + beta_of_log_odds(*prior.process.shapes, state.probabilities)
    p = np.exp(state.probabilities.on[state.labels])
    expected += stats.bernoulli(p).logpmf(used).sum()
    assert prior.log_joint(state, used) == pytest.approx(expected)


def test_one_cluster_is_a_beta_process():
    rng = np.random.default_rng(3)
    prior = DirichletProcessUsage(9, 5, a=2.0, b=1.5, n_clusters=1, concentration=1.0)
    state, used = prior.sample(9, rng)
    state = prior.resample(state, used, np.random.default_rng(7))
    log_odds, group = prior.log_odds(state)
    assert log_odds.shape == (1, 5)
    assert not group.any()
    assert state.log_weights == pytest.approx([0.0])
    # The joint density over that of the probabilities given the matrix is the evidence of the matrix.
    after = prior.process.posterior(used.sum(axis=0), 9)
    given = beta_of_log_odds(after.first, after.second, LogProbabilities(*(v[0] for v in state.probabilities)))
    assert prior.log_joint(state, used) - given == pytest.approx(prior.process.log_marginal(used))


def draw_matrix(prior):
    def draw(rng, state):
        log_odds, group = prior.log_odds(state)
        rows = log_odds[group]
        return draw_used(rng, LogProbabilities(log_expit(rows), log_expit(-rows)), len(group))

    return draw


def quantities(state, used):
    """What does not depend on the names of clusters, and what does."""
    together = np.equal.outer(state.labels, state.labels)
    alike = used.astype(int) @ used.T
    return {
        "together": together.sum(),
        "ones in common": (together * alike).sum(),
        "ones in common with others": (~together * alike).sum(),
        "in the first cluster": (state.labels == 0).sum(),
        "ones": used.sum(),
        "odds": np.clip(state.probabilities.log_odds, -20, 20).mean(),
        "odds of the first": np.clip(state.probabilities.log_odds[0], -20, 20).mean(),
    }


def dirichlet_quantities(state, used):
    return quantities(state, used) | {
        "concentration": np.log(state.concentration),
        "first weight": state.log_weights[0],
        "last weight": np.maximum(state.log_weights[-1], -30),
    }


def usage_problem(name, prior, statistics):
    """Entry for the table of samplers: state and matrix of a prior, the state drawn anew given the matrix."""
    return SamplerProblem(
        name, prior=lambda rng: prior.sample(prior.n_samples, rng)[0], data=draw_matrix(prior),
        transition=lambda rng, state, used: prior.resample(state, used, rng), statistics=statistics, n_steps=5,
    )  # fmt: skip


def dirichlet_problem():
    prior = DirichletProcessUsage(5, 4, 2.0, 1.5, n_clusters=3, concentration=Gamma(2.0, 2.0))
    return usage_problem("DirichletProcessUsage", prior, dirichlet_quantities)


def test_rows_that_begin_alike_are_clustered_after_they_have_chosen_their_atoms():
    prior, rng = DirichletProcessUsage(40, 6, a=3.0, n_clusters=4), np.random.default_rng(4)
    same = np.ones((40, 6), dtype=np.int8)
    state = prior.start(same, rng)
    assert state.settling == CHOOSING + AVERAGED + SETTLED
    used = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 20, axis=0).astype(np.int8)
    seen = []
    for _ in range(CHOOSING + AVERAGED + SETTLED):
        state = prior.resample(state, used, rng)
        seen.append(len(set(state.labels.tolist())))
    assert seen[: CHOOSING + AVERAGED - 1] == [1] * (CHOOSING + AVERAGED - 1)
    assert min(seen[CHOOSING + AVERAGED - 1 :]) > 1
    assert seen[-1] == 2  # what did not differ is merged
    assert len(set(state.labels[:20]) & set(state.labels[20:])) == 0
    assert state.settling == 0
    assert state.seen is None
    assert prior.start(used, rng).settling == 0


def purity(seed, update):
    """Rows of two kinds that differ little in one draw: share of the rows in a cluster mostly of their kind."""
    rng = np.random.default_rng(seed)
    prior, kinds = DirichletProcessUsage(80, 60, a=6.0, n_clusters=10), np.repeat([0, 1], 40)
    chances = np.kron([[0.3, 0.1], [0.1, 0.3]], np.ones(30))[kinds]
    state = prior.start(np.ones((80, 60), dtype=np.int8), rng)
    for _ in range(update):
        state = prior.resample(state, (rng.random(chances.shape) < chances).astype(np.int8), rng)
    table = np.zeros((2, 10))
    np.add.at(table, (kinds, state.labels), 1)
    return table.max(axis=0).sum() / len(kinds)


def test_rows_are_clustered_by_how_often_they_use_each_atom():
    """By one draw, half of the rows are in the wrong cluster: the evidence of one draw is for a single cluster."""
    assert min(purity(seed, CHOOSING + AVERAGED) for seed in range(5)) > 0.9


def test_new_rows_go_to_the_cluster_that_has_their_atoms():
    rng = np.random.default_rng(5)
    prior = DirichletProcessUsage(40, 12, a=6.0, n_clusters=3)
    used = np.repeat(np.kron(np.eye(2), np.ones(6)), 20, axis=0).astype(np.int8)
    state = prior.start(used, rng)
    for _ in range(5):
        state = prior.resample(state, used, rng)
    new = prior.reassign(state, used[[0, 39]], rng).labels
    assert new.tolist() == [state.labels[0], state.labels[39]]


def test_start_labels_are_numbered_by_size():
    used = np.repeat([[1, 0, 0], [0, 1, 0], [0, 0, 1]], [3, 20, 8], axis=0).astype(np.int8)
    labels = clusters.start_labels(np.random.default_rng(0), BetaProcess(1.0, 1.0, 3), used, 3)
    assert np.bincount(labels).tolist() == [20, 8, 3]


def test_clusters_are_merged_while_their_probability_rises():
    """Of two kinds of rows in six clusters two are left."""
    rng = np.random.default_rng(6)
    process = BetaProcess(6.0, 1.0, 12)
    kinds = np.repeat([0, 1], 30)
    used = (rng.random((60, 12)) < np.kron(np.array([[0.9, 0.1], [0.1, 0.9]]), np.ones(6))[kinds]).astype(np.int8)
    labels = kinds * 3 + rng.integers(0, 3, size=60)
    merged = clusters.merge_clusters(process, used, labels, 7)
    assert len(set(merged)) == 2
    assert len(set(zip(kinds, merged))) == 2

    def log_probability(labels):
        ones, sizes = count_by_cluster(used, labels, 7)
        there = sizes > 0
        return process.log_evidence(ones, sizes[:, None]).sum() + gammaln(sizes[there]).sum()

    assert log_probability(merged) > log_probability(labels)
    assert log_probability(np.zeros(60, dtype=int)) < log_probability(merged)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DirichletProcessUsage(0, 3), "n_samples must be"),
        (lambda: DirichletProcessUsage(4, 0), "truncation must be"),
        (lambda: DirichletProcessUsage(4, 3, n_clusters=0), "n_clusters must be"),
        (lambda: DirichletProcessUsage(4, 3, concentration=-1.0), "concentration must be a positive number"),
        (lambda: DirichletProcessUsage(4, 3, a=0.0), "a must be a positive number"),
    ],
)
def test_wrong_input_gets_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def two_kinds_of_rows(seed, n=60):
    """Half of the rows use three of six atoms, half the others."""
    rng = np.random.default_rng(seed)
    used = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], n // 2, axis=0)
    atoms = rng.normal(size=(6, 12)) / np.sqrt(12)
    return (used * rng.normal(size=used.shape)) @ atoms + 0.05 * rng.normal(size=(n, 12))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_patterns_are_learned_where_they_are_asked_for_and_refused_where_they_cannot_be():
    settings = {"usage_prior": "dp", "share": "pattern", "n_clusters": 4, "n_warmup": 20, "n_draws": 10}
    model = BetaProcessDictionary(8, **settings, random_state=0).fit(two_kinds_of_rows(0))
    assert model.cluster_labels_.shape == (60,)
    assert model.cluster_labels_.max() < 4
    with pytest.raises(ValueError, match="share='pattern' is for usage_prior='dp' only"):
        BetaProcessDictionary(8, share="pattern").fit(two_kinds_of_rows(0))
    with pytest.raises(ValueError, match="no missing value for share='pattern'"):
        BetaProcessDictionary(8, **settings).fit(np.where(np.eye(60, 12) > 0, np.nan, two_kinds_of_rows(0)))


def test_rows_are_clustered_from_scratch_in_the_warm_up_only():
    used = np.zeros((30, 5), dtype=np.int8)
    state = DirichletProcessUsage(30, 5, n_clusters=4).start(used, np.random.default_rng(0))
    assert state.settling == 75
    assert settled_within(state, 100) is state
    assert settled_within(state, 12).settling == 12
    assert settled_within(BetaProcess(1.0, 1.0, 5), 3) == BetaProcess(1.0, 1.0, 5)  # what has no clusters is left


@pytest.mark.parametrize("n_updates", [1, 10, 20, 40])
def test_rows_are_clustered_however_short_the_warm_up(n_updates):
    used = np.repeat([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]], 20, axis=0).astype(np.int8)
    prior, rng = DirichletProcessUsage(40, 6, a=3.0, n_clusters=4), np.random.default_rng(4)
    state = settled_within(prior.start(np.ones((40, 6), dtype=np.int8), rng), n_updates)
    for _ in range(n_updates):
        state = prior.resample(state, used, rng)
    assert state.settling == 0
    assert len(set(state.labels[:20]) & set(state.labels[20:])) == 0
