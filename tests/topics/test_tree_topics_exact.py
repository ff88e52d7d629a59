"""Updates of trees of topics against distributions worked out by enumeration and quadrature.

Random states are fixed. Bounds on the total variation are at least twice its expectation, sqrt(K / N) / 2 for K states
and N independent draws, with room for chains that remember: the distance of the special cases is about 0.05 after 5,000
sweeps and 0.012 after 40,000. The false-alarm rate of the chi-square tests is 1e-6 each.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2

from pluri.priors import Gamma
from pluri.topics.documents import Tokens
from pluri.topics.tree._growth_kernels import GrowingTree
from pluri.topics.tree._path_kernels import move_node, move_scale
from pluri.topics.tree._slice_kernels import slice_node, slice_scale
from pluri.topics.tree._token_kernels import draw_tokens, fill_reach
from pluri.topics.tree.gibbs import TreeGibbs, stream
from pluri.topics.tree.path_counts import PathCounts
from pluri.topics.tree.settings import TreeSettings
from pluri.topics.tree.starts import empty_state
from pluri.topics.tree.sticks import draw_fractions, draw_sticks, mean_sticks
from pluri.topics.tree.word_scales import move_word_scales, scales_by_frequency, tokens_of_words


def tokens_like(words, lengths, n_words):
    documents = np.repeat(np.arange(len(lengths)), lengths).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tokens(np.asarray(words, dtype=np.int32), documents, offsets, n_words)


def fits(observed, probability):
    """Whether counts follow probabilities, by a chi-square test at 1e-6; cells that expect fewer than 5 are pooled."""
    expected = probability * observed.sum()
    small = expected < 5
    if small.any():
        observed = np.append(observed[~small], observed[small].sum())
        expected = np.append(expected[~small], expected[small].sum())
    expected, observed = expected[expected > 0], observed[expected > 0]
    statistic = ((observed - expected) ** 2 / expected).sum()
    return statistic < chi2.isf(1e-6, len(expected) - 1)


def evidence(words, places, n_words, prior):
    """Log probability of words given where they are, topics integrated out; `n_words` by place."""
    total = 0.0
    for place in set(places):
        counts = np.bincount([w for w, p in zip(words, places) if p == place])
        size = n_words(place)
        total += gammaln(prior * size) - gammaln(counts.sum() + prior * size)
        total += (gammaln(counts[counts > 0] + prior) - gammaln(prior)).sum()
    return total


# Scales of words ------------------------------------------------------------------------------------------------------


def log_usage(scales, depth, rho):
    """Log probability of the scales of a document's tokens, sticks integrated out."""
    n = np.bincount(scales, minlength=depth)
    later = n[::-1].cumsum()[::-1] - n
    stick = gammaln(1 + n) + gammaln(rho + later) - gammaln(1 + n + rho + later) + np.log(rho)
    return stick[: depth - 1].sum()


def log_shares(tops, weights):
    """Log probability of the top nodes of a document's tokens, proportions integrated out."""
    n = np.bincount(np.asarray(tops, dtype=int), minlength=len(weights))
    return (gammaln(weights + n) - gammaln(weights)).sum() + gammaln(weights.sum()) - gammaln(weights.sum() + n.sum())


def draw_shares_of(rng, state, counts):
    """Draw the proportions of documents given the top nodes of their tokens, in place."""
    weights = state.concentrations[1] * state.base[:-1]
    state.theta[:] = [rng.dirichlet(weights + n) for n in counts.doc_top]


