"""The variational infinite hidden Markov model: a bound that is one, that never falls, and what it finds."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import beta as beta_distribution

from pluri.engine import ArraySource, Batch
from pluri.inference import expectation_maximization
from pluri.inference.run import slack
from pluri.priors import Beta, Gamma
from pluri.sequences.infinite.families import learn_model
from pluri.sequences.infinite.transitions import Hyperparameters, HyperPriors
from pluri.sequences.infinite.variational import (
    fewer_states,
    fit_variational,
    start_sizes,
)
from pluri.sequences.infinite.variational_problem import Beliefs, VariationalInfiniteHMM
from pluri.sequences.infinite.variational_start import first_beliefs
from pluri.sequences.infinite.variational_sticks import (
    CommonWeights,
    best_weights,
    first_weights,
    weights_bound,
    weights_gradient,
)

FIXED = HyperPriors()
LEARNED = HyperPriors(Gamma(2.0, 1.0), Gamma(1.5, 1.0), Beta(2.0, 1.5))


def some_weights(rng, n_states, rho=0.3):
    sticks = rng.uniform(0.5, 6.0, size=(n_states, 2))
    return CommonWeights(sticks, Hyperparameters(rng.uniform(0.5, 3.0), rng.uniform(0.5, 3.0), rho))


def some_rows(family, rng, n_steps=60, n_features=2):
    """Rows of two kinds in turn."""
    levels = (np.arange(n_steps) // 6 % 2)[:, None]
    if family == "categorical":
        return np.where(rng.random((n_steps, 1)) < 0.8, levels, rng.integers(3, size=(n_steps, 1))).astype(float)
    if family == "bernoulli":
        return (rng.random((n_steps, n_features)) < 0.2 + 0.6 * levels).astype(float)
    if family == "poisson":
        return rng.poisson(1.0 + 4.0 * levels, size=(n_steps, n_features)).astype(float)
    return rng.normal(size=(n_steps, n_features)) + 3.0 * levels


def some_problem(family, rng, hyper=None, priors=FIXED, **settings):
    """A problem, its data and a start."""
    X = some_rows(family, rng, **settings)
    offsets = np.array([0, len(X) // 3, len(X)])
    n_symbols = (3,) if family == "categorical" else ()
    model = learn_model(family, None, X, offsets, n_symbols=n_symbols)
    problem = VariationalInfiniteHMM(model, hyper or Hyperparameters(2.0, 1.5, 0.3), priors)
    return problem, ArraySource(X, np.diff(offsets)), X, offsets


FAMILIES = ("gaussian", "diag", "categorical", "poisson", "bernoulli", "autoregressive")


# The sticks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.95])
def test_the_gradient_of_the_sticks_is_that_of_finite_differences(rho):
    rng = np.random.default_rng(1)
    counts = rng.gamma(0.5, size=(5, 4)) * 10
    weights = some_weights(rng, 4, rho)
    priors = HyperPriors(Gamma(2.0, 1.0), Gamma(1.5, 1.0), None if rho == 0 else Beta(2.0, 1.5))
    sticks, values = weights_gradient(counts, weights, priors)

    def at(place, step):
        moved = weights.sticks.copy()
        moved[place] += step
        return weights_bound(counts, CommonWeights(moved, weights.hyper), priors)

    def hyper_at(place, step):
        moved = list(weights.hyper)
        moved[place] += step
        return weights_bound(counts, CommonWeights(weights.sticks, Hyperparameters(*moved)), priors)

    h = 1e-5
    for place in np.ndindex(4, 2):
        assert_allclose(sticks[place], (at(place, h) - at(place, -h)) / (2 * h), rtol=1e-5, atol=1e-5)
    for place in range(2 if rho == 0 else 3):
        assert_allclose(values[place], (hyper_at(place, h) - hyper_at(place, -h)) / (2 * h), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("priors", [FIXED, LEARNED], ids=["fixed", "learned"])
def test_the_best_sticks_have_no_gradient_and_are_no_worse_than_the_start(priors):
    rng = np.random.default_rng(2)
    counts = rng.gamma(0.5, size=(6, 5)) * 20
    start = first_weights(counts, Hyperparameters(2.0, 1.5, 0.3))
    best = best_weights(counts, start, priors, steps=2000)
    assert weights_bound(counts, best, priors) > weights_bound(counts, start, priors)
    sticks, values = weights_gradient(counts, best, priors)
    scale = abs(weights_bound(counts, best, priors))
    assert np.abs(sticks * best.sticks).max() < 1e-3 * scale
    learned = [prior is not None for prior in priors]
    assert np.abs(values[learned] * np.array(best.hyper)[learned]).max(initial=0.0) < 1e-3 * scale
    for _ in range(20):  # no other point near it is higher
        other = CommonWeights(best.sticks * np.exp(0.1 * rng.normal(size=best.sticks.shape)), best.hyper)
        assert weights_bound(counts, other, priors) <= weights_bound(counts, best, priors) + 1e-6


@pytest.mark.parametrize("rho", [0.0, 0.05, 0.6, 0.99])
def test_what_stands_for_the_log_normaliser_of_the_rows_is_below_its_mean(rho):
    """The mean is that of 20,000 draws; a false alarm is six standard errors away."""
    rng = np.random.default_rng(3)
    weights = some_weights(rng, 3, rho)
    c = weights.hyper.concentration
    pieces = rng.beta(weights.sticks[:, 0], weights.sticks[:, 1], size=(20_000, 3))
    left = np.cumprod(1 - pieces, axis=1)
    betas = np.column_stack([pieces[:, 0], pieces[:, 1] * left[:, 0], pieces[:, 2] * left[:, 1], left[:, 2]])
    betas = np.maximum(betas, 1e-300)
    total = np.zeros(len(betas))
    for j in range(4):
        parameters = c * betas if j == 3 else c * ((1 - rho) * betas + rho * (np.arange(4) == j))
        total += gammaln(c) - gammaln(parameters).sum(axis=1)
    # Without counts, and with the terms of q itself taken out, this is what is left of the bound.
    zero = np.zeros((4, 3))
    rows = weights.prior_rows()
    a, b = weights.sticks.T
    log_piece, log_rest = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
    entropy = beta_distribution(a, b).entropy().sum()
    gamma = weights.hyper.weight_concentration
    prior = (np.log(gamma) + (gamma - 1) * log_rest).sum()
    bound = weights_bound(zero, weights, FIXED) - entropy - prior
    bound -= (gammaln(rows).sum(axis=1) - gammaln(rows.sum(axis=1))).sum()
    assert bound <= total.mean() + 6 * total.std() / np.sqrt(len(total))
    assert_allclose(weights.log_mean[1], log_piece[1] + log_rest[0])
    assert_allclose(weights.mean[:2], [a[0] / (a + b)[0], (b / (a + b))[0] * (a / (a + b))[1]])


# The bound ----------------------------------------------------------------------------------------------------------


def enumerated_bound(problem, q, X, offsets):
    """log Z over all paths of all sequences, one by one, and divergences term by term."""
    k = q.n_states
    densities = problem.model.prepare(X, offsets).expected_log_density(list(q.sums))
    log_z = 0.0
    for begin, end in itertools.pairwise(offsets):
        terms = []
        for path in itertools.product(range(k), repeat=end - begin):
            value = q.log_rows[k, path[0]] + sum(densities[begin + t, state] for t, state in enumerate(path))
            terms.append(value + sum(q.log_rows[i, j] for i, j in itertools.pairwise(path)))
        log_z += logsumexp(terms)
    c, gamma, rho = q.weights.hyper
    mean, log_mean = q.weights.mean, q.weights.log_mean
    total = log_z
    for j in range(k + 1):
        theta = q.rows[j]
        log_pi = digamma(theta) - digamma(theta.sum())
        own = np.arange(k + 1) == j
        if j == k:
            total += k * np.log(c) + log_mean.sum() + ((c * mean - 1) * log_pi).sum()
        else:
            total += k * np.log(c * (1 - rho)) + np.log((1 - rho) * np.exp(log_mean[j]) + rho)
            total += log_mean[~own].sum() + ((c * (1 - rho) * mean + c * rho * own - 1) * log_pi).sum()
        total -= gammaln(theta.sum()) - gammaln(theta).sum() + ((theta - 1) * log_pi).sum()
    for a, b in q.weights.sticks:
        total += np.log(gamma) + (gamma - 1) * (digamma(b) - digamma(a + b)) + beta_distribution(a, b).entropy()
    for likelihood, sums in zip(problem.model.likelihoods, q.sums):
        # E log p(rows) - KL = log p(rows), for the rows that made q.
        total += divergence_by_its_link(likelihood, sums)
    return total


def divergence_by_its_link(likelihood, sums):
    """Minus the divergence of Dirichlet posteriors from their prior, by definition."""
    prior = np.broadcast_to(likelihood._alpha, sums.shape)
    posterior = prior + sums
    log_p = digamma(posterior) - digamma(posterior.sum(axis=1, keepdims=True))
    value = gammaln(prior.sum(axis=1)) - gammaln(prior).sum(axis=1) + ((prior - 1) * log_p).sum(axis=1)
    value -= gammaln(posterior.sum(axis=1)) - gammaln(posterior).sum(axis=1) + ((posterior - 1) * log_p).sum(axis=1)
    return value.sum()


@pytest.mark.parametrize("rho", [0.0, 0.4])
@pytest.mark.parametrize("n_states", [1, 3])
def test_the_bound_is_that_of_enumerated_paths(n_states, rho):
    rng = np.random.default_rng(4)
    problem, _, X, offsets = some_problem("categorical", rng, Hyperparameters(1.7, 1.2, rho), n_steps=9)
    start = first_beliefs(problem, X, offsets, n_states, rng)
    batch = Batch(X, np.diff(offsets))
    for q in (start, problem.maximize(problem.expect(start, batch), start)):
        found = problem.expect(q, batch).log_likelihood + problem.log_prior(q)
        assert_allclose(found, enumerated_bound(problem, q, X, offsets), rtol=1e-9)


def drawn_evidence(rng, X, likelihood, hyper, n_draws=10_000, n_sticks=25):
    """p(X) of one short sequence as a mean over paths drawn from the prior, and its standard error."""
    c, gamma, rho = hyper
    pieces = rng.beta(1.0, gamma, size=(n_draws, n_sticks))
    betas = pieces * np.column_stack([np.ones(n_draws), np.cumprod(1 - pieces, axis=1)[:, :-1]])
    counts = np.zeros((n_draws, n_sticks + 1, n_sticks))
    everyone = np.arange(n_draws)
    paths = np.empty((n_draws, len(X)), dtype=int)
    state = np.full(n_draws, n_sticks)
    for t in range(len(X)):
        sticky = rho * (state < n_sticks)
        row = c * (1 - sticky)[:, None] * betas + counts[everyone, state]
        inside = state < n_sticks
        row[everyone[inside], state[inside]] += c * rho
        ends = np.cumsum(row, axis=1)
        chosen = (rng.random(n_draws)[:, None] * ends[:, -1:] > ends).sum(axis=1).clip(max=n_sticks - 1)
        counts[everyone, state, chosen] += 1
        paths[:, t] = state = chosen
    values = {}
    out = np.empty(n_draws)
    for n, path in enumerate(map(tuple, paths)):
        key = tuple(path.index(state) for state in path)
        if key not in values:
            sums = np.zeros((len(X), likelihood.n_features))
            np.add.at(sums, (np.array(key), X[:, 0].astype(int)), 1.0)
            values[key] = np.exp(likelihood.log_marginal(sums).sum())
        out[n] = values[key]
    return out.mean(), out.std() / np.sqrt(n_draws)


@pytest.mark.parametrize("hyper", [(1.0, 1.0, 0.0), (2.0, 0.7, 0.5)])
def test_the_bound_is_below_the_evidence_for_every_number_of_states(hyper):
    """The evidence is a mean over 10,000 paths of the prior; a false alarm is six standard errors away."""
    hyper = Hyperparameters(*hyper)
    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])
    offsets = np.array([0, 5])
    model = learn_model("categorical", None, X, offsets, n_symbols=(2,))
    rng = np.random.default_rng(5)
    evidence, error = drawn_evidence(rng, X, model.likelihoods[0], hyper)
    problem = VariationalInfiniteHMM(model, hyper, FIXED)
    best = -np.inf
    for n_states in (1, 2, 3, 5):
        start = first_beliefs(problem, X, offsets, n_states, rng)
        result = expectation_maximization(problem, ArraySource(X, [5]), rng=rng, start=[start], max_iter=50, tol=1e-8)
        assert result.objective <= np.log(evidence + 6 * error)
        best = max(best, result.objective)
    assert best > np.log(evidence) - 4.0  # and says something of it


@pytest.mark.parametrize("priors", [FIXED, LEARNED], ids=["fixed", "learned"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_bound_never_falls(family, priors):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        problem, source, X, offsets = some_problem(family, rng, priors=priors)
        X[::7] = np.nan  # rows that are missing
        source = ArraySource(X, np.diff(offsets))
        start = first_beliefs(problem, X, offsets, 4, rng)
        result = expectation_maximization(problem, source, rng=rng, start=[start], max_iter=10, tol=-np.inf)
        bounds = np.array([row.objective for row in result.history])
        assert (np.diff(bounds) >= -slack(bounds[-1])).all()
        assert bounds[-1] > bounds[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_without_a_start_is_the_fit_with_one_state(family):
    rng = np.random.default_rng(5)
    problem, _, X, offsets = some_problem(family, rng)
    source = ArraySource(X, np.diff(offsets))
    run = expectation_maximization(problem, source, rng=rng, max_iter=100, tol=1e-8)
    fit = fit_variational(problem.model, source, problem.hyper, problem.priors, rng, max_states=1, tol=1e-8)
    assert run.params.n_states == 1
    assert_allclose(run.objective, fit.bound, rtol=1e-6)


# Where the data are -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
def test_batches_add_up_to_the_whole(family):
    rng = np.random.default_rng(6)
    problem, _, X, offsets = some_problem(family, rng)
    q = first_beliefs(problem, X, offsets, 3, rng)
    whole = problem.expect(q, Batch(X, np.diff(offsets)))
    parts = [problem.expect(q, Batch(X[a:b], [b - a])) for a, b in itertools.pairwise(offsets)]
    total = parts[0] + parts[1]
    assert_allclose(total.log_likelihood, whole.log_likelihood)
    assert_allclose(total.counts, whole.counts, atol=1e-9)
    for one, other in zip(total.sums, whole.sums):
        assert_allclose(one, other, atol=1e-9)


def test_a_long_sequence_is_smoothed_in_blocks(monkeypatch):
    from pluri.components.chain import forward_backward

    rng = np.random.default_rng(7)
    problem, _, X, offsets = some_problem("diag", rng, n_steps=90)
    X[::11, 0] = np.nan
    problem = VariationalInfiniteHMM(problem.model.by_column(), problem.hyper, FIXED)
    q = first_beliefs(problem, X, offsets, 3, rng)
    whole = problem.expect(q, Batch(X, [len(X)]))
    monkeypatch.setattr(forward_backward, "BLOCK", 16)
    blocks = problem.expect(q, Batch(X, [len(X)]))
    assert_allclose(blocks.log_likelihood, whole.log_likelihood)
    assert_allclose(blocks.counts, whole.counts, atol=1e-9)
    for one, other in zip(blocks.sums, whole.sums):
        assert_allclose(one, other, atol=1e-9)


def test_whole_weights_are_copies_of_sequences():
    rng = np.random.default_rng(8)
    problem, _, X, offsets = some_problem("gaussian", rng)
    q = first_beliefs(problem, X, offsets, 3, rng)
    weighted = problem.expect(q, Batch(X, np.diff(offsets), np.array([2.0, 1.0])))
    copied = problem.expect(q, Batch(np.vstack([X[: offsets[1]], X]), [offsets[1], *np.diff(offsets)]))
    assert_allclose(weighted.log_likelihood, copied.log_likelihood)
    assert_allclose(weighted.counts, copied.counts, atol=1e-9)
    assert_allclose(weighted.sums[0], copied.sums[0], atol=1e-9)


# What it finds ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_states_far_apart_are_found_with_their_number(rho):
    rng = np.random.default_rng(9)
    states = np.cumsum(rng.random(400) < 0.1) % 3
    X = np.array([[-8.0, 0.0], [8.0, 0.0], [0.0, 8.0]])[states] + rng.normal(size=(400, 2))
    offsets = np.array([0, 150, 400])
    model = learn_model("gaussian", None, X, offsets)
    fit = fit_variational(
        model, ArraySource(X, np.diff(offsets)), Hyperparameters(3.0, 2.0, rho), FIXED, rng, max_states=12
    )  # fmt: skip
    assert fit.n_occupied == fit.beliefs.n_states == 3
    assert_allclose(fit.beliefs.sizes, np.sort(np.bincount(states))[::-1], atol=1e-3)
    assert (np.diff(fit.beliefs.sizes) <= 0).all()
    assert_allclose(fit.transition.sum(axis=1), 1.0)
    assert_allclose(fit.start.sum(), 1.0)
    assert 0.85 < np.diagonal(fit.transition).mean() < 0.95


def test_states_of_symbols_that_differ_in_what_follows_are_told_apart():
    """0 is followed by 1, 1 by 2 and 2 by 0, with errors: three states, whatever the start had."""
    rng = np.random.default_rng(10)
    X = ((np.arange(600) + 0) % 3).astype(float)
    X[rng.random(600) < 0.1] = 0.0
    model = learn_model("categorical", None, X[:, None], np.array([0, 600]), n_symbols=(3,))
    fit = fit_variational(
        model, ArraySource(X[:, None], [600]), Hyperparameters(2.0, 1.0, 0.0), LEARNED, rng, max_states=8, n_init=3
    )  # fmt: skip
    assert fit.n_occupied == 3


def test_joined_and_dropped_states_keep_what_was_counted():
    rng = np.random.default_rng(11)
    problem, _, X, offsets = some_problem("gaussian", rng)
    q = first_beliefs(problem, X, offsets, 4, rng)
    moves = list(fewer_states(problem.model, q))
    assert all(counts.shape == (4, 3) and sums[0].shape[0] == 3 for counts, sums in moves)
    joins, drops = moves[:5], moves[5:]
    for counts, sums in joins:
        assert_allclose(counts.sum(), q.counts.sum())
        assert_allclose(sums[0].sum(axis=0), q.sums[0].sum(axis=0), atol=1e-9)
    for (counts, sums), gone in zip(drops, np.argsort(q.sizes, kind="stable")):
        assert_allclose(counts, np.delete(np.delete(q.counts, gone, axis=0), gone, axis=1))
        assert_allclose(sums[0], np.delete(q.sums[0], gone, axis=0))
    empty = Beliefs(np.array([[5.0, 0.0], [0.0, 0.0], [1.0, 0.0]]), (q.sums[0][:2],), q.weights)
    assert next(fewer_states(problem.model, empty))[0].tolist() == [[5.0], [1.0]]
    assert start_sizes(12, 2) == [1, 2, 2, 4, 4, 8, 8, 12, 12]
    assert start_sizes(1, 3) == [1]
