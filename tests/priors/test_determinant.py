"""The log determinant of the rows' kernel: known answers, derivatives and invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluri.priors import DiversityWarning, log_determinant, log_determinant_gradient, relative_gain

LAW = settings(deadline=None, derandomize=True, max_examples=150)
SHAPES = [(2, 2), (5, 5), (3, 7), (1, 4)]
seeds = st.integers(0, 2**32 - 1)
KNOWN = np.array([[0.9, 0.1], [0.2, 0.8]])


def random_rows(seed, shape, concentration=1.0):
    rows = np.random.default_rng(seed).dirichlet(np.full(shape[1], concentration), size=shape[0])
    return np.maximum(rows, 1e-3) / np.maximum(rows, 1e-3).sum(axis=1, keepdims=True)


def kernel(rows, rho):
    """The normalised kernel from its definition, entry by entry."""
    products = np.array([[np.sum(a**rho * b**rho) for b in rows] for a in rows])
    return products / np.sqrt(np.outer(np.diag(products), np.diag(products)))


def test_known_answer():
    assert log_determinant(KNOWN) == pytest.approx(np.log(0.5), abs=1e-15)
    np.testing.assert_allclose(log_determinant_gradient(KNOWN), [[1 / 3, -3], [-2, 1 / 2]], atol=1e-13)
    np.testing.assert_allclose(relative_gain(KNOWN), [[1.2, -0.2], [-0.2, 1.2]], atol=1e-14)
    # For two rows the determinant is 1 - BC^2, and -log BC is their Bhattacharyya distance.
    assert -0.5 * np.log(1 - np.exp(log_determinant(KNOWN))) == pytest.approx(0.346574, abs=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rho", [0.5, 0.7, 1.0])
def test_value_equals_the_determinant_of_the_kernel(rho, shape):
    for seed in range(5):
        rows = random_rows(seed, shape)
        assert log_determinant(rows, rho) == pytest.approx(
            np.log(np.linalg.det(kernel(rows, rho))), rel=1e-9, abs=1e-12
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rho", [0.5, 0.7, 1.0])
def test_gradient_equals_central_differences(rho, shape):
    rows = random_rows(3, shape)
    numeric = np.empty(shape)
    for index in np.ndindex(*shape):
        step = np.zeros(shape)
        step[index] = 1e-5 * rows[index]
        numeric[index] = (log_determinant(rows + step, rho) - log_determinant(rows - step, rho)) / (2 * step[index])
    # In A o df/dA, which is of order one.
    np.testing.assert_allclose(rows * log_determinant_gradient(rows, rho), rows * numeric, atol=1e-6)


def test_published_gradient_is_half_the_first_term_and_misses_the_second():
    rows = random_rows(4, (4, 4))
    inverse, roots = np.linalg.inv(kernel(rows, 0.5)), np.sqrt(rows)
    published = 0.5 * (inverse @ roots) / roots
    np.testing.assert_allclose(log_determinant_gradient(rows), 2 * published - 1, rtol=1e-9)


@LAW
@given(seeds, st.sampled_from(SHAPES), st.sampled_from([0.3, 0.5, 0.7, 1.0]))
def test_value_is_never_positive_and_blind_to_order_and_scale(seed, shape, rho):
    rng = np.random.default_rng(seed)
    rows = random_rows(seed, shape)
    value = log_determinant(rows, rho)
    assert value <= 0
    shuffled = rows[rng.permutation(shape[0])][:, rng.permutation(shape[1])]
    assert log_determinant(shuffled, rho) == pytest.approx(value, rel=1e-7, abs=1e-10)
    assert log_determinant(rows * rng.uniform(0.1, 10, size=(shape[0], 1)), rho) == pytest.approx(
        value, rel=1e-7, abs=1e-10
    )


@LAW
@given(seeds, st.sampled_from(SHAPES), st.sampled_from([0.5, 0.7, 1.0]))
def test_gradient_is_flat_along_a_row_and_gains_sum_to_one(seed, shape, rho):
    rows = random_rows(seed, shape)
    gains = relative_gain(rows, rho)
    tolerance = 1e-9 * (1 + np.abs(gains).max())
    np.testing.assert_allclose((rows * log_determinant_gradient(rows, rho)).sum(axis=1), 0, atol=tolerance)
    np.testing.assert_allclose(gains.sum(axis=1), 1, atol=tolerance)
    if shape[0] == shape[1]:
        np.testing.assert_allclose(gains.sum(axis=0), 1, atol=tolerance)


def test_disjoint_rows_reach_the_maximum_and_equal_rows_the_minimum():
    for seed in range(5):
        permutation = np.eye(6)[np.random.default_rng(seed).permutation(6)]
        assert log_determinant(permutation) == 0.0
    assert log_determinant([[0.5, 0.5, 0, 0], [0, 0, 0.1, 0.9]]) == pytest.approx(0.0, abs=1e-15)
    for shape in [(4, 4), (4, 9), (26, 26)]:
        rows = random_rows(0, shape)
        rows[-1] = rows[0]
        assert log_determinant(rows) == -np.inf
    assert log_determinant(np.full((3, 3), 1 / 3)) == -np.inf


def test_two_permutations_share_the_maximum_but_their_midpoint_does_not():
    """The log determinant is not concave in the rows, whatever it is in the kernel."""
    assert log_determinant(0.5 * np.eye(2) + 0.5 * np.eye(2)[::-1]) == -np.inf


def test_gradient_is_finite_at_zero_entries():
    assert np.isfinite(log_determinant_gradient(np.eye(4))).all()
    assert np.isfinite(log_determinant_gradient([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])).all()


def test_dependent_rows_get_a_pseudo_inverse_and_a_warning():
    with pytest.warns(DiversityWarning, match="linearly dependent"):
        gains = relative_gain([[0.5, 0.5], [0.5, 0.5]])
    assert np.isfinite(gains).all()


@pytest.mark.parametrize(
    ("rows", "rho", "message"),
    [
        (np.full((3, 2), 0.5), 0.5, "at most as many rows as columns"),
        ([[0.5, np.nan], [0.5, 0.5]], 0.5, "rows must be a finite"),
        ([[0.5, -0.5], [0.5, 0.5]], 0.5, "rows must be a finite"),
        ([[0.0, 0.0], [0.5, 0.5]], 0.5, "positive entry each"),
        ([0.5, 0.5], 0.5, "rows must be a finite"),
        (KNOWN, 0.0, "rho must be a positive"),
    ],
)
def test_bad_input_is_refused(rows, rho, message):
    for function in (log_determinant, log_determinant_gradient, relative_gain):
        with pytest.raises(ValueError, match=message):
            function(rows, rho)