# Proportions that are drawn are a second opinion: words change scale as they do without, and
# `test_tree_topics_sampler::test_geweke` (sd at once) tries whole sweeps.
@pytest.mark.parametrize("collapsed", [True, pytest.param(False, marks=pytest.mark.thorough)])
def test_word_scales_follow_the_exact_posterior(collapsed):
    """Transitions, base measure and concentrations are known, all else is summed over."""
    rng = np.random.default_rng(0)
    words, prior, rho = [0, 1, 1, 2, 0, 3, 3], 0.7, 1.3
    tokens = tokens_like(words, (4, 3), 4)
    settings = TreeSettings((2, 2), root=False, topic_word_prior=prior, doc_concentration=1.6)
    kernel = TreeGibbs(tokens, settings, collapsed=collapsed)
    start = empty_state(rng, kernel)
    start.base[:2], start.concentrations[2] = (0.3, 0.7), rho
    weights, below = 1.6 * start.base[:2], start.below(1)

    def log_places(scales, nodes):
        """Log probability of nodes of a document, summed over the top nodes of its deep tokens."""
        values = []
        for tops in product(*((t,) if s == 0 else (0, 1) for s, t in zip(scales, nodes))):
            steps = [np.log(below[t, m]) for s, t, m in zip(scales, nodes, tops) if s == 1]
            values.append(sum(steps) + log_shares(tops, weights))
        return logsumexp(values)

    exact = {}
    for ell in product((0, 1), repeat=4):
        if len(set(ell)) < 2:
            continue
        scale = [ell[w] for w in words]
        fixed = sum(start.log_stop[s] for s in ell)
        fixed += log_usage(scale[:4], 2, rho) + log_usage(scale[4:], 2, rho)
        places = [
            {nodes: log_places(part, nodes) for nodes in product((0, 1), repeat=len(part))}
            for part in (scale[:4], scale[4:])
        ]
        values = [
            places[0][nodes[:4]]
            + places[1][nodes[4:]]
            + evidence(words, list(zip(scale, nodes)), lambda place, ell=ell: ell.count(place[0]), prior)
            for nodes in product((0, 1), repeat=7)
        ]
        exact[ell] = fixed + logsumexp(values)
    norm = logsumexp(list(exact.values()))
    state, found, n_sweeps = start.copy(), dict.fromkeys(exact, 0), 12_000
    draw_shares_of(rng, state, replace(kernel, collapsed=True).draw_all_tokens(rng, state))
    for _ in range(n_sweeps):
        move_word_scales(rng, state, tokens, tokens_of_words(tokens), settings)
        draw_shares_of(rng, state, kernel.draw_all_tokens(rng, state))
        found[tuple(state.word_scale.tolist())] += 1
    distance = 0.5 * sum(abs(found[ell] / n_sweeps - np.exp(exact[ell] - norm)) for ell in exact)
    assert distance < 0.04


@pytest.mark.parametrize("n_nodes", [(1, 2, 2, 2), (2, 2, 2)])
def test_tokens_drawn_in_turn_have_the_paths_of_their_joint_distribution(n_nodes):
    """Two tokens of one document and their whole paths, everything but the tree integrated out."""
    rng, words, prior, rho, root = np.random.default_rng(11), [0, 1], 0.6, 2.2, n_nodes[0] == 1
    settings = TreeSettings(
        n_nodes, scale_dependent=False, root=root, topic_word_prior=prior, doc_concentration=0.9
    )  # fmt: skip
    kernel = TreeGibbs(tokens_like(words, (2,), 3), settings)
    state, depth, top = empty_state(rng, kernel), len(n_nodes), settings.top
    state.paths = np.zeros((2, depth), dtype=np.int32)
    state.base[:2], state.concentrations[2] = (0.35, 0.65), rho
    steps = [None, *(state.below(s) if s > top else None for s in range(1, depth))]
    paths = [path for c in range(depth) for path in product(*(range(n) for n in n_nodes[: c + 1]))]
    exact = {}
    for pair in product(paths, repeat=2):
        log_p = log_usage([len(path) - 1 for path in pair], depth, rho)
        log_p += log_shares([path[top] for path in pair if len(path) > top], 0.9 * state.base[:2])
        log_p += sum(np.log(steps[s][path[s], path[s - 1]]) for path in pair for s in range(top + 1, len(path)))
        exact[pair] = log_p + evidence(words, [(len(path), path[-1]) for path in pair], lambda place: 3, prior)
    norm, found = logsumexp(list(exact.values())), dict.fromkeys(exact, 0)
    for sweep in range(10_000):
        draw_shares_of(rng, state, kernel.draw_all_tokens(rng, state))
        if sweep % 4 == 3:  # nearly independent
            found[tuple(tuple(path[: s + 1].tolist()) for path, s in zip(state.paths, state.scale))] += 1
    assert fits(np.array(list(found.values())), np.exp(np.array(list(exact.values())) - norm))


