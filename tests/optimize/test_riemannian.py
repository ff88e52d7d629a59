"""Descent along geodesics on user objectives."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der
from sklearn.exceptions import ConvergenceWarning

from pluri import on_interrupt
from pluri.optimize.manifolds import SPD, Euclidean, Product
from pluri.optimize.riemannian import riemannian_cg, riemannian_lbfgs, strong_wolfe
from pluri.optimize.riemannian.descent import LineSearch, Tolerances, descend
from pluri.optimize.riemannian.lbfgs import QuasiNewton
from pluri.optimize.riemannian.problem import ManifoldProblem

OPTIMIZERS = [riemannian_lbfgs, riemannian_cg]


def karcher(matrices, manifold):
    def value_and_gradient(S):
        inverse = np.linalg.inv(S)
        logs = [manifold.log(S, matrix) for matrix in matrices]
        value = sum(manifold.distance(S, matrix) ** 2 for matrix in matrices) / 2
        return value, -sum(inverse @ log @ inverse for log in logs)

    return value_and_gradient


def tyler(X):
    n, d = X.shape

    def value_and_gradient(S):
        inverse = np.linalg.inv(S)
        forms = np.einsum("ni,ij,nj->n", X, inverse, X)
        pulled = np.einsum("n,ni,nj->ij", d / forms, X, X) / n
        value = 0.5 * (d * np.log(forms).mean() + np.linalg.slogdet(S)[1])
        return value, 0.5 * (inverse - inverse @ pulled @ inverse)

    return value_and_gradient


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_karcher_mean_has_logs_that_cancel(optimizer):
    manifold = SPD(4)
    rng = np.random.default_rng(0)
    matrices = [manifold.random_point(rng) for _ in range(6)]
    result = optimizer(karcher(matrices, manifold), manifold, np.eye(4), tol=0.0, gradient_tol=1e-6)
    assert result.converged
    assert np.abs(sum(manifold.log(result.point, matrix) for matrix in matrices)).max() < 1e-5
    # Another way: the fixed-point iteration that steps along the mean log.
    point = np.eye(4)
    for _ in range(200):
        point = manifold.exp(point, sum(manifold.log(point, matrix) for matrix in matrices) / 6)
    np.testing.assert_allclose(result.point, point, atol=1e-6)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_tyler_estimator_equals_its_fixed_point(optimizer):
    rng = np.random.default_rng(1)
    X = rng.standard_t(1.0, size=(300, 3)) @ np.array([[2.0, 0, 0], [0.5, 1, 0], [0, 0.3, 0.5]]).T
    result = optimizer(tyler(X), SPD(3), np.eye(3), tol=0.0, gradient_tol=1e-7)
    shape = np.eye(3)
    for _ in range(500):
        forms = np.einsum("ni,ij,nj->n", X, np.linalg.inv(shape), X)
        shape = 3 * np.einsum("n,ni,nj->ij", 1 / forms, X, X) / len(X)
        shape /= np.linalg.det(shape) ** (1 / 3)
    np.testing.assert_allclose(result.point / np.linalg.det(result.point) ** (1 / 3), shape, atol=1e-5)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_flat_problem_agrees_with_scipy(optimizer):
    start = np.array([-1.2, 1.0, 0.5, 2.0])
    result = optimizer(lambda x: (rosen(x), rosen_der(x)), Euclidean(4), start, tol=0.0, max_iter=2000)
    reference = minimize(rosen, start, jac=rosen_der, method="BFGS")
    np.testing.assert_allclose(result.point, reference.x, atol=1e-4)
    assert result.reason == "gradient"


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_normal_law_on_a_product_gives_sample_moments(optimizer):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 3)) @ rng.standard_normal((3, 3)) + [1.0, -2.0, 0.5]

    def value_and_gradient(point):
        mean, covariance = point
        inverse = np.linalg.inv(covariance)
        centred = X - mean
        scatter = centred.T @ centred / len(X)
        value = 0.5 * (np.linalg.slogdet(covariance)[1] + np.trace(inverse @ scatter))
        return value, (-inverse @ centred.mean(axis=0), 0.5 * (inverse - inverse @ scatter @ inverse))

    result = optimizer(value_and_gradient, Product(Euclidean(3), SPD(3)), (np.zeros(3), np.eye(3)), tol=0.0)
    np.testing.assert_allclose(result.point[0], X.mean(axis=0), atol=1e-5)
    np.testing.assert_allclose(result.point[1], np.cov(X.T, bias=True), atol=1e-4)


def test_moving_frames_agree_with_explicit_transport_for_twenty_steps():
    """L-BFGS written with tangent matrices, each transported in every step, takes the same path."""
    manifold = SPD(8)
    rng = np.random.default_rng(4)
    X = rng.standard_t(1.0, size=(20, 8)) @ rng.standard_normal((8, 8))
    function = tyler(X)
    path = []
    problem = ManifoldProblem(function, manifold, np.eye(8))
    descend(
        problem,
        QuasiNewton(6),
        Tolerances(0.0, 0.0, 0.0),
        LineSearch(),
        max_iter=20,
        on_iteration=lambda state: path.append((state.value, problem.point)) or None,
    )

    def at(S):
        value, partials = function(S)
        return value, manifold.gradient(S, partials)

    S = np.eye(8)
    value, gradient = at(S)
    pairs, previous = [], None
    for step_value, step_point in path:
        if pairs:
            running, weights = -gradient, []
            for move, change in reversed(pairs):
                weight = manifold.inner(S, move, running) / manifold.inner(S, move, change)
                weights.append(weight)
                running = running - weight * change
            move, change = pairs[-1]
            running = running * (manifold.inner(S, move, change) / manifold.inner(S, change, change))
            for (move, change), weight in zip(pairs, reversed(weights), strict=True):
                running = (
                    running + (weight - manifold.inner(S, change, running) / manifold.inner(S, move, change)) * move
                )
            direction = running
        else:
            direction = -gradient / manifold.norm(S, gradient)
        slope = manifold.inner(S, gradient, direction)

        def phi(a, S=S, direction=direction):
            target = manifold.exp(S, a * direction)
            trial, slopes = at(target)
            return trial, manifold.inner(target, slopes, manifold.transport(S, target, direction))

        first = 1.0 if previous is None else min(1.0, 2.2 * (value - previous) / slope)
        step = strong_wolfe(phi, value, slope, first=first).step
        target = manifold.exp(S, step * direction)
        previous = value
        value, new_gradient = at(target)
        move = manifold.transport(S, target, step * direction)
        change = new_gradient - manifold.transport(S, target, gradient)
        pairs = [tuple(manifold.transport(S, target, vector) for vector in pair) for pair in pairs]
        pairs = [*pairs, (move, change)][-6:]
        S, gradient = target, new_gradient
        assert value == pytest.approx(step_value, abs=1e-10)
        np.testing.assert_allclose(S, step_point, atol=1e-8)
    assert len(path) == 20


def test_steps_satisfy_wolfe_conditions_and_pairs_have_positive_curvature():
    manifold = SPD(4)
    rng = np.random.default_rng(5)
    matrices = [manifold.random_point(rng) for _ in range(5)]
    problem = ManifoldProblem(karcher(matrices, manifold), manifold, 50 * np.eye(4))
    rule = QuasiNewton(20)
    seen = []

    def look(state):
        assert all(curvature > 0 for _, _, curvature in rule.pairs)
        seen.append((state.value, float(state.slopes @ rule.pairs[-1][0])))

    state = descend(problem, rule, Tolerances(0.0), LineSearch(), max_iter=50, on_iteration=look)
    history = state.journal.arrays()
    values, steps, slopes = history["objective"], history["step"], history["slope"]
    assert (slopes[1:] < 0).all()
    assert (values[1:] <= values[:-1] + 1e-4 * steps[1:] * slopes[1:] + 1e-12).all()
    strong = history["strong"][1:] > 0
    assert strong.all()
    after = np.array([along for _, along in seen]) / steps[1:]
    assert (np.abs(after) <= 0.9 * np.abs(slopes[1:]) + 1e-12).all()
    assert (np.diff(history["evaluations"]) >= 1).all()


@pytest.mark.parametrize("first", [1e-6, 0.1, 1.0, 50.0])
@pytest.mark.parametrize("c2", [0.1, 0.9])
def test_line_search_meets_both_conditions_on_crooked_functions(first, c2):
    functions = [
        (lambda a: (-a / (a * a + 2), (a * a - 2) / (a * a + 2) ** 2)),
        (lambda a: (1e6 * (b := a + 0.004) ** 4 * (b - 2), 1e6 * (5 * b**4 - 8 * b**3))),
        (lambda a: (np.cosh(a - 2), np.sinh(a - 2))),
    ]
    for phi in functions:
        value, slope = phi(0.0)
        found = strong_wolfe(phi, value, slope, first=first, c2=c2)
        assert found.strong
        assert found.value <= value + 1e-4 * found.step * slope
        assert abs(found.slope) <= c2 * abs(slope)
        assert (found.value, found.slope) == phi(found.step)


def test_line_search_backs_off_from_where_there_is_no_value():
    def phi(a):
        return ((a - 0.3) ** 2, 2 * (a - 0.3)) if a < 0.5 else (np.nan, np.nan)

    found = strong_wolfe(phi, 0.09, -0.6, first=100.0)
    assert found.strong
    assert found.step < 0.5


def test_line_search_stops_at_the_longest_step_and_fails_uphill():
    found = strong_wolfe(lambda a: (-a, -1.0), 0.0, -1.0, longest=3.0)
    assert (found.step, found.strong) == (3.0, False)
    assert strong_wolfe(lambda a: (a, 1.0), 0.0, -1.0).step == 0.0
    with pytest.raises(ValueError, match="slope"):
        strong_wolfe(lambda a: (a, 1.0), 0.0, 1.0)
    with pytest.raises(ValueError, match="c1"):
        strong_wolfe(lambda a: (a, 1.0), 0.0, -1.0, c1=0.5, c2=0.1)


def test_path_does_not_depend_on_the_coordinates_of_the_data():
    rng = np.random.default_rng(6)
    X = rng.standard_t(2.0, size=(60, 3))
    A = rng.standard_normal((3, 3))
    plain = riemannian_lbfgs(tyler(X), SPD(3), np.eye(3), tol=0.0, max_iter=200)
    mapped = riemannian_lbfgs(tyler(X @ A.T), SPD(3), A @ A.T, tol=0.0, max_iter=200)
    np.testing.assert_allclose(mapped.history["step"][:10], plain.history["step"][:10], rtol=1e-6)
    np.testing.assert_allclose(mapped.point, A @ plain.point @ A.T, rtol=1e-5, atol=1e-6)


def test_ctrl_c_keeps_the_point_reached():
    calls = []

    def interrupted(x):
        calls.append(1)
        if len(calls) == 12:
            raise KeyboardInterrupt
        return rosen(x), rosen_der(x)

    with on_interrupt("keep"), pytest.warns(UserWarning, match="interrupted"):
        result = riemannian_lbfgs(interrupted, Euclidean(2), [-1.2, 1.0])
    assert result.interrupted
    assert result.value == rosen(result.point) < rosen(np.array([-1.2, 1.0]))


def test_end_without_convergence_is_said():
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        result = riemannian_cg(lambda x: (rosen(x), rosen_der(x)), Euclidean(2), [-1.2, 1.0], max_iter=3)
    assert (result.n_iter, result.converged, len(result.history["objective"])) == (3, False, 4)
    with pytest.warns(ConvergenceWarning, match="no step lowers"):
        riemannian_lbfgs(lambda x: (float(x @ x), -2 * x), Euclidean(2), [1.0, 1.0])
    stopped = riemannian_lbfgs(
        lambda x: (rosen(x), rosen_der(x)), Euclidean(2), [-1.2, 1.0], on_iteration=lambda state: state.n_iter == 2
    )
    assert (stopped.n_iter, stopped.reason) == (2, "stopped")


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"memory": 0}, "memory"), ({"max_iter": 1.5}, "max_iter"), ({"tol": np.nan}, "tol")],
)
def test_bad_settings_are_named(settings, words):
    with pytest.raises(ValueError, match=words):
        riemannian_lbfgs(lambda x: (float(x @ x), 2 * x), Euclidean(2), [1.0, 1.0], **settings)


def test_bad_start_and_rule_are_named():
    with pytest.raises(ValueError, match="finite at the start"):
        riemannian_lbfgs(lambda x: (np.nan, x), Euclidean(2), [1.0, 1.0])
    with pytest.raises(ValueError, match="positive definite"):
        riemannian_lbfgs(lambda S: (0.0, S), SPD(2), -np.eye(2))
    with pytest.raises(ValueError, match="rule"):
        riemannian_cg(lambda x: (float(x @ x), 2 * x), Euclidean(2), [1.0, 1.0], rule="other")


def test_minimum_at_the_start_needs_no_step():
    result = riemannian_lbfgs(lambda x: (float(x @ x), 2 * x), Euclidean(2), [0.0, 0.0])
    assert (result.n_iter, result.reason, result.n_evaluations) == (0, "gradient", 1)
