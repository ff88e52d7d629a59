"""Trees of topics as an estimator: invariants, scores, reports, misuse."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from pluri import io, on_interrupt
from pluri.datasets import make_tree_documents
from pluri.priors import Gamma
from pluri.topics.documents import tokens_of
from pluri.topics.held_out import split_documents
from pluri.topics.tree import TreeGibbs, TreeSettings, TreeTopicModel
from pluri.topics.tree.evaluation import conditional_scale, document_columns, left_to_right
from pluri.topics.tree.structure import node_histograms, shared_children, terms_per_topic
from pluri.topics.tree.tree import Tree

SHORT = {"max_nodes": (1, 6, 12), "n_warmup": 30, "n_draws": 6, "thin": 2, "n_trees": 3, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return make_tree_documents(random_state=0)


@pytest.fixture(scope="module")
def counts(data):
    return sparse.csr_matrix(data.counts)


@pytest.fixture(scope="module")
def fitted(counts):
    return TreeTopicModel(**SHORT).fit(counts)


def recount(state, words):
    again = np.zeros_like(state.node_word)
    np.add.at(again, (words, state.offsets[state.scale] + state.node), 1)
    return again


# Sweeps ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inference", ["truncated", "retrospective", "slice"])
@pytest.mark.parametrize("dependent", [True, False])
def test_every_sweep_keeps_what_must_hold(counts, inference, dependent):
    tokens = tokens_of(counts[:40])
    settings = TreeSettings((1, 4, 6), scale_dependent=dependent, concentration=Gamma(1.0, 1.0))
    kernel = TreeGibbs(tokens, settings, inference=inference)
    rng = np.random.default_rng(0)
    state = kernel.init(rng, kernel.start(rng))
    for _ in range(15):
        before = state.scale.copy()
        new, _ = kernel.step(rng, state)
        np.testing.assert_array_equal(state.scale, before)  # the state before is left as it was
        state, depth = new, int(new.depth[0])
        np.testing.assert_array_equal(recount(state, tokens.words), state.node_word)
        np.testing.assert_array_equal(state.node_word.sum(axis=0), state.node_total)
        np.testing.assert_allclose(state.usage.sum(axis=1) + state.usage_rest, 1.0)
        np.testing.assert_allclose(state.theta.sum(axis=1) + state.theta_rest, 1.0)
        for s in range(2, depth):
            rest = state.transition_rest[s, : state.widths[s - 1]]
            np.testing.assert_allclose(state.below(s).sum(axis=0) + rest, 1.0)
        if dependent:  # every word at exactly one scale, and none without words
            np.testing.assert_array_equal(state.scale, state.word_scale[tokens.words])
            np.testing.assert_array_equal(np.bincount(state.word_scale, minlength=3), state.sizes)
            assert (state.sizes[:depth] > 0).all()
            phi = kernel.draw_topics(rng, state)
            assert (phi[state.word_scale[:, None] != state.node_scale()] == 0).all()
        assert kernel.init(rng, state.position).log_density == pytest.approx(state.log_density)


def per_token(tokens, state, settings):
    """Normalised log likelihood per token given proportions and topics of a state."""
    total = np.zeros(tokens.n_tokens)
    reach = np.ones((tokens.n_documents, 1))
    g = settings.topic_word_prior
    for s in range(3):
        reach = state.theta if s == 1 else reach if s == 0 else reach @ state.below(s).T
        counts = state.node_word[:, state.nodes_of(s)] + g
        counts[state.word_scale != s] = 0.0
        topics = counts / counts.sum(axis=0)
        total += state.usage[tokens.documents, s] * (reach[tokens.documents] * topics[tokens.words]).sum(axis=1)
    return np.log(total).mean()


def test_two_starts_agree(data, counts):
    """Words by frequency and words at their true scales end alike, near the truth: levels need not be found again."""
    tokens = tokens_of(counts)
    settings = TreeSettings((1, 6, 12), concentration=Gamma(1.0, 1.0))
    kernel = TreeGibbs(tokens, settings)
    found = []
    for true in (False, True):
        rng = np.random.default_rng(1)
        state = kernel.init(rng, kernel.start(rng))
        if true:
            position = dict(state.position, word_scale=data.word_depth.astype(np.int32))
            position["sizes"] = np.bincount(data.word_depth)
            position["scale"] = data.word_depth[tokens.words].astype(np.int32)
            position["node"] = rng.integers(np.array([1, 6, 12])[position["scale"]]).astype(np.int32)
            state = kernel.init(rng, position)
        values = []
        for sweep in range(250):
            state, _ = kernel.step(rng, state)
            if sweep >= 200:
                values.append(per_token(tokens, state, settings))
        found.append(np.mean(values))
    share = np.hstack([data.doc_level[:, :1], data.doc_level[:, 1:2] * data.doc_topic,
                       data.doc_level[:, 2:] * (data.doc_topic @ data.transition)])  # fmt: skip
    truth = np.log((share @ data.topic_word)[tokens.documents, tokens.words]).mean()
    assert abs(found[0] - found[1]) < 0.03
    assert abs(np.mean(found) - truth) < 0.05


# Scores ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dependent", [True, False])
def test_scores_of_all_words_sum_to_one(counts, dependent):
    model = TreeTopicModel(**SHORT, scale_dependent=dependent).fit(counts)
    each = sparse.identity(60, format="csr")
    # the first word of a document, and the next one after some words
    first = model.held_out(each, "left_to_right", n_particles=2, random_state=0)
    assert np.exp(first.log_likelihood).sum() == pytest.approx(1.0)
    observed = sparse.csr_matrix(np.tile(counts[0].toarray(), (60, 1)))
    following = model.held_out(each, "completion", observed=observed, random_state=0)
    assert np.exp(following.log_likelihood).sum() == pytest.approx(1.0)


def test_scores_given_scales_sum_to_the_number_of_scales(counts):
    """With one node of each scale, proportions do not matter: p(w) is that of the topic at the word's scale."""
    model = TreeTopicModel(**{**SHORT, "max_nodes": 1}).fit(counts)
    given = model.held_out(sparse.identity(60, format="csr"), "conditional_scale", random_state=0)
    assert np.exp(given.log_likelihood).sum() == pytest.approx(3.0)


