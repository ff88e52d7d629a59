"""Graphs of topics as text, Graphviz and SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pluri.report import topic_dot, topic_report, topic_svg, tree_text
from pluri.report.labels import percent, shortened, text_width, topic_label
from pluri.report.svg_cards import branch_colors
from pluri.topics import TopicEdge, TopicGraph, TopicNode

SVG = "{http://www.w3.org/2000/svg}"


def graph_of(depths, edges, weights=None, words=None, labels=None):
    nodes = tuple(
        TopicNode(
            index=topic,
            depth=depth,
            weight=1 / len(depths) if weights is None else weights[topic],
            words=words[topic] if words else (f"a{topic}", f"b{topic}"),
            probabilities=(0.5, 0.4),
            label=labels[topic] if labels else None,
        )
        for topic, depth in enumerate(depths)
    )
    return TopicGraph("Example", nodes, tuple(TopicEdge(*edge) for edge in edges))


DIAMOND = graph_of([0, 1, 1, 2, 3], [(0, 1, 0.7), (0, 2, 0.3), (1, 3, 0.2), (2, 3, 0.9), (3, 4, 1.0)])


def test_a_topic_with_two_parents_is_drawn_once_and_named_where_else_it_belongs():
    assert tree_text(DIAMOND, n_words=1).splitlines() == [
        "[0] 20%  a0",
        "├── [1] 20%  a1",
        "│   └── [3] -> under [2] (a3 b3)",
        "└── [2] 20%  a2",
        "    └── [3] 20%  a3",
        "        └── [4] 20%  a4",
    ]
    assert tree_text(DIAMOND, n_words=1, max_depth=1).splitlines() == [
        "[0] 20%  a0",
        "├── [1] 20%  a1  (+1)",
        "└── [2] 20%  a2  (+1)",
    ]
    assert tree_text(DIAMOND, n_words=1, max_depth=0) == "[0] 20%  a0  (+2)"


def test_every_topic_of_any_graph_is_drawn_in_full_exactly_once(topics):
    for seed in range(5):
        graph = topics(40, kind="graph", seed=seed).topic_graph(3)
        drawn = re.findall(r"\[(\d+)\] [<\d]", tree_text(graph))
        assert sorted(map(int, drawn)) == list(range(40))
        named = re.findall(r"-> under \[\d+\] \(", tree_text(graph))
        assert len(drawn) + len(named) == len(graph.edges) + len(graph.roots())


def test_topics_drawn_elsewhere_share_a_line_after_the_own_ones():
    edges = [(0, 1, 0.6), (0, 2, 0.4), (1, 3, 0.9), (1, 4, 0.8), (2, 3, 0.5), (2, 4, 0.3), (2, 5, 0.1)]
    graph = graph_of([0, 1, 1, 2, 2, 2], edges, labels=[None, "ice", None, None, "bat", None])
    assert tree_text(graph, n_words=1).splitlines() == [
        "[0] 17%  a0",
        "├── [1] 17%  ice: a1",
        "│   ├── [3] 17%  a3",
        "│   └── [4] 17%  bat: a4",
        "└── [2] 17%  a2",
        "    ├── [5] 17%  a5",
        "    └── [3] -> under [1] (a3 b3); [4] -> under [1] (bat)",
    ]


def test_topics_without_tokens_are_not_drawn_unless_something_below_has_some():
    edges = [(0, 1, 0.6), (0, 2, 0.4), (1, 3, 1.0), (2, 4, 1.0)]
    graph = graph_of([0, 1, 1, 2, 2], edges, weights=[0.5, 0.0, 0.0, 0.5, 0.0])
    assert [node.index for node in graph.without_empty().nodes] == [0, 1, 3]
    assert re.findall(r"\[(\d)\]", tree_text(graph)) == ["0", "1", "3"]
    assert topic_dot(graph).count("->") == 2
    assert topic_svg(graph).count('class="card"') == 3
    assert topic_svg(graph, topic_word=np.eye(5)).count('class="bubble"') == 3


@pytest.mark.parametrize("draw", [tree_text, topic_dot, topic_svg])
def test_a_model_is_drawn_as_its_graph(topics, draw):
    model = topics(8, kind="tree")
    assert draw(model) == draw(model.topic_graph(10))
    with pytest.raises(TypeError, match="graph must be a topic model or the TopicGraph of one, got str"):
        draw("topics")


def test_flat_topics_are_listed_largest_first():
    graph = graph_of([0, 0, 0], [], weights=[0.2, 0.5, 0.3])
    assert [line[:3] for line in tree_text(graph).splitlines()] == ["[1]", "[2]", "[0]"]


def test_the_source_for_graphviz_has_every_node_and_edge_and_quotes_text():
    text = topic_dot(graph_of([0, 1], [(0, 1, 0.5)], words=[('say "hi"', "x"), ("back\\slash", "new\nline")]))
    assert 'label="say \\"hi\\" x\\n50%"' in text
    assert 'label="back\\\\slash new line\\n50%"' in text
    assert text.count("->") == 1
    assert topic_dot(DIAMOND).count("->") == 5


@pytest.mark.parametrize("kind", ["flat", "tree", "graph"])
def test_the_picture_is_valid_xml_with_all_topics_and_edges(topics, kind):
    model = topics(30, kind=kind)
    graph = model.topic_graph(10)
    for picture in (topic_svg(graph), topic_svg(graph, topic_word=model.topic_word_)):
        root = ElementTree.fromstring(picture)
        assert sorted(int(link.get("data-node")) for link in root.iter(f"{SVG}a")) == list(range(30))
        assert "var(" not in picture
    edges = {(int(path.get("data-parent")), int(path.get("data-child"))) for path in
             ElementTree.fromstring(topic_svg(graph)).iter(f"{SVG}path")}  # fmt: skip
    assert edges == {(edge.parent, edge.child) for edge in graph.edges}


@pytest.mark.parametrize("kind", ["flat", "tree", "graph"])
def test_cards_lie_in_the_picture_and_do_not_overlap(topics, kind):
    root = ElementTree.fromstring(topic_svg(topics(60, kind=kind, seed=3).topic_graph(10)))
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = []
    for link in root.iter(f"{SVG}a"):
        x, y = map(float, re.match(r"translate\((\S+) (\S+)\)", link.get("transform")).groups())
        card = link.find(f"{SVG}rect")
        boxes.append((x, y + float(card.get("y")), float(card.get("width")), float(card.get("height"))))
    for place, (x, y, wide, high) in enumerate(boxes):
        assert x >= 0
        assert y >= 0
        assert x + wide <= width
        assert y + high <= height
        for other_x, other_y, other_wide, other_high in boxes[:place]:
            apart = x >= other_x + other_wide or other_x >= x + wide or y >= other_y + other_high or other_y >= y + high
            assert apart


def test_areas_of_discs_are_shares_and_widths_of_edges_are_weights():
    graph = graph_of([0, 1, 1], [(0, 1, 0.8), (0, 2, 0.2)], weights=[0.64, 0.16, 0.2])
    root = ElementTree.fromstring(topic_svg(graph))
    radii = [float(circle.get("r")) for circle in root.iter(f"{SVG}circle")]
    np.testing.assert_allclose(np.square(radii) / radii[0] ** 2, np.array([0.64, 0.16, 0.2]) / 0.64, rtol=0.02)
    wide, thin = (float(path.get("stroke-width")) for path in root.iter(f"{SVG}path"))
    assert (thin - 0.8) / (wide - 0.8) == pytest.approx(0.25, abs=0.01)


def test_text_of_documents_and_words_is_escaped():
    bad = "<script>alert(1)</script>"
    graph = graph_of([0, 1], [(0, 1, 1.0)], words=[(bad, "&amp;"), ('"x"', "y")], labels=[None, bad])
    for picture in (topic_svg(graph), topic_svg(graph, topic_word=[[0.5, 0.5], [0.9, 0.1]])):
        assert "<script" not in picture
        ElementTree.fromstring(picture)


def test_branches_below_the_root_have_colours_of_their_own():
    colors = branch_colors(DIAMOND)
    assert colors[1] != colors[2]
    assert colors[3] == colors[4] == colors[2]  # below the stronger parent
    assert colors[0] not in (colors[1], colors[2])
    assert set(branch_colors(graph_of([0, 0], [])).values()) == {0}


def test_labels_are_names_or_words_and_are_cut_to_fit():
    node = TopicNode(7, 0, 0.1, ("one", "two", "three"), (0.3, 0.2, 0.1))
    assert topic_label(node, 2) == "one two"
    assert topic_label(TopicNode(7, 0, 0.1, ("one",), (1.0,), label=" my \n name ")) == "my name"
    assert topic_label(TopicNode(7, 0, 0.1, (), ())) == "topic 7"
    for text in ("a much too long row of words", "Äpfel 中文文本很长很长很长很长", "MMMMMMMMMMMMMM"):
        cut = shortened(text, 80, 12)
        assert text_width(cut, 12) <= 80
        assert cut.endswith("…")
    assert text_width("中", 10) > text_width("a", 10) > text_width("i", 10)
    assert [percent(share) for share in (1.0, 0.0996, 0.00099)] == ["100%", "10.0%", "<0.1%"]
    with pytest.raises(ValueError, match="n_words must be at least 1"):
        topic_svg(DIAMOND, n_words=0)


@pytest.mark.parametrize("character", ["\x00", "\x0b", "\x1b", "\x9f", "\ud800", "\ufffe"])
def test_characters_that_no_picture_may_hold_are_replaced(character):
    word = f"a{character}b"
    nodes = (TopicNode(0, 0, 0.7, (word, "c"), (0.5, 0.5), label=word), TopicNode(1, 1, 0.3, (word,), (1.0,)))
    graph = TopicGraph(word, nodes, (TopicEdge(0, 1, 1.0),))
    for picture in (topic_svg(graph), topic_svg(graph, topic_word=[[0.5, 0.5], [0.9, 0.1]])):
        assert "a\ufffdb" in "".join(ElementTree.fromstring(picture).itertext())
        assert picture.encode()
    assert character not in topic_dot(graph)


@pytest.mark.parametrize("character", ["\x00", "\x1b", "\ud800"])
def test_characters_that_no_page_may_hold_are_replaced(topics, character, tmp_path):
    model = topics(4)
    n_words = model.topic_word_.shape[1]
    model.name_words([f"w{character}{column}" for column in range(n_words)])
    topic_report(model, tmp_path / "page.html", title=f"of {character}")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "w\ufffd0" in page
    assert character not in page
