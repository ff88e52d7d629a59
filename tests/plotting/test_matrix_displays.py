"""Heat maps and graphs of matrices: what is drawn is what was given."""

from __future__ import annotations

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba

from pluri.metrics import bhattacharyya_distances
from pluri.plotting import BhattacharyyaDisplay, TransitionDisplay, state_colors


def random_transmat(n_states, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_states, 0.5), size=n_states)


def test_the_heat_map_shows_the_matrix_in_the_order_and_names_given():
    transmat, order = random_transmat(4), [2, 0, 3, 1]
    display = TransitionDisplay.from_estimator(
        SimpleNamespace(transmat_=transmat), order=order, state_names=["a", "b", "c", "d"]
    )
    np.testing.assert_array_equal(display.image_.get_array(), transmat[np.ix_(order, order)])
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        assert [label.get_text() for label in axis.get_ticklabels()] == ["c", "a", "d", "b"]
    assert display.ax_.get_xlabel() == "next state"
    assert display.ax_.get_ylabel() == "state"
    assert display.ax_.get_title() == "Transition probabilities"
    assert display.image_.get_cmap().name == "cividis"
    assert display.image_.get_clim() == (0, 1)


def test_numbers_are_written_where_they_belong_and_can_be_left_out():
    transmat = np.array([[0.9, 0.1], [0.0, 1.0]])
    display = TransitionDisplay.from_matrix(transmat)
    written = {text.get_position(): text.get_text() for text in display.texts_}
    assert written == {(0, 0): ".90", (1, 0): ".10", (1, 1): "1.00"}
    assert {text.get_color() for text in display.texts_} == {"black", "white"}
    assert TransitionDisplay.from_matrix(transmat, annotate=False).texts_ == []
    assert TransitionDisplay.from_matrix(random_transmat(17)).texts_ == []


@pytest.mark.parametrize("n_states", [1, 2, 3, 5, 8, 15])
def test_the_graph_has_a_node_per_state_and_an_arrow_per_likely_transition(n_states):
    transmat = random_transmat(n_states, seed=n_states)
    display = TransitionDisplay.from_matrix(transmat, style="graph", threshold=0.05)
    assert set(display.nodes_) == set(range(n_states))
    assert set(display.edges_) == {(i, j) for i, j in zip(*np.nonzero(transmat >= 0.05))}
    assert len(display.ax_.patches) == len(display.nodes_) + len(display.edges_)
    colors = state_colors(n_states)
    for state, node in display.nodes_.items():
        assert to_hex(node.get_facecolor()).upper() == colors[state]
    for (source, _), edge in display.edges_.items():
        assert to_hex(edge.get_edgecolor()).upper() == colors[source]


def test_wider_arrows_are_likelier_transitions():
    transmat = random_transmat(6, seed=3)
    edges = TransitionDisplay.from_matrix(transmat, style="graph").edges_
    pairs = sorted(edges, key=lambda pair: transmat[pair])
    widths = [edges[pair].get_linewidth() for pair in pairs]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@pytest.mark.parametrize("n_states", [2, 3, 5, 9, 15])
def test_nodes_keep_apart_and_loops_point_outwards(n_states):
    display = TransitionDisplay.from_matrix(np.full((n_states, n_states), 1 / n_states), style="graph")
    centres = np.array([display.nodes_[state].center for state in range(n_states)])
    distance = np.linalg.norm(centres[:, None] - centres[None], axis=2) + 10 * np.eye(n_states)
    assert distance.min() > 2.5 * display.nodes_[0].radius
    for state in range(n_states):
        path = display.edges_[state, state].get_path().vertices
        assert np.linalg.norm(path, axis=1).max() > 1 + 2 * display.nodes_[0].radius


def test_graph_names_stand_inside_if_short_and_outside_if_long():
    transmat = random_transmat(3)
    for names, inside in ((["a", "b", "c"], True), (["north", "south", "west"], False)):
        display = TransitionDisplay.from_matrix(transmat, style="graph", state_names=names)
        texts = {text.get_text(): text for text in display.ax_.texts}
        for state, name in enumerate(names):
            node = display.nodes_[state]
            away = np.linalg.norm(np.subtract(texts[name].get_position(), node.center))
            assert (away < node.radius) == inside


def test_given_axes_are_used_and_no_figure_is_opened():
    figure, axes = plt.subplots(1, 3)
    for display in (
        TransitionDisplay.from_matrix(random_transmat(3), ax=axes[0], title="", colorbar=False),
        TransitionDisplay.from_matrix(random_transmat(3), style="graph", ax=axes[1], title="graph"),
        BhattacharyyaDisplay.from_matrix(random_transmat(3), ax=axes[2]),
    ):
        assert display.figure_ is figure
    assert [ax.get_title() for ax in axes[:2]] == ["", "graph"]
    assert plt.get_fignums() == [figure.number]


def test_plot_returns_itself_and_draws_again_in_another_style():
    display = TransitionDisplay.from_matrix(random_transmat(3))
    first = display.ax_
    assert display.plot(style="graph", threshold=0.001) is display
    assert display.ax_ is not first
    assert display.image_ is None
    assert len(display.nodes_) == 3
    assert len(display.edges_) == 9


def test_the_distances_drawn_are_the_distances():
    transmat, order = random_transmat(5), [4, 3, 2, 1, 0]
    model = SimpleNamespace(transmat_=transmat, emissionprob_=transmat[:, ::-1])
    display = BhattacharyyaDisplay.from_estimator(model, order=order)
    np.testing.assert_allclose(display.image_.get_array(), bhattacharyya_distances(transmat)[::-1, ::-1])
    assert "log det" in display.ax_.get_title()
    other = BhattacharyyaDisplay.from_estimator(model, parameter="emissionprob_")
    np.testing.assert_allclose(other.diversity.mean, display.diversity.mean)


def test_disjoint_rows_are_grey_marked_and_do_not_stretch_the_scale():
    display = BhattacharyyaDisplay.from_matrix([[0.5, 0.5, 0], [0.1, 0.9, 0], [0, 0, 1]])
    assert [text.get_text() for text in display.texts_].count("∞") == 4
    assert display.image_.get_clim()[1] < 1
    assert display.image_.get_array().mask.sum() == 4
    assert display.image_.get_cmap().get_bad() == pytest.approx(to_rgba("0.85"))
    assert "2 pairs disjoint" in display.ax_.get_title()
    assert "690" not in display.ax_.get_title()


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="transmat must be square"):
        TransitionDisplay.from_matrix([[0.5, 0.5]])
    with pytest.raises(ValueError, match="transmat must have rows that sum to 1"):
        TransitionDisplay.from_matrix([[0.5, 0.4], [0.5, 0.5]])
    with pytest.raises(ValueError, match="style must be 'heatmap' or 'graph', got 'pie'"):
        TransitionDisplay.from_matrix(np.eye(2), style="pie")
    with pytest.raises(ValueError, match="threshold must be above 0"):
        TransitionDisplay.from_matrix(np.eye(2), style="graph", threshold=0)
    for display in (TransitionDisplay, BhattacharyyaDisplay):
        with pytest.raises(ValueError, match="model must be fitted and have transmat_"):
            display.from_estimator(object())
    assert plt.get_fignums() == []
