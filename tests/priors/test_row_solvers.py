"""The solvers of the penalised M-step, one against another and against the public definitions."""

import numpy as np
import pytest

from pluri.priors import Dirichlet, Diversity, log_determinant, relative_gain, rows_objective
from pluri.priors.row_solvers import SOLVERS, RowProblem


def make_problem(counts, strength, rho=0.5, anchor=None, weight=0.0):
    return RowProblem(
        evidence=counts,
        strength=strength,
        rho=rho,
        anchor=np.zeros_like(counts) if anchor is None else anchor,
        anchor_weight=weight,
        floor=1e-12,
        support=np.ones(counts.shape, dtype=bool),
    )


@pytest.mark.parametrize("shape", [(4, 4), (3, 8), (1, 5)])
@pytest.mark.parametrize("rho", [0.5, 0.7, 1.0])
def test_objective_of_the_solvers_equals_the_public_one(rho, shape):
    rng = np.random.default_rng(0)
    counts, rows, anchor = (
        rng.gamma(1, 5, shape),
        rng.dirichlet(np.ones(shape[1]), shape[0]),
        np.full(shape, 1 / shape[1]),
    )
    value, slope = make_problem(counts, 3.0, rho, anchor, 11.0).evaluate(rows)
    public = rows_objective(counts, rows, diversity=Diversity(3.0, rho=rho), anchor=anchor, anchor_weight=11.0)
    assert value == pytest.approx(public, rel=1e-12)
    gradient = counts / rows + Diversity(3.0, rho=rho).gradient(rows) - 22.0 * (rows - anchor)
    np.testing.assert_allclose(slope, rows * gradient, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n_columns", [5, 6])
def test_dual_rows_survive_nearly_dependent_rows(n_columns):
    from pluri.priors.dual_rows import dual_rows

    rng = np.random.default_rng(1)
    rows = rng.dirichlet(np.ones(n_columns), size=5)
    rows[4] = (1 - 1e-6) * rows[0] + 1e-6 * rows[4]
    units = np.sqrt(rows)
    log_det, dual = dual_rows(units)
    assert log_det == pytest.approx(log_determinant(rows), abs=1e-6)
    np.testing.assert_allclose(units * dual, relative_gain(rows), rtol=1e-6, atol=1e-3)
    np.testing.assert_allclose(dual @ units.T, np.eye(5), atol=1e-8)
    assert dual.flags.c_contiguous
    rows[4] = rows[1]
    assert dual_rows(np.sqrt(rows))[0] == -np.inf
    assert dual_rows(np.eye(3)[[0, 1, 1]])[0] == -np.inf
    assert dual_rows(np.eye(4)[[0, 1, 1]])[0] == -np.inf


@pytest.mark.parametrize("strength", [0.0, 2.0])
def test_logit_gradient_equals_central_differences(strength):
    from pluri.priors.logit_ascent import LogitObjective

    rng = np.random.default_rng(2)
    shape, floor = (3, 5), 1e-3  # a large floor, so that its factor in the chain rule matters
    counts, anchor = rng.gamma(1, 5, shape), rng.dirichlet(np.ones(5), 3)
    support = rng.random(shape) < 0.8
    counts, logits = np.where(support, counts, 0.0), np.where(support, rng.normal(size=shape), -np.inf).ravel()
    objective = LogitObjective(RowProblem(counts, strength, 0.7, anchor, 4.0, floor, support))
    numeric = np.zeros(15)
    for index in np.flatnonzero(support):
        step = np.zeros(15)
        step[index] = 1e-6
        numeric[index] = (objective.value(logits + step) - objective.value(logits - step)) / 2e-6
    gradient, curvature = np.empty(15), np.empty(15)
    value = objective.value(logits)
    objective.gradient(gradient, curvature)
    assert value == pytest.approx(objective.problem.evaluate(objective.rows)[0], rel=1e-12)
    np.testing.assert_allclose(gradient, numeric, atol=1e-6)
    np.testing.assert_allclose(objective.rows.sum(axis=1), 1)
    assert not objective.rows[~support].any()
    assert (curvature > 0).all()


@pytest.mark.parametrize("n_pairs", [0, 1, 4, 10, 13])
def test_direction_equals_the_dense_bfgs_formula(n_pairs):
    """H <- (I - s y'/s'y) H (I - y s'/s'y) + s s'/s'y over the last ten pairs, from a scaled diagonal."""
    from pluri.priors.logit_ascent import MEMORY, CurvaturePairs

    rng = np.random.default_rng(6)
    root = rng.normal(size=(20, 20))
    hessian = root @ root.T + np.eye(20)
    gradient, curvature = rng.normal(size=20), np.diag(hessian).copy()
    pairs, steps = CurvaturePairs(20), rng.normal(size=(n_pairs, 20))
    estimate = np.diag(1 / curvature)
    if n_pairs:
        last = hessian @ steps[-1]
        estimate *= np.clip(steps[-1] @ last / np.sum(last**2 / curvature), 0.01, 10.0)
    for step in steps[-MEMORY:]:
        change = hessian @ step
        shift = np.eye(20) - np.outer(step, change) / (step @ change)
        estimate = shift @ estimate @ shift.T + np.outer(step, step) / (step @ change)
    for step in steps:
        pairs.add(step, hessian @ step)
        pairs.add(step, -hessian @ step)  # convex along the step: not kept
    np.testing.assert_allclose(pairs.direction(gradient, curvature), estimate @ gradient, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("k", "strength", "scale"), [(5, 1.0, 10.0), (5, 10.0, 10.0), (5, 100.0, 10.0), (10, 100.0, 100.0)]
)
def test_lbfgs_beats_projected_gradient(k, strength, scale):
    """Ragged counts, start Dirichlet(3), many iterations: the projected gradient stalls at the boundary."""
    wins = []
    for seed in range(9):
        rng = np.random.default_rng(seed)
        counts, start = rng.gamma(0.3, scale, size=(k, k)), rng.dirichlet(np.full(k, 3.0), size=k)
        problem = make_problem(counts, strength)
        lbfgs, projected = (
            problem.evaluate(SOLVERS[name](problem, start, 300, 1e-12))[0] for name in ("lbfgs", "projected_gradient")
        )
        wins.append(lbfgs - projected)
    assert np.median(wins) > 0
    assert np.mean(np.array(wins) > -1e-6) >= 0.75  # they may end in different local maxima


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_solvers_meet_at_the_same_interior_maximum(rho):
    rng = np.random.default_rng(3)
    counts = rng.gamma(5.0, 20.0, size=(4, 4)) + 100 * np.eye(4)
    start = counts / counts.sum(axis=1, keepdims=True)
    problem = make_problem(counts, 3.0, rho)
    answers = [solve(problem, start, 2000, 1e-15) for solve in SOLVERS.values()]
    for answer in answers[1:]:
        np.testing.assert_allclose(answer, answers[0], atol=1e-5)


def test_fixed_point_of_the_published_form_is_stationary():
    """At rho = 1/2 the target is (C + alpha R) / (C_i. + alpha)."""
    rng = np.random.default_rng(4)
    counts = rng.gamma(5.0, 20.0, size=(5, 5))
    rows = SOLVERS["fixed_point"](make_problem(counts, 4.0), counts / counts.sum(axis=1, keepdims=True), 5000, 1e-16)
    target = (counts + 4.0 * relative_gain(rows)) / (counts.sum(axis=1, keepdims=True) + 4.0)
    assert rows.min() > 1e-6
    np.testing.assert_allclose(rows, target, atol=1e-5)


@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_solvers_recover_from_zero_counts_and_entries_at_the_floor(solver):
    counts = np.array([[50.0, 0.0, 0.0], [0.0, 0.0, 0.0], [5.0, 5.0, 40.0]])
    floor = 1e-12
    start = floor + (1 - 3 * floor) * np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    prior = Diversity(1.0, solver=solver, max_iter=500)
    rows = prior.maximize(counts, start, base=Dirichlet(1.1))
    assert np.isfinite(rows).all()
    assert rows[0, 0] > 0.9
    assert rows[2, 2] > 0.6


def test_memory_of_a_wide_problem_is_handled():
    rng = np.random.default_rng(5)
    counts = rng.gamma(0.1, 10.0, size=(4, 300))
    rows = Diversity(50.0).maximize(counts, rng.dirichlet(np.ones(300), size=4))
    plain = counts / counts.sum(axis=1, keepdims=True)
    assert log_determinant(rows) > log_determinant(plain)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-9)
