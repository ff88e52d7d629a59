"""Mergers of topics: exact costs, laws of information, trees that can be read; the large topics of an HDP."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import gammaln

from pluri.datasets import make_topic_documents
from pluri.plotting import TopicGraphDisplay
from pluri.report import tree_text
from pluri.topics import (
    HDPTopicModel,
    HierarchicalLDA,
    LatentDirichletAllocation,
    TopicEdge,
    TopicGraph,
    TopicNode,
    TopicTree,
)
from pluri.topics.agglomeration import agglomerate

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def mutual_information(joint):
    joint = joint / joint.sum()
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0)
    there = joint > 0
    return float((joint[there] * np.log(joint[there] / apart[there])).sum())


def evidence(counts, eta):
    n_words = len(counts)
    return gammaln(n_words * eta) - gammaln(counts.sum() + n_words * eta) + (gammaln(counts + eta) - gammaln(eta)).sum()


def merged(table, groups):
    return np.array([table[group].sum(axis=0) for group in groups])


@settings(max_examples=40)
@given(st.integers(2, 9), st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_each_merger_loses_as_much_information_as_it_says_and_all_of_them_lose_it_all(n_topics, n_words, seed):
    table = np.random.default_rng(seed).gamma(0.5, 1.0, (n_topics, n_words)) + 1e-6
    mergers = agglomerate(table)
    tables = [merged(table, mergers.groups(number)) for number in range(n_topics, 0, -1)]
    information = [mutual_information(one) for one in tables]
    assert_allclose(mergers.cost, -np.diff(information), atol=1e-9)
    assert (mergers.cost > -1e-12).all()
    assert_allclose(mergers.cost.sum(), mutual_information(table), atol=1e-9)


@pytest.mark.parametrize("cost", ["jensen_shannon", "likelihood"])
def test_every_step_takes_the_cheapest_of_all_pairs(cost):
    table = np.random.default_rng(1).poisson(3.0, (7, 10)) + 0.0
    mergers = agglomerate(table, cost=cost, topic_word_prior=0.3)

    def price(first, second):
        if cost == "likelihood":
            return evidence(first, 0.3) + evidence(second, 0.3) - evidence(first + second, 0.3)
        rest = np.array([first, second])
        return rest.sum() / table.sum() * mutual_information(rest)

    for step in range(6):
        rows = merged(table, mergers.groups(7 - step))
        every = [price(rows[i], rows[j]) for i in range(len(rows)) for j in range(i)]
        assert_allclose(mergers.cost[step], min(every), atol=1e-9)


def test_small_topics_are_put_to_their_cheapest_partners_first():
    table = np.array([[50, 0, 1], [0, 50, 1], [0.2, 0.0, 0], [0, 0.1, 0], [0, 0, 40]])
    mergers = agglomerate(table, least_share=0.01)
    assert mergers.n_small == 2
    assert mergers.groups(3) == [[0, 2], [1, 3], [4]]


def test_tables_that_are_none_are_refused():
    for table, told in [(np.zeros((2, 3)), "at least one token"), ([[1, -1]], "not negative"), ([1, 2], "a table")]:
        with pytest.raises(ValueError, match=told):
            agglomerate(table)
    with pytest.raises(ValueError, match="topic_word_prior must be"):
        agglomerate([[1, 2], [2, 1]], cost="likelihood")
    with pytest.raises(ValueError, match="n_groups must be at most"):
        agglomerate([[1, 2], [2, 1]]).groups(3)


def of_families(n_families, n_each, seed=0, n_own=6):
    """A model made by hand: topics of a family share half of their words; sizes differ."""
    rng = np.random.default_rng(seed)
    n_topics = n_families * n_each
    words = np.full((n_topics, n_own * (n_topics + n_families)), 1e-4)
    for topic in range(n_topics):
        words[topic, n_own * topic : n_own * topic + n_own] = rng.uniform(0.5, 1.0, n_own)
        shared = n_own * (n_topics + topic // n_each)
        words[topic, shared : shared + n_own] = rng.uniform(0.5, 1.0, n_own)
    words /= words.sum(axis=1, keepdims=True)
    model = LatentDirichletAllocation(n_topics)
    model.topic_word_, model.topic_weight_ = words, rng.dirichlet(np.full(n_topics, 5.0))
    model.components_, model.topic_word_prior_ = words * 1e4, 1e-3
    model.doc_topic_prior_, model.n_features_in_ = 0.1, words.shape[1]
    return model


@pytest.mark.parametrize("cost", ["jensen_shannon", "likelihood"])
def test_families_of_topics_are_branches(cost):
    model = of_families(5, 5)
    tree = TopicTree.of(model, cost=cost)
    branches = [set(tree.topics[child]) for child in tree.graph.children(0)]
    assert sorted(map(sorted, branches)) == [list(range(5 * family, 5 * family + 5)) for family in range(5)]
    # A branch is named by words that its topics share.
    for child in tree.graph.children(0):
        (family,) = {topic // 5 for topic in tree.topics[child]}
        own = {f"word {column}" for column in range(6 * (25 + family), 6 * (26 + family))}
        assert set(tree.graph.nodes[child].words[:3]) <= own


@settings(max_examples=25)
@given(st.integers(1, 60), st.integers(2, 12), st.sampled_from([0.0, 0.01, 0.05]), st.integers(0, 2**32 - 1))
def test_a_tree_is_readable_and_loses_no_topic(n_topics, max_children, least_share, seed):
    rng = np.random.default_rng(seed)
    model = of_families(n_topics, 1, seed, n_own=2)
    model.topic_weight_ = rng.dirichlet(np.full(n_topics, 0.5)) * 0.999 + 0.001 / n_topics
    tree = TopicTree.of(model, max_children=max_children, least_share=least_share)
    graph = tree.graph
    leaves = [node.index for node in graph.nodes if not graph.children(node.index)]
    assert sorted(topic for leaf in leaves for topic in tree.topics[leaf]) == list(range(n_topics))
    for node in graph.nodes:
        children = graph.children(node.index)
        assert len(children) != 1
        assert len(children) <= max_children
        assert node.weight >= least_share - 1e-12
        assert not children or np.isclose(sum(graph.nodes[child].weight for child in children), node.weight)
    assert_allclose(tree.topic_word_.sum(axis=1), 1.0)
    assert len(tree.summary().splitlines()) == len(graph.nodes)


def test_a_tree_is_drawn_and_written_like_a_model():
    model = of_families(3, 3).rename(4, "the fifth")
    tree = TopicTree.of(model)
    assert "the fifth" in tree_text(tree)
    assert "the fifth" in tree.summary()
    display = TopicGraphDisplay.from_estimator(tree)
    assert len(display.labels_) == len(tree.graph.nodes)
    assert tree.to_dict()["topics"][0] == list(range(9))


def test_models_with_a_hierarchy_have_a_tree_already():
    counts = np.random.default_rng(0).poisson(1.0, (20, 8))
    model = HierarchicalLDA(n_warmup=4, n_draws=2, random_state=0).fit(counts)
    with pytest.raises(ValueError, match="model must have flat topics, got HierarchicalLDA"):
        TopicTree.of(model)


@pytest.fixture(scope="module")
def process():
    data = make_topic_documents(
        n_documents=150, n_words_per_document=40, n_words=60, n_topics=5, doc_topic_prior=0.3, topic_word_prior=0.05,
        random_state=0,
    )  # fmt: skip
    model = HDPTopicModel(n_warmup=60, n_draws=40, topic_word_prior=0.1, random_state=0).fit(data.counts)
    return model.name_words([f"w{column}" for column in range(60)]), data.counts


@pytest.mark.parametrize("small", ["merge", "drop"])
def test_the_large_topics_of_a_process_are_a_model_that_lacks_no_token(process, small):
    model, counts = process
    # One more topic of a few tokens, whatever the chain has found.
    model = copy.deepcopy(model)
    model.components_ = np.vstack([model.components_, model._word_prior() + 3.0 * np.eye(60)[:1]])
    model.topic_word_ = model.components_ / model.components_.sum(axis=1, keepdims=True)
    tokens = model._word_counts().sum(axis=1)
    model.topic_weight_ = tokens / tokens.sum()
    model.doc_topic_prior_ = np.append(model.doc_topic_prior_, 0.01)
    flat = model.to_lda(0.02, small=small)
    flat._check_fitted_state()
    assert (flat.topic_weight_ >= 0.02).all()
    assert (np.diff(flat.topic_weight_) <= 1e-12).all()
    assert_allclose(flat._word_counts().sum(axis=0), model._word_counts().sum(axis=0), atol=1e-6)
    if small == "merge":
        assert_allclose(flat._prior_vector().sum(), model._prior_vector().sum())
    assert_allclose(flat.transform(counts).sum(axis=1), 1.0)
    assert flat.top_words(1)[0][0].startswith("w")
    # Hardly a token is lost, and so is hardly any likelihood.
    assert flat.held_out(counts, random_state=0).per_word > model.held_out(counts, random_state=0).per_word - 0.05
    assert len(flat.partial_fit(counts[:20]).topic_word_) == flat.n_components


def test_the_number_of_topics_is_said_in_a_sentence(process):
    model, _ = process
    said = model.number_in_words()
    low, high = model.n_large_topics_interval_
    assert (f"between {low} and {high} topics" if low < high else f"{low} topics") in said.lower()
    assert "95 % of the draws" in said
    assert said in model.summary()
    with pytest.raises(ValueError, match="least_share must be at most the share of the largest topic"):
        model.to_lda(0.99)


@settings(max_examples=60)
@given(st.integers(1, 60), st.integers(1, 6), st.sampled_from([0.0, 0.01, 0.05]), st.integers(0, 2**32 - 1))
def test_a_readable_graph_has_few_children_no_small_branch_and_all_tokens(n_nodes, max_children, least_share, seed):
    rng = np.random.default_rng(seed)
    depth = np.sort(np.append(0, rng.integers(1, 5, n_nodes - 1)))
    depth = np.searchsorted(np.unique(depth), depth)
    weight = rng.dirichlet(np.full(n_nodes, 0.3))
    nodes = tuple(TopicNode(i, int(depth[i]), float(weight[i]), (f"w{i}",), (1.0,)) for i in range(n_nodes))
    edges = []
    for child in range(1, n_nodes):
        above = np.flatnonzero(depth == depth[child] - 1)
        for parent in rng.choice(above, min(2, len(above)), replace=False):
            edges.append(TopicEdge(int(parent), child, float(rng.random())))
    graph = TopicGraph("Made by hand", nodes, tuple(edges))
    small = graph.readable(max_children=max_children, least_share=least_share, least_weight=0.3)
    assert small.roots() == graph.roots()
    assert_allclose(sum(node.weight for node in small.nodes), 1.0)
    for node in small.nodes:
        assert len(small.children(node.index)) <= max_children
        # Its branch: a topic and what hangs on it by the strongest edges.
        branch, waiting = 0.0, [node.index]
        while waiting:
            top = waiting.pop()
            branch += next(one.weight for one in small.nodes if one.index == top)
            waiting += [other.index for other in small.nodes if small.parents(other.index)[:1] == (top,)]
        assert branch >= least_share - 1e-12
    strongest = {edge.child: max(graph.edges, key=lambda e: (e.child == edge.child, e.weight)) for edge in graph.edges}
    for node in small.nodes[1:]:
        assert strongest[node.index] in small.edges
    assert all(edge.weight >= 0.3 or edge == strongest[edge.child] for edge in small.edges)
