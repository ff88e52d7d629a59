"""Learning curves of strategies, and points in the order in which they were asked for."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification

from pluri.decisions import ActiveLearner, compare_strategies
from pluri.plotting import LearningCurvesDisplay, QueriedPointsDisplay

X, Y = make_classification(80, 2, n_informative=2, n_redundant=0, random_state=0)


def test_curves_are_means_and_differences_those_of_the_comparison():
    found = compare_strategies(None, X, Y, ["entropy"], n_queries=4, n_repeats=3, random_state=0)
    display = LearningCurvesDisplay.from_comparison(found, title="two columns")
    for line in display.ax_.get_lines():
        assert_allclose(line.get_ydata(), found.scores[line.get_label()].mean(axis=0))
        assert_allclose(line.get_xdata(), [10, 11, 12, 13, 14])
    assert_allclose(display.difference_ax_.get_lines()[0].get_ydata(), found.difference("entropy")[0])
    band = display.difference_ax_.collections[0].get_paths()[0].vertices
    assert_allclose(band[:, 1].max(), found.difference("entropy")[2].max())
    alone = LearningCurvesDisplay(found.n_labels, found.scores).plot()
    assert alone.difference_ax_ is None


def test_points_are_numbered_in_the_order_in_which_they_were_asked_for():
    learner = ActiveLearner(n_queries=6, random_state=0).fit(X[:10], Y[:10]).run(X[10:], Y[10:])
    display = QueriedPointsDisplay.from_estimator(learner, X[10:], title="asked")
    for number, (text, row) in enumerate(zip(display.texts_, learner.queried_), start=1):
        assert text.get_text() == str(number)
        assert_allclose(text.get_position(), X[10:][row])
    assert len(display.start) == 10


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LearningCurvesDisplay([1, 2], {"a": [1.0, 2.0]}), r"scores must have shape \(n_repeats, 2\)"),
        (lambda: LearningCurvesDisplay([1, 2], {}), "at least one strategy"),
        (lambda: QueriedPointsDisplay(np.zeros((3, 3)), [0], None), "X_pool must have two columns"),
        (lambda: QueriedPointsDisplay(np.zeros((3, 2)), [5], None), "queried must be rows of X_pool"),
        (lambda: QueriedPointsDisplay.from_estimator(ActiveLearner(), X), "must have been run on a pool"),
    ],
)
def test_mistakes_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
