"""The page about a topic model: what is in it, and that nothing of it runs or is loaded."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from pluri.report import model_report, topic_report
from pluri.report.topic_data import relevant_words
from pluri.topics.held_out import HeldOut

BAD = "</script><script>document.documentElement.dataset.ran='yes'</script><img src=x onerror=alert(1)>"


class Tags(HTMLParser):
    """All tags with their attributes."""

    def __init__(self, page):
        super().__init__()
        self.tags = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))


def data_of(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_holds_topics_words_documents_and_edges(topics):
    model = topics(12, kind="graph", n_documents=30)
    graph = model.topic_graph(20)
    data = data_of(topic_report(model))
    assert [node["index"] for node in data["nodes"]] == list(range(12))
    assert data["roots"] == list(graph.roots())
    for node, told in zip(graph.nodes, data["nodes"]):
        top = [data["words"][place] for place in told["words"]]
        assert top[: len(node.words)] == list(node.words)
        assert told["p"][0] == pytest.approx(node.probabilities[0], rel=1e-3)
        assert [index for index, _ in told["children"]] == list(graph.children(node.index))
        assert [index for index, _ in told["parents"]] == list(graph.parents(node.index))
        shown = [(data["documents"][place][0], share) for place, share in told["documents"]]
        assert [title for title, _ in shown] == [example.title for example in node.examples]
        assert [share for _, share in shown] == pytest.approx([e.share for e in node.examples], rel=1e-2)
    marginal = model.topic_weight_ @ model.topic_word_
    columns = [int(word.removeprefix("word")) for word in data["words"]]
    np.testing.assert_allclose(data["marginal"], marginal[columns], rtol=1e-3)


def test_topics_without_tokens_and_words_without_tokens_are_not_on_the_page(given):
    counts = 0.1 + np.array([[9.0, 5, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 0, 3, 2, 1, 0]])
    model = given(counts / counts.sum(axis=1, keepdims=True), [0.7, 0.0, 0.3], words=list("abcdef"))
    model.components_ = counts
    page = topic_report(model, scores={"coherence": [0.5, 0.25, 0.125]})
    nodes = {node["index"]: node for node in data_of(page)["nodes"]}
    words = data_of(page)["words"]
    assert {index: "".join(words[place] for place in node["words"]) for index, node in nodes.items()} == {
        0: "ab",
        2: "cde",
    }
    assert [node["scores"] for node in nodes.values()] == [[0.5], [0.125]]
    assert {other for node in nodes.values() for other, _ in node["near"]} == {0, 2}


def test_similar_topics_are_those_at_the_least_hellinger_distance(topics):
    model = topics(9)
    roots = np.sqrt(model.topic_word_)
    distance = np.sqrt(0.5 * ((roots[:, None] - roots) ** 2).sum(axis=2))
    for node in data_of(topic_report(model))["nodes"]:
        order = np.argsort(distance[node["index"]])[1:6]
        assert [other for other, _ in node["near"]] == order.tolist()
        similarity = [value for _, value in node["near"]]
        assert similarity == pytest.approx((1 - distance[node["index"], order]).tolist(), rel=1e-3)


@pytest.mark.parametrize("weight", [0.0, 0.2, 0.6, 1.0])
def test_the_most_relevant_words_are_among_those_kept_for_each_weight_of_the_lift(topics, weight):
    model = topics(8, 200, seed=1)
    marginal = model.topic_weight_ @ model.topic_word_
    kept = relevant_words(model.topic_word_, marginal, 10)
    for row, columns in zip(model.topic_word_, kept):
        relevance = weight * np.log(row) + (1 - weight) * np.log(row / marginal)
        assert set(np.argsort(-relevance)[:10]) <= set(columns.tolist())
        assert (np.diff(row[columns]) <= 0).all()


def test_text_from_documents_cannot_become_markup(given):
    words = [BAD, "&lt;b&gt;", "\u2028", "<!--", "\ud800"]
    model = given(np.full((3, 5), 0.2), [0.5, 0.3, 0.2], words=words)
    model.shares_ = np.full((2, 3), 1 / 3)
    model.keep_examples(None, [BAD, "<i>"], [BAD, "]]>"])
    page = topic_report(model, title=BAD, facts={BAD: BAD}, scores={BAD: [1.0, 2.0, np.nan]})
    scripts = [attributes for tag, attributes in Tags(page).tags if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert not [tag for tag, _ in Tags(page).tags if tag == "img"]
    assert not [name for _, attributes in Tags(page).tags for name in attributes if name.startswith("on")]
    assert data_of(page)["documents"][0] == [BAD[:199] if len(BAD) > 200 else BAD, BAD]
    assert page.encode("utf-8")  # half of a surrogate pair does not keep the page from being written


def test_nothing_is_loaded_from_anywhere(topics):
    page = topic_report(topics(5, kind="tree"))
    for tag, attributes in Tags(page).tags:
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    assert "@import" not in page
    assert "url(" not in page
    policy = next(attributes["content"] for tag, attributes in Tags(page).tags if "http-equiv" in attributes)
    assert policy.startswith("default-src 'none'")
    assert re.search(r"script-src 'sha256-[\w+/=]+';", policy)


def test_a_large_model_makes_a_page_of_less_than_two_megabytes(topics):
    page = topic_report(topics(500, 6000, kind="tree", n_documents=2500))
    assert len(page.encode()) < 2_000_000


def test_the_same_model_makes_the_same_page(topics):
    model = topics(30, 300, kind="tree", n_documents=100)
    assert topic_report(model) == topic_report(model)


def test_facts_figures_scores_and_the_course_of_the_fit_are_told(topics, tmp_path):
    model = topics(4)
    model.log_joint_ = np.linspace(-9000.0, -1234.0, 40).reshape(2, 20)
    page = topic_report(
        model,
        tmp_path / "page.html",
        title="Letters",
        facts={"documents": 12345},
        held_out=HeldOut(np.array([-8.0, -4.0]), np.array([4, 2]), "left_to_right"),
        scores={"coherence": [0.1, 0.25, -0.5, 0.0]},
    )
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    for told in ("<title>Letters</title>", "12,345", "held-out perplexity", "7.389", "left to right", "-0.500"):
        assert told in page
    assert page.count('class="curve"') == 2
    assert "Log joint probability: from -9,000" in page
    assert data_of(page)["nodes"][1]["scores"] == [0.25]


def test_a_model_with_one_topic_and_without_documents_has_a_page_too(given):
    page = topic_report(given([[1.0]], [1.0]))
    assert data_of(page)["nodes"][0]["near"] == []
    assert data_of(page)["words"] == ["word 0"]
    twins = given([[0.5, 0.5], [0.5, 0.5]], [0.75, 0.25], words=["a", "b"])
    assert data_of(topic_report(twins))["nodes"][0]["near"] == [[1, 1.0]]


def test_the_page_for_any_model_is_that_of_topics_for_topic_models(topics):
    model = topics(3)
    assert model_report(model, title="x") == topic_report(model, title="x")


def test_wrong_input_gets_a_sentence_and_leaves_no_file(topics, tmp_path):
    with pytest.raises(TypeError, match="model must be a topic model"):
        topic_report(object())
    with pytest.raises(ValueError, match=r"scores\['c'\] must have one number for each of 3 topics"):
        topic_report(topics(3), scores={"c": [1.0]})
    with pytest.raises(ValueError, match="feature_names must have one word"):
        topic_report(topics(3), feature_names=["a"])
    with pytest.raises(FileNotFoundError, match="existing folder"):
        topic_report(topics(3), tmp_path / "none" / "page.html")
    with pytest.raises(IsADirectoryError, match="must name a file"):
        topic_report(topics(3), tmp_path)
    assert list(tmp_path.iterdir()) == []
