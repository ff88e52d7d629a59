"""Dirichlet and sticky priors: closed forms, exact maximisers, and EM that ascends even for sparse priors."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from pluri.priors import Dirichlet, PseudoCountPrior, RowPrior, RowPriorWarning, Sticky, rows_objective

LAW = settings(deadline=None, derandomize=True, max_examples=150)
counts_matrices = arrays(
    np.float64, (3, 4), elements=st.floats(0, 50, allow_subnormal=False).map(lambda x: round(x, 3))
)


def uniform(shape):
    return np.full(shape, 1 / shape[-1])


def test_flat_prior_is_the_normalised_counts_to_the_bit():
    counts = np.random.default_rng(0).gamma(0.3, 10, size=(7, 7))
    rows = Dirichlet().maximize(counts, uniform((7, 7)))
    np.testing.assert_array_equal(rows, counts / counts.sum(axis=1, keepdims=True))


def test_smoothing_adds_pseudo_counts_entry_by_entry():
    concentration = np.array([[2.0, 1.0, 3.0], [1.0, 1.5, 1.0]])
    rows = Dirichlet(concentration).maximize([[1.0, 2.0, 0.0], [0.0, 0.5, 3.0]], uniform((2, 3)))
    np.testing.assert_allclose(rows, [[2 / 6, 2 / 6, 2 / 6], [0.0, 1 / 4, 3 / 4]])


def test_sticky_prior_adds_to_the_diagonal_on_top_of_its_concentration():
    prior = Sticky(5.0, concentration=1.5)
    np.testing.assert_array_equal(prior.pseudo_counts((2, 2)), [[5.5, 0.5], [0.5, 5.5]])
    rows = prior.maximize([[1.0, 1.0], [0.0, 4.0]], uniform((2, 2)))
    np.testing.assert_allclose(rows, [[6.5 / 8, 1.5 / 8], [0.5 / 10, 9.5 / 10]])


def test_row_without_any_evidence_keeps_its_place():
    start = np.array([[0.3, 0.7], [0.9, 0.1]])
    for prior in (Dirichlet(), Dirichlet(0.5)):
        rows = prior.maximize([[0.0, 0.0], [5.0, 3.0]], start)
        np.testing.assert_array_equal(rows[0], start[0])
        assert rows[1, 0] > 0.6


def test_sparse_prior_is_the_clipped_formula_up_to_the_floor():
    counts = np.array([[6.0, 3.0, 0.4, 0.0]])
    rows = Dirichlet(0.0).maximize(counts, uniform((1, 4)))
    np.testing.assert_allclose(rows, [[5 / 7, 2 / 7, 0.0, 0.0]], atol=1e-11)
    assert rows[0, 2] == rows[0, 3] == 1e-12
    assert rows.sum() == pytest.approx(1, abs=1e-15)


def test_vanished_row_keeps_its_largest_entry_and_warns():
    with pytest.warns(RowPriorWarning, match=r"rows \[1\]"):
        rows = Dirichlet(0.2).maximize([[4.0, 2.0], [0.3, 0.4]], uniform((2, 2)))
    np.testing.assert_allclose(rows[1], [0, 1], atol=1e-11)


def test_tie_in_a_vanished_row_goes_to_the_larger_previous_entry():
    with pytest.warns(RowPriorWarning):
        rows = Dirichlet(0.2).maximize([[0.4, 0.4, 0.1]], [[0.2, 0.7, 0.1]])
    assert rows.argmax() == 1


@pytest.mark.filterwarnings("ignore::pluri.priors.RowPriorWarning")
@LAW
@given(counts_matrices, st.sampled_from([-1.0, 0.0, 0.5, 0.9, 1.0, 1.7]), st.integers(0, 2**32 - 1))
def test_no_other_rows_above_the_floor_score_higher(counts, concentration, seed):
    rng = np.random.default_rng(seed)
    prior = Dirichlet(concentration, floor=1e-4)
    start = rng.dirichlet(np.ones(4), size=3)
    rows = prior.maximize(counts, start)
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    seen = counts.sum(axis=1) > 0  # a row without counts keeps its place, which need not be the maximum
    assume(seen.any())
    counts, rows = counts[seen], rows[seen]
    best = rows_objective(counts, rows, base=prior)
    for spread in (0.05, 0.3, 3.0):
        far = 1e-4 + (1 - 4e-4) * rng.dirichlet(np.full(4, spread), size=(10, len(rows)))
        for other in np.concatenate([far, 0.98 * rows + 0.02 * far]):
            assert rows_objective(counts, other, base=prior) <= best + 1e-9


def test_mixed_concentrations_agree_with_a_numerical_maximiser():
    rng = np.random.default_rng(5)
    for _ in range(10):
        counts, concentration = rng.gamma(1.0, 2.0, size=(1, 5)), rng.choice([0.3, 1.0, 2.0], size=5)
        prior = Dirichlet(concentration, floor=1e-3)
        rows = prior.maximize(counts, uniform((1, 5)))
        best = -np.inf
        for _ in range(8):
            result = minimize(
                lambda x, c=counts, p=prior: -rows_objective(c, x[None] / x.sum(), base=p),
                1e-3 + 0.995 * rng.dirichlet(np.ones(5)),
                bounds=[(1e-3, 1.0)] * 5,
                constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
                method="SLSQP",
            )
            best = max(best, -result.fun)
        assert rows_objective(counts, rows, base=prior) >= best - 1e-6


@pytest.mark.parametrize("prior", [Dirichlet(2.0), Dirichlet(0.4), Dirichlet([1.0, 3.0, 0.5]), Sticky(2.0, 0.7)])
def test_gradient_equals_central_differences(prior):
    rows = np.random.default_rng(1).dirichlet(np.ones(3), size=3)
    extra = prior.pseudo_counts((3, 3))
    numeric = np.empty((3, 3))
    for index in np.ndindex(3, 3):
        step = 1e-6 * rows[index]
        numeric[index] = extra[index] * (np.log(rows[index] + step) - np.log(rows[index] - step)) / (2 * step)
    np.testing.assert_allclose(prior.gradient(rows), numeric, rtol=1e-6)


def test_density_at_the_edge_of_the_simplex():
    edge = [[1.0, 0.0]]
    assert Dirichlet(1.0).log_density(edge) == 0.0
    assert Dirichlet(2.0).log_density(edge) == -np.inf
    assert Dirichlet(0.5).log_density(edge) == pytest.approx(-0.5 * np.log(1e-12))
    np.testing.assert_array_equal(Dirichlet(2.0).gradient(edge), [[1.0, np.inf]])
    np.testing.assert_array_equal(Dirichlet(1.0).gradient(edge), [[0.0, 0.0]])


def test_structural_zeros_stay_and_do_not_count():
    support = np.array([[True, True, False], [False, True, True], [False, False, True]])
    counts = np.array([[3.0, 1.0, 0.0], [0.0, 2.0, 2.0], [0.0, 0.0, 5.0]])
    start = support / support.sum(axis=1, keepdims=True)
    for prior in (Dirichlet(3.0), Dirichlet(0.5), Sticky(2.0)):
        rows = prior.maximize(counts, start, support=support)
        assert not rows[~support].any()
        assert np.isfinite(prior.log_density(rows, support=support))
    rows = Dirichlet(3.0).maximize(counts, start, support=support)
    np.testing.assert_allclose(rows[0], [5 / 8, 3 / 8, 0])
    assert Dirichlet(3.0).log_density(rows, support=support) == pytest.approx(2 * np.log(rows[support]).sum())


def test_a_single_row_is_as_good_as_a_matrix():
    rows = Dirichlet(2.0).maximize([3.0, 1.0], [0.5, 0.5])
    np.testing.assert_allclose(rows, [4 / 6, 2 / 6])
    assert Dirichlet(2.0).log_density(rows) == pytest.approx(np.log(4 / 6 * 2 / 6))


def expectation(start, transition, emission, sequence):
    """Log-likelihood and expected transition counts of a categorical HMM, by the scaled recursions."""
    likelihood = emission[:, sequence].T
    n = len(sequence)
    forward, scale = np.empty((n, len(start))), np.empty(n)
    for t in range(n):
        forward[t] = likelihood[t] * (start if t == 0 else forward[t - 1] @ transition)
        scale[t] = forward[t].sum()
        forward[t] /= scale[t]
    backward, counts = np.ones(len(start)), np.zeros_like(transition)
    for t in range(n - 1, 0, -1):
        after = likelihood[t] * backward / scale[t]
        counts += forward[t - 1][:, None] * transition * after
        backward = transition @ after
    return np.log(scale).sum(), counts


@pytest.mark.filterwarnings("ignore::pluri.priors.RowPriorWarning")
@pytest.mark.parametrize("concentration", [-2.0, 0.0, 0.5, 0.9, 1.0, 2.0])
def test_em_objective_never_falls(concentration):
    prior = Dirichlet(concentration)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        emission = rng.dirichlet(np.ones(5), size=4)
        sequence = rng.integers(5, size=120)
        transition = rng.dirichlet(np.ones(4), size=4)
        previous = -np.inf
        for _ in range(40):
            log_likelihood, counts = expectation(uniform((4,)), transition, emission, sequence)
            objective = log_likelihood + prior.log_density(transition)
            assert objective >= previous - 1e-9 * abs(objective)
            previous = objective
            transition = prior.maximize(counts, transition)


@pytest.mark.parametrize("prior", [Dirichlet(0.5), Dirichlet(np.ones((2, 3))), Sticky(3.0, [1.0, 2.0])])
def test_priors_are_plain_values(prior):
    assert isinstance(prior, RowPrior)
    assert isinstance(prior, PseudoCountPrior)
    assert copy.deepcopy(prior) == pickle.loads(pickle.dumps(prior)) == prior
    assert hash(copy.deepcopy(prior)) == hash(prior)
    assert eval(repr(prior)) == prior


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Dirichlet(np.nan), "concentration must be a finite"),
        (lambda: Dirichlet(1.0, floor=0.0), "floor must be a number above 0"),
        (lambda: Sticky(-1.0), "strength must be a non-negative"),
        (lambda: Sticky(1.0).pseudo_counts((2, 3)), "square matrix"),
        (lambda: Dirichlet([1.0, 2.0]).pseudo_counts((2, 3)), "concentration must broadcast"),
        (lambda: Dirichlet().maximize([[1.0, -1.0]], [[0.5, 0.5]]), "counts must be finite and non-negative"),
        (lambda: Dirichlet().maximize([[1.0, np.nan]], [[0.5, 0.5]]), "counts must be finite and non-negative"),
        (lambda: Dirichlet().maximize([[1.0, 1.0]], [[0.5, 0.6]]), "start must have rows that sum to 1"),
        (lambda: Dirichlet().maximize([[1.0, 1.0]], [[0.5, 0.25, 0.25]]), "start must have the shape"),
        (lambda: Dirichlet(0.5, floor=0.6).maximize([[1.0, 1.0]], [[0.5, 0.5]]), "floor must be below"),
        (lambda: Dirichlet().log_density([[0.5, np.nan]]), "rows must be finite"),
        (
            lambda: Dirichlet().maximize([[1.0, 1.0]], [[1.0, 0.0]], support=np.array([[True, False]])),
            "counts must be zero outside the support",
        ),
        (
            lambda: Dirichlet().maximize([[1.0, 0.0]], [[1.0, 0.0]], support=np.array([[False, False]])),
            "support must leave at least one",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
