"""Clusters of rows that use the same atoms: densities by SciPy, draws exactly, and the whole sampler."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from pluri.factors.dictionaries.records import Rows
from pluri.factors.dictionaries.usage.beta_process import BetaProcessUsage
from pluri.factors.dictionaries.usage.patterns import PatternGibbs, PatternPosterior, PatternUsage, draw_pattern
from pluri.priors import Gamma
from pluri.processes import LogProbabilities
from pluri.testing import SamplerProblem

RNG = np.random.default_rng(0)
ATOMS, VALUES = RNG.normal(size=(3, 4)), RNG.normal(size=(5, 4))
NOISE, PRECISION = np.array([0.5, 1.0, 2.0, 4.0, 1.5]), 0.7


@pytest.mark.parametrize("some", [[0, 1, 2], [1], []])
def test_rows_have_their_marginal_density_and_weights_their_posterior(some):
    atoms = ATOMS[some]
    found = PatternPosterior.of(atoms, VALUES, NOISE, PRECISION)
    for i, g in enumerate(NOISE):
        covariance = np.eye(4) / g + atoms.T @ atoms / PRECISION
        alone = stats.multivariate_normal(np.zeros(4), np.eye(4) / g).logpdf(VALUES[i])
        expected = stats.multivariate_normal(np.zeros(4), covariance).logpdf(VALUES[i]) - alone
        assert found.log_evidence[i] == pytest.approx(expected)
        precision = PRECISION * np.eye(len(some)) + g * atoms @ atoms.T
        np.testing.assert_allclose(
            found.basis @ np.diag(found.variances[i]) @ found.basis.T, np.linalg.inv(precision), atol=1e-12
        )
        mean = np.linalg.solve(precision, g * atoms @ VALUES[i])
        np.testing.assert_allclose(found.basis @ found.means[i], mean, atol=1e-12)


def test_an_atom_of_a_cluster_has_its_conditional():
    """One atom, which is on with the odds of the marginal densities of all rows of the cluster; 1e-6 by chi-square."""
    rng, atom = np.random.default_rng(1), ATOMS[:1]
    evidence = PatternPosterior.of(atom, VALUES, NOISE, PRECISION).log_evidence.sum()
    probabilities = LogProbabilities(np.array([-1.0 - evidence]), np.array([0.0]))
    gram, left = atom @ atom.T, VALUES @ atom.T
    on = 0
    for _ in range(2000):
        codes = np.zeros((5, 1))
        residual = left.copy()
        found = draw_pattern(rng, np.zeros(1, dtype=np.int8), codes, residual, gram, probabilities, NOISE, PRECISION)
        np.testing.assert_allclose(residual, left - codes @ gram)
        assert codes.any() == found[0]
        on += int(found[0])
    p = expit(-1.0)
    assert stats.binomtest(on, 2000, p).pvalue > 1e-6


def pattern_problem():
    """Entry for the table of samplers."""
    usage = PatternUsage(5, 4, 2.0, 1.0, n_clusters=3, concentration=Gamma(2.0, 2.0))
    kernel = PatternGibbs(
        Rows.of(np.zeros((5, 3))), usage, 4, noise_prior=Gamma(2.0, 2.0), weight_prior=Gamma(2.0, 2.0), counting=False
    )

    def statistics(position, data):
        together = np.equal.outer(position.usage.labels, position.usage.labels)
        return {
            "together": together.sum(),
            "first cluster": (position.usage.labels == 0).sum(),
            "patterns": position.usage.patterns.sum(),
            "used": position.used.sum(),
            "weights": (position.weights * position.used).sum(),
            "squared weights": np.log1p((position.weights**2).sum()),
            "noise": np.log(position.noise_precision).sum(),
            "weight precision": np.log(position.weight_precision),
            "atoms": (position.components**2).sum(),
            "data": np.log1p((data**2).sum()),
            "odds": np.clip(position.usage.probabilities.log_odds, -20, 20).mean(),
            "concentration": np.log(position.usage.concentration),
        }

    return SamplerProblem(
        "PatternGibbs", prior=kernel.sample_prior, data=kernel.sample_data, transition=kernel.sweep,
        statistics=statistics, n_steps=4,
    )  # fmt: skip


def test_rows_of_a_cluster_use_the_same_atoms_after_a_sweep():
    rng = np.random.default_rng(2)
    rows = Rows.of(rng.normal(size=(30, 6)))
    usage = PatternUsage(30, 8, 3.0, n_clusters=4)
    kernel = PatternGibbs(rows, usage, 8, noise_prior=Gamma(2.0, 2.0), weight_prior=Gamma(2.0, 2.0))
    state = kernel.init(rng, kernel.sample_prior(rng))
    for _ in range(5):
        state, _ = kernel.step(rng, state)
        position = state.position
        np.testing.assert_array_equal(position.used, position.usage.patterns[position.usage.labels])
        assert np.isfinite(state.log_density)
    begun = usage.start(position.used, rng)
    np.testing.assert_array_equal(begun.patterns[begun.labels].shape, (30, 8))


def test_the_log_joint_is_the_sum_of_its_parts():
    usage = PatternUsage(6, 3, 2.0, 1.5, n_clusters=4, concentration=1.3)
    state, used = usage.sample(6, np.random.default_rng(3))
    p = state.probabilities
    expected = (stats.beta(*usage.process.shapes).logpdf(np.exp(p.on)) + p.on + p.off).sum()
    expected += stats.bernoulli(np.exp(p.on)).logpmf(state.patterns).sum() + state.log_weights[state.labels].sum()
    sticks = state.log_weights[:-1] - np.append(0.0, np.cumsum(state.log_rest))[:-1]
    expected += (stats.beta(1.0, 1.3).logpdf(np.exp(sticks)) + sticks + state.log_rest).sum()
    assert usage.log_joint(state, used) == pytest.approx(expected)


def test_wrong_input_gets_one_sentence():
    with pytest.raises(ValueError, match="X must have no missing value"):
        PatternGibbs(Rows.of([[np.nan, 1.0], [1.0, 2.0]]), PatternUsage(2, 3), 3)
    with pytest.raises(ValueError, match="usage must be a PatternUsage"):
        PatternGibbs(Rows.of(np.zeros((2, 2))), BetaProcessUsage(2, 3), 3)
