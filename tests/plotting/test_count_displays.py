"""Displays of counts show the numbers they are given."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pluri.dynamics import CountDynamicalSystem
from pluri.plotting import CrossCovarianceDisplay, DispersionDisplay, ShapeDisplay


@pytest.fixture(scope="module")
def model():
    counts = np.random.default_rng(0).binomial(4, 0.4, size=(60, 4)).astype(float)
    with pytest.warns(UserWarning, match="converge"):
        return CountDynamicalSystem(1, max_iter=2, random_state=0).fit(counts, lengths=[20] * 3), counts


def test_dispersion_is_variance_against_mean(model):
    fitted, counts = model
    display = DispersionDisplay.from_estimators({"full": fitted}, counts)
    assert_allclose(display.points_["data"].get_xdata(), counts.mean(axis=0))
    assert_allclose(display.points_["data"].get_ydata(), counts.var(axis=0))
    assert_allclose(display.points_["full"].get_ydata(), fitted.moments().neuron_variance)
    alone = DispersionDisplay.from_counts(counts)
    assert [text.get_text() for text in alone.ax_.get_legend().get_texts()] == ["Poisson", "data"]
    with pytest.raises(ValueError, match="same names"):
        DispersionDisplay({"a": [1.0]}, {"b": [1.0]})


def test_shapes_are_drawn_without_their_slopes(model):
    fitted, _ = model
    display = ShapeDisplay.from_estimator(fitted, neurons=[1, 3])
    k = np.arange(fitted.g_.shape[1])
    assert_allclose(display.lines_[1].get_ydata(), fitted.g_[3] - k * fitted.g_[3, 1])
    with pytest.raises(ValueError, match="g_"):
        ShapeDisplay.from_estimator(object())


def test_covariances_are_drawn_to_both_sides(model):
    fitted, _ = model
    display = CrossCovarianceDisplay.from_estimators({"full": fitted}, 3, pair=(0, 2))
    lags = fitted.cross_covariance(3)
    curve = display.lines_["full"].get_ydata()
    assert_allclose(curve[3:], lags[:, 0, 2])
    assert_allclose(curve[:4], lags[::-1, 2, 0])
    with pytest.raises(ValueError, match="lags, neurons, neurons"):
        CrossCovarianceDisplay({"a": np.ones((3, 2))})
