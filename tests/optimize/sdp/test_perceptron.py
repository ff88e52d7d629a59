"""Oracles, the perceptron's invariants, its bound, and rescaling."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from pluri.optimize.sdp import LowRank, lmi_feasible_point, positive_definite_perceptron
from pluri.optimize.sdp import oracles as oracles_module
from pluri.optimize.sdp.matrices import matrix_family
from pluri.optimize.sdp.oracles import eigen, eigen_if_indefinite, failed_pivot, smallest_eigenpair
from pluri.optimize.sdp.perceptron import Perceptron
from pluri.optimize.sdp.rescaling import contradiction, failure_schedule, improve
from pluri.validation import as_generator

ORACLES = [eigen, failed_pivot, eigen_if_indefinite]


def symmetric(rng, m):
    A = rng.standard_normal((m, m))
    return A + A.T


def planted(rng, n, m):
    """Matrices, a unit x* inside their cone, and a lower bound of its margin, the least a_u'x* / ||a_u||."""
    matrices = [symmetric(rng, m) for _ in range(n)]
    x = rng.standard_normal(n)
    x /= np.linalg.norm(x)
    now = sum(value * one for value, one in zip(x, matrices))
    # Along x* the matrices are moved until G(x*) is the identity.
    matrices = [one + value * (np.eye(m) - now) for value, one in zip(x, matrices)]
    # For unit u: a_u'x* = 1, and ||a_u|| is at most the root of the sum of squared spectral norms.
    return matrices, x, 1.0 / math.sqrt(sum(np.linalg.norm(one, 2) ** 2 for one in matrices))


@pytest.mark.parametrize("oracle", ORACLES)
@given(seed=st.integers(0, 10_000), m=st.integers(1, 7), shift=st.floats(-3, 8))
def test_an_oracle_gives_a_unit_vector_with_a_form_of_at_most_zero_or_the_matrix_is_positive_definite(
    oracle, seed, m, shift
):
    G = symmetric(np.random.default_rng(seed), m) + shift * np.eye(m)
    u = oracle(G)
    if u is None:
        assert np.linalg.eigvalsh(G)[0] > 0
    else:
        assert_allclose(np.linalg.norm(u), 1.0)
        assert u @ G @ u <= 1e-12
        assert np.linalg.eigvalsh(G)[0] <= 1e-12


def test_the_failed_pivot_is_the_form_of_its_vector():
    rng = as_generator(0)
    for _ in range(20):
        G = symmetric(rng, 6) + 2 * np.eye(6)
        u = failed_pivot(G)
        if u is None:
            continue
        k = int(np.flatnonzero(u)[-1])  # Schur complement of the leading block, from determinants
        before = np.linalg.det(G[:k, :k]) if k else 1.0
        assert_allclose(u @ G @ u / u[k] ** 2, np.linalg.det(G[: k + 1, : k + 1]) / before, rtol=1e-6, atol=1e-9)


def test_large_matrices_get_a_violated_direction_from_lanczos(monkeypatch):
    monkeypatch.setattr(oracles_module, "LANCZOS", 10)
    rng = as_generator(1)
    G = symmetric(rng, 30)
    value, u = smallest_eigenpair(G)
    assert u @ G @ u < 0
    assert_allclose(np.linalg.norm(u), 1.0)
    assert_allclose(value, u @ G @ u)
    assert eigen(G @ G.T + np.eye(30)) is None


def test_all_kinds_of_matrices_give_the_same_linear_map():
    rng = as_generator(2)
    m, V, w = 6, rng.standard_normal((6, 2)), np.array([1.0, -2.0])
    dense, diagonal = symmetric(rng, m), rng.standard_normal(m)
    scattered = sparse.coo_array(sparse.random(m, m, 0.1, "coo", None, np.random.default_rng(3)))
    scattered = (scattered + scattered.T).tocsr()
    family = matrix_family([dense, diagonal, scattered, LowRank(V, w)])
    arrays = [dense, np.diag(diagonal), scattered.toarray(), (V * w) @ V.T]
    x, u, Y = rng.standard_normal(4), rng.standard_normal(m), symmetric(rng, m)
    assert_allclose(family.combine(x), sum(value * one for value, one in zip(x, arrays)), atol=1e-12)
    assert_allclose(family.forms(u), [u @ one @ u for one in arrays], atol=1e-12)
    assert_allclose(family.inner(Y), [np.sum(one * Y) for one in arrays], atol=1e-12)
    assert_allclose(family.gram, [[np.sum(a * b) for b in arrays] for a in arrays], atol=1e-12)
    assert_allclose(family.norms, [np.linalg.norm(one) for one in arrays])
    half = family.scaled(np.array([0.5, 1.0, 2.0, 3.0]))
    assert_allclose(half.inner(Y), family.inner(Y) * [0.5, 1.0, 2.0, 3.0])
    assert_allclose(family.without_first().inner(Y), family.inner(Y)[1:])


