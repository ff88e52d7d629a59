"""Pictures of decoders: what is drawn is what was given or found."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pluri.networks.schedules import ExponentialDecay, InverseSigmoidDecay
from pluri.plotting import (
    AttentionDisplay,
    BeamTreeDisplay,
    PositionErrorDisplay,
    ScheduleDisplay,
    TrainingErrorDisplay,
)

FITTED = SimpleNamespace(
    loss_history_=np.array([[3.0, 2.0, 1.0], [3.0, 2.0, np.nan]]),
    teacher_forced_history_=np.array([[0.3, 0.2, 0.1], [0.4, 0.3, np.nan]]),
    free_running_history_=np.array([[0.5, 0.3, 0.4], [0.6, 0.5, np.nan]]),
    epsilon_history_=np.array([[1.0, 0.5, 0.2], [1.0, 0.5, np.nan]]),
    best_epoch_=np.array([2, 2]),
)


def test_schedules_are_drawn_as_they_are():
    schedules = {"falls": ExponentialDecay(0.9), "bends": InverseSigmoidDecay(10.0)}
    display = ScheduleDisplay(schedules, n_steps=50).plot(title="two")
    for name, schedule in schedules.items():
        assert_allclose(display.lines_[name].get_ydata(), schedule(np.arange(50)))
    assert display.ax_.get_title() == "two"


def test_training_shows_both_errors_of_a_member_and_the_epoch_that_is_kept():
    display = TrainingErrorDisplay.from_estimator(FITTED)
    assert_array_equal(display.lines_["free-running"].get_ydata(), [0.5, 0.3, 0.4])
    assert_array_equal(display.lines_["teacher-forced"].get_xdata(), [1, 2, 3])
    assert display.best_epoch == 2
    assert_array_equal(
        TrainingErrorDisplay.from_estimator(FITTED, member=1).lines_["free-running"].get_ydata(), [0.6, 0.5]
    )


def test_errors_by_position_are_those_of_the_model():
    errors = {"teacher-forced": np.array([0.1, 0.1]), "free-running": np.array([0.1, 0.4])}
    model = SimpleNamespace(errors_by_position=lambda X, y: errors)
    display = PositionErrorDisplay.from_estimator(model, None, None)
    for name, values in errors.items():
        assert_array_equal(display.lines_[name].get_ydata(), values)


def test_attention_is_a_matrix_with_names():
    weights = np.array([[0.7, 0.3], [0.1, 0.9], [0.5, 0.5]])
    model = SimpleNamespace(attention_weights=lambda X, y: [weights], written_tokens=lambda y: y)
    display = AttentionDisplay.from_estimator(model, ["big", "cat"], ["(NP", ")NP"])
    assert_array_equal(display.image_.get_array(), weights)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["(NP", ")NP", "end"]
    assert display.inputs == ["big", "cat"]


def test_the_best_path_of_a_beam_is_followed_back():
    parents = [[0, 0, 0], [1, 0, 2], [2, 0, 1]]
    log_probs = [[-1.0, -2.0, -3.0], [-3.0, -2.5, -3.5], [-4.0, -3.9, -np.inf]]
    model = SimpleNamespace(beam_tree=lambda x, beam_size: (parents, [["a", "b", "c"]] * 3, log_probs))
    display = BeamTreeDisplay.from_estimator(model, None)
    assert display.best_ == [1, 0, 1]
    assert len(display.ax_.texts) == 8  # one candidate does not exist


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ScheduleDisplay({}), "at least one schedule"),
        (lambda: ScheduleDisplay({"flat": 0.5}), "functions of the minibatch"),
        (lambda: TrainingErrorDisplay([0.1], [0.1, 0.2], [1.0]), "equally long"),
        (lambda: TrainingErrorDisplay.from_estimator(object()), "fitted decoder"),
        (lambda: TrainingErrorDisplay.from_estimator(FITTED, member=2), "member must be from 0 to 1"),
        (lambda: PositionErrorDisplay({}), "at least one row"),
        (lambda: PositionErrorDisplay({"a": [[0.1]]}), "rows of error rates"),
        (lambda: AttentionDisplay([0.5, 0.5]), "weights must be a matrix"),
        (lambda: AttentionDisplay([[1.0]], outputs=["a", "b"]), "must name the 1 rows"),
        (lambda: BeamTreeDisplay([[0, 1]], [["a"]], [[0.0, 0.0]]), "must have one shape"),
        (lambda: BeamTreeDisplay([[0, 2]], [["a", "b"]], [[0.0, 0.0]]), "places from 0 to 1"),
    ],
)
def test_mistakes_get_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