def test_scores_given_scales_are_better_than_they_should_be(counts, fitted):
    given = fitted.held_out(counts, "conditional_scale").per_word
    assert 0.5 < given - fitted.held_out(counts).per_word < np.log(3)


def small_tree(rng):
    counts = [rng.integers(0, 6, size=(n, 5)).astype(np.int32) for n in (2, 3)]
    transition = rng.dirichlet(np.ones(3), size=2).T
    return Tree(0, counts, [transition], np.array([0.7, 0.3]), [c.sum(axis=1) for c in counts], 1.3, 0.8, 0.5,
                np.empty(0, dtype=np.int32))  # fmt: skip


def exact_log_probability(tree, words):
    """Log probability of a document: a sum over scales and top nodes of all tokens, proportions integrated out."""
    from itertools import product

    table, total = tree.table(), 0.0
    eta, rho, base = tree.doc_concentration, tree.usage_concentration, tree.base
    for places in product(range(4), repeat=len(words)):
        p, at_scale, at_top = 1.0, np.zeros(2), np.zeros(2)
        for w, place in zip(words, places):
            s, m = divmod(place, 2)
            stay = (1 + at_scale[0]) / (1 + rho + at_scale.sum())
            p *= (stay if s == 0 else 1 - stay) * (eta * base[m] + at_top[m]) / (eta + at_top.sum()) * table[w, place]
            at_scale[s] += 1
            at_top[m] += 1
        total += p
    return np.log(total)


@pytest.mark.parametrize("words", [[2], [1, 1], [0, 3, 3, 4]])
def test_left_to_right_equals_enumeration(words):
    """Four particles have no bias: the mean of 10,000 estimates; five standard errors, false-alarm rate below 1e-6."""
    rng = np.random.default_rng(3)
    tree = small_tree(rng)
    X = sparse.csr_matrix(np.bincount(words, minlength=5)[None])
    exact = exact_log_probability(tree, words)
    estimates = np.exp(left_to_right([tree], sparse.vstack([X] * 10_000).tocsr(), rng, n_particles=4).log_likelihood)
    assert abs(estimates.mean() - np.exp(exact)) < 5 * estimates.std() / 100 + 1e-12
    score = left_to_right([tree], X, rng, n_particles=4000)
    assert score.log_likelihood[0] == pytest.approx(exact, abs=0.02)


def test_proportions_of_a_document_equal_enumeration():
    """E[p(next word)] given three words is a ratio of probabilities of documents."""
    rng = np.random.default_rng(4)
    tree, words = small_tree(rng), [1, 1, 4]
    X = sparse.csr_matrix(np.bincount(words, minlength=5)[None])
    columns, _ = document_columns(tree, X, 5, n_warmup=50, n_draws=20_000)
    before = exact_log_probability(tree, words)
    exact = [np.exp(exact_log_probability(tree, [*words, v]) - before) for v in range(5)]
    np.testing.assert_allclose(columns @ tree.table().T, [exact], atol=4e-3)


