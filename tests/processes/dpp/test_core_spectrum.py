"""Spectra, symmetric polynomials and kernel forms against enumeration, whole numbers and dense algebra."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from pluri.processes.dpp.kernel_checks import check_kernel
from pluri.processes.dpp.kernel_forms import DenseKernel, FeatureKernel, FunctionKernel, as_subset
from pluri.processes.dpp.samplers.spectral import draw_subsets
from pluri.processes.dpp.sizes import scale_for_size, size_probabilities
from pluri.processes.dpp.spectrum import Spectrum, spectrum_of_features, spectrum_of_kernel, spectrum_of_marginal
from pluri.processes.dpp.symmetric_polynomials import log_elementary, log_elementary_table, log_elementary_without


def elementary(values: np.ndarray, order: int) -> float:
    return float(sum(math.prod(values[list(chosen)]) for chosen in combinations(range(len(values)), order)))


def exponents_from_tiny_to_huge(n_values: int) -> np.ndarray:
    """Powers of two from 1e-12 to 1e12, so that sums of products are whole numbers after scaling."""
    return np.random.default_rng(0).integers(-40, 41, size=n_values)


def exact_log_elementary(exponents: np.ndarray, order: int) -> list[float]:
    """In whole numbers of thousands of digits: the values are 2**(exponent + 40), undone in the logarithm."""
    polynomials = [1] + [0] * order
    for exponent in exponents:
        value = 1 << int(exponent + 40)
        for m in range(order, 0, -1):
            polynomials[m] += value * polynomials[m - 1]
    return [math.log(total) - 40 * m * math.log(2) for m, total in enumerate(polynomials)]


def test_symmetric_polynomials_equal_their_enumeration() -> None:
    values = np.random.default_rng(0).gamma(0.5, size=9)
    logs = log_elementary(np.log(values), 9)
    np.testing.assert_allclose(np.exp(logs), [elementary(values, m) for m in range(10)], rtol=1e-12)
    table = log_elementary_table(np.log(values), 5)
    np.testing.assert_allclose(
        np.exp(table), [[elementary(values[:n], m) for m in range(6)] for n in range(10)], rtol=1e-12
    )
    for order in range(5):
        without = [elementary(np.delete(values, n), order) for n in range(9)]
        np.testing.assert_allclose(np.exp(log_elementary_without(np.log(values), order)), without, rtol=1e-12)


def test_polynomials_of_zeros_and_of_too_high_an_order_are_zero() -> None:
    with np.errstate(divide="ignore"):
        logs = np.log([0.0, 2.0, 0.0, 3.0])
    np.testing.assert_allclose(np.exp(log_elementary(logs, 5)), [1, 5, 6, 0, 0, 0])
    np.testing.assert_allclose(np.exp(log_elementary_without(logs, 2)), [6, 0, 6, 0])
    np.testing.assert_allclose(log_elementary(np.empty(0), 2), [0, -np.inf, -np.inf])


def test_the_normalizer_of_fixed_size_keeps_its_digits_over_24_orders_of_magnitude() -> None:
    exponents = exponents_from_tiny_to_huge(5000)
    exact = exact_log_elementary(exponents, 60)
    logs = log_elementary(exponents * math.log(2), 60)
    np.testing.assert_allclose(logs, exact, rtol=1e-12)


def test_eigenvector_probabilities_of_fixed_size_sum_to_it_over_24_orders_of_magnitude() -> None:
    log_values = exponents_from_tiny_to_huge(5000) * math.log(2)
    total = log_elementary(log_values, 60)[-1]
    taken = np.exp(log_values + log_elementary_without(log_values, 59) - total)
    assert taken.max() <= 1 + 1e-9
    assert taken.sum() == pytest.approx(60, rel=1e-9)


def test_draws_of_fixed_size_stay_exact_over_24_orders_of_magnitude() -> None:
    """A diagonal kernel: inclusion probabilities in whole numbers; z of each below 5 (false alarm rate below 1e-4)."""
    exponents = np.sort(np.random.default_rng(1).integers(-40, 41, size=40))[::-1]
    spectrum = Spectrum(2.0**exponents, np.asfortranarray(np.eye(40)))
    draws = draw_subsets(spectrum, 5000, np.random.default_rng(2), size=20)
    counts = np.bincount(np.concatenate(draws), minlength=40)
    total = exact_log_elementary(exponents, 20)[-1]
    exact = np.array(
        [
            math.exp(exponent * math.log(2) + exact_log_elementary(np.delete(exponents, n), 19)[-1] - total)
            for n, exponent in enumerate(exponents)
        ]
    )
    log_values = exponents * math.log(2)
    taken = np.exp(log_values + log_elementary_without(log_values, 19) - log_elementary(log_values, 20)[-1])
    np.testing.assert_allclose(taken, exact, rtol=1e-9)
    deviation = np.abs(counts - 5000 * exact)
    assert (deviation <= 5 * np.sqrt(5000 * exact * (1 - np.minimum(exact, 1))) + 1e-2).all()


def test_spectra_of_all_forms_agree() -> None:
    F = np.random.default_rng(0).normal(size=(12, 5))
    L = F @ F.T
    K = L @ np.linalg.inv(L + np.eye(12))
    for spectrum in (
        spectrum_of_kernel(L),
        spectrum_of_marginal(0.5 * (K + K.T)),
        spectrum_of_features(F),
        spectrum_of_features(sparse.csr_array(F)),
        spectrum_of_features(np.hstack([F, np.zeros((12, 20))])),
    ):
        assert spectrum.rank == 5
        np.testing.assert_allclose((spectrum.vectors * spectrum.odds) @ spectrum.vectors.T, L, atol=1e-9)
        np.testing.assert_allclose(spectrum.vectors.T @ spectrum.vectors, np.eye(5), atol=1e-10)
        np.testing.assert_allclose((spectrum.vectors * spectrum.probabilities) @ spectrum.vectors.T, K, atol=1e-10)
        assert spectrum.log_normalizer == pytest.approx(np.linalg.slogdet(L + np.eye(12))[1])
        assert (np.diff(spectrum.odds) <= 0).all()


def test_features_of_nearly_dependent_columns_keep_orthonormal_eigenvectors() -> None:
    rng = np.random.default_rng(0)
    F = rng.normal(size=(50, 4)) @ np.diag([1.0, 1e-3, 1e-5, 1e-7])
    F = F @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    spectrum = spectrum_of_features(F)
    assert spectrum.rank == 4
    np.testing.assert_allclose(spectrum.vectors.T @ spectrum.vectors, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(spectrum.odds, np.linalg.svd(F)[1] ** 2, rtol=1e-6)


def test_a_projection_has_infinite_odds_and_no_normalizer() -> None:
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 2)))[0]
    spectrum = spectrum_of_marginal(basis @ basis.T)
    assert spectrum.has_certain
    assert np.isinf(spectrum.odds).all()
    assert spectrum.rank == 2
    assert spectrum.log_normalizer == np.inf


@pytest.mark.parametrize("worst", [-0.1, 1.1])
def test_marginal_eigenvalues_outside_zero_and_one_are_refused(worst: float) -> None:
    with pytest.raises(ValueError, match=f"between 0 and 1, got {worst}"):
        spectrum_of_marginal(np.diag([0.5, worst]))


def test_sizes_are_sums_of_coins() -> None:
    probabilities = np.array([0.1, 0.5, 0.8, 1.0])
    by_hand = np.zeros(5)
    for heads in np.ndindex(2, 2, 2, 2):
        by_hand[sum(heads)] += np.where(heads, probabilities, 1 - probabilities).prod()
    np.testing.assert_allclose(size_probabilities(probabilities), by_hand, atol=1e-15)


@pytest.mark.parametrize("wanted", [0.01, 3.0, 19.9])
def test_a_scaled_kernel_has_the_wanted_mean_size(wanted: float) -> None:
    odds = np.logspace(-12, 12, 20)
    scaled = scale_for_size(odds, wanted) * odds
    assert (scaled / (1 + scaled)).sum() == pytest.approx(wanted, rel=1e-9)


def test_kernel_forms_give_the_same_rows_blocks_and_diagonal() -> None:
    F = np.random.default_rng(0).normal(size=(70, 3))
    quality = np.linspace(0.1, 1.0, 70)
    L = F @ F.T * quality * quality[:, None]
    forms = [
        DenseKernel(L),
        FeatureKernel(F * quality[:, None]),
        FeatureKernel(sparse.csr_array(F * quality[:, None])),
        FunctionKernel(lambda a, b: a @ b.T, F, quality),
    ]
    for form in forms:
        assert form.n_items == 70
        np.testing.assert_allclose(form.diagonal(), np.diagonal(L), atol=1e-12)
        np.testing.assert_allclose(form.rows([5, 2]), L[[5, 2]], atol=1e-12)
        np.testing.assert_allclose(form.block([1, 69], [0, 3, 4]), L[np.ix_([1, 69], [0, 3, 4])], atol=1e-12)
        assert form.block([], [0]).shape == (0, 1)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ([[1.0, 0.5]], "square"),
        ([[1.0, 0.5], [0.4, 1.0]], "symmetric"),
        ([[1.0, np.inf], [np.inf, 1.0]], "finite"),
        ([[1.0, 2.0], [2.0, 1.0]], "eigenvalue -1"),
        (np.empty((0, 0)), "at least one item"),
    ],
)
def test_what_is_no_kernel_is_refused(kernel, message) -> None:
    with pytest.raises(ValueError, match=message):
        check_kernel(kernel)


@pytest.mark.parametrize(
    ("items", "message"),
    [([0, 0], "twice"), ([5], "from 0 to 4"), ([-1], "from 0 to 4"), ([0.5], "whole"), ([True], "mask"), (3, "shape")],
)
def test_what_is_no_subset_is_refused(items, message) -> None:
    with pytest.raises(ValueError, match=message):
        as_subset(items, 5)
