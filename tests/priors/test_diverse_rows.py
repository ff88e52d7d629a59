"""The determinantal prior over square stochastic matrices: its normaliser and its exact sampler."""

import itertools
import math

import numpy as np
import pytest

from pluri.priors import expected_determinant, log_determinant, sample_diverse_rows


def squared_determinant(rows):
    """det(U U^T) for a stack of square matrices, with U the entrywise square root."""
    return np.linalg.det(np.sqrt(rows)) ** 2


def sign(permutation):
    return (-1) ** sum(a > b for a, b in itertools.combinations(permutation, 2))


def determinant_moment(eta, power):
    """E[det(sqrt(A))^power] over independent Dirichlet(eta) rows, by expanding the determinant (Leibniz)."""
    k, total = len(eta), 0.0
    permutations = list(itertools.permutations(range(k)))
    for choice in itertools.product(permutations, repeat=power):
        term = float(np.prod([sign(p) for p in choice]))
        for row in range(k):
            exponents = np.bincount([p[row] for p in choice], minlength=k) / 2
            log_moment = math.lgamma(sum(eta)) - math.lgamma(sum(eta) + power / 2)
            log_moment += sum(math.lgamma(e + x) - math.lgamma(e) for e, x in zip(eta, exponents))
            term *= math.exp(log_moment)
        total += term
    return total


def test_normaliser_has_its_closed_form_and_known_values():
    for k, value in [(2, 0.191575), (3, 0.026310), (4, 0.0031097)]:
        closed = math.factorial(k) / k**k * (1 - math.pi / 4) ** (k - 1) * (1 + (k - 1) * math.pi / 4)
        assert expected_determinant(k) == pytest.approx(closed, rel=1e-12)
        assert expected_determinant(k) == pytest.approx(value, rel=1e-4)
    assert expected_determinant(1) == 1.0


@pytest.mark.parametrize("eta", [[1.0, 1.0, 1.0], [0.5, 2.0, 3.5], [0.4, 0.7]])
def test_normaliser_equals_the_expanded_determinant(eta):
    assert expected_determinant(len(eta), eta) == pytest.approx(determinant_moment(eta, 2), rel=1e-9)


def test_normaliser_equals_monte_carlo():
    """|z| < 4 for three values of k: false-alarm rate 2e-4."""
    rng = np.random.default_rng(0)
    for k in (2, 3, 5):
        values = squared_determinant(rng.dirichlet(np.ones(k), size=(40_000, k)))
        error = values.std() / np.sqrt(values.size)
        assert abs(values.mean() - expected_determinant(k)) < 4 * error


@pytest.mark.parametrize("eta", [[1.0, 1.0, 1.0], [0.5, 2.0, 3.5]])
def test_sampled_determinants_have_the_mean_of_the_prior(eta):
    """Under the prior the mean determinant is E[det^2] / E[det]; |z| < 4: false-alarm rate 6e-5 each."""
    rng = np.random.default_rng(1)
    values = squared_determinant(np.array([sample_diverse_rows(3, eta, rng) for _ in range(4000)]))
    expected = determinant_moment(eta, 4) / determinant_moment(eta, 2)
    if eta == [1.0, 1.0, 1.0]:
        assert expected == pytest.approx(0.103768, abs=1e-6)
    assert abs(values.mean() - expected) < 4 * values.std() / np.sqrt(values.size)


def test_every_row_has_the_right_marginal_for_two_states():
    """For k = 2 the density of (p, q) is det / E[det]; chi-square on a 4 x 4 grid, rejected at 1e-4."""
    from scipy.stats import chi2

    rng = np.random.default_rng(2)
    draws = np.array([sample_diverse_rows(2, 1.0, rng)[:, 0] for _ in range(5000)])
    observed, _, _ = np.histogram2d(draws[:, 0], draws[:, 1], bins=4, range=[[0, 1], [0, 1]])
    fine = (np.arange(800) + 0.5) / 800
    p, q = np.meshgrid(fine, fine, indexing="ij")
    density = 1 - (np.sqrt(p * q) + np.sqrt((1 - p) * (1 - q))) ** 2
    probability = density.reshape(4, 200, 4, 200).sum(axis=(1, 3))
    expected = 5000 * probability / probability.sum()
    statistic = np.sum((observed - expected) ** 2 / expected)
    assert statistic < chi2.ppf(1 - 1e-4, df=15)


def test_sampled_rows_overlap_less_than_independent_ones():
    """Mean Bhattacharyya coefficient of two rows for k = 3: 0.758 against 0.853 (sd of each mean below 0.004)."""
    rng = np.random.default_rng(3)

    def overlap(matrices):
        kernels = np.sqrt(matrices) @ np.sqrt(matrices).transpose(0, 2, 1)
        return (kernels.sum(axis=(1, 2)) - 3).mean() / 6

    assert overlap(np.array([sample_diverse_rows(3, 1.0, rng) for _ in range(2000)])) == pytest.approx(0.758, abs=0.015)
    assert overlap(rng.dirichlet(np.ones(3), size=(2000, 3))) == pytest.approx(0.853, abs=0.015)


def test_sampler_handles_one_state_and_many():
    rng = np.random.default_rng(4)
    np.testing.assert_array_equal(sample_diverse_rows(1, 1.0, rng), [[1.0]])
    rows = sample_diverse_rows(15, 0.5, rng)
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    assert log_determinant(rows) > -np.inf


def test_same_generator_state_gives_the_same_rows():
    first, second = (sample_diverse_rows(4, 1.0, np.random.default_rng(9)) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("k", "eta", "message"),
    [(0, 1.0, "k must be"), (3, -1.0, "eta must be"), (3, [1.0, 2.0], "eta must be"), (3, 1e18, "eta must be")],
)
def test_bad_input_is_refused(k, eta, message):
    with pytest.raises(ValueError, match=message):
        sample_diverse_rows(k, eta, np.random.default_rng(0))
