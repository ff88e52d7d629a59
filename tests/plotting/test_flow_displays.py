"""Pictures of flows: what is drawn is what the model says."""

import numpy as np
import pytest

from pluri.datasets import make_switching_flow
from pluri.dynamics import MultiTaskDynamics
from pluri.plotting import RegimeUsageDisplay, VectorFieldDisplay

#: Chains are short here on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:the chains have not settled")


@pytest.fixture(scope="module")
def flow():
    return make_switching_flow(random_state=0)


@pytest.fixture(scope="module")
def model(flow):
    return MultiTaskDynamics(6, 6, n_warmup=20, n_draws=10, random_state=0).fit(flow.X, tasks=flow.tasks)


def test_arrows_are_the_expected_steps_and_ellipses_the_regions_of_a_draw(flow, model):
    display = VectorFieldDisplay.from_estimator(model, flow.X[:3], task=1, n_arrows=7)
    np.testing.assert_allclose(display.steps, model.vector_field(display.points, task=1))
    np.testing.assert_allclose(np.column_stack([display.arrows_.U, display.arrows_.V]), display.steps)
    own = (model.task_index_ == 1) & (model.draw_index_ == model.draw_index_.max())
    assert len(display.ellipses_) == own.sum()
    for ellipse, center, precision in zip(display.ellipses_, model.centers_[own], model.precisions_[own]):
        np.testing.assert_allclose(ellipse.center, center)
        widths = 4 * np.sqrt(np.linalg.eigvalsh(np.linalg.inv(precision)))
        np.testing.assert_allclose(sorted([ellipse.width, ellipse.height]), widths)
    assert len(display.ax_.lines) == 3
    colors = {regime: ellipse.get_facecolor() for regime, ellipse in zip(model.regimes_[own], display.ellipses_)}
    assert len(set(colors.values())) == len(colors)


def test_other_coordinates_are_held_at_the_centre(flow):
    X = [np.column_stack([path, path[:, 0] * 2]) for path in flow.X]
    model = MultiTaskDynamics(4, 4, n_warmup=5, n_draws=5, random_state=0).fit(X)
    display = VectorFieldDisplay.from_estimator(model, features=(2, 0), n_arrows=3)
    rows = np.tile(model.center_, (9, 1))
    rows[:, [2, 0]] = display.points
    np.testing.assert_allclose(display.steps, model.vector_field(rows)[:, [2, 0]])
    assert display.ax_.get_xlabel() == "coordinate 2"


def test_shares_of_tasks_and_regimes_are_those_of_the_model(model):
    display = RegimeUsageDisplay.from_estimator(model, least=0.05, title="shares")
    shown = model.regime_usage_[:, display.regimes]
    np.testing.assert_allclose(np.asarray(display.image_.get_array()), shown)
    assert (model.regime_usage_.max(axis=0) >= 0.05).sum() == len(display.regimes)
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["0", "1"]
    assert len(display.texts_) == (shown >= 0.005).sum()
    assert display.ax_.get_title() == "shares"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda model: VectorFieldDisplay.from_estimator(model), "task must be one of"),
        (lambda model: VectorFieldDisplay.from_estimator(model, task=0, features=(0, 5)), "features must be two"),
        (lambda model: VectorFieldDisplay.from_estimator(MultiTaskDynamics()), "must be fitted"),
        (lambda model: VectorFieldDisplay.from_estimator(model, task=0, n_arrows=1), "n_arrows"),
        (lambda model: VectorFieldDisplay([[0, 0]], [[0, 0, 0]], [[0, 0]], [np.eye(2)], [0]), "points and steps"),
        (lambda model: VectorFieldDisplay([[0, 0]], [[0, 0]], [[0, 0]], [np.eye(3)], [0]), "centers and covariances"),
        (lambda model: RegimeUsageDisplay.from_estimator(MultiTaskDynamics()), "must be fitted"),
        (lambda model: RegimeUsageDisplay([0.5, 0.5]), "usage must be finite"),
        (lambda model: RegimeUsageDisplay([[1.0]], ["a", "b"]), "one name for each"),
        (lambda model: RegimeUsageDisplay([[0.5, 0.5]], least=0.9), "least must be at most"),
    ],
)
def test_what_cannot_be_drawn_is_refused(model, make, message):
    with pytest.raises(ValueError, match=message):
        make(model)