@pytest.mark.parametrize("memory", [0, 5])
@pytest.mark.parametrize("oracle", ORACLES)
def test_invariants_hold_at_every_step_and_the_updates_stay_below_their_bound(oracle, memory):
    for seed in range(4):
        rng = as_generator(seed)
        matrices, solution, rho = planted(rng, 4, 5)
        perceptron = Perceptron(matrix_family(matrices), memory=memory, affine=False)
        found = "updated"
        while found == "updated":
            before = perceptron.n_updates
            found = perceptron.search(oracle, 1)
            t, x = perceptron.n_updates, perceptron.x
            assert t - before <= 1
            assert x @ x <= t * (1 + 1e-12)
            assert x @ solution >= t * rho * (1 - 1e-12)
            assert not t or perceptron.margin_bound <= 1 / math.sqrt(t) * (1 + 1e-12)
            assert not t or perceptron.margin_bound >= rho * (1 - 1e-12)
            assert t <= 1 / rho**2
        assert found == "feasible"
        G = sum(value * one for value, one in zip(perceptron.point, matrices))
        assert np.linalg.eigvalsh(G)[0] > 0


@pytest.mark.parametrize("memory", [0, 3])
def test_the_point_is_what_the_dual_matrix_says(memory):
    # <F_i, Z> - z_c c_i = x_i (and the rows of x_0 and c_0 for i = 0), whatever was remembered and forgotten.
    rng = as_generator(5)
    matrices, c = [symmetric(rng, 4) for _ in range(4)], rng.standard_normal(3)
    family = matrix_family(matrices)
    perceptron = Perceptron(family, np.concatenate([[0.0], -c]), memory=memory)
    perceptron.set_objective(1.5, 0.1)
    for _ in range(60):
        perceptron.search(eigen, 3)
    Z, z_objective = perceptron.dual()
    assert perceptron.n_updates > 30
    assert np.linalg.eigvalsh(Z)[0] > -1e-9
    assert_allclose(family.inner(Z)[1:] - z_objective * c, perceptron.x[1:], atol=1e-9)


def test_rescaling_stretches_every_normal_and_maps_solutions_back():
    rng = as_generator(6)
    matrices, _, _ = planted(rng, 4, 5)
    family = matrix_family(matrices)
    stretch = np.eye(4)
    explicit = matrices
    for _ in range(3):
        y = None
        while y is None:
            y = improve(family, rng, stretch=stretch, max_steps=500)
        # The published form: the matrices themselves are changed.
        at_y = sum(value * one for value, one in zip(y, explicit))
        explicit = [one + value * at_y for value, one in zip(y, explicit)]
        stretch = stretch + np.outer(stretch @ y, y)
    for _ in range(10):
        u = rng.standard_normal(5)
        assert_allclose(stretch.T @ family.forms(u), [u @ one @ u for one in explicit], rtol=1e-10, atol=1e-10)
    perceptron = Perceptron(family, memory=0, affine=False, stretch=stretch)
    while perceptron.search(eigen, 100) == "updated":
        pass
    assert np.linalg.eigvalsh(sum(value * one for value, one in zip(perceptron.point, matrices)))[0] > 0


def test_the_walk_of_a_rescaling_ends_where_no_constraint_contradicts():
    rng = as_generator(7)
    for _ in range(5):
        matrices, _, _ = planted(rng, 3, 4)
        family, sigma = matrix_family(matrices), 1 / 96
        y = None
        while y is None:
            y = improve(family, rng, stretch=np.eye(3), sigma=sigma, max_steps=500)
        assert_allclose(np.linalg.norm(y), 1.0)
        normals = np.array([family.forms(u) for u in rng.standard_normal((3000, 4))])
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        against = contradiction(family, y, np.eye(3))[0]
        # Random directions find nothing much worse than what the oracle has found.
        assert (normals @ y).min() >= against - 0.02