def test_words_start_in_the_order_of_their_documents():
    tokens = tokens_like([0, 1, 2, 3, 4, 5, 0, 1, 2, 0], (6, 3, 1), 6)
    assert scales_by_frequency(tokens, 3).tolist() == [0, 1, 1, 2, 2, 2]  # 1/6, 1/3 and 1/2 of the words
    assert sorted(set(scales_by_frequency(tokens, 6).tolist())) == list(range(6))
    with pytest.raises(ValueError, match="number of words"):
        scales_by_frequency(tokens, 7)


def test_stopping_probabilities_follow_their_beta_posterior():
    rng, sizes, psi = np.random.default_rng(1), np.array([7, 3, 5]), 1.4
    draws = np.array([draw_fractions(rng, sizes, psi, None, closed=True)[0] for _ in range(4000)])
    expected = np.array([8 / (8 + psi + 8), 4 / (4 + psi + 5)])
    deviation = np.sqrt(expected * (1 - expected) / np.array([17 + psi, 10 + psi]))
    assert (np.abs(np.exp(draws).mean(axis=0) - expected) < 5.5 * deviation / np.sqrt(4000)).all()


def test_sticks_have_the_means_of_their_posterior():
    rng, counts = np.random.default_rng(2), np.array([[3, 0, 5, 0, 0], [0, 0, 0, 0, 1]])
    draws = np.array([draw_sticks(rng, counts, 0.8).pieces for _ in range(4000)])
    np.testing.assert_allclose(draws.sum(axis=-1), 1.0)
    error = draws.std(axis=0) / np.sqrt(4000) + 1e-12
    assert (np.abs(draws.mean(axis=0) - mean_sticks(counts, 0.8)) < 5.5 * error).all()
    opened = draw_sticks(rng, counts, 0.8, closed=False)
    np.testing.assert_allclose(opened.pieces.sum(axis=-1) + opened.rest, 1.0)


def test_concentration_follows_its_posterior_given_the_sticks():
    """p(concentration | counts), pieces integrated out by quadrature: mean of draws within 6.5 errors of 60 batches."""
    rng, counts, prior = np.random.default_rng(3), np.array([[4, 0, 2, 1, 0, 0], [1, 0, 0, 0, 0, 0]]), Gamma(2.0, 1.5)
    grid = np.linspace(1e-4, 30, 20_000)
    from_here = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    log_p = (prior.shape - 1) * np.log(grid) - prior.rate * grid
    for n, m in zip(counts[:, :-1].ravel(), (from_here - counts)[:, :-1].ravel()):
        log_p += np.log(grid) + gammaln(1 + n) + gammaln(grid + m) - gammaln(1 + n + grid + m)
    p = np.exp(log_p - log_p.max())
    mean = (grid * p).sum() / p.sum()
    value, draws = 1.0, []
    for _ in range(6000):
        value = draw_sticks(rng, counts, value, prior).concentration
        draws.append(value)
    blocks = np.array(draws).reshape(60, -1).mean(axis=1)
    assert abs(blocks.mean() - mean) < 6.5 * blocks.std() / np.sqrt(60)


