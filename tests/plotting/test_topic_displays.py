"""Layouts of topics obey their laws, and what is drawn is what was given."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluri.plotting import TopicGraphDisplay, TopicWordsDisplay
from pluri.plotting.topics.topic_layout import layered_layout
from pluri.plotting.topics.topic_map import bubble_map, classical_scaling, hellinger_distances
from pluri.topics import Hierarchy, TopicEdge, TopicGraph, TopicNode


@st.composite
def graphs(draw, most=14):
    """Depths, and edges that lead downwards."""
    n_nodes = draw(st.integers(1, most))
    depth = draw(st.lists(st.integers(0, 3), min_size=n_nodes, max_size=n_nodes))
    downwards = [(i, j) for i in range(n_nodes) for j in range(n_nodes) if depth[i] < depth[j]]
    edges = draw(st.lists(st.sampled_from(downwards), unique=True, max_size=20)) if downwards else []
    return depth, edges


def crossings(layout):
    """Pairs of edges that change sides between two layers."""
    steps = [(a, b) for route in layout.routes for a, b in pairwise(route)]
    return sum(
        one[0][0] == two[0][0] and (one[0][1] - two[0][1]) * (one[1][1] - two[1][1]) < 0
        for one, two in combinations(steps, 2)
    )


@given(graphs())
@settings(max_examples=40)
def test_nodes_of_a_layer_are_apart_and_edges_lead_from_layer_to_layer(graph):
    depth, edges = graph
    layout = layered_layout(depth, edges)
    for number in range(layout.layer.max() + 1):
        assert (np.diff(np.sort(layout.place[layout.layer == number])) > 1 - 1e-9).all()
    assert layout.place.min() == 0
    for (parent, child), route in zip(edges, layout.routes):
        assert route[0].tolist() == [layout.layer[parent], layout.place[parent]]
        assert route[-1].tolist() == [layout.layer[child], layout.place[child]]
        assert (np.diff(route[:, 0]) == 1).all()
    assert crossings(layout) == layout.n_crossings
    again = layered_layout(depth, edges)
    np.testing.assert_array_equal(again.place, layout.place)


def test_a_tree_has_no_crossings_and_parents_stand_in_the_middle_of_their_children():
    rng = np.random.default_rng(0)
    for _ in range(10):
        parents = [int(rng.integers(0, child)) for child in range(1, 40)]
        depth = [0]
        for parent in parents:
            depth.append(depth[parent] + 1)
        layout = layered_layout(depth, [(parent, child) for child, parent in enumerate(parents, 1)])
        assert layout.n_crossings == 0
    layout = layered_layout([0, 1, 1, 1, 2, 2], [(0, 1), (0, 2), (0, 3), (2, 4), (2, 5)])
    for parent, children in ((0, [1, 2, 3]), (2, [4, 5])):
        assert layout.place[parent] == pytest.approx(layout.place[children].mean())


def test_two_layers_have_as_few_crossings_as_the_best_of_all_orders():
    rng = np.random.default_rng(1)
    excess = []
    for _ in range(12):
        edges = [(i, 4 + j) for i in range(4) for j in range(4) if rng.random() < 0.45]
        layout = layered_layout([0] * 4 + [1] * 4, edges)
        best = min(
            sum((up[a] - up[c]) * (low[b - 4] - low[d - 4]) < 0 for (a, b), (c, d) in combinations(edges, 2))
            for up in permutations(range(4))
            for low in permutations(range(4))
        )
        excess.append(layout.n_crossings - best)
    # The heuristic is not exact; on these graphs it never misses by more than one.
    assert max(excess) <= 1
    assert np.mean(excess) <= 0.25


def test_heavy_children_come_first_and_wrong_depths_are_mended():
    layout = layered_layout([0, 1, 1, 1], [(0, 1), (0, 2), (0, 3)], weight=[0.1, 0.7, 0.2])
    assert np.argsort(layout.place[1:]).tolist() == [1, 2, 0]
    assert layered_layout([0, 0, 0], [(0, 1), (1, 2)]).layer.tolist() == [0, 1, 2]
    assert layered_layout([5, 9], [(0, 1)]).layer.tolist() == [0, 1]
    with pytest.raises(ValueError, match="edges must not make a cycle"):
        layered_layout([0, 0], [(0, 1), (1, 0)])
    with pytest.raises(ValueError, match=r"edges must lie between nodes 0, ..., 1, got \(0, 2\)"):
        layered_layout([0, 1], [(0, 2)])


@pytest.mark.parametrize("n_points", [1, 2, 3, 30, 60])
def test_points_of_the_plane_are_found_again_from_their_distances(n_points):
    points = np.random.default_rng(0).normal(size=(n_points, 2))
    wanted = np.hypot(*(points[:, None] - points).T)
    found = classical_scaling(wanted)
    np.testing.assert_allclose(np.hypot(*(found[:, None] - found).T), wanted, atol=1e-6)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_array_equal(classical_scaling(wanted), found)


def test_hellinger_distances_are_those_of_the_definition():
    rows = np.random.default_rng(0).dirichlet(np.ones(6), 4)
    wanted = [[np.sqrt(0.5 * ((np.sqrt(p) - np.sqrt(q)) ** 2).sum()) for q in rows] for p in rows]
    np.testing.assert_allclose(hellinger_distances(rows), wanted, atol=1e-9)


def test_bubbles_have_areas_of_shares_stay_in_the_box_and_do_not_overlap():
    rng = np.random.default_rng(0)
    share = rng.dirichlet(np.ones(40))
    for points in (rng.normal(size=(40, 2)), np.zeros((40, 2))):
        centres, radii = bubble_map(points, share, width=10.0, height=7.0)
        middle = radii > 1.01 * radii.min()
        np.testing.assert_allclose(radii[middle] ** 2 / share[middle], np.median(radii[middle] ** 2 / share[middle]))
        assert (centres - radii[:, None] >= -1e-9).all()
        assert (centres + radii[:, None] <= np.array([10, 7]) + 1e-9).all()
        if points.any():
            distance = np.hypot(*(centres[:, None] - centres).T) + np.eye(40) * 99
            assert (distance > 0.97 * (radii[:, None] + radii)).all()


def model_of(hierarchy, weight, words):
    """Something with topic_graph(), as the displays ask for it."""
    topic_word = np.random.default_rng(0).dirichlet(np.ones(20), len(weight))

    def topic_graph(n_words=10, *, feature_names=None):
        nodes = tuple(
            TopicNode(k, int(hierarchy.depth[k]), weight[k], tuple(words[k][:n_words]), (0.4, 0.3, 0.2)[:n_words])
            for k in range(len(weight))
        )
        edges = tuple(TopicEdge(int(a), int(b), float(w)) for (a, b), w in zip(hierarchy.edges, hierarchy.weight))
        return TopicGraph("Example", nodes, edges)

    return SimpleNamespace(topic_graph=topic_graph, topic_word_=topic_word)


WORDS = [("play", "win", "team"), ("ice", "goal", "puck"), ("bat", "ball", "run"), ("net", "serve", "set")]
TREE = Hierarchy(np.array([0, 1, 1, 2]), np.array([[0, 1], [0, 2], [1, 3]]), np.array([0.5, 0.25, 1.0]))
FLAT = Hierarchy(np.zeros(4, dtype=int), np.zeros((0, 2), dtype=int), np.zeros(0))
SHARES = [0.4, 0.3, 0.2, 0.1]


def test_a_hierarchy_is_drawn_with_areas_of_shares_and_widths_of_weights():
    display = TopicGraphDisplay.from_estimator(model_of(TREE, SHARES, WORDS), n_words=2, title="Sport")
    areas = display.nodes_.get_sizes()
    np.testing.assert_allclose(areas / areas[0], np.array(SHARES) / SHARES[0])
    widths = np.array([patch.get_linewidth() for patch in display.edges_])
    np.testing.assert_allclose((widths - 0.5) / (widths[2] - 0.5), TREE.weight)
    assert [text.get_text() for text in display.labels_] == ["play win", "ice goal", "bat ball", "net serve"]
    np.testing.assert_array_equal(display.nodes_.get_offsets()[:, 0], TREE.depth)
    assert display.ax_.get_title() == "Sport"
    for patch, (parent, child) in zip(display.edges_, TREE.edges):
        vertices = patch.get_path().vertices
        name = display.labels_[parent].get_window_extent()
        assert display.ax_.transData.transform(vertices[0])[0] >= name.x1  # nothing is struck through
        np.testing.assert_allclose(vertices[-1], display.nodes_.get_offsets()[child])


def test_names_of_a_hierarchy_do_not_overlap():
    rng = np.random.default_rng(0)
    parents = [int(rng.integers(0, min(child, 6))) for child in range(1, 30)]
    depth = [0]
    for parent in parents:
        depth.append(depth[parent] + 1)
    labels = [f"some words of {topic}" for topic in range(30)]
    edges = [(parent, child) for child, parent in enumerate(parents, 1)]
    display = TopicGraphDisplay(labels, rng.dirichlet(np.ones(30)), depth, edges).plot()
    boxes = [text.get_window_extent() for text in display.labels_]
    assert not any(one.overlaps(two) for one, two in combinations(boxes, 2))


def test_flat_topics_are_drawn_on_a_map_in_given_axes():
    import matplotlib.pyplot as plt

    _, ax = plt.subplots()
    display = TopicGraphDisplay.from_estimator(model_of(FLAT, SHARES, WORDS), ax=ax)
    assert display.ax_ is ax
    assert display.layout_ is None
    assert display.edges_ == []
    sizes = display.nodes_.get_sizes()
    np.testing.assert_allclose(sizes / sizes[0], np.array(SHARES) / SHARES[0])
    shown = [text.get_window_extent() for text in display.labels_ if text.get_visible()]
    assert not any(one.overlaps(two) for one, two in combinations(shown, 2))


def test_bars_are_the_probabilities_of_the_largest_or_the_chosen_topics():
    model = model_of(TREE, [0.1, 0.2, 0.3, 0.4], WORDS)
    display = TopicWordsDisplay.from_estimator(model, n_words=2, title="Words")
    assert display.axes_[0].get_title("left") == "topic 3 (40.0%)"
    assert [bar.get_width() for bar in display.axes_[0].patches] == [0.4, 0.3]
    assert [text.get_text() for text in display.axes_[0].get_yticklabels()] == ["net", "serve"]
    chosen = TopicWordsDisplay.from_estimator(model, topics=[2, 0], n_columns=1)
    assert [text.get_text() for text in chosen.axes_[1].get_yticklabels()] == ["play", "win", "team"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TopicGraphDisplay(["a"], [0.5, 0.5]), "weight must have one share"),
        (lambda: TopicGraphDisplay(["a"], [-1.0]), "finite and not negative"),
        (lambda: TopicGraphDisplay(["a"], [1.0]), "topic_word must have a row for each topic"),
        (lambda: TopicGraphDisplay(["a", "b"], [0.5, 0.5], [0]), "depth must have one layer"),
        (lambda: TopicGraphDisplay(["a", "b"], [0.5, 0.5], [0, 1], [[0, 1]], [1.0, 2.0]), "edge_weight must have"),
        (lambda: TopicGraphDisplay.from_estimator(object()), "must be a topic model"),
        (lambda: TopicWordsDisplay([], []), "at least one word"),
        (lambda: TopicWordsDisplay([["a"]], [[0.1, 0.2]]), "one number for each word"),
        (lambda: TopicWordsDisplay([["a"]], [[0.1]], titles=[]), "titles must have one text"),
        (lambda: TopicWordsDisplay([["a"]], [[0.1]]).plot(n_columns=0), "n_columns must be at least 1"),
        (lambda: TopicWordsDisplay.from_estimator(object()), "must be a topic model"),
        (lambda: TopicWordsDisplay.from_estimator(model_of(FLAT, SHARES, WORDS), topics=[4]), "between 0 and 3"),
    ],
)
def test_wrong_input_gets_a_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
