"""What every topic model can say of its topics, on one whose topics are made by hand."""

import json

import networkx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from pluri.topics.documents import check_documents
from pluri.topics.held_out import HeldOut
from pluri.topics.topic_graph import Hierarchy
from pluri.topics.topic_model import TopicModel

WORDS = ["ball", "game", "ice", "goal", "base"]
TOPICS = np.array([[0.3, 0.5, 0.1, 0.05, 0.05], [0.0, 0.1, 0.5, 0.4, 0.0], [0.2, 0.0, 0.0, 0.0, 0.8]])


class Sports(TopicModel):
    """A root and two topics below it, whatever the documents say."""

    def fit(self, X, y=None):
        check_documents(self, X)
        self.topic_word_ = self.components_ = TOPICS
        self.topic_weight_ = np.array([0.5, 0.2, 0.3])
        return self

    def transform(self, X):
        shares = check_documents(self, X, reset=False, empty="ignore") @ TOPICS.T + 1e-3
        return shares / shares.sum(axis=1, keepdims=True)

    def _hierarchy(self):
        return Hierarchy(np.array([0, 1, 1]), np.array([[0, 1], [0, 2]]), np.array([0.4, 0.6]), ["sport", None, None])

    def _held_out(self, X, method, rng, **options):
        return HeldOut(np.asarray(X @ np.log(TOPICS[0])), np.asarray(X.sum(axis=1)).ravel().astype(int), method)


@pytest.fixture
def X():
    return np.array([[1, 2, 0, 0, 0], [0, 0, 3, 1, 0], [0, 0, 0, 0, 4], [1, 1, 1, 1, 1]])


def test_words_come_in_the_order_of_their_probability(X):
    model = Sports().fit(X)
    assert model.top_words(2) == [["word 1", "word 0"], ["word 2", "word 3"], ["word 4", "word 0"]]
    assert model.top_words(2, feature_names=WORDS)[1] == ["ice", "goal"]
    assert model.name_words(WORDS).top_words(1) == [["game"], ["ice"], ["base"]]
    with pytest.raises(ValueError, match="n_words"):
        model.top_words(0)
    with pytest.raises(ValueError, match="each of 5 columns"):
        model.name_words(WORDS[:3])


def test_words_without_tokens_are_not_shown(X):
    model = Sports().fit(X).name_words(WORDS)
    # Of probabilities, zeros and a least one that several words share.
    assert model.top_words(9) == [["game", "ball", "ice"], ["ice", "goal", "game"], ["base", "ball"]]
    # Of counts, those that are no more than the prior; large ones are real, however equal; one word is always shown.
    prior = 0.05
    counts = prior + np.array([[7, 1, 0, 0.01, 0], [400, 350, 250, 300, 260], [0, 0, 0, 0, 0]])
    model.components_, model.topic_word_ = counts, counts / counts.sum(axis=1, keepdims=True)
    assert [len(words) for words in model.top_words(9)] == [2, 5, 1]
    assert [len(words) for words in model.top_words(1)] == [1, 1, 1]
    nodes = model.topic_graph(9).nodes
    assert [len(node.words) for node in nodes] == [len(node.probabilities) for node in nodes] == [2, 5, 1]
    assert model.topic_table(9)[0]["words"] == "ball game"


def test_equal_probabilities_are_all_shown(X):
    model = Sports().fit(X)
    model.topic_word_ = model.components_ = np.full((3, 5), 0.2)
    assert [len(words) for words in model.top_words(9)] == [5, 5, 5]


def test_the_names_of_a_data_frame_are_the_words(X):
    frame = pd.DataFrame(X, columns=WORDS)
    assert Sports().fit(frame).top_words(1) == [["game"], ["ice"], ["base"]]


def test_the_table_lists_the_largest_topic_first(X):
    rows = Sports().fit(X).topic_table(2, feature_names=WORDS)
    assert [row["topic"] for row in rows] == [0, 2, 1]
    assert rows[0] == {"topic": 0, "share": 0.5, "words": "game ball"}


def test_examples_are_the_documents_with_most_of_a_topic(X):
    model = Sports().fit(X).keep_examples(X, ["a", "b", "c", "d"], ["text " * 300] * 4, n_documents=2)
    graph = model.topic_graph(3)
    shares = model.transform(X)
    for node in graph.nodes:
        best = sorted(range(4), key=lambda row: -shares[row, node.index])[:2]
        assert [example.title for example in node.examples] == ["abcd"[row] for row in best]
        assert [example.share for example in node.examples] == [shares[row, node.index] for row in best]
        assert all(len(example.excerpt) <= 400 for example in node.examples)
    with pytest.raises(ValueError, match="titles must have one string for each of 4 documents, got 2"):
        model.keep_examples(X, ["a", "b"])


def test_titles_of_a_frame_in_another_order_stay_with_their_documents():
    """A column that was sorted or cut has an index of its own, by which a place is another document."""
    X, titles = np.eye(5, dtype=int) * 3, [f"letter {row}" for row in range(5)]
    model = Sports().fit(X)
    expected = model.keep_examples(X, titles, titles).examples_
    for index in ([4, 3, 2, 1, 0], list("abcde"), [7, 8, 9, 10, 11]):
        column = pd.Series(titles, index=index)
        assert model.keep_examples(X, column, column).examples_ == expected


def test_the_graph_knows_parents_children_and_layers(X):
    graph = Sports().fit(X).name_words(WORDS).topic_graph(2)
    assert graph.roots() == (0,)
    assert graph.children(0) == (2, 1)
    assert graph.parents(2) == (0,)
    assert graph.layers() == [[0], [1, 2]]
    assert graph.nodes[0].label == "sport"
    assert graph.nodes[1].words == ("ice", "goal")
    assert json.loads(json.dumps(graph.to_dict()))["edges"][0] == {"parent": 0, "child": 1, "weight": 0.4}


def test_the_graph_of_networkx_has_the_same_edges(X):
    made = Sports().fit(X).name_words(WORDS).topic_graph(2).to_networkx()
    assert networkx.is_directed_acyclic_graph(made)
    assert set(made.edges) == {(0, 1), (0, 2)}
    assert made.nodes[2]["words"] == ["base", "ball"]


def test_scores_come_from_the_held_out_likelihood(X):
    model = Sports().fit(X)
    by_hand = float((X @ np.log(TOPICS[0])).sum())
    assert model.score(X) == pytest.approx(by_hand)
    assert model.perplexity(X) == pytest.approx(np.exp(-by_hand / X.sum()))


def test_names_of_outputs_and_clones_work_as_in_scikit_learn(X):
    model = Sports().fit(X)
    assert list(model.get_feature_names_out()) == ["sports0", "sports1", "sports2"]
    assert not hasattr(clone(model), "topic_word_")