def test_conditional_scale_of_one_scale_is_the_fitted_likelihood():
    rng = np.random.default_rng(5)
    counts = [rng.integers(0, 9, size=(1, 5)).astype(np.int32)]
    tree = Tree(0, counts, [], np.ones(1), [counts[0].sum(axis=1)], 1.0, 1.0, 0.5, np.empty(0, dtype=np.int32))
    X = sparse.csr_matrix(rng.integers(0, 3, size=(4, 5)))
    expected = X @ np.log(tree.topics[0][0])
    np.testing.assert_allclose(conditional_scale([tree], X, rng).log_likelihood, expected)


# The estimator --------------------------------------------------------------------------------------------------------


def test_fitted_tree_is_described_consistently(counts, fitted):
    assert fitted.depth_ == len(fitted.topics_) == len(fitted.nodes_per_scale_) == 3
    assert fitted.nodes_per_scale_[0] == 1
    assert fitted.topic_word_.shape == (sum(fitted.nodes_per_scale_), 60)
    np.testing.assert_allclose(fitted.topic_word_.sum(axis=1), 1.0)
    assert fitted.topic_weight_.sum() == pytest.approx(1.0)
    for s, transition in enumerate(fitted.transitions_):
        assert transition.shape == (fitted.nodes_per_scale_[s + 1], fitted.nodes_per_scale_[s])
        np.testing.assert_allclose(transition.sum(axis=0), 1.0)
    for s, topics in enumerate(fitted.topics_):
        assert (topics[:, fitted.word_scale_ != s] == 0).all()
    assert fitted.components_.sum() == pytest.approx(
        counts.sum() + sum(n * (fitted.word_scale_ == s).sum() for s, n in enumerate(fitted.nodes_per_scale_))
    )
    assert fitted.n_nodes_trace_.shape == (1, 6, 3)
    assert fitted.log_joint_.shape == (1, 6)
    assert len(fitted.trees_) == 3
    assert fitted.n_iter_ == 42
    assert "scale 2" in fitted.summary()


def test_weights_of_nodes(counts, fitted):
    weights = fitted.transform(counts)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    by_scale = fitted.transform_scales(counts)
    for part in by_scale:
        np.testing.assert_allclose(part.sum(axis=1), 1.0)
    deep = weights[:, -fitted.nodes_per_scale_[2] :]
    np.testing.assert_allclose(deep / deep.sum(axis=1, keepdims=True), by_scale[2])
    # a node's weight is near the share of the document's tokens at its scale
    scales = fitted.word_scale_
    share = np.asarray(counts[:, scales == 0].sum(axis=1)).ravel() / np.asarray(counts.sum(axis=1)).ravel()
    assert np.abs(weights[:, 0] - share).max() < 0.05


def test_graph_has_children_of_several_parents(fitted):
    graph = fitted.topic_graph(n_words=3)
    assert len(graph.nodes) == len(fitted.topic_word_)
    depth = {node.index: node.depth for node in graph.nodes}
    assert all(depth[edge.child] == depth[edge.parent] + 1 for edge in graph.edges)
    parents = np.bincount([edge.child for edge in graph.edges], minlength=len(depth))
    assert (parents[1:] >= 1).all()
    shared = fitted.shared_children()
    assert {(child.scale, child.node) for child in shared} == {
        (2, node) for node, row in enumerate(fitted.transitions_[1]) if (row > 0.05).sum() >= 2
    }


def test_reports_of_structure_by_hand():
    counts = [np.array([[0, 9, 1], [4, 3, 3]])]
    assert [n.tolist() for n in terms_per_topic(counts)] == [[2, 3]]
    assert [n.tolist() for n in terms_per_topic(counts, coverage=0.7)] == [[1, 2]]
    assert node_histograms(np.array([[1, 3], [1, 4], [1, 3]])) == [{1: 3}, {3: 2, 4: 1}]
    transition = np.array([[0.5, 0.3], [0.5, 0.02], [0.0, 0.68]])
    counts = [np.ones((2, 3), dtype=np.int32), np.ones((3, 3), dtype=np.int32)]
    tree = Tree(0, counts, [transition], np.ones(2) / 2, [], 1.0, 1.0, 1.0, np.empty(0, dtype=np.int32))
    (child,) = shared_children(tree)
    assert (child.scale, child.node, child.parents, child.shares) == (1, 0, (0, 1), (0.5, 0.3))


