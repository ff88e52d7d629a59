"""Indian buffet: probabilities that sum to one, moments, exchangeability, and the left-ordered form."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from pluri.processes import IndianBuffetProcess, left_ordered_form

matrices = arrays(np.int8, st.tuples(st.integers(1, 5), st.integers(0, 6)), elements=st.integers(0, 1))


@given(matrices, st.randoms())
def test_the_left_ordered_form_is_idempotent_and_forgets_the_order_of_columns(Z, random):
    form = left_ordered_form(Z)
    assert (left_ordered_form(form) == form).all()
    columns = list(range(Z.shape[1]))
    random.shuffle(columns)
    assert (left_ordered_form(Z[:, columns]) == form).all()
    numbers = [int("".join(map(str, column)), 2) for column in form.T]
    assert numbers == sorted(numbers, reverse=True)
    assert 0 not in numbers


def test_the_left_ordered_form_has_no_limit_of_rows():
    Z = np.random.default_rng(0).integers(0, 2, size=(200, 30))
    form = left_ordered_form(Z)
    numbers = [int("".join(map(str, column)), 2) for column in form.T]
    assert numbers == sorted(numbers, reverse=True)


def all_classes(n_rows, most):
    """A matrix of every left-ordered class with fewer than `most` columns of each kind."""
    kinds = [kind for kind in product([0, 1], repeat=n_rows) if any(kind)]
    for counts in product(range(most), repeat=len(kinds)):
        yield np.repeat(np.array(kinds).T, counts, axis=1)


def test_probabilities_of_all_classes_sum_to_one():
    buffet = IndianBuffetProcess(1.0)
    assert sum(np.exp(buffet.logpmf(Z)) for Z in all_classes(2, 14)) == pytest.approx(1, abs=1e-13)


def test_probabilities_of_most_classes_of_three_rows_have_their_known_sum():
    # Each kind's number is Poisson by itself, so that the sum over a box is a product; checked on a smaller box.
    def box(most):
        kinds = [kind for kind in product([0, 1], repeat=3) if any(kind)]
        empty = np.exp(IndianBuffetProcess(1.0).logpmf(np.zeros((3, 0))))
        factors = []
        for kind in kinds:
            columns = [np.repeat(np.array(kind)[:, None], k, axis=1) for k in range(most)]
            factors.append(sum(np.exp(IndianBuffetProcess(1.0).logpmf(Z)) for Z in columns) / empty)
        return empty * np.prod(factors)

    assert box(2) == pytest.approx(sum(np.exp(IndianBuffetProcess(1.0).logpmf(Z)) for Z in all_classes(3, 2)))
    assert box(5) == pytest.approx(0.99989, abs=5e-6)


def test_matrices_of_the_buffet_sum_to_their_class():
    # All orderings that the buffet can give, for each class of three rows with at most two of each of three kinds.
    buffet = IndianBuffetProcess(1.7)
    from itertools import permutations

    for Z in (
        np.array([[1, 1, 0], [0, 1, 1], [0, 0, 1]]),
        np.array([[1, 1], [1, 1]]),
        np.array([[0, 1, 1], [1, 0, 0]]),
    ):
        orders = {tuple(map(tuple, Z[:, list(order)])) for order in permutations(range(Z.shape[1]))}
        total = sum(np.exp(buffet.logpmf(np.array(matrix), ordered=True)) for matrix in orders)
        assert total == pytest.approx(np.exp(buffet.logpmf(Z)))


@given(matrices, st.randoms())
def test_the_probability_of_a_class_forgets_the_order_of_rows(Z, random):
    rows = list(range(len(Z)))
    random.shuffle(rows)
    buffet = IndianBuffetProcess(0.7)
    assert buffet.logpmf(Z[rows]) == pytest.approx(buffet.logpmf(Z), abs=1e-11)


def test_buffet_and_sticks_have_the_exact_moments():
    # 5000 matrices of 4 rows: mean and variance of K, ones, and one row, within 5.5 standard errors.
    alpha, n, draws = 1.5, 4, 5000
    buffet, rng = IndianBuffetProcess(alpha), np.random.default_rng(1)
    expected = buffet.expected_n_features(n)
    assert expected == pytest.approx(alpha * (1 + 1 / 2 + 1 / 3 + 1 / 4))
    for make in (lambda: buffet.sample(n, rng), lambda: buffet.sample_sticks(n, random_state=rng)[0]):
        matrices = [make() for _ in range(draws)]
        width = np.array([(Z.any(axis=0)).sum() for Z in matrices])
        ones = np.array([Z.sum() for Z in matrices])
        assert abs(width.mean() - expected) < 5.5 * np.sqrt(expected / draws)
        square = (width - expected) ** 2
        assert abs(square.mean() - expected) < 5.5 * square.std() / np.sqrt(draws)
        assert abs(ones.mean() - n * alpha) < 5.5 * ones.std() / np.sqrt(draws)
        for row in (0, n - 1):
            sums = np.array([Z[row].sum() for Z in matrices])
            bins = np.bincount(np.minimum(sums, 5), minlength=6)
            law = stats.poisson(alpha)
            pmf = np.append(law.pmf(np.arange(5)), law.sf(4))
            assert stats.chisquare(bins, draws * pmf).pvalue > 1e-6


def test_simulated_classes_have_their_probabilities_whatever_the_order_of_rows():
    # Chi-square over the classes expected at least 20 times in 6000 draws of three rows, the rest pooled; 1e-6.
    buffet, rng, draws = IndianBuffetProcess(0.8), np.random.default_rng(2), 6000
    for rows in ([0, 1, 2], [2, 0, 1]):
        seen = Counter(left_ordered_form(buffet.sample(3, rng)[rows]).tobytes() for _ in range(draws))
        common = {left_ordered_form(Z).tobytes(): np.exp(buffet.logpmf(Z)) for Z in all_classes(3, 3)}
        common = {key: p for key, p in common.items() if draws * p >= 20}
        counts = [seen[key] for key in common]
        p = list(common.values())
        counts, p = [*counts, draws - sum(counts)], [*p, 1 - sum(p)]
        assert stats.chisquare(counts, draws * np.array(p)).pvalue > 1e-6


def all_of_two_rows(buffet):
    return sum(np.exp(buffet.logpmf(Z)) for Z in all_classes(2, 16))


@pytest.mark.parametrize("b", [0.4, 2.5])
def test_the_second_parameter_keeps_the_sum_and_the_exchange_of_rows(b):
    buffet = IndianBuffetProcess(1.2, b)
    assert all_of_two_rows(buffet) == pytest.approx(1, abs=1e-8)
    Z = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1]])
    assert buffet.logpmf(Z[[2, 0, 1]]) == pytest.approx(buffet.logpmf(Z))
    # Customers in turn: 1, 2 take Poisson(a / b), Poisson(a / (b + 1)) new dishes, and the second follows the first.
    a, first, second = 1.2, stats.poisson(1.2 / b), stats.poisson(1.2 / (b + 1))
    expected = first.pmf(2) * 2 / (b + 1) * b / (b + 1) * second.pmf(1)
    orders = [[[1, 1, 0], [1, 0, 1]], [[1, 1, 0], [0, 1, 1]]]
    total = sum(np.exp(buffet.logpmf(matrix, ordered=True)) for matrix in orders)
    assert total == pytest.approx(expected)
    assert buffet.expected_n_features(2) == pytest.approx(a / b + a / (b + 1))


@pytest.mark.parametrize("b", [0.4, 2.5])
def test_two_parameters_have_the_exact_moments_drawn_either_way(b):
    """2000 matrices of 3 rows: number of dishes and ones, within 5.5 standard errors, a false alarm in 1e7 each."""
    buffet, rng, draws, n = IndianBuffetProcess(1.5, b), np.random.default_rng(5), 2000, 3
    shared = 1.5 / (b * (b + 1))  # a int mu^2 mu^-1 (1 - mu)^(b - 1) dmu: dishes that two given rows share
    for make in (lambda: buffet.sample(n, rng), lambda: buffet.sample_sticks(n, random_state=rng)[0]):
        matrices = [make() for _ in range(draws)]
        width = np.array([Z.any(axis=0).sum() for Z in matrices])
        expected = buffet.expected_n_features(n)
        assert abs(width.mean() - expected) < 5.5 * np.sqrt(expected / draws)
        square = (width - expected) ** 2
        assert abs(square.mean() - expected) < 5.5 * square.std() / np.sqrt(draws)
        both = np.array([(Z[0] & Z[2]).sum() for Z in matrices])
        assert abs(both.mean() - shared) < 5.5 * both.std() / np.sqrt(draws)
        last = np.array([Z[2].sum() for Z in matrices])
        assert abs(last.mean() - 1.5 / b) < 5.5 * np.sqrt(1.5 / b / draws)


def test_one_as_second_parameter_is_the_buffet_with_one():
    one, two = IndianBuffetProcess(1.3), IndianBuffetProcess(1.3, 1.0)
    Z = one.sample(6, 3)
    assert (two.sample(6, 3) == Z).all()
    assert one.logpmf(Z) == two.logpmf(Z)
    counts, n = Z.sum(axis=0), 6
    # The formula of Griffiths and Ghahramani, by factorials.
    kinds = Counter(column.tobytes() for column in np.ascontiguousarray(Z.T))
    value = np.prod([math.factorial(n - m) * math.factorial(m - 1) / math.factorial(n) for m in counts])
    value *= 1.3 ** len(counts) * math.exp(-1.3 * sum(1 / i for i in range(1, n + 1)))
    assert np.exp(one.logpmf(Z)) == pytest.approx(value / np.prod([math.factorial(k) for k in kinds.values()]))


def test_wrong_input_gets_one_sentence():
    with pytest.raises(ValueError, match="b must be a positive number"):
        IndianBuffetProcess(1.0, 0.0)
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        IndianBuffetProcess(0.0)
    with pytest.raises(ValueError, match="Z must hold zeros and ones"):
        left_ordered_form([[0, 2]])
    with pytest.raises(ValueError, match="Z must have shape"):
        IndianBuffetProcess(1.0).logpmf(np.zeros(3))
    with pytest.raises(ValueError, match="n_samples must be an integer of at least 1"):
        IndianBuffetProcess(1.0).sample(0)
    with pytest.raises(ValueError, match="tail_mass must be a positive number"):
        IndianBuffetProcess(1.0).sample_sticks(2, tail_mass=0)
    assert IndianBuffetProcess(1.0).logpmf([[0, 1], [1, 0]], ordered=True) == -np.inf
