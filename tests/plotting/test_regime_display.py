"""Regimes under trajectories: colours follow the most probable regime, renumbered to agree with the truth."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from pluri.dynamics import SwitchingDynamicalSystem, make_maneuvering_target
from pluri.plotting import RegimesDisplay, state_colors


class Swapped:
    """A stand-in for a fitted model: regime 1 where the first column is negative, states are the columns doubled."""

    def predict_proba(self, X):
        share = np.where(X[:, 0] < 0, 0.8, 0.1)
        return np.column_stack([1 - share, share])

    def transform(self, X):
        return 2 * X


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 2))


def test_the_strip_has_the_colours_of_the_aligned_regimes(X):
    truth = (X[:, 0] >= 0).astype(int)  # the other way round
    display = RegimesDisplay.from_estimator(Swapped(), X, y_true=truth)
    expected = np.array([to_rgb(state_colors(2)[z]) for z in truth])
    for name in ("regimes", "truth"):
        np.testing.assert_allclose(display.panels_[name].images[0].get_array()[0], expected)
    np.testing.assert_allclose(display.probabilities[:, 0], np.where(truth == 0, 0.8, 0.1))
    plt.close("all")


def test_states_or_observations_are_drawn_above(X):
    states = RegimesDisplay.from_estimator(Swapped(), X)
    seen = RegimesDisplay.from_estimator(Swapped(), X, observations=True, title="seen")
    np.testing.assert_array_equal(states.ax_.lines[1].get_ydata(), 2 * X[:, 1])
    np.testing.assert_array_equal(seen.ax_.lines[1].get_ydata(), X[:, 1])
    assert seen.ax_.get_title() == "seen"
    assert list(states.panels_) == ["trajectories", "probabilities", "regimes"]
    plt.close("all")


def test_a_switching_system_is_drawn_on_axes_that_are_given():
    target = make_maneuvering_target()
    _, rows = target.sample(20, random_state=0)
    figure, ax = plt.subplots()
    display = RegimesDisplay.from_estimator(SwitchingDynamicalSystem.from_model(target), rows, ax=ax)
    assert display.figure_ is figure
    assert display.trajectories.shape == (20, 4)
    plt.close("all")


def test_what_does_not_fit_together_is_refused(X):
    with pytest.raises(ValueError, match="trajectories must have 2 rows like probabilities"):
        RegimesDisplay([[0.5, 0.5], [0.5, 0.5]], X)
    with pytest.raises(ValueError, match="probabilities must have shape"):
        RegimesDisplay([0.5, 0.5], X)
    with pytest.raises(ValueError, match="y_true must have 40 rows"):
        RegimesDisplay(Swapped().predict_proba(X), X, y_true=[0, 1])
