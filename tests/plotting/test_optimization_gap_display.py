"""The picture of objective and lower bound against updates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from pluri.optimize.sdp import maxcut_sdp
from pluri.plotting import OptimizationGapDisplay


def test_both_bounds_and_the_gap_are_those_of_the_history():
    result = maxcut_sdp(np.ones((3, 3)), tol=0.05).result
    display = OptimizationGapDisplay.from_result(result, title="triangle", optimum=2.25)
    attained, proved, optimum = display.ax_.lines
    known = np.isfinite(result.history["objective"])
    assert_allclose(attained.get_ydata()[known], result.history["objective"][known])
    assert_allclose(proved.get_ydata()[-1], result.lower_bound)
    assert_allclose(optimum.get_ydata(), 2.25)
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_title() == "triangle"


def test_what_is_not_known_yet_is_not_drawn():
    display = OptimizationGapDisplay([1, 10, 100], [np.inf, 5.0, 4.0], [-np.inf, -np.inf, 3.0]).plot()
    assert np.isnan(display.ax_.lines[0].get_ydata()[0])
    assert np.isnan(display.ax_.lines[1].get_ydata()[:2]).all()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: OptimizationGapDisplay([1], [1.0, 2.0], [0.0]), "must be equally long"),
        (lambda: OptimizationGapDisplay([1], [1.0], [2.0]), "lower_bound must not exceed objective"),
        (lambda: OptimizationGapDisplay.from_result(object()), "result must have a history"),
    ],
)
def test_mistakes_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
