"""Hierarchical LDA against enumeration, closed forms, and joint distribution tests."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

import pluri.io
from pluri import on_interrupt
from pluri.inference import mcmc
from pluri.priors import Gamma
from pluri.testing import (
    SamplerProblem,
    canonical_labels,
    check_sampler,
    enumerate_posterior,
    set_partitions,
)
from pluri.topics.documents import tokens_of
from pluri.topics.hierarchical import HierarchicalLDA
from pluri.topics.hierarchical.document_tree import DocumentTree, compact
from pluri.topics.hierarchical.fitted_tree import TreeOfTopics, dirichlet_rows
from pluri.topics.hierarchical.level_sticks import LevelSticks, level_sticks
from pluri.topics.hierarchical.nested_crp_gibbs import NestedCRPGibbs

ALPHA, ETA, GAMMA = np.array([0.7, 1.0, 1.6]), np.array([0.5, 0.8, 0.3]), 0.6
X = sparse.csr_matrix(np.array([[2, 0, 0], [1, 1, 0], [0, 0, 2]], dtype=float))
LONGER = sparse.csr_matrix(np.random.default_rng(5).poisson(0.6, size=(25, 12)).astype(float))


def kernel_of(counts=X, sticks=None, eta=ETA, **settings):
    sticks = LevelSticks.dirichlet(ALPHA) if sticks is None else sticks
    return NestedCRPGibbs(tokens_of(counts), sticks, eta, GAMMA, **settings)


def plain_log_joint(paths, levels, tokens, before, after, eta, gamma):
    """One thing after another: each document's path, each token's level, each word, by urns."""
    paths, n_levels, total = np.asarray(paths), len(eta), 0.0
    seen = {}
    for d in range(len(paths)):
        for level in range(1, n_levels):
            above, node = tuple(paths[d, :level]), tuple(paths[d, : level + 1])
            total += np.log(seen.get(node, gamma) / (seen.get(above, 0) + gamma))
        for level in range(n_levels):
            node = tuple(paths[d, : level + 1])
            seen[node] = seen.get(node, 0) + 1
    here = np.zeros((len(paths), n_levels))
    cells, sizes = {}, {}
    for word, d, level in zip(tokens.words, tokens.documents, levels):
        for k in range(level):
            total += np.log((after[k] + here[d, k + 1 :].sum()) / (before[k] + after[k] + here[d, k:].sum()))
        if level < n_levels - 1:
            total += np.log((before[level] + here[d, level]) / (before[level] + after[level] + here[d, level:].sum()))
        here[d, level] += 1
        node = tuple(paths[d, : level + 1])
        total += np.log((eta[level] + cells.get((node, word), 0)) / (tokens.n_words * eta[level] + sizes.get(node, 0)))
        cells[node, word] = cells.get((node, word), 0) + 1
        sizes[node] = sizes.get(node, 0) + 1
    return total


def all_paths(n_documents, n_levels):
    """Every tree, its nodes numbered in the order in which documents come to them."""
    trees = [np.zeros((n_documents, 1), dtype=int)]
    for _ in range(1, n_levels):
        finer = []
        for tree in trees:
            for partition in map(np.asarray, set_partitions(n_documents)):
                blocks = {tuple(pair) for pair in np.column_stack([partition, tree[:, -1]])}
                if len(blocks) == len(np.unique(partition)):  # no block crosses nodes
                    finer.append(np.column_stack([tree, partition]))
        trees = finer
    return trees


def canonical(position):
    paths, levels = position
    paths = compact(np.asarray(paths))[0]
    return np.column_stack([canonical_labels(column) for column in paths.T]), np.asarray(levels)


def unpack(kernel, pair):
    return {
        "paths": np.asarray(pair[0]), "levels": np.asarray(pair[1]), "concentration": np.asarray(GAMMA),
        "word_prior": np.array(kernel.word_prior),
    }  # fmt: skip


def enumeration_problem(kind="dirichlet"):
    """Paths and levels of three documents against all trees of three levels."""
    sticks = LevelSticks.dirichlet(ALPHA) if kind == "dirichlet" else LevelSticks.gem(0.4, 3.0, 3)
    kernel = kernel_of(sticks=sticks)
    tokens = kernel.tokens
    every = [
        (paths, np.array(levels)) for paths in all_paths(3, 3) for levels in product(range(3), repeat=tokens.n_tokens)
    ]
    posterior = enumerate_posterior(
        lambda pair: plain_log_joint(*pair, tokens, *sticks, ETA, GAMMA), configurations=every
    )

    def move(rng, pair):
        moved = kernel.sweep(rng, unpack(kernel, pair), tokens.words)
        return moved["paths"], moved["levels"]

    return SamplerProblem(
        f"nested CRP, {kind} levels, against enumeration", kernel=move, posterior=posterior, canonical=canonical,
        statistics=lambda pair, _: {
            "nodes": compact(np.asarray(pair[0]))[1].sum(), "pair": float(pair[0][0][2] == pair[0][1][2]),
            "level": np.mean(pair[1]), "first": pair[1][0],
        },
        n_steps=2,
    )  # fmt: skip


def joint_problem(learn=True):
    """Parameters, paths, levels and words drawn in two ways."""
    counts = sparse.csr_matrix(np.array([[3, 0, 0, 1], [1, 2, 0, 0], [0, 0, 2, 1], [2, 0, 0, 0]], dtype=float))
    learned = {"concentration_prior": Gamma(2.0, 3.0), "prior_of_word_prior": Gamma(1.0, 1.5)} if learn else {}
    kernel = kernel_of(counts, **learned)

    def statistics(position, words):
        n_nodes = compact(position["paths"])[1]
        shares = np.bincount(position["levels"], minlength=3)
        return {
            "log concentration": np.log(position["concentration"]), "log prior": np.log(position["word_prior"]),
            "nodes": n_nodes[1:], "levels": shares[:2], "words": np.bincount(words, minlength=4)[:2],
            "pair": float(position["paths"][0, 1] == position["paths"][1, 1]),
            "same word": float((words[position["levels"] == 0] == words[0]).sum()),
        }  # fmt: skip

    def statistics_fixed(position, words):
        return {k: v for k, v in statistics(position, words).items() if not k.startswith("log")}

    return SamplerProblem(
        "nested CRP, joint distribution",
        prior=kernel.sample_prior,
        data=kernel.sample_data,
        transition=kernel.sweep,
        statistics=statistics if learn else statistics_fixed,
        log_likelihood=kernel.log_joint,
        n_steps=3,
    )


def test_joint_test_finds_a_sampler_that_weighs_new_branches_wrongly(monkeypatch):
    """The concentration of the sweep is not that of the prior: must be found."""
    original = NestedCRPGibbs._pass

    def wrong(self, rng, state, order):
        kept, state.concentration = state.concentration, 4 * state.concentration
        original(self, rng, state, order)
        state.concentration = kept

    monkeypatch.setattr(NestedCRPGibbs, "_pass", wrong)
    assert not check_sampler(joint_problem(False), alpha=1e-3, n_replications=300, random_state=0).passed


@pytest.mark.parametrize(
    "settings", [{}, {"concentration_prior": Gamma(1.0, 1.0), "prior_of_word_prior": Gamma(1.0, 1.0)}]
)
def test_log_joint_of_the_chain_equals_plain_urns(settings):
    kernel = kernel_of(LONGER, **settings)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start(rng))
    for _ in range(6):
        state, _ = kernel.step(rng, state)
        position = state.position
        assert state.log_density == pytest.approx(kernel.log_joint(position), abs=1e-9)
        expected = plain_log_joint(
            position["paths"], position["levels"], kernel.tokens, *kernel.sticks, position["word_prior"],
            float(position["concentration"]),
        )  # fmt: skip
        if settings:
            expected += -float(position["concentration"]) - position["word_prior"].sum()
        assert state.log_density == pytest.approx(expected, abs=1e-8)
    assert state.best_log_density == pytest.approx(kernel.log_joint(state.best), abs=1e-9)


def test_counts_stay_those_of_the_paths_while_the_tree_grows_and_shrinks(monkeypatch):
    """More nodes than there is room for at first, and a rebuild of a tree that is mostly idle."""
    kernel = NestedCRPGibbs(tokens_of(LONGER), LevelSticks.dirichlet(np.ones(3)), np.full(3, 0.01), 1e6)
    monkeypatch.setattr("pluri.topics.hierarchical.document_tree.FIRST_ROOM", 2)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start(rng))
    assert state.tree.n_nodes.tolist() == [1, 25, 25]
    for concentration in (1e6, 1e-6, 1e-6, 3.0):
        state.concentration = concentration
        state, _ = kernel.step(rng, state)
        tree, fresh = state.tree, DocumentTree(kernel.tokens, state.tree.paths, state.tree.levels)
        for level in range(3):
            old, new = tree.paths[:, level], fresh.paths[:, level]
            np.testing.assert_array_equal(tree.counts[:, old], fresh.counts[:, new])
            np.testing.assert_array_equal(tree.n_documents[old], fresh.n_documents[new])
            np.testing.assert_array_equal(tree.n_tokens[old], fresh.n_tokens[new])
        assert tree.counts.sum() == kernel.tokens.n_tokens
        assert tree.n_documents[: tree.first[1]].sum() == 25


def test_large_counts_are_computed_where_tables_end(monkeypatch):
    positions = []
    for length in (2**20, 3):
        monkeypatch.setattr("pluri.topics.hierarchical.tree_state.LONGEST_TABLE", length)
        kernel, rng = kernel_of(LONGER), np.random.default_rng(0)
        state = kernel.init(rng, kernel.start(rng))
        for _ in range(5):
            state, _ = kernel.step(rng, state)
        positions.append((state.tree.paths, state.tree.levels))
    np.testing.assert_array_equal(positions[0][0], positions[1][0])
    np.testing.assert_array_equal(positions[0][1], positions[1][1])


def test_an_idle_tree_is_made_anew():
    counts = sparse.csr_matrix(np.tile([3.0, 1.0], (200, 1)))
    kernel = NestedCRPGibbs(tokens_of(counts), LevelSticks.dirichlet(np.ones(2)), np.full(2, 1.0), 1e9)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start(rng))
    width, state.concentration = state.tree.counts.shape[1], 1e-9
    for _ in range(4):
        state, _ = kernel.step(rng, state)
    assert state.tree.counts.shape[1] < width / 2
    assert state.log_density == pytest.approx(kernel.log_joint(state.position), abs=1e-9)


def test_sticks_of_a_dirichlet_are_that_dirichlet():
    rng = np.random.default_rng(0)
    sticks = level_sticks([0.7, 1.0, 1.6], 3, 0.5, 1.0)
    np.testing.assert_allclose(sticks.mean(), ALPHA / ALPHA.sum())
    drawn = sticks.draw(rng, 200_000)
    np.testing.assert_allclose(drawn.mean(axis=0), ALPHA / ALPHA.sum(), atol=0.005)  # eight standard errors
    second = (drawn**2).mean(axis=0)
    np.testing.assert_allclose(second, ALPHA * (ALPHA + 1) / (ALPHA.sum() * (ALPHA.sum() + 1)), atol=0.006)
    counts = np.array([[3, 1, 0], [0, 0, 4]])
    from scipy.special import gammaln

    expected = sum(
        gammaln(ALPHA.sum()) - gammaln(ALPHA.sum() + row.sum()) + (gammaln(ALPHA + row) - gammaln(ALPHA)).sum()
        for row in counts
    )
    assert sticks.log_marginal(counts) == pytest.approx(expected)


def test_dirichlet_rows_survive_tiny_parameters():
    rng = np.random.default_rng(0)
    rows = dirichlet_rows(rng, np.full(5, 1e-5), 4000)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    np.testing.assert_allclose(rows.mean(axis=0), 0.2, atol=0.03)
    ordinary = dirichlet_rows(rng, np.array([1.0, 3.0]), 100_000)[:, 0]
    assert ordinary.mean() == pytest.approx(0.25, abs=0.004)
    assert ordinary.var() == pytest.approx(3 / 80, abs=0.002)


# New documents -------------------------------------------------------------------------------------------------------


def small_tree(sticks=None):
    """Root, two children, three leaves."""
    rng = np.random.default_rng(3)
    return TreeOfTopics(
        topic_word=rng.dirichlet(np.full(3, 0.6), size=6), parent=np.array([-1, 0, 0, 1, 1, 2]),
        depth=np.array([0, 1, 1, 2, 2, 2]), n_documents=np.array([7, 5, 2, 4, 1, 2]), concentration=0.8,
        word_prior=np.array([0.5, 0.4, 0.3]), sticks=LevelSticks.dirichlet(ALPHA) if sticks is None else sticks,
    )  # fmt: skip


def exact_document(tree, words):
    """Log p(words) by all candidates and all levels; new topics by urns."""
    before, after = tree.sticks
    values, nodes = [], []
    for k, log_prior in enumerate(tree.log_candidates()):
        path, node = [], k
        while node >= 0:
            path.insert(0, node)
            node = tree.parent[node]
        for levels in product(range(3), repeat=len(words)):
            value, here, new = log_prior, np.zeros(3), {}
            for word, level in zip(words, levels):
                for j in range(level):
                    value += np.log((after[j] + here[j + 1 :].sum()) / (before[j] + after[j] + here[j:].sum()))
                if level < 2:
                    whole = before[level] + after[level] + here[level:].sum()
                    value += np.log((before[level] + here[level]) / whole)
                here[level] += 1
                if level < len(path):
                    value += np.log(tree.topic_word[path[level], word])
                else:
                    earlier, eta = new.setdefault(level, []), tree.word_prior[level]
                    value += np.log((eta + earlier.count(word)) / (3 * eta + len(earlier)))
                    earlier.append(word)
            values.append(value)
            nodes.append((k, np.array(levels)))
    return logsumexp(values), np.array(values), nodes


def counts_of(words):
    return sparse.csr_matrix(np.bincount(words, minlength=3)[None].astype(float))


def test_candidates_are_all_there_is():
    assert np.exp(small_tree().log_candidates()).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("words", [[0], [1, 1], [2, 0, 2], [0, 1, 2, 2]])
def test_left_to_right_equals_enumeration(words):
    """Four particles have no bias: the mean of 10,000 estimates; five standard errors, false-alarm rate below 1e-6."""
    tree, rng = small_tree(), np.random.default_rng(1)
    many = sparse.vstack([counts_of(words)] * 10_000).tocsr()
    estimates = np.exp(tree.left_to_right(many, rng, n_particles=4).log_likelihood)
    exact = np.exp(exact_document(tree, words)[0])
    assert abs(estimates.mean() - exact) < 5 * estimates.std() / 100 + 1e-12
    closer = tree.left_to_right(counts_of(words), rng, n_particles=4000)
    assert closer.log_likelihood[0] == pytest.approx(np.log(exact), abs=0.02)
    assert closer.n_tokens.tolist() == [len(words)]


@pytest.mark.parametrize("words", [[1], [2, 0, 2], [0, 1, 2, 2]])
def test_empirical_likelihood_equals_enumeration(words):
    """100,000 documents; the error is below 1 % of a nat with probability 1 - 1e-4."""
    from pluri.topics.held_out import empirical_likelihood

    tree = small_tree()
    drawn, paths = tree.draw(np.random.default_rng(2), 100_000)
    score = empirical_likelihood(drawn, counts_of(words))
    assert score.log_likelihood[0] == pytest.approx(exact_document(tree, words)[0], abs=0.02)
    new = (paths[:, 2] < 0).mean()
    assert new == pytest.approx(np.exp(tree.log_candidates())[:3].sum(), abs=0.01)


def test_probabilities_of_all_words_sum_to_one():
    tree, rng = small_tree(), np.random.default_rng(0)
    singles = sparse.csr_matrix(np.eye(3))
    assert np.exp(tree.left_to_right(singles, rng, 3).log_likelihood).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("sticks", [None, LevelSticks.gem(0.4, 3.0, 3)], ids=["dirichlet", "gem"])
def test_shares_of_a_document_are_near_the_exact_posterior(sticks):
    """The mean field is an approximation: shares within 0.06 of those by enumeration, the leaf the same."""
    tree = small_tree(sticks)
    before, after = tree.sticks
    for words in ([0], [1, 1, 1, 1, 0], [2, 2, 0, 2, 1], [0, 0, 0, 1, 0, 0]):
        _, values, nodes = exact_document(tree, words)
        leaf = np.array([k >= 3 for k, _ in nodes])
        weight = np.exp(values - values[leaf].max()) * leaf
        expected = np.zeros(6)
        for p, (k, levels) in zip(weight / weight.sum(), nodes):
            here = np.bincount(levels, minlength=3)
            below = here[::-1].cumsum()[::-1]
            stick = (before + here[:2]) / (before + after + below[:2])
            shares, node = LevelSticks.shares(stick), k
            for level in (2, 1, 0):
                expected[node] += p * shares[level]
                node = tree.parent[node]
        shares, leaves = tree.place(counts_of(words))
        np.testing.assert_allclose(shares[0], expected, atol=0.06)
        by_leaf = [weight[[k == j for k, _ in nodes]].sum() for j in (3, 4, 5)]
        assert leaves[0] == 3 + int(np.argmax(by_leaf))


def test_shares_of_an_empty_document_are_the_prior_mean():
    tree = small_tree()
    shares, _ = tree.place(sparse.csr_matrix((1, 3)))
    log_leaf = tree.log_candidates()[3:]
    p = np.exp(log_leaf - logsumexp(log_leaf))
    theta = ALPHA / ALPHA.sum()
    expected = [theta[0], theta[1] * (p[0] + p[1]), theta[1] * p[2], *(theta[2] * p)]
    np.testing.assert_allclose(shares[0], expected)


def test_bound_of_two_levels_is_below_and_near_the_integral():
    """One path of two levels: the likelihood is an integral over one share."""
    from scipy.integrate import quad
    from scipy.stats import beta

    from pluri.topics.hierarchical._tree_fold_in_kernels import Room, Tree, spread

    topics = np.ascontiguousarray(np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]).T)
    words, copies = np.array([0, 1, 2], dtype=np.int32), np.array([9.0, 4.0, 7.0])
    nodes = np.array([0, 1, 2]), np.array([-1, 0]), np.array([-np.inf, 0.0])
    tree = Tree(topics, *nodes, before=np.array([2.0]), after=np.array([3.0]), mean_share=np.full(2, 0.5))
    room = Room.of(2, 2, 1)._replace(path=np.arange(2))
    bound = spread(words, copies, tree, 500, 1e-10, room)
    exact = np.log(
        quad(lambda t: beta.pdf(t, 2, 3) * np.prod((t * topics[:, 0] + (1 - t) * topics[:, 1]) ** copies), 0, 1)[0]
    )
    assert exact - 0.5 < bound < exact
    mean = quad(lambda t: t * beta.pdf(t, 2, 3) * np.prod((t * topics[:, 0] + (1 - t) * topics[:, 1]) ** copies), 0, 1)[
        0
    ] / np.exp(exact)
    assert room.expected[0] == pytest.approx(mean, abs=0.02)


# The estimator -------------------------------------------------------------------------------------------------------

GROUPS = np.repeat([[6, 9, 0, 0, 0], [6, 0, 9, 0, 0], [6, 0, 0, 5, 4]], 10, axis=0)


def quick(**settings):
    given = {"n_warmup": 40, "n_draws": 20, "random_state": 0} | settings
    return HierarchicalLDA(**given)


def test_groups_of_documents_become_branches():
    # One chain in twelve ends with a branch in two: all of eight do in 2e-9.
    models = (
        quick(n_levels=2, concentration=0.05, topic_word_prior=0.1, random_state=start).fit(GROUPS)
        for start in range(8)
    )
    model = next(model for model in models if len(model.parent_) == 4)
    assert model.parent_.tolist() == [-1, 0, 0, 0]
    assert [len(set(model.paths_[begin : begin + 10, 1])) for begin in (0, 10, 20)] == [1, 1, 1]
    assert set(model.paths_[:, 1]) == {1, 2, 3}
    np.testing.assert_array_equal(model.predict(GROUPS), model.paths_[:, 1])
    np.testing.assert_array_equal(model.predict_paths(GROUPS), model.paths_)
    assert model.topic_word_.shape == (4, 5)
    np.testing.assert_allclose(model.topic_word_.sum(axis=1), 1.0)
    assert model.topic_weight_.sum() == pytest.approx(1.0)
    shares = model.transform(GROUPS)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert (shares.argmax(axis=1) == model.paths_[:, 1]).all()
    assert model.components_.sum() == pytest.approx(GROUPS.sum() + 4 * 5 * 0.1)
    graph = model.topic_graph()
    assert len(graph.edges) == 3
    assert sum(edge.weight for edge in graph.edges) == pytest.approx(1.0)
    assert "HierarchicalLDA" in model.summary()
    assert model.n_nodes_trace_.shape == (1, 20, 2)


def test_one_level_is_a_unigram():
    """Closed form: every word from (eta + n_w) / (V eta + n), in all three ways of scoring."""
    model = quick(n_levels=1, topic_word_prior=0.7).fit(GROUPS)
    topic = (GROUPS.sum(axis=0) + 0.7) / (GROUPS.sum() + 3.5)
    np.testing.assert_allclose(model.topic_word_, topic[None])
    np.testing.assert_allclose(model.transform(GROUPS), 1.0)
    new = np.array([[1, 0, 2, 0, 1], [0, 0, 0, 3, 0]])
    for method in ("left_to_right", "empirical"):
        np.testing.assert_allclose(model.held_out(new, method).log_likelihood, new @ np.log(topic))
    assert np.unique(model.log_joint_.round(8)).size == 1
    from scipy.special import gammaln

    n = GROUPS.sum(axis=0)
    assert model.best_log_joint_ == pytest.approx(
        gammaln(3.5) - gammaln(3.5 + n.sum()) + (gammaln(n + 0.7) - gammaln(0.7)).sum()
    )


def test_a_tiny_concentration_leaves_one_path():
    model = quick(concentration=1e-200, n_chains=2).fit(GROUPS)
    assert model.node_depth_.tolist() == [0, 1, 2]
    assert (model.n_nodes_trace_ == 1).all()


def test_a_huge_prior_makes_topics_uniform():
    model = quick(topic_word_prior=1e9).fit(GROUPS)
    for method in ("completion", "left_to_right", "empirical"):
        assert model.held_out(GROUPS, method).per_word == pytest.approx(-np.log(5), abs=1e-4)


def test_posterior_does_not_depend_on_the_order_of_words_or_documents():
    """Mean number of nodes over long chains of shuffled data; a difference of 0.4 is more than five errors."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.8, size=(6, 4)).astype(float) + np.eye(6, 4)
    means = []
    for data in (counts, counts[::-1], counts[:, rng.permutation(4)]):
        kernel = kernel_of(sparse.csr_matrix(data))
        trace = mcmc.sample(
            kernel, kernel.start, record=kernel.record, n_draws=1500, n_warmup=50, n_chains=1, random_state=1,
            warn=False,
        )  # fmt: skip
        means.append(trace["n_nodes"][0].sum(axis=1).mean())
    assert np.ptp(means) < 0.4


