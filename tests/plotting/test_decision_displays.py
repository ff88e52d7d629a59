"""Pictures of sensors, of the value of a choice, and of the members of an ensemble."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.decisions import BudgetSelector, GreedySelector, SensorPlacement, diversity_of_predictions
from pluri.plotting import EnsembleDiversityDisplay, SelectionValueDisplay, SensorMapDisplay

PLACES = np.stack(np.meshgrid(np.arange(6.0), np.arange(5.0)), axis=-1).reshape(-1, 2)


def test_sensors_are_numbered_where_they_are():
    model = SensorPlacement(4).fit(PLACES)
    display = SensorMapDisplay.from_estimator(model, PLACES, title="field")
    assert [text.get_text() for text in display.numbers_] == ["1", "2", "3", "4"]
    assert_array_equal([text.get_position() for text in display.numbers_], PLACES[model.selected_])
    assert_allclose(display.shades_.get_array(), model.posterior_variance_)
    assert display.ax_.get_title() == "field"


def test_a_line_of_places_shows_the_variance_above():
    line = np.arange(8.0)[:, None]
    model = SensorPlacement(2).fit(line)
    display = SensorMapDisplay.from_estimator(model, line)
    assert_allclose(display.shades_.get_offsets()[:, 1], model.posterior_variance_)


def test_values_lie_between_their_bounds():
    model = GreedySelector(6, kernel_params={"length_scale": 1.0}).fit(PLACES)
    display = SelectionValueDisplay.from_estimator(model)
    proved, before, chosen = (line.get_ydata() for line in display.ax_.lines)
    assert_allclose(chosen, model.values_)
    assert_allclose(before, model.apriori_bounds_)
    assert_allclose(proved, model.upper_bounds_[1:])
    assert (proved >= chosen - 1e-9).all()
    bought = SelectionValueDisplay.from_estimator(BudgetSelector(3.0).fit(PLACES))
    assert len(bought.ax_.lines) == 2
    assert bought.gap_ is None


def test_members_are_compared():
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=50)
    report = diversity_of_predictions(np.where(rng.random((4, 50)) < 0.8, truth, 1 - truth), truth)
    display = EnsembleDiversityDisplay(report).plot(title="four")
    shown = display.axes_[0].images[0].get_array()
    assert_allclose(shown[0, 1], report.disagreement[0, 1])
    assert_allclose([bar.get_height() for bar in display.axes_[1].patches], report.member_errors)
    EnsembleDiversityDisplay(report).plot(statistic="q_statistic")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SensorMapDisplay(np.ones((3, 3)), [0], np.ones(3)), "places must have one or two columns"),
        (lambda: SensorMapDisplay(PLACES, [99], np.ones(30)), "selected must be places from 0 to 29"),
        (lambda: SensorMapDisplay(PLACES, [0], np.ones(3)), "posterior_variance must be a number for each of 30"),
        (lambda: SensorMapDisplay.from_estimator(GreedySelector(2).fit(PLACES), PLACES), "fitted SensorPlacement"),
        (lambda: SelectionValueDisplay([], 1.0), "values must be a number for each"),
        (lambda: SelectionValueDisplay([1.0, 2.0], [0.0, 1.0]), "upper_bounds must be one number"),
        (lambda: SelectionValueDisplay([1.0], 1.0, [1.0, 2.0]), "apriori_bounds must be as many"),
        (lambda: SelectionValueDisplay.from_estimator(object()), "model must be fitted"),
        (lambda: EnsembleDiversityDisplay(object()), "report must be a DiversityReport"),
        (
            lambda: EnsembleDiversityDisplay(diversity_of_predictions([[0.0, 1.0]], [0.0, 1.0], classify=False)),
            "report must be of classifiers",
        ),
    ],
)
def test_mistakes_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
