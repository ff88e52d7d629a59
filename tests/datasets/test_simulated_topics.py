"""Simulated documents: sizes, sums, and the shares they should have by the law they are drawn from."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pluri.datasets import (
    make_bars,
    make_concept_graph_documents,
    make_rated_documents,
    make_topic_documents,
    make_tree_documents,
)

MAKERS = {
    "topics": lambda seed: make_topic_documents(40, 30, 50, 4, random_state=seed),
    "bars": lambda seed: make_bars(n_documents=40, random_state=seed),
    "rated": lambda seed: make_rated_documents(random_state=seed),
    "graph": lambda seed: make_concept_graph_documents(600, 80, 200, random_state=seed),
    "tree": lambda seed: make_tree_documents(random_state=seed),
}


@pytest.mark.parametrize("name", MAKERS)
def test_counts_agree_with_the_topics_they_came_from(name):
    data = MAKERS[name](0)
    np.testing.assert_array_equal(data.counts.sum(axis=1).A1, data.topic_counts.sum(axis=1))
    np.testing.assert_allclose(data.topic_word.sum(axis=1), 1.0)
    assert data.counts.shape == (len(data.topic_counts), data.topic_word.shape[1])
    assert data.counts.has_sorted_indices
    assert set(data.keys()) >= {"counts", "topic_word", "topic_counts"}
    assert data["counts"] is data.X
    # Words come in proportion to the topics: five standard errors, and three for words that are hardly expected.
    expected = data.topic_counts.sum(axis=0) @ data.topic_word
    error = np.sqrt(data.topic_counts.sum(axis=0) @ (data.topic_word * (1 - data.topic_word)))
    assert (np.abs(data.counts.sum(axis=0).A1 - expected) <= 5 * error + 3).all()


@pytest.mark.parametrize("name", MAKERS)
def test_documents_repeat_for_a_seed(name):
    first, second, third = (MAKERS[name](seed) for seed in (1, 1, 2))
    assert (first.counts != second.counts).nnz == 0
    assert (first.counts != third.counts).nnz > 0
    assert "Documents(counts=int64[" in repr(first)


def test_bars_are_rows_and_columns_of_the_grid():
    data = make_bars(random_state=0)
    assert data.counts.shape == (1000, 25)
    grid = data.topic_word.reshape(10, 5, 5)
    for line in range(5):
        assert grid[line][line].tolist() == grid[5 + line][:, line].tolist() == [0.2] * 5
    # A known answer: the perplexity of the truth is 10.31, with a standard error of about 0.1 between corpora.
    assert data.true_perplexity == pytest.approx(10.31, abs=0.4)


def test_true_perplexity_equals_the_dense_formula():
    data = make_topic_documents(30, np.arange(10, 40), 20, 3, [0.1, 0.5, 2.0], random_state=0)
    log_words = np.log(data.doc_topic @ data.topic_word)
    X = data.counts.toarray()
    assert data.true_perplexity == pytest.approx(np.exp(-(X * log_words)[X > 0].sum() / X.sum()))
    assert X.sum(axis=1).tolist() == list(range(10, 40))


def test_ratings_follow_the_topics_of_the_words():
    data = make_rated_documents(n_documents=5000, random_state=0)
    mean = data.topic_counts @ np.array([-2, -0.7, 0.7, 2]) / 40
    residual = data.y - mean
    # Five standard errors.
    assert abs(residual.mean()) < 5 * 0.3 / np.sqrt(5000)
    assert residual.std() == pytest.approx(0.3, abs=5 * 0.3 / np.sqrt(10000))
    with pytest.raises(ValueError, match="at least 1 where documents are rated"):
        make_rated_documents(n_documents=2, n_words_per_document=[0, 3])
    with pytest.raises(ValueError, match="noise_scale must be a number of at least 0, got -1"):
        make_rated_documents(noise_scale=-1)
    with pytest.raises(ValueError, match="coef"):
        make_rated_documents(coef=[])


def test_paths_follow_the_edges_of_the_concept_graph():
    data = make_concept_graph_documents(random_state=0)
    assert data.counts.shape == (4000, 1000)
    assert (data.counts.sum(axis=1).A1 == 250).all()
    known = {tuple(edge) for edge in data.edges}
    for path, label, counts in zip(data.paths, data.labels, data.topic_counts):
        nodes = path[path >= 0]
        assert nodes[0] == 0
        assert nodes[-1] == label
        assert (path[nodes.size :] == -1).all()
        assert data.depth[nodes].tolist() == list(range(nodes.size))
        assert all((a, b) in known for a, b in pairwise(nodes))
        assert set(np.flatnonzero(counts)) <= set(nodes.tolist())
    # Shares of edges among the paths at their upper node: five standard errors.
    visits = np.array([(data.paths == node).sum() for node in range(10)])
    at = visits[data.edges[:, 0]]
    error = np.sqrt(data.edge_probability * (1 - data.edge_probability) / at)
    assert (np.abs(data.edge_counts / at - data.edge_probability) < 5 * error).all()
    assert 10 <= data.edge_counts[-1] <= 45  # the rare edge, 26 expected
    # Level shares of full paths: words at the end of the path against tau.
    deep = (data.paths[:, -1] >= 0) & (data.level_decay < 1)
    tau = data.level_decay[deep]
    expected = 250 * tau / (1 - (1 - tau) ** 4)
    found = data.topic_counts[deep, data.labels[deep]]
    assert abs((found - expected).sum()) < 5 * np.sqrt((expected * (1 - expected / 250)).sum())


def test_tree_has_its_words_at_one_level_each():
    data = make_tree_documents(n_documents=3000, random_state=0)
    assert np.bincount(data.word_depth).tolist() == [10, 20, 30]
    for node, level in enumerate(data.depth):
        assert data.topic_word[node, data.word_depth != level].sum() == 0
    assert data.topic_word[2, 16:24].sum() == pytest.approx(0.98)
    assert data.topic_word[9, 55:60].sum() == pytest.approx(0.98)
    assert len(data.edges) == 12
    parents = np.bincount(data.edges[:, 1], minlength=10)
    assert parents.tolist() == [0, 1, 1, 1, 1, 2, 2, 1, 2, 1]
    share = data.topic_counts.sum(axis=0) / data.topic_counts.sum()
    assert share[0] == pytest.approx(0.3, abs=0.02)
    expected = 0.35 * (data.doc_topic.mean(axis=0) @ data.transition)
    np.testing.assert_allclose(share[4:], expected, atol=0.02)


@pytest.mark.parametrize(
    ("maker", "change", "message"),
    [
        (make_topic_documents, {"n_documents": 0}, "n_documents must be an integer of at least 1, got"),
        (make_topic_documents, {"n_topics": 1.5}, "n_topics must be an integer of at least 1, got"),
        (make_topic_documents, {"doc_topic_prior": -1}, "doc_topic_prior must be a positive number or 10"),
        (make_topic_documents, {"topic_word_prior": [1, 2]}, "topic_word_prior must be a positive number or 500"),
        (make_topic_documents, {"n_words_per_document": -1}, "n_words_per_document must not be negative"),
        (make_topic_documents, {"n_words_per_document": [1, 2]}, "a whole number or 1000 of them"),
        (make_bars, {"size": 0}, "size must be an integer of at least 1, got"),
        (make_bars, {"length": 1.5}, "length must be a whole number"),
        (make_concept_graph_documents, {"level_prior": (0, 1)}, "level_prior must be two positive numbers"),
        (make_tree_documents, {"level_prior": (1, 1)}, "level_prior must be a positive number or 3"),
    ],
)
def test_wrong_sizes_get_a_sentence(maker, change, message):
    with pytest.raises(ValueError, match=message):
        maker(**change)


def test_empty_documents_and_one_topic_are_possible():
    data = make_topic_documents(3, [0, 5, 0], 4, 1, random_state=0)
    assert data.counts.sum(axis=1).A1.tolist() == [0, 5, 0]
    assert data.doc_topic.tolist() == [[1.0], [1.0], [1.0]]
