"""The penalised M-step of a stochastic matrix: it ascends, it agrees with its objective, and its limits are right."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from pluri.priors import (
    Dirichlet,
    Diversity,
    DiversityWarning,
    Sticky,
    log_density_rows,
    log_determinant,
    maximize_rows,
    relative_gain,
    rows_objective,
)

LAW = settings(deadline=None, derandomize=True, max_examples=80)
SOLVERS = ["lbfgs", "fixed_point", "projected_gradient"]
seeds = st.integers(0, 2**32 - 1)


def problem(seed, shape=(5, 5), scale=10.0):
    """Ragged counts with zeros, and a start unrelated to them."""
    rng = np.random.default_rng(seed)
    counts = rng.gamma(0.3, scale, size=shape) * (rng.random(shape) < 0.8)
    return counts, rng.dirichlet(np.full(shape[1], 3.0), size=shape[0])


def normalised(counts):
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.filterwarnings("ignore::pluri.priors.RowPriorWarning")
@LAW
@given(
    seeds,
    st.sampled_from([(2, 2), (4, 4), (3, 6)]),
    st.sampled_from([1e-6, 1.0, 1e6]),
    st.sampled_from([0.0, 1e-3, 1.0, 1e3]),
    st.sampled_from([0.5, 0.7, 1.0]),
    st.sampled_from(SOLVERS),
    st.sampled_from([None, Dirichlet(0.5), Dirichlet(2.0)]),
    st.sampled_from([0.0, 1e5]),
)
def test_objective_never_falls(seed, shape, scale, strength, rho, solver, base, weight):
    counts, start = problem(seed, shape, scale)
    if seed % 3 == 0:
        counts[0] = 0.0
    if seed % 5 == 0:
        start = 1e-12 + (1 - shape[1] * 1e-12) * np.eye(*shape)[::-1]
    prior = Diversity(strength, rho=rho, solver=solver, max_iter=10)
    anchor = np.random.default_rng(seed + 1).dirichlet(np.ones(shape[1]), size=shape[0])
    terms = {"base": base, "diversity": prior, "anchor": anchor, "anchor_weight": weight}
    rows = maximize_rows(counts, start, **terms)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-9)
    assert (rows >= 0).all()
    assert rows_objective(counts, rows, **terms) >= rows_objective(counts, start, **terms)


def test_strength_zero_is_the_closed_form_to_the_bit():
    counts, start = problem(0)
    for base in (None, Dirichlet(3.0), Dirichlet(0.9), Sticky(2.0)):
        expected = (base or Dirichlet()).maximize(counts, start)
        np.testing.assert_array_equal(maximize_rows(counts, start, base=base, diversity=Diversity(0.0)), expected)
        np.testing.assert_array_equal(Diversity(0.0).maximize(counts, start, base=base), expected)
    np.testing.assert_array_equal(maximize_rows(counts, start), normalised(counts))


def test_a_tiny_strength_is_close_to_the_closed_form():
    counts, start = problem(1, scale=100.0)
    rows = maximize_rows(counts, start, diversity=Diversity(1e-8, max_iter=500))
    np.testing.assert_allclose(rows, normalised(counts), atol=1e-6)


def test_one_state_has_nothing_to_keep_apart():
    np.testing.assert_array_equal(maximize_rows([[3.0, 1.0]], [[0.5, 0.5]], diversity=Diversity(9.0)), [[0.75, 0.25]])


@pytest.mark.parametrize("rho", [0.5, 0.7, 1.0])
@pytest.mark.parametrize("shape", [(4, 4), (3, 6)])
def test_interior_optimum_satisfies_the_stationarity_equation(shape, rho):
    """A_ij = [C_ij + 2 alpha rho (R_ij - W_ij)] / C_i. wherever no entry has gone to the floor."""
    interior = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        counts = rng.gamma(2.0, 50.0, size=shape) + 20
        strength = 2.0
        rows = maximize_rows(
            counts, normalised(counts + 5), diversity=Diversity(strength, rho=rho, max_iter=3000, tol=0.0)
        )
        if rows.min() < 1e-6:
            continue
        interior += 1
        escort = rows ** (2 * rho) / np.sum(rows ** (2 * rho), axis=1, keepdims=True)
        target = (counts + 2 * strength * rho * (relative_gain(rows, rho) - escort)) / counts.sum(axis=1, keepdims=True)
        assert np.abs(rows - target).max() < 1e-5
    assert interior >= 3


def test_two_states_reach_the_hand_solved_optimum():
    """Symmetric counts (6, 4): the stationarity equation 12/p - 8/(1-p) + 4 alpha/(2p-1) = 0 has the root 3/4 at 2."""
    rows = maximize_rows([[6.0, 4.0], [4.0, 6.0]], [[0.6, 0.4], [0.3, 0.7]], diversity=Diversity(2.0))
    np.testing.assert_allclose(rows, [[0.75, 0.25], [0.25, 0.75]], atol=1e-6)


@pytest.mark.parametrize("rho", [0.5, 0.8])
def test_answer_is_no_worse_than_a_general_optimiser(rho):
    """SLSQP on the definition of the objective, without any gradient of ours, from the same starts."""
    for seed in range(4):
        counts, start = problem(seed, (3, 3))
        prior = Diversity(2.0, rho=rho, max_iter=500)
        rows = maximize_rows(counts, start, base=Dirichlet(1.5), diversity=prior)

        def negative(x, counts=counts, prior=prior):
            rows = x.reshape(3, 3) / x.reshape(3, 3).sum(axis=1, keepdims=True)
            return -rows_objective(counts, rows, base=Dirichlet(1.5), diversity=prior)

        results = [
            minimize(negative, begin.ravel(), bounds=[(1e-6, 1)] * 9, method="L-BFGS-B", options={"maxfun": 5000}).fun
            for begin in (start, normalised(counts + 0.5))
        ]
        assert rows_objective(counts, rows, base=Dirichlet(1.5), diversity=prior) >= -min(results) - 1e-3


def grid_optimum(counts, strength):
    """Global optimum of the two-state problem on a fine grid: objective, log determinant and rows."""
    p = (np.arange(1000) + 0.5) / 1000
    a, b = np.meshgrid(p, p, indexing="ij")
    log_det = np.log1p(-np.minimum((np.sqrt(a * b) + np.sqrt((1 - a) * (1 - b))) ** 2, 1 - 1e-15))
    value = counts[0, 0] * np.log(a) + counts[0, 1] * np.log1p(-a)
    value = value + counts[1, 0] * np.log(b) + counts[1, 1] * np.log1p(-b) + strength * log_det
    best = np.unravel_index(value.argmax(), value.shape)
    return value[best], log_det[best], np.array([[p[best[0]], 1 - p[best[0]]], [p[best[1]], 1 - p[best[1]]]])


def test_global_optimum_grows_more_diverse_with_strength():
    for seed in range(5):
        counts = np.random.default_rng(seed).gamma(1.0, 10.0, size=(2, 2))
        last = -np.inf
        for strength in (0.1, 0.5, 1.0, 5.0, 20.0, 100.0):
            value, log_det, rows = grid_optimum(counts, strength)
            assert log_det >= last - 1e-12
            last = log_det
            prior = Diversity(strength, max_iter=300)
            found = maximize_rows(counts, rows, diversity=prior)
            assert rows_objective(counts, found, diversity=prior) >= value - 1e-9
            assert abs(log_determinant(found) - log_det) < 0.05


@pytest.mark.filterwarnings("ignore::pluri.priors.DiversityWarning")
def test_larger_problems_grow_more_diverse_with_strength_in_the_median():
    values = []
    for seed in range(11):
        counts, start = problem(seed, (6, 6))
        values.append([log_determinant(Diversity(s).maximize(counts, start)) for s in (0.01, 1.0, 30.0)])
    medians = np.median(values, axis=0)
    assert medians[0] < medians[1] < medians[2]


def test_anchor_alone_balances_counts_and_distance():
    """The exact row-wise solution against SLSQP."""
    rng = np.random.default_rng(3)
    for base in (None, Dirichlet(2.0)):
        for weight in (0.5, 30.0, 1e5):
            counts, anchor = rng.gamma(0.5, 20.0, size=(1, 4)), rng.dirichlet(np.ones(4), size=1)
            terms = {"base": base, "anchor": anchor, "anchor_weight": weight}
            rows = maximize_rows(counts, anchor, **terms)
            result = minimize(
                lambda x, c=counts, t=terms: -rows_objective(c, x[None] / x.sum(), **t) / (1 + t["anchor_weight"]),
                np.full(4, 0.25),
                bounds=[(1e-9, 1)] * 4,
                constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
                method="SLSQP",
                options={"ftol": 1e-15, "maxiter": 500},
            )
            assert rows_objective(counts, rows, **terms) >= -result.fun * (1 + weight) - 1e-9 * (1 + weight)
            np.testing.assert_allclose(rows[0], result.x / result.x.sum(), atol=1e-3)


def test_anchor_at_the_counts_stays_there_without_diversity():
    counts, _ = problem(4)
    target = normalised(counts)
    rows = maximize_rows(counts, target, anchor=target, anchor_weight=1e5, diversity=Diversity(0.0))
    np.testing.assert_allclose(rows, target, atol=1e-12)


def test_smoothed_anchor_is_pulled_back_to_the_counts_even_without_diversity():
    counts = 1000 * np.array([[0.9, 0.1], [0.3, 0.7]])
    anchor = normalised(counts + 200)
    rows = maximize_rows(counts, anchor, anchor=anchor, anchor_weight=1e3)
    assert np.all(np.abs(rows - normalised(counts)) < np.abs(anchor - normalised(counts)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_an_infinite_anchor_wins(solver):
    counts, _ = problem(5)
    anchor = np.random.default_rng(6).dirichlet(np.ones(5), size=5)
    for weight, tolerance in ((1e8, 1e-3), (1e12, 1e-6)):
        prior = Diversity(10.0, solver=solver, max_iter=400)
        rows = maximize_rows(counts, anchor, anchor=anchor, anchor_weight=weight, diversity=prior)
        np.testing.assert_allclose(rows, anchor, atol=tolerance)


def test_stiff_anchor_is_solved_within_the_default_iterations():
    """Counts of a few letters after each letter, anchor of weight 1e5: fifty iterations against two thousand."""
    rng = np.random.default_rng(7)
    counts = np.zeros((12, 12))
    for row in counts:
        row[rng.choice(12, 5, replace=False)] = rng.multinomial(2000, rng.dirichlet(np.ones(5)))
    anchor = normalised(counts + 2)
    terms = {"anchor": anchor, "anchor_weight": 1e5}
    short, long = Diversity(10.0), Diversity(10.0, max_iter=2000, tol=0.0)
    value = rows_objective(counts, maximize_rows(counts, anchor, diversity=short, **terms), diversity=short, **terms)
    best = rows_objective(counts, maximize_rows(counts, anchor, diversity=long, **terms), diversity=long, **terms)
    assert best - value < 1e-5 * abs(best)


def test_structural_zeros_stay_zero_under_diversity():
    support = np.triu(np.ones((4, 4), dtype=bool))
    counts = np.where(support, problem(8, (4, 4))[0] + 1, 0.0)
    start = normalised(support.astype(float))
    for solver in SOLVERS:
        for base in (None, Dirichlet(3.0), Dirichlet(0.5)):
            terms = {"base": base, "diversity": Diversity(2.0, solver=solver), "support": support}
            rows = maximize_rows(counts, start, **terms)
            assert not rows[~support].any()
            np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-9)
            assert rows_objective(counts, rows, **terms) > rows_objective(counts, start, **terms)


def test_support_without_independent_rows_is_refused():
    support = np.array([[True, False, False], [True, False, False], [True, True, True]])
    start = normalised(support.astype(float))
    with pytest.warns(DiversityWarning), pytest.raises(ValueError, match="support must allow"):
        maximize_rows(np.zeros((3, 3)), start, diversity=Diversity(1.0), support=support)


def test_log_density_is_the_sum_of_its_parts():
    rows = np.random.default_rng(9).dirichlet(np.ones(4), size=4)
    anchor = np.full((4, 4), 0.25)
    total = log_density_rows(rows, base=Sticky(2.0, 1.5), diversity=Diversity(3.0), anchor=anchor, anchor_weight=7.0)
    expected = 2 * np.log(np.diag(rows)).sum() + 0.5 * np.log(rows).sum()
    expected += 3 * log_determinant(rows) - 7 * np.sum((rows - 0.25) ** 2)
    assert total == pytest.approx(expected, rel=1e-12)
    assert log_density_rows(rows) == 0.0


def test_a_base_without_pseudo_counts_works_alone_but_not_combined():
    class Uniform:
        def log_density(self, rows, *, support=None):
            return 0.0

        def gradient(self, rows):
            return np.zeros_like(rows)

        def maximize(self, counts, start, *, support=None):
            return np.full_like(start, 0.5)

    rows = maximize_rows(np.ones((2, 2)), np.eye(2), base=Uniform())
    np.testing.assert_array_equal(rows, np.full((2, 2), 0.5))
    with pytest.raises(TypeError, match="pseudo_counts"):
        maximize_rows(np.ones((2, 2)), np.eye(2), base=Uniform(), diversity=Diversity(1.0))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"counts": [[1.0, np.inf], [1.0, 1.0]]}, "counts must be finite"),
        ({"start": [[0.5, 0.5], [0.7, 0.7]]}, "start must have rows that sum to 1"),
        ({"anchor": np.eye(3), "anchor_weight": 1.0}, "anchor must have the shape"),
        ({"anchor": np.eye(2), "anchor_weight": -1.0}, "anchor_weight must be"),
        ({"counts": np.ones((3, 2)), "start": np.full((3, 2), 0.5)}, "at most as many rows as columns"),
        ({"diversity": Diversity(1.0, floor=0.6)}, "floor must be below"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    given_arguments = {"counts": np.ones((2, 2)), "start": np.eye(2), "diversity": Diversity(1.0)} | arguments
    with pytest.raises(ValueError, match=message):
        maximize_rows(given_arguments.pop("counts"), given_arguments.pop("start"), **given_arguments)