# Tokens ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [True, False])
def test_token_update_equals_enumeration_of_scales_and_paths(root):
    rng, n = np.random.default_rng(4), 20_000
    settings = TreeSettings((2, 2, 2), scale_dependent=False, root=root)
    kernel = TreeGibbs(tokens_like(np.full(n, 1), np.ones(n, dtype=int), 3), settings, inference="slice")
    state = empty_state(rng, kernel)
    state.theta[:], state.usage[:] = state.theta[0], state.usage[0]
    phi = rng.dirichlet(np.ones(3), size=int(state.rooms.sum())).T.copy()
    counts = PathCounts.none(state)
    draw_tokens(
        stream(rng), kernel.tokens.words, kernel.tokens.offsets, state.nodes(settings.top), state.theta, state.usage,
        phi, state.placed, counts,
    )  # fmt: skip
    probability = {}
    for c in range(3):
        for path in product(*(range(state.rooms[s]) for s in range(c + 1))):
            p = state.usage[0, c] * phi[1, state.offsets[c] + path[c]]
            for s in range(settings.top, c + 1):
                p *= state.theta[0, path[s]] if s == settings.top else state.below(s)[path[s], path[s - 1]]
            probability[(c, *path)] = p
    found = dict.fromkeys(probability, 0)
    for c, path in zip(state.scale.tolist(), state.paths.tolist()):
        found[(c, *path[: c + 1])] += 1
    weights = np.array(list(probability.values()))
    assert fits(np.array(list(found.values())), weights / weights.sum())
    assert counts.doc_scale.sum() == n == state.node_total.sum()
    for s in range(settings.top + 1, 3):
        assert counts.moves[state.nodes_of(s)].sum() == (state.scale >= s).sum()


def test_reach_sums_to_one():
    rng = np.random.default_rng(5)
    kernel = TreeGibbs(tokens_like([0], (1,), 4), TreeSettings((1, 3, 5, 2)))
    state = empty_state(rng, kernel)
    reach = np.zeros(11)
    fill_reach(1, 4, state.widths, state.offsets, state.theta[0], state.transition, reach)
    np.testing.assert_allclose(np.add.reduceat(reach, state.offsets[:-1]), 1.0)


def posterior_of_scales(words, lengths, n_words, prior, concentration):
    """p(scales | words) for two scales of one node: two unigrams with weights of their own in each document."""
    a, b = concentration.shape, concentration.rate
    rho = np.exp(np.linspace(-12, 6, 4001))
    exact = {}
    for scale in product((0, 1), repeat=len(words)):
        log_p = a * np.log(rho) - b * rho  # the measure of a logarithmic grid included
        for part in np.split(np.array(scale), np.cumsum(lengths)[:-1]):
            n, m = (part == 0).sum(), (part == 1).sum()
            log_p += np.log(rho) + gammaln(1 + n) + gammaln(rho + m) - gammaln(1 + n + rho + m)
        exact[scale] = logsumexp(log_p) + evidence(words, scale, lambda place: n_words, prior)
    norm = logsumexp(list(exact.values()))
    return {scale: np.exp(value - norm) for scale, value in exact.items()}


def posterior_of_nodes(words, lengths, n_words, prior, concentration, eta):
    """p(nodes | words) of a hierarchical Dirichlet process of two nodes: alpha = (x, 1 - x), x ~ Beta(1, lambda)."""
    a, b = concentration.shape, concentration.rate
    logit = np.linspace(-30, 30, 6001)
    x, rest = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
    log_base = -(a + 1) * np.log(b - np.log(rest)) - np.log(rest) + np.log(x * rest)
    exact = {}
    for node in product((0, 1), repeat=len(words)):
        log_p = log_base.copy()
        for part in np.split(np.array(node), np.cumsum(lengths)[:-1]):
            n, m = (part == 0).sum(), (part == 1).sum()
            log_p += gammaln(eta * x + n) - gammaln(eta * x) + gammaln(eta * rest + m) - gammaln(eta * rest)
        exact[node] = logsumexp(log_p) + evidence(words, node, lambda place: n_words, prior)
    norm = logsumexp(list(exact.values()))
    return {node: np.exp(value - norm) for node, value in exact.items()}