def test_sampled_documents_look_like_the_model(fitted):
    drawn = fitted.sample(300, length=50)
    assert drawn.shape == (300, 60)
    assert (drawn.sum(axis=1) == 50).all()
    assert (fitted.sample(300, length=50) != drawn).nnz == 0  # random_state is a number
    lengths = fitted.sample(3, length=[0, 4, 9]).sum(axis=1)
    assert np.asarray(lengths).ravel().tolist() == [0, 4, 9]


@pytest.mark.parametrize(
    "options",
    [
        {"scale_dependent": False},
        {"collapsed": False},
        {"root": False, "max_nodes": 4},
        {"inference": "slice", "scale_dependent": False, "max_depth": None, "max_nodes": None},
        {"inference": "retrospective", "scale_dependent": False, "max_depth": None, "max_nodes": None, "root": False},
        {"inference": "retrospective", "width": "adaptive", "scale_dependent": False, "max_depth": None},
        {"inference": "retrospective", "doc_concentration": 1.0},
        {"max_depth": 1, "root": False, "scale_dependent": False},
        {"n_chains": 2, "n_jobs": 2},
    ],
)
@pytest.mark.filterwarnings("ignore:.*of the draws have max_depth")
def test_all_ways_of_fitting_give_a_tree(counts, options):
    model = TreeTopicModel(**{**SHORT, "concentration": Gamma(1.0, 1.0), "n_warmup": 5, **options})
    model.fit(counts[:40])
    weights = model.transform(counts[:5])
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    again = clone(model).fit(counts[:40])
    np.testing.assert_array_equal(again.topic_word_, model.topic_word_)
    assert np.isfinite(model.held_out(counts[40:60]).per_word)


def test_saved_and_loaded(fitted, counts, tmp_path):
    io.save(
        fitted,
        tmp_path / "tree.pluri",
    )
    loaded = io.load(
        tmp_path / "tree.pluri",
    )
    np.testing.assert_array_equal(loaded.transform(counts[:4]), fitted.transform(counts[:4]))
    assert loaded.score(counts[:4]) == fitted.score(counts[:4])


def test_score_is_that_of_the_second_halves(counts, fitted):
    observed, scored = split_documents(counts[:10], np.random.default_rng(0))
    score = fitted.held_out(counts[:10], random_state=0)
    assert score.n_tokens.sum() == scored.sum()
    assert observed.shape == scored.shape
    assert fitted.perplexity(counts[:10]) == pytest.approx(np.exp(-fitted.held_out(counts[:10]).per_word))


def test_empty_documents_are_named_and_get_the_prior(counts, fitted):
    X = counts[:10].toarray()
    X[3] = 0
    with pytest.warns(UserWarning, match="rows 3"):
        model = TreeTopicModel(**{**SHORT, "n_warmup": 2}).fit(X)
    weights = model.transform(np.zeros((1, 60)))
    assert weights.sum() == pytest.approx(1.0)
    tree = model.tree_
    assert weights[0, 0] == pytest.approx(1 / (1 + tree.usage_concentration))
    assert fitted.held_out(np.zeros((2, 60))).total == 0.0


def test_a_word_never_seen_has_a_scale_and_a_chance(counts):
    X = counts[:20].toarray()
    X[:, 7] = 0
    model = TreeTopicModel(**SHORT).fit(X)
    assert model.word_scale_[7] in (0, 1, 2)
    new = np.zeros((1, 60))
    new[0, [7, 8]] = 4
    assert np.isfinite(model.held_out(new, "left_to_right").total)


@pytest.mark.parametrize("inference", ["retrospective", "slice"])
def test_a_tree_that_is_nothing_but_a_root_can_be_used(inference):
    """One word in all: nothing pulls tokens below the root, and often there is no node below it."""
    X, bare = sparse.csr_matrix([[2, 0], [1, 0]]), 0
    for random_state in range(8):
        model = TreeTopicModel(
            None, None, scale_dependent=False, inference=inference, n_warmup=8, n_draws=1, thin=1,
            random_state=random_state,
        ).fit(X)  # fmt: skip
        bare += model.tree_.counts[0].sum() == 3
        np.testing.assert_allclose(model.transform(X).sum(axis=1), 1.0)
        first = model.held_out(sparse.identity(2, format="csr"), "left_to_right", random_state=0)
        assert np.exp(first.log_likelihood).sum() == pytest.approx(1.0)
        assert model.sample(2, length=4).sum() == 8
    assert bare > 0


