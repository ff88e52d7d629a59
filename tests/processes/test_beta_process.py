"""Truncated beta process: moments, evidence by enumeration and quadrature, and its limit, the Indian buffet."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import betaln

from pluri.processes import BetaProcess, IndianBuffetProcess
from pluri.processes.stick_draws import log_beta_draws, log_probit_stick_weights, probit_stick_weights

PROCESS = BetaProcess(1.5, 0.7, 3)


def all_matrices(n_rows, n_columns):
    for entries in product([0, 1], repeat=n_rows * n_columns):
        yield np.reshape(entries, (n_rows, n_columns))


def test_probabilities_of_all_matrices_sum_to_one_and_give_the_moments():
    n = 3
    matrices = list(all_matrices(n, 3))
    p = np.exp([PROCESS.log_marginal(Z) for Z in matrices])
    assert p.sum() == pytest.approx(1)
    sums = np.array([Z[0].sum() for Z in matrices])
    assert p @ sums == pytest.approx(PROCESS.mean_row_sum)
    assert p @ sums**2 - (p @ sums) ** 2 == pytest.approx(PROCESS.variance_row_sum)
    used = np.array([Z.any(axis=0).sum() for Z in matrices])
    assert p @ used == pytest.approx(PROCESS.expected_n_features(n))
    assert p @ used**2 - (p @ used) ** 2 == pytest.approx(PROCESS.variance_n_features(n))


def test_the_evidence_of_a_column_is_an_integral_over_its_probability():
    first, second = PROCESS.shapes
    for m, n in ((1, 4), (2, 4), (3, 4)):
        value, _ = integrate.quad(lambda x, m=m, n=n: x ** (first + m - 1) * (1 - x) ** (second + n - m - 1), 0, 1)
        value /= np.exp(betaln(first, second))
        assert np.exp(PROCESS.log_evidence([m, m, m], n)[0]) == pytest.approx(value, rel=1e-6)


def test_the_next_row_has_the_posterior_mean_as_its_probability():
    counts, n = np.array([0, 2, 5]), 5
    more = PROCESS.log_evidence(counts + 1, n + 1) - PROCESS.log_evidence(counts, n)
    np.testing.assert_allclose(np.exp(more), PROCESS.posterior(counts, n).mean)


def test_posterior_and_its_logs_are_those_of_scipy():
    posterior = PROCESS.posterior([1, 0, 3], 4)
    law = stats.beta(posterior.first, posterior.second)
    np.testing.assert_allclose(posterior.mean, law.mean())
    np.testing.assert_allclose(posterior.variance, law.var())
    for k in range(3):
        one = stats.beta(posterior.first[k], posterior.second[k])
        assert posterior.expected_logs.on[k] == pytest.approx(one.expect(np.log), rel=1e-6)
        assert posterior.expected_logs.off[k] == pytest.approx(one.expect(lambda x: np.log1p(-x)), rel=1e-6)


def test_draws_have_the_exact_moments():
    """4000 matrices: means and variances within 5.5 standard errors, a false alarm in 1e7 each."""
    process, draws, n = BetaProcess(2.0, 1.3, 6), 4000, 3
    rng = np.random.default_rng(0)
    matrices = np.array([process.sample(n, rng) for _ in range(draws)])
    for values, mean, variance in (
        (matrices[:, 0].sum(axis=1), process.mean_row_sum, process.variance_row_sum),
        (matrices.any(axis=1).sum(axis=1), process.expected_n_features(n), process.variance_n_features(n)),
    ):
        assert abs(values.mean() - mean) < 5.5 * np.sqrt(variance / draws)
        squares = (values - mean) ** 2
        assert abs(squares.mean() - variance) < 5.5 * squares.std() / np.sqrt(draws)


def test_logarithms_of_tiny_betas_are_drawn_exactly():
    """Many draws would round to zero. Kolmogorov-Smirnov, a false alarm in 1e6."""
    log_on, log_off = log_beta_draws(np.random.default_rng(1), np.full(20_000, 0.002), np.full(20_000, 0.9))
    assert np.isfinite(log_on).all()
    assert (np.exp(log_on) == 0).mean() > 0.1
    # Below the smallest numbers the distribution function is its leading term, x^first / (first B(first, second)).
    cdf = np.where(
        log_on > -600,
        stats.beta(0.002, 0.9).cdf(np.exp(np.maximum(log_on, -600))),
        np.exp(0.002 * log_on - betaln(0.002, 0.9)) / 0.002,
    )
    assert stats.kstest(cdf, "uniform").pvalue > 1e-6
    np.testing.assert_allclose(np.exp(log_on) + np.exp(log_off), 1.0)


def test_many_atoms_are_the_buffet_of_the_same_numbers():
    wide, buffet = BetaProcess(3.0, 2.0, 10**6), IndianBuffetProcess(3.0, 2.0)
    assert wide.limit == buffet
    assert wide.expected_n_features(7) == pytest.approx(buffet.expected_n_features(7), rel=1e-5)
    assert wide.mean_row_sum == pytest.approx(1.5, rel=1e-5)
    # The log probability of a left-ordered class: K choose the columns in use, over those that are alike.
    Z = np.array([[1, 1, 0, 1], [0, 0, 1, 1], [0, 0, 0, 1]])
    counts = np.zeros(10**6)
    counts[:4] = Z.sum(axis=0)
    orders = np.log(10.0**6 - np.arange(4)).sum() - np.log(2.0)  # the first two columns are equal
    assert wide.log_evidence(counts, 3).sum() + orders == pytest.approx(buffet.logpmf(Z), abs=1e-4)


def test_one_atom_counts_as_one_of_two():
    assert BetaProcess(2.0, 3.0, 1).shapes == BetaProcess(2.0, 3.0, 2).shapes
    assert BetaProcess(2.0, 3.0, 1).sample(4, 0).shape == (4, 1)


def test_log_weights_of_probit_sticks_are_logarithms_and_sum_to_one():
    predictors = np.random.default_rng(0).normal(size=(50, 6), scale=3)
    logs = log_probit_stick_weights(predictors)
    np.testing.assert_allclose(np.exp(logs), probit_stick_weights(predictors), atol=1e-15)
    np.testing.assert_allclose(np.exp(logs).sum(axis=1), 1.0)
    assert np.isfinite(log_probit_stick_weights(np.full((1, 3), -60.0))).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BetaProcess(0.0, 1.0, 3), "a must be a positive number"),
        (lambda: BetaProcess(1.0, -1.0, 3), "b must be a positive number"),
        (lambda: BetaProcess(1.0, 1.0, 0), "truncation must be an integer of at least 1"),
        (lambda: PROCESS.posterior([1, 2], 3), "counts must be between 0 and n_rows for each of 3 atoms"),
        (lambda: PROCESS.posterior([1, 2, 4], 3), "counts must be between 0 and n_rows"),
        (lambda: PROCESS.log_marginal([[0, 2, 1]]), "Z must hold zeros and ones"),
        (lambda: PROCESS.sample(0), "n_samples must be an integer of at least 1"),
    ],
)
def test_wrong_input_gets_one_sentence(make, message):
    with pytest.raises(ValueError, match=message):
        make()