# Trees that grow are a second opinion here: `test_tree_topics_sampler::test_geweke` (retrospective) and
# `test_every_sampler` (TreeGibbs, slice sd) try their sweeps, the tests at the end of this file their moves.
@pytest.mark.parametrize(
    "inference",
    ["truncated", *(pytest.param(how, marks=pytest.mark.thorough) for how in ("retrospective", "slice"))],
)
@pytest.mark.parametrize("kind", ["one scale is a hierarchical Dirichlet process", "one node is a mixture of unigrams"])
def test_special_cases_have_their_known_posteriors(kind, inference):
    words, lengths, prior, hyper, eta = [0, 0, 1, 0], (2, 2), 0.5, Gamma(2.0, 1.0), 1.5
    if kind.startswith("one scale"):
        exact, key = posterior_of_nodes(words, lengths, 3, prior, hyper, eta), "node"
        settings = TreeSettings((2,), None, False, False, prior, hyper, eta)
    else:
        exact, key = posterior_of_scales(words, lengths, 3, prior, hyper), "scale"
        settings = TreeSettings((1, 1), None, False, False, prior, hyper, eta)
    kernel = TreeGibbs(tokens_like(words, lengths, 3), settings, inference=inference)
    rng = np.random.default_rng(6)
    state = kernel.init(rng, kernel.start(rng))
    found, n_sweeps = dict.fromkeys(exact, 0), 5000
    for _ in range(n_sweeps):
        state, _ = kernel.step(rng, state)
        found[tuple(getattr(state, key).tolist())] += 1
    assert 0.5 * sum(abs(found[k] / n_sweeps - p) for k, p in exact.items()) < 0.09


# Trees that grow ------------------------------------------------------------------------------------------------------


def grown_tree(rng, depth, width, n_words=2):
    """A tree that is all there: a path of single nodes, or one scale of many."""
    rooms = np.full(depth, width, dtype=np.int64)
    sticks = draw_sticks(rng, np.zeros((1, depth), dtype=np.int64), 3.0, closed=False)
    shares = draw_sticks(rng, np.zeros((1, width), dtype=np.int64), 3.0, closed=False)
    phi = rng.dirichlet(np.full(n_words, 0.7), size=depth * width).T.copy()
    return GrowingTree(
        0, 500, np.full(500, 1 if width == 1 else 500), np.array([depth]), rooms.copy(),
        np.concatenate([[0], np.cumsum(rooms)]), np.append(np.full(width, 1 / width), 0.0),
        np.ones((1, 1)) if width == 1 else shares.pieces, np.zeros(1) if width == 1 else shares.rest,
        sticks.pieces, sticks.rest, np.ones((depth * width, width)), np.zeros((depth, width)), phi,
        np.ones(depth), np.zeros(depth * width, dtype=np.int64), 0.7, 1.0, 1.0, 3.0, 2.0, 1.0, 1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("sliced", [False, True])
@pytest.mark.parametrize("other", [0, 3, 30])
def test_scale_of_a_token_has_its_stationary_distribution(sliced, other):
    """Known sticks and likelihoods, many scales at hand; another token sits at scale `other`."""
    rng = np.random.default_rng(7)
    tree = grown_tree(rng, 80, 1)
    exact = tree.usage[0] * tree.phi[1]
    assert tree.usage_rest[0] < 1e-6  # what is beyond the scales at hand does not matter
    at_scale, numbers = np.zeros(81, dtype=np.int64), stream(rng)
    at_scale[other] += 1
    path, now, found = np.zeros(80, dtype=np.int32), 0, np.zeros(80)
    at_scale[now] += 1
    for step in range(30_000):
        if sliced:
            new = slice_scale(numbers, tree, 80, 0, 1, now, path)
        else:
            new = move_scale(numbers, tree, 80, 0, 1, now, path, at_scale)
        at_scale[now] -= 1
        at_scale[new] += 1
        now = new
        found[now] += step % 3 == 0  # nearly independent
    assert fits(found, exact / exact.sum())


@pytest.mark.parametrize("sliced", [False, True])
@pytest.mark.parametrize("other", [0, 4])
def test_node_of_a_token_has_its_stationary_distribution(sliced, other):
    rng = np.random.default_rng(8)
    tree = grown_tree(rng, 1, 80)
    exact = tree.theta[0] * tree.phi[1]
    numbers, likelihood, now, found = stream(rng), np.zeros(80), 0, np.zeros(80)
    tree.used[:] = np.bincount([other, now], minlength=80)
    for step in range(30_000):
        if sliced:
            new = slice_node(numbers, tree, 0, 1, 0, 0, now, -1, likelihood)
        else:
            new = move_node(numbers, tree, False, 0, 1, 0, 0, now, -1, likelihood)
        tree.used[now] -= 1
        tree.used[new] += 1
        now = new
        found[now] += step % 3 == 0
    assert fits(found, exact / exact.sum())