@pytest.mark.parametrize("settings", [
    {"concentration": "learn", "topic_word_prior": "learn"}, {"level_prior": "gem"}, {"level_prior": [1, 2, 3]},
    {"topic_word_prior": [0.5, 0.1, 0.05]}, {"n_chains": 2, "n_jobs": 2, "thin": 2}, {"n_levels": 5},
])  # fmt: skip
def test_settings_run_and_repeat_themselves(settings):
    first, second = quick(**settings).fit(GROUPS), quick(**settings).fit(sparse.coo_matrix(GROUPS))
    np.testing.assert_array_equal(first.paths_, second.paths_)
    np.testing.assert_array_equal(first.log_joint_, second.log_joint_)
    assert first.best_log_joint_ >= first.log_joint_.max()
    assert np.isfinite(first.score(GROUPS))


def test_scores_prefer_the_words_that_belong_together():
    model = quick(n_levels=2).fit(GROUPS)
    strange = np.tile([0, 4, 4, 3, 2], (5, 1))
    for method in ("completion", "left_to_right", "empirical"):
        assert model.held_out(GROUPS[::10], method).per_word > model.held_out(strange, method).per_word + 0.3


def test_made_up_documents_are_like_the_model():
    model = quick(n_levels=2, concentration=0.5).fit(GROUPS)
    X_new, paths = model.sample(2000, 15, random_state=3)
    assert X_new.shape == (2000, 5)
    assert (np.asarray(X_new.sum(axis=1)).ravel() == 15).all()
    assert (paths[:, 0] == 0).all()
    assert (paths[:, 1] < 0).mean() == pytest.approx(0.5 / 30.5, abs=0.015)
    again, _ = model.sample(2000, 15, random_state=3)
    assert (again != X_new).nnz == 0


