import numpy as np
import pytest

from pluri.testing import GradientError, check_gradients

RNG = np.random.default_rng(0)
CORRELATED = RNG.normal(size=(4, 4))


def quadratic(x):
    return -0.5 * float(x @ CORRELATED @ x), -0.5 * (CORRELATED + CORRELATED.T) @ x


def rosenbrock(x):
    gap = x[1] - x[0] ** 2
    return 100.0 * gap**2 + (1 - x[0]) ** 2, np.array([-400.0 * gap * x[0] - 2 * (1 - x[0]), 200.0 * gap])


def log_sum(x):
    weights = np.exp(x - x.real.max())
    return x.real.max() + np.log(weights.sum()), (weights / weights.sum()).real


FUNCTIONS = {
    "quadratic": (quadratic, RNG.normal(size=4)),
    "rosenbrock": (rosenbrock, np.array([-1.2, 1.0])),
    "log sum": (log_sum, np.array([0.0, 300.0, 299.0])),
    "matrix": (lambda X: (np.sum(np.sin(X) * X), np.cos(X) * X + np.sin(X)), RNG.normal(size=(2, 3))),
    "large values": (lambda x: (1e9 + np.sum(x**2), 2 * x), np.array([1e4, -3e4])),
    "flat": (lambda x: (7.0 + 0.0 * np.sum(x), np.zeros_like(x)), np.array([1.0, 2.0])),
    "at zero": (lambda x: (np.sum(x**3), 3 * x**2), np.zeros(2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_right_gradients_pass(name):
    function, position = FUNCTIONS[name]
    before = position.copy()
    assert check_gradients(function, position).passed
    np.testing.assert_array_equal(position, before)


@pytest.mark.parametrize("method", ["central", "complex"])
@pytest.mark.parametrize("size", [1e-4, 0.1, 10.0])
def test_one_wrong_coordinate_is_named(method, size):
    def wrong(x):
        value, gradient = log_sum(x)
        return value, gradient + size * np.array([0.0, 0.0, 1.0])

    with pytest.raises(GradientError, match=r"wrong in 1 of 3 coordinates, worst shape") as error:
        check_gradients(wrong, np.array([0.3, 0.1, -0.2]), method=method, names=["mean", "scale", "shape"])
    assert "WRONG" in str(error.value)
    assert isinstance(error.value, AssertionError)


def test_the_complex_step_has_no_rounding():
    check = check_gradients(log_sum, np.array([0.3, 0.1, -0.2]), method="complex")
    assert check.error.max() < 1e-15


def test_a_gradient_that_is_not_a_number_is_wrong():
    with pytest.raises(GradientError):
        check_gradients(lambda x: (np.sum(x), np.array([1.0, np.nan])), np.ones(2))


@pytest.mark.parametrize(
    ("function", "position", "settings", "message"),
    [
        (quadratic, np.array([]), {}, "finite and not empty"),
        (lambda x: (np.nan, x), np.ones(2), {}, "one finite number"),
        (lambda x: (1.0, np.ones(3)), np.ones(2), {}, r"shape of the position \(2,\), got \(3,\)"),
        (rosenbrock, np.ones(2), {"method": "forward"}, "method must be"),
        (rosenbrock, np.ones(2), {"names": ["a"]}, "one entry for each of 2"),
    ],
)
def test_bad_input_is_refused(function, position, settings, message):
    with pytest.raises(ValueError, match=message):
        check_gradients(function, position, **settings)