def margin(normals):
    """Radius of the largest ball in a cone of finitely many unit normals, by sequential quadratic programming."""
    slack = np.c_[normals, -np.ones(len(normals))]
    start = normals.mean(axis=0)
    start = np.append(start / np.linalg.norm(start), (normals @ (start / np.linalg.norm(start))).min())
    best = minimize(
        lambda z: -z[-1],
        start,
        jac=lambda z: np.append(np.zeros(len(z) - 1), -1.0),
        constraints=[
            {"type": "ineq", "fun": lambda z: slack @ z, "jac": lambda z: slack},
            {"type": "ineq", "fun": lambda z: 1 - z[:-1] @ z[:-1], "jac": lambda z: np.append(-2 * z[:-1], 0.0)},
        ],
        method="SLSQP",
    )  # fmt: skip
    return best.x[-1]


def test_rescaling_widens_thin_cones_on_average():
    # Theorem 1, for diagonal matrices, whose cones have finitely many normals. The mean of log(rho'/rho) over 40 cones
    # is positive: at least ln(1 + 1/(64 n)) in theory, and 0.65 to 0.70 for each of 160 such cones (the walk ends
    # close to their axis), so that a mean below zero is no accident at any seed.
    rng, gains = as_generator(8), []
    while len(gains) < 40:
        n = 3 + len(gains) % 3
        x = rng.standard_normal(n)
        x /= np.linalg.norm(x)
        normals = rng.standard_normal((3 * n, n))
        normals -= np.outer(normals @ x - 0.02 * np.abs(rng.standard_normal(3 * n)), x)  # nearly flat along x
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        rho = margin(normals)
        if not 1e-4 < rho <= 1 / (4 * n):
            continue
        y = None
        while y is None:  # a walk that began on the wrong side does not end
            y = improve(matrix_family(list(normals.T)), rng, stretch=np.eye(n), max_steps=200)
        stretched = normals @ (np.eye(n) + np.outer(y, y))
        after = margin(stretched / np.linalg.norm(stretched, axis=1, keepdims=True))
        assert after >= (1 - 1 / (16 * n)) * rho * (1 - 1e-3)
        gains.append(math.log(after / rho))
    assert np.mean(gains) > 0


def test_the_schedule_of_failures_adds_up_to_what_is_allowed():
    for delta in (0.5, 1e-3):
        allowed = sum(failure_schedule(i, delta)[0] for i in range(1, 20_001))
        assert_allclose(allowed, delta, rtol=1e-4)
    assert failure_schedule(1, 0.5)[1] == 5
    assert failure_schedule(10, 0.5)[1] == 21


def test_the_positive_definite_perceptron_finds_planted_points_through_rescalings():
    for seed in range(3):
        matrices, _, _ = planted(as_generator(seed), 3, 4)
        # Two updates between rescalings are too few without them.
        x = positive_definite_perceptron(matrices, max_updates=2, max_rescalings=60, random_state=seed)
        assert x is not None
        assert np.linalg.eigvalsh(sum(value * one for value, one in zip(x, matrices)))[0] > 0


def test_the_positive_definite_perceptron_gives_up_on_an_empty_cone():
    matrices = [np.diag([1.0, -1.0]), np.diag([2.0, -2.0])]
    assert positive_definite_perceptron(matrices, max_updates=20, max_rescalings=2, random_state=0) is None


def test_a_set_without_interior_is_told_by_the_margin():
    found = lmi_feasible_point(-np.eye(3), [np.diag([1.0, -1.0, 0.0])], rho_min=1e-3)
    assert found.status == 2
    assert not found.success
    assert found.rho_upper < 1e-3
    assert np.isnan(found.x).all()
    falling = found.history["rho_upper"]
    assert falling[-1] <= falling[0]


def test_a_direction_that_no_matrix_sees_is_handed_out():
    found = lmi_feasible_point(np.diag([1.0, 0.0]), [np.diag([1.0, 0.0])])
    assert found.status == 2
    assert_allclose(np.abs(found.direction), [0.0, 1.0], atol=1e-12)
