"""Projection on the simplex: known answers, optimality, and the laws that any projection obeys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq, minimize

from pluri.optimize import project_to_simplex

LAW = settings(deadline=None, derandomize=True, max_examples=200)
matrices = arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.integers(1, 8)),
    elements=st.floats(-100, 100, allow_subnormal=False),
)


@pytest.mark.parametrize(
    ("point", "answer"),
    [
        ([0.5, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]),
        ([2.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
        ([0.6, 0.6, -0.2], [0.5, 0.5, 0.0]),
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ([-7.0], [1.0]),
    ],
)
def test_known_answers(point, answer):
    np.testing.assert_allclose(project_to_simplex(point), answer, atol=1e-15)


def test_floor_keeps_every_entry_above_it_and_follows_the_scaled_formula():
    rng = np.random.default_rng(0)
    points, floor = rng.normal(size=(50, 6)), 0.05
    room = 1 - 6 * floor
    expected = floor + room * project_to_simplex((points - floor) / room)
    np.testing.assert_allclose(project_to_simplex(points, floor=floor), expected, atol=1e-14)
    assert project_to_simplex(points, floor=floor).min() >= floor


def test_projection_equals_a_quadratic_programme():
    rng = np.random.default_rng(1)
    for _ in range(20):
        n = int(rng.integers(2, 7))
        point, floor = rng.normal(size=n), rng.uniform(0, 0.9 / n, size=n)
        solution = minimize(
            lambda x, y=point: np.sum((x - y) ** 2),
            np.full(n, 1 / n),
            jac=lambda x, y=point: 2 * (x - y),
            bounds=[(low, None) for low in floor],
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones_like(x)},
            method="SLSQP",
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(project_to_simplex(point, floor=floor), solution.x, atol=1e-6)


def test_threshold_equals_root_finding():
    rng = np.random.default_rng(2)
    points = rng.standard_cauchy(size=(200, 9))
    for point, projected in zip(points, project_to_simplex(points, radius=2.5)):
        theta = brentq(lambda t, y=point: np.maximum(y - t, 0).sum() - 2.5, point.min() - 3, point.max(), xtol=1e-14)
        np.testing.assert_allclose(projected, np.maximum(point - theta, 0), atol=1e-9)


@LAW
@given(matrices)
def test_projection_is_feasible_idempotent_and_blind_to_shifts(points):
    projected = project_to_simplex(points)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(project_to_simplex(projected), projected, atol=1e-14)
    np.testing.assert_allclose(project_to_simplex(points + 17.25), projected, atol=1e-12)


@LAW
@given(matrices)
def test_no_vertex_lies_on_the_far_side_of_the_projection(points):
    """The variational inequality ``(y - x) . (v - x) <= 0`` at every vertex ``v`` characterises the projection."""
    projected = project_to_simplex(points)
    away = points - projected
    products = away - np.sum(away * projected, axis=1, keepdims=True)
    assert (products <= 1e-9 * (1 + np.abs(points).max())).all()


def test_leading_axes_are_independent_and_input_is_untouched():
    points = np.random.default_rng(3).normal(size=(2, 3, 4))
    copy = points.copy()
    projected = project_to_simplex(points)
    np.testing.assert_array_equal(points, copy)
    np.testing.assert_array_equal(projected[1, 2], project_to_simplex(points[1, 2]))


def test_huge_entries_do_not_spoil_the_sum():
    projected = project_to_simplex([[1e300, 1e300, -1e308], [1e16, 1e16 + 2, 0.0]])
    np.testing.assert_allclose(projected, [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"Y": [0.1, np.nan]}, "Y must be finite"),
        ({"Y": [0.1, np.inf]}, "Y must be finite"),
        ({"Y": 3.0}, "at least one entry"),
        ({"Y": np.empty((2, 0))}, "at least one entry"),
        ({"Y": [1.0, 2.0], "floor": 0.5}, "floor must leave room"),
        ({"Y": [1.0, 2.0], "floor": -0.1}, "floor must be non-negative"),
        ({"Y": [1.0, 2.0], "radius": 0.0}, "radius must be a positive number"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        project_to_simplex(arguments.pop("Y"), **arguments)
