"""A decoded sequence: the right stretch of data, the right colours, truth and posteriors in step."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb

from pluri.plotting import DecodedSequenceDisplay, state_colors


class Rounding:
    """A stand-in for a fitted model: the state is the rounded observation, renamed."""

    def __init__(self, rename):
        self.rename = np.asarray(rename)

    def predict(self, X, lengths=None):
        return self.rename[np.rint(X[:, 0]).astype(int)]

    def predict_proba(self, X, lengths=None):
        probability = np.full((len(X), self.rename.size), 0.1 / (self.rename.size - 1))
        probability[np.arange(len(X)), self.predict(X)] = 0.9
        return probability


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    states = np.concatenate([np.arange(3), rng.integers(3, size=27)])
    return states[:, None] + rng.uniform(-0.3, 0.3, size=(30, 1)), np.array([10, 15, 5]), states


def strip_colors(ax):
    return ax.images[0].get_array()[0]


def test_the_asked_sequence_is_drawn_in_the_colours_of_the_aligned_states(data):
    X, lengths, states = data
    display = DecodedSequenceDisplay.from_estimator(
        Rounding([2, 0, 1]), X, lengths, sequence=1, y_true=states, posterior=True
    )
    here = slice(10, 25)
    assert list(display.panels_) == ["observations", "posterior", "decoded", "truth"]
    np.testing.assert_array_equal(display.labels, states[here])
    np.testing.assert_array_equal(display.panels_["observations"].lines[0].get_ydata(), X[here, 0])
    expected = np.array([to_rgb(state_colors(3)[state]) for state in states[here]])
    for name in ("decoded", "truth"):
        np.testing.assert_allclose(strip_colors(display.panels_[name]), expected)
    np.testing.assert_array_equal(display.posterior.argmax(axis=1), states[here])
    assert display.ax_ is display.panels_["observations"]
    assert display.ax_.get_xlim() == (-0.5, 14.5)


def test_without_alignment_the_model_keeps_its_numbers(data):
    X, lengths, states = data
    rename = np.array([2, 0, 1])
    display = DecodedSequenceDisplay.from_estimator(
        Rounding(rename), X, lengths, sequence=-1, y_true=states, align=False
    )
    np.testing.assert_array_equal(display.labels, rename[states[25:]])
    np.testing.assert_array_equal(display.y_true, states[25:])


def test_a_state_without_a_partner_gets_a_colour_and_a_posterior_of_its_own(data):
    X, lengths, states = data
    display = DecodedSequenceDisplay.from_estimator(
        Rounding([3, 0, 2, 1]), X, lengths, y_true=np.minimum(states, 1), posterior=True
    )
    assert display.posterior.shape == (10, 4)
    np.testing.assert_allclose(display.posterior.sum(axis=1), 1)
    np.testing.assert_array_equal(display.posterior.argmax(axis=1), display.labels)


def test_posterior_areas_stack_to_one_in_the_colours_of_their_states():
    posterior = np.random.default_rng(1).dirichlet(np.ones(3), size=6)
    display = DecodedSequenceDisplay.from_labels(posterior.argmax(axis=1), posterior=posterior)
    areas = display.panels_["posterior"].collections
    assert [to_hex(area.get_facecolor()[0]).upper() for area in areas] == state_colors(3)
    assert max(area.get_paths()[0].vertices[:, 1].max() for area in areas) == pytest.approx(1)
    assert display.panels_["posterior"].get_ylim() == (0, 1)


def test_the_legend_names_only_states_that_occur():
    display = DecodedSequenceDisplay.from_labels([0, 2, 2], y_true=[0, 2, -1], state_names=["a", "b", "c", "d"])
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "c"]
    assert DecodedSequenceDisplay.from_labels([0, 1], legend=False).figure_.legends == []


def test_long_runs_bear_their_names_and_short_ones_do_not():
    wide = DecodedSequenceDisplay.from_labels(np.repeat([0, 1], 5), state_names=["rest", "run"])
    assert [text.get_text() for text in wide.panels_["decoded"].texts] == ["rest", "run"]
    narrow = DecodedSequenceDisplay.from_labels(np.tile([0, 1], 100), state_names=["rest", "run"])
    assert list(narrow.panels_["decoded"].texts) == []


def test_words_are_written_under_the_strips():
    words = np.array(["the", "cat", "sat"])[:, None]
    display = DecodedSequenceDisplay.from_labels([0, 1, 2], words, y_true=[0, 1, 1])
    assert list(display.panels_) == ["decoded", "truth"]
    assert [label.get_text() for label in display.panels_["truth"].get_xticklabels()] == ["the", "cat", "sat"]


def test_tokens_take_the_place_of_observations(data):
    X, lengths, _ = data
    tokens = np.array([f"w{i}" for i in range(30)])
    display = DecodedSequenceDisplay.from_estimator(Rounding([0, 1, 2]), X, lengths, sequence=2, tokens=tokens)
    assert [label.get_text() for label in display.panels_["decoded"].get_xticklabels()] == list(tokens[25:])


@pytest.mark.parametrize(("n_features", "n_lines", "n_images"), [(1, 1, 0), (4, 4, 0), (16, 0, 1)])
def test_few_columns_are_lines_and_many_an_image(n_features, n_lines, n_images):
    X = np.random.default_rng(0).random((9, n_features))
    panel = DecodedSequenceDisplay.from_labels(np.zeros(9, dtype=int), X).panels_["observations"]
    assert len(panel.lines) == n_lines
    assert len(panel.images) == n_images
    if n_images:
        np.testing.assert_array_equal(panel.images[0].get_array(), X.T)


def test_given_axes_become_the_topmost_panel():
    figure, axes = plt.subplots(1, 2, layout="constrained")
    display = DecodedSequenceDisplay.from_labels([0, 1], [1.0, 2.0], y_true=[0, 0], ax=axes[1], title="mine")
    assert display.ax_ is axes[1]
    assert display.figure_ is figure
    assert axes[1].get_title() == "mine"
    assert axes[1].get_legend() is not None
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DecodedSequenceDisplay([]), "labels must hold whole numbers"),
        (lambda: DecodedSequenceDisplay([0.5]), "labels must hold whole numbers"),
        (lambda: DecodedSequenceDisplay([0, 1], [1.0]), r"X must have 2 rows like labels, got shape \(1, 1\)"),
        (lambda: DecodedSequenceDisplay([0, 1], y_true=[0]), "y_true must have 2 rows"),
        (lambda: DecodedSequenceDisplay([0, 1], posterior=[[1.0]]), "posterior must have 2 rows"),
        (lambda: DecodedSequenceDisplay([0, 3], state_names=["a"]), "one name for each of the 4 states, got 1"),
        (
            lambda: DecodedSequenceDisplay.from_estimator(Rounding([0]), np.zeros((4, 1)), [2, 2], sequence=2),
            r"sequence must be below the number of sequences \(2\), got 2",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    before = plt.get_fignums()
    with pytest.raises(ValueError, match=message):
        call()
    assert plt.get_fignums() == before
