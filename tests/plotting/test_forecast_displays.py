"""Pictures of forecasts and latent trajectories show the numbers that they were made of."""

import numpy as np
import pytest

from pluri.dynamics import LinearDynamicalSystem, PoissonDynamicalSystem
from pluri.plotting import ForecastDisplay, TrajectoryDisplay


@pytest.fixture(scope="module")
def fitted():
    turn = np.arange(60) / 4
    X = np.stack([np.sin(turn), np.cos(turn)], axis=1) + 0.1 * np.random.default_rng(0).normal(size=(60, 2))
    return LinearDynamicalSystem(2, max_iter=10, tol=-np.inf).fit(X), X


def test_the_fan_is_the_forecast(fitted):
    model, X = fitted
    display = ForecastDisplay.from_estimator(model, X, 5, feature=1, n_shown=20, truth=np.zeros(5), levels=[0.5, 0.9])
    expected = model.forecast(X, 5, level=0.9)
    x, y = display.lines_["mean"].get_data()
    assert x.tolist() == [60, 61, 62, 63, 64]
    assert y == pytest.approx(expected.mean[0, :, 1])
    assert display.lines_["history"].get_data()[0].tolist() == list(range(40, 60))
    corners = display.fans_[0].get_paths()[0].vertices[:, 1]  # the widest comes first
    assert corners.max() == pytest.approx(expected.upper[0, :, 1].max())
    assert corners.min() == pytest.approx(expected.lower[0, :, 1].min())
    assert len(display.fans_) == 2
    assert "truth" in display.lines_


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_fan_of_counts_has_the_bounds_of_the_model_and_is_never_below_zero():
    """Normal intervals of small counts would be."""
    counts = np.random.default_rng(0).poisson(0.4, size=(40, 2)).astype(float)
    model = PoissonDynamicalSystem(1, max_iter=3, random_state=0).fit(counts)
    display = ForecastDisplay.from_estimator(model, counts, 3, levels=[0.5, 0.9])
    expected = model.forecast(counts, 3, level=0.9)
    assert display.intervals[0].tolist() == [expected.lower[0, :, 0].tolist(), expected.upper[0, :, 0].tolist()]
    assert display.intervals.min() == 0
    assert (expected.mean - 1.6 * expected.std).min() < 0


def test_trajectories_are_the_states(fitted):
    model, X = fitted
    display = TrajectoryDisplay.from_estimator(model, [X[:25], X[25:]], names=["one", "two"])
    states = model.transform([X[:25], X[25:]])
    assert pytest.approx(states[25:]) == np.array(display.lines_[1].get_data()).T
    over_time = TrajectoryDisplay.from_estimator(model, X, lengths=[25, 35], dimensions=None)
    assert len(over_time.lines_) == 4
    assert over_time.lines_[0].get_data()[1] == pytest.approx(states[:25, 0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ForecastDisplay([1.0], mean=[1.0, 2.0], std=[1.0]), "std must be as long as mean"),
        (lambda: ForecastDisplay([1.0], mean=[1.0], std=[1.0], levels=[1.5]), "levels must be probabilities"),
        (lambda: ForecastDisplay([1.0], mean=[1.0], std=[1.0], intervals=[[0.0, 1.0]]), "intervals must have"),
        (lambda: ForecastDisplay([], mean=[1.0], std=[1.0]), "history must have one axis"),
        (lambda: TrajectoryDisplay([np.zeros((2, 2)), np.zeros((2, 3))]), "paths must be arrays"),
        (lambda: TrajectoryDisplay([np.zeros((2, 2))], names=["a", "b"]), "names must have one entry"),
        (lambda: TrajectoryDisplay([np.zeros((2, 2))]).plot(dimensions=(0, 5)), "dimensions must be two of 0 to 1"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