def test_model_survives_a_file(tmp_path):
    model = quick(level_prior="gem").fit(GROUPS)
    pluri.io.save(model, tmp_path / "model.skops")
    loaded = pluri.io.load(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.transform(GROUPS), model.transform(GROUPS))
    assert loaded.held_out(GROUPS).total == model.held_out(GROUPS).total


@pytest.mark.parametrize("data", [
    np.array([[3, 1, 0]]), np.array([[0, 0, 1], [0, 0, 0]]), np.array([[5]]), np.eye(2),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*no words")
def test_odd_corpora(data):
    model = quick(concentration=5.0).fit(data)
    np.testing.assert_allclose(model.transform(data).sum(axis=1), 1.0)
    for method in ("completion", "left_to_right", "empirical"):
        assert np.isfinite(model.held_out(data, method).log_likelihood).all()


@pytest.mark.parametrize(("settings", "sentence"), [
    ({"n_levels": 0}, "n_levels"), ({"n_levels": 200}, "n_levels"), ({"concentration": -1.0}, "concentration"),
    ({"concentration": "free"}, "concentration"), ({"level_prior": [1, 2]}, "level_prior"),
    ({"level_prior": "flat"}, "level_prior"), ({"level_prior": "gem", "level_mean": 1.5}, "level_mean"),
    ({"level_prior": "gem", "level_precision": 0}, "level_precision"), ({"topic_word_prior": 0}, "topic_word_prior"),
    ({"topic_word_prior": "x"}, "topic_word_prior"), ({"n_draws": 0}, "n_draws"),
    ({"concentration": (1.0, 1.0)}, "concentration must be a positive number or 'learn' or a prior"),
])  # fmt: skip
def test_errors_name_the_argument(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        quick(**settings).fit(GROUPS)


def test_errors_of_scoring_and_sampling():
    model = quick().fit(GROUPS)
    with pytest.raises(ValueError, match="method"):
        model.held_out(GROUPS, "guess")
    with pytest.raises(ValueError, match="n_particles"):
        model.held_out(GROUPS, "left_to_right", n_particles=0)
    with pytest.raises(ValueError, match="n_samples"):
        model.sample(0)
    with pytest.raises(ValueError, match="whole counts"):
        model.fit(GROUPS / 2 + 0.1)
    assert model.n_topics_ > 0


def test_ctrl_c_keeps_the_sweeps_so_far(monkeypatch):
    step, calls = NestedCRPGibbs.step, []

    def stops(self, rng, state):
        calls.append(1)
        if len(calls) == 55:
            raise KeyboardInterrupt
        return step(self, rng, state)

    monkeypatch.setattr(NestedCRPGibbs, "step", stops)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model = quick().fit(GROUPS)
    assert model.log_joint_.shape[1] < 20
    assert model.transform(GROUPS).shape[0] == 30


def test_a_callback_ends_the_fit():
    model = quick(callback=lambda trace: trace.n_draws >= 1, n_draws=5000).fit(GROUPS)
    assert model.log_joint_.shape[1] < 5000


@pytest.mark.filterwarnings("ignore:.*no words")
def test_scikit_learn_accepts_it():
    check_estimator(quick(n_warmup=5, n_draws=5), on_skip=None)
    assert clone(quick(n_levels=4)).n_levels == 4
