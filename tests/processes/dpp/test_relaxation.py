"""The softmax relaxation: values, gradients, conditional gradients and rounding."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from pluri.processes.dpp.kernel_forms import FeatureKernel
from pluri.processes.dpp.search.relaxation import (
    _climb,
    _round_coordinates,
    relaxed_map,
    softmax_gradient,
    softmax_relaxation,
)
from pluri.processes.dpp.search.set_constraints import Budget, Cardinality, PartitionMatroid, Unconstrained

COSTS = np.array([1.0, 2.5, 1.5, 3.0, 0.7, 2.0, 1.2, 0.9])
GROUPS = np.array([0, 0, 1, 1, 1, 2, 2, 0])
CONSTRAINTS = {
    "none": Unconstrained(),
    "cardinality": Cardinality(3),
    "budget": Budget(COSTS, 4.0),
    "groups": PartitionMatroid(GROUPS, np.array([1, 2, 1])),
}


def random_kernel(n_items=8, seed=0, scale=0.6):
    features = scale * np.random.default_rng(seed).normal(size=(n_items, n_items))
    return features @ features.T


def log_det(kernel, items):
    return np.linalg.slogdet(kernel[np.ix_(items, items)])[1] if len(items) else 0.0


def test_vertices_have_the_log_determinant_of_their_set():
    kernel = random_kernel(6)
    for corner in product([0.0, 1.0], repeat=6):
        assert softmax_relaxation(kernel, corner) == pytest.approx(log_det(kernel, np.flatnonzero(corner)), abs=1e-10)


def test_value_is_the_log_of_the_expected_determinant():
    """F(x) is the logarithm of the mean of det L_Y, each item taken independently with probability x."""
    kernel = random_kernel(6, 1)
    x = np.random.default_rng(0).random(6)
    mean = sum(
        np.prod(np.where(corner, x, 1 - x)) * np.exp(log_det(kernel, np.flatnonzero(corner)))
        for corner in product([0, 1], repeat=6)
    )
    assert softmax_relaxation(kernel, x) == pytest.approx(np.log(mean))


def test_gradient_matches_finite_differences():
    kernel, rng = random_kernel(7, 2), np.random.default_rng(0)
    for _ in range(5):
        x = rng.uniform(0.05, 0.95, size=7)
        numeric = [
            (softmax_relaxation(kernel, x + h) - softmax_relaxation(kernel, x - h)) / 2e-6 for h in 1e-6 * np.eye(7)
        ]
        assert np.allclose(softmax_gradient(kernel, x), numeric, atol=1e-7)


def test_it_is_concave_along_non_negative_directions():
    kernel, rng = random_kernel(7, 3, scale=1.0), np.random.default_rng(0)
    for _ in range(20):
        low = rng.random(7)
        high = low + rng.random(7) * (1 - low)
        middle = softmax_relaxation(kernel, 0.5 * (low + high))
        assert middle >= 0.5 * (softmax_relaxation(kernel, low) + softmax_relaxation(kernel, high)) - 1e-12


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_best_vertex_is_that_of_linear_programming(name):
    constraint, rng = CONSTRAINTS[name], np.random.default_rng(1)
    rows = {
        "none": (None, None),
        "cardinality": (np.ones((1, 8)), [3.0]),
        "budget": (COSTS[None], [4.0]),
        "groups": (np.eye(3)[GROUPS].T, [1.0, 2.0, 1.0]),
    }[name]
    for _ in range(10):
        slope, upper = rng.normal(size=8), rng.random(8)
        found = constraint.best_vertex(slope, upper)
        expected = linprog(-slope, A_ub=rows[0], b_ub=rows[1], bounds=np.column_stack([np.zeros(8), upper]))
        assert constraint.allows(found)
        assert ((found >= 0) & (found <= upper)).all()
        assert slope @ found == pytest.approx(-expected.fun, abs=1e-9)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_conditional_gradients_climb_and_stay_allowed(name):
    for seed in range(4):
        kernel = random_kernel(seed=seed, scale=0.9)
        found = relaxed_map(kernel, CONSTRAINTS[name], improve=False)
        assert ((found.x >= 0) & (found.x <= 1)).all()
        assert CONSTRAINTS[name].allows(found.x)
        assert found.value == pytest.approx(softmax_relaxation(kernel, found.x))
        for history in found.history:
            assert (np.diff(history) >= 0).all()
        assert CONSTRAINTS[name].allows(np.isin(np.arange(8), found.items))
        assert found.log_det == pytest.approx(log_det(kernel, found.items), abs=1e-9)


def test_coordinates_rounded_to_their_better_end_never_lose():
    rng = np.random.default_rng(2)
    for seed in range(20):
        kernel, x = random_kernel(seed=seed), rng.random(8)
        assert log_det(kernel, _round_coordinates(kernel, x)) >= softmax_relaxation(kernel, x) - 1e-9
        assert relaxed_map(kernel, improve=False).log_det >= relaxed_map(kernel).value - 1e-9


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_the_set_is_close_to_the_best_allowed_one(name):
    """At least a quarter, as proved for the fractional set, and nearly always the best of all."""
    n_best = 0
    for seed in range(15):
        kernel = random_kernel(seed=seed, scale=0.9)
        sets = [np.array(corner, dtype=bool) for corner in product([0, 1], repeat=8)]
        best = max(log_det(kernel, np.flatnonzero(mask)) for mask in sets if CONSTRAINTS[name].allows(mask))
        found = relaxed_map(kernel, CONSTRAINTS[name])
        assert found.log_det >= 0.25 * best - 1e-9
        assert found.log_det >= relaxed_map(kernel, CONSTRAINTS[name], improve=False).log_det - 1e-9
        n_best += found.log_det > best - 1e-9
    assert n_best >= 11


def test_the_second_run_uses_what_the_first_has_left():
    kernel = random_kernel(seed=5, scale=0.9)
    first, _ = _climb(kernel, CONSTRAINTS["cardinality"], np.ones(8), 200, 1e-6)
    second, history = _climb(kernel, CONSTRAINTS["cardinality"], 1.0 - first, 200, 1e-6)
    assert (second <= 1.0 - first + 1e-12).all()
    assert (np.diff(history) >= 0).all()


def test_identity_and_copies():
    assert relaxed_map(np.eye(4), Cardinality(2)).log_det == pytest.approx(0.0, abs=1e-9)
    features = 2.0 * np.vstack([np.eye(3), np.eye(3)])
    found = relaxed_map(FeatureKernel(features), Cardinality(3))
    assert sorted(found.items % 3) == [0, 1, 2]
    assert found.log_det == pytest.approx(np.log(64.0))
    assert relaxed_map(0.5 * np.eye(3)).items.tolist() == []
    assert relaxed_map(2.0 * np.eye(3), Cardinality(0)).items.tolist() == []


def test_an_early_end_is_said():
    with pytest.warns(ConvergenceWarning, match="still rising after 1 steps"):
        relaxed_map(random_kernel(seed=1, scale=1.2), Budget(COSTS, 4.0), max_iter=1)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: softmax_relaxation(np.eye(2), [0.5]), "x must be 2 numbers"),
        (lambda: softmax_relaxation(np.eye(2), [0.5, 1.5]), "x must be 2 numbers"),
        (lambda: softmax_gradient(np.eye(2), [0.5, np.nan]), "x must be 2 numbers"),
        (lambda: softmax_gradient(np.ones((2, 3)), [0.5, 0.5]), "kernel must be"),
        (lambda: relaxed_map(np.full((2, 2), np.nan)), "finite"),
        (lambda: relaxed_map(np.eye(2), Budget([1.0], 1.0)), "costs must be 2"),
        (lambda: relaxed_map(np.eye(2), max_iter=0), "max_iter must be"),
        (lambda: relaxed_map(np.eye(2), tol=-1.0), "tol must be"),
    ],
)
def test_bad_arguments_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()
