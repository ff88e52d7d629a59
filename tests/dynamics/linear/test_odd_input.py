"""What linear and switching systems say of columns without values, of inputs that they lack, of another size."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from pluri.dynamics import LinearDynamicalSystem, SwitchingDynamicalSystem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def X():
    time = np.arange(30)[:, None]
    return np.sin(time / 4 + np.arange(3)) + 0.1 * np.random.default_rng(0).normal(size=(30, 3))


SYSTEMS = [LinearDynamicalSystem(2, max_iter=2), SwitchingDynamicalSystem(2, 2, max_iter=2, random_state=0)]


@pytest.mark.parametrize("model", SYSTEMS, ids=lambda model: type(model).__name__)
def test_a_column_without_any_value_is_said_to_be_unknown(model, X):
    model, X[:, 1] = clone(model), np.nan
    with pytest.warns(UserWarning, match=r"columns \[1\] of X hold no value"):
        model.fit(X)
    assert np.isfinite(model.score(X))


@pytest.mark.parametrize("model", SYSTEMS, ids=lambda model: type(model).__name__)
def test_a_warm_start_with_another_number_of_columns_is_refused(model, X):
    model = clone(model).set_params(warm_start=True).fit(X)
    with pytest.raises(ValueError, match=r"warm_start must be False if the number of columns .* \(3\), got 2"):
        model.fit(X[:, :2])
    assert np.isfinite(model.score(X))


def test_inputs_that_the_model_does_not_have_are_refused_in_a_sentence(X):
    model = LinearDynamicalSystem(2, max_iter=2, warm_start=True).fit(X)
    with pytest.raises(ValueError, match="inputs must be None: the model was fitted without inputs"):
        model.score(X, inputs=np.ones((30, 1)))
    with pytest.raises(ValueError, match="future_inputs must be None: the model was fitted without inputs"):
        model.forecast(X, 2, future_inputs=np.ones((2, 1)))
    with pytest.raises(ValueError, match="number of inputs"):
        model.fit(X, inputs=np.ones((30, 1)))


def test_future_inputs_may_be_lists(X):
    u = np.arange(30.0)[:, None] % 3
    model = LinearDynamicalSystem(2, max_iter=2).fit(X, inputs=u)
    both, inputs = [X[:20], X[20:]], [u[:20], u[20:]]
    future = np.array([[[1.0], [2.0]], [[0.0], [1.0]]])
    expected = model.forecast(both, 2, inputs=inputs, future_inputs=future).mean
    for same in (future.tolist(), list(future), tuple(future)):
        assert_allclose(model.forecast(both, 2, inputs=inputs, future_inputs=same).mean, expected)
    alike = model.forecast(both, 2, inputs=inputs, future_inputs=future[0].tolist()).mean
    assert_allclose(alike[0], expected[0])