def test_a_scale_of_words_without_tokens_is_kept():
    """Three words of which two never occur: those at scales of their own must not lose their chance there."""
    X = np.array([[4, 0, 0], [2, 0, 0]])
    model = TreeTopicModel(3, 2, n_warmup=5, n_draws=2, thin=1, random_state=0).fit(X)
    assert model.depth_ == 3
    first = model.held_out(sparse.identity(3, format="csr"), "left_to_right", random_state=0)
    assert np.exp(first.log_likelihood).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_depth": 0}, "max_depth must be an integer of at least 1"),
        ({"max_depth": 1}, "max_depth must be at least 2 with root=True"),
        ({"max_depth": None}, "max_depth must be given"),
        ({"max_nodes": None}, "max_nodes must be given"),
        ({"max_nodes": None, "inference": "slice"}, "max_nodes must be given with scale_dependent=True"),
        ({"max_nodes": ()}, "max_nodes must have at least one"),
        ({"max_nodes": (1, 0, 3)}, "max_nodes must be an integer of at least 1"),
        ({"topic_word_prior": 0.0}, "topic_word_prior must be a positive number"),
        ({"concentration": (1.0, 1.0)}, "concentration must be a positive number or 'learn' or a prior"),
        ({"doc_concentration": -1.0}, "doc_concentration must be a positive number"),
        ({"inference": "vb"}, "inference must be one of"),
        ({"width": "wide"}, "width must be one of"),
        ({"n_draws": 0}, "n_draws"),
        ({"n_trees": 0}, "n_trees"),
    ],
)
def test_settings_that_make_no_sense_are_refused(counts, options, message):
    with pytest.raises(ValueError, match=message):
        TreeTopicModel(**{**SHORT, **options}).fit(counts[:5])


def test_data_that_make_no_sense_are_refused(fitted):
    for X, message in (
        (np.full((3, 4), -1), "Negative"), (np.full((3, 4), 0.5), "whole counts"), (np.zeros((3, 4)), "one word"),
        (np.full((3, 4), np.nan), "NaN"), (np.ones((3, 1)), "n_features = 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            TreeTopicModel(**SHORT).fit(X)
    with pytest.raises(ValueError, match="method must be one of"):
        fitted.held_out(np.ones((1, 60)), "bound")
    with pytest.raises(ValueError, match="features"):
        fitted.transform(np.ones((1, 4)))
    with pytest.raises(ValueError, match="n_samples"):
        fitted.sample(0)
    with pytest.raises(ValueError, match="length"):
        fitted.sample(1, length=2.5)
    with pytest.raises(ValueError, match="coverage"):
        fitted.terms_per_topic(coverage=0.0)


def test_fewer_words_than_scales_make_fewer_scales():
    X = np.array([[3, 1], [2, 2], [0, 4]])
    model = TreeTopicModel(**SHORT).fit(X)
    assert model.depth_ == 2
    assert sorted(model.word_scale_.tolist()) == [0, 1]


def test_a_refit_that_fails_loses_nothing(counts):
    model = TreeTopicModel(**{**SHORT, "n_warmup": 1}).fit(counts[:5])
    topics = model.topic_word_
    with pytest.raises(ValueError, match="inference"):
        model.set_params(inference="none").fit(counts)
    assert model.topic_word_ is topics


def test_ctrl_c_keeps_the_draws_so_far(counts):
    calls = []

    def stop(trace):
        calls.append(trace.n_draws)
        if len(calls) == 2:
            raise KeyboardInterrupt

    model = TreeTopicModel(**{**SHORT, "n_draws": 2000, "n_warmup": 1}, callback=stop)
    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        model.fit(counts[:20])
    assert 1 <= model.log_joint_.shape[1] < 2000
    np.testing.assert_allclose(model.transform(counts[:2]).sum(axis=1), 1.0)


def test_a_callback_can_end_the_run(counts):
    model = TreeTopicModel(**{**SHORT, "n_draws": 2000}, callback=lambda trace: True).fit(counts[:20])
    assert model.log_joint_.shape[1] < 2000


def test_the_limit_of_the_depth_is_told(counts):
    model = TreeTopicModel(**SHORT, inference="slice", scale_dependent=False, concentration=Gamma(1.0, 1.0))
    with pytest.warns(UserWarning, match="max_depth=3"):
        model.fit(counts[:40])


# The contract is the same for both kinds of trees: the second is a second opinion.
@pytest.mark.parametrize("options", [{}, pytest.param({"scale_dependent": False}, marks=pytest.mark.thorough)])
@pytest.mark.filterwarnings("ignore:.*documents have no words")
def test_check_estimator(options):
    model = TreeTopicModel(max_nodes=(1, 2, 3), n_warmup=2, n_draws=2, thin=1, random_state=0, **options)
    check_estimator(model, on_skip=None)
