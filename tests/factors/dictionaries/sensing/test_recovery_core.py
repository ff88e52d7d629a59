"""Conditionals of measured rows and of a dictionary that is learned blindly: against enumeration and dense formulas."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import chi2, kstest, multivariate_normal

from pluri.factors.dictionaries.conditionals import component_posterior
from pluri.factors.dictionaries.records import DictionaryState, Rows
from pluri.factors.dictionaries.sensing import random_projections
from pluri.factors.dictionaries.sensing.blind_dictionary import atom_posterior, draw_dictionary, gram_matrices
from pluri.factors.dictionaries.sensing.gibbs import RecoveryGibbs
from pluri.factors.dictionaries.sensing.measurements import Measurements, prepare_measurements
from pluri.factors.dictionaries.usage.beta_process import BetaProcessUsage, UsageProbabilities
from pluri.priors.hyperpriors import Gamma

NOISE, WEIGHT = 4.0, 0.5  # precisions


class Fixed:
    """In place of a generator: normal numbers that are given."""

    def __init__(self, values):
        self.values = values

    def standard_normal(self, shape):
        return np.broadcast_to(self.values, shape).copy() if np.ndim(self.values) == 0 else self.values.reshape(shape)


def copies(n_rows, y, Phi, log_odds, used=None):
    """A sampler of many rows that are all the same, and where it begins."""
    K = Phi.shape[1]
    kernel = RecoveryGibbs(Measurements(np.tile(y, (n_rows, 1)), Phi), BetaProcessUsage(n_rows, K, 1.0, 1.0), np.eye(K))
    state = UsageProbabilities(log_odds, np.zeros(K))
    begin = np.zeros((n_rows, K), dtype=np.int8) if used is None else used
    return kernel, DictionaryState(np.eye(K), np.zeros((n_rows, K)), begin, np.array([NOISE]), WEIGHT, state)


def test_choices_of_atoms_are_those_of_enumeration():
    rng = np.random.default_rng(0)
    Phi, y, log_odds = rng.normal(size=(3, 5)), 1.5 * rng.normal(size=3), rng.normal(size=5) - 1.0
    patterns = np.array(list(itertools.product([0, 1], repeat=5)), dtype=np.int8)
    scores = [
        z @ log_odds
        + multivariate_normal(np.zeros(3), np.eye(3) / NOISE + Phi[:, z == 1] @ Phi[:, z == 1].T / WEIGHT).logpdf(y)
        for z in patterns
    ]
    probabilities = np.exp(scores - logsumexp(scores))
    n_rows = 6000
    kernel, position = copies(n_rows, y, Phi, log_odds)
    for _ in range(25):  # rows are independent chains, which from here are where enumeration says
        used, weights, _ = kernel.draw_codes(rng, position, kernel.data.values)
        position = replace(position, weights=weights, used=used)
    counts = np.bincount(used @ 2 ** np.arange(5)[::-1], minlength=32)
    order = np.argsort(-probabilities)
    most = order[: int((n_rows * probabilities >= 5).sum()) - 1]  # the rest is one pattern
    seen = np.append(counts[most], n_rows - counts[most].sum())
    expected = n_rows * np.append(probabilities[most], 1 - probabilities[most].sum())
    assert ((seen - expected) ** 2 / expected).sum() < chi2.isf(1e-5, len(seen) - 1)  # the false-alarm rate


def test_with_all_atoms_in_use_codes_are_ridge_regression_with_its_covariance():
    rng = np.random.default_rng(1)
    Phi, y, n_rows = rng.normal(size=(4, 3)), rng.normal(size=4), 20_000
    kernel, position = copies(n_rows, y, Phi, np.full(3, 1e4))
    used, weights, _ = kernel.draw_codes(rng, position, kernel.data.values)
    assert used.all()
    covariance = np.linalg.inv(WEIGHT * np.eye(3) + NOISE * Phi.T @ Phi)
    ridge = NOISE * covariance @ Phi.T @ y
    root = np.linalg.cholesky(covariance)
    standard = np.linalg.solve(root, (weights - ridge).T)  # independent standard normal numbers
    assert kstest(standard.ravel(), "norm").pvalue > 1e-5
    assert np.abs(np.corrcoef(standard) - np.eye(3)).max() < 5 / np.sqrt(n_rows)  # false alarms below 1e-5


def test_one_atom_is_used_with_the_probability_of_the_closed_form():
    rng = np.random.default_rng(2)
    phi, y, n_rows = np.array([[0.8], [-0.4]]), np.array([0.9, 0.2]), 40_000
    kernel, position = copies(n_rows, y, phi, np.array([-0.7]))
    v = 1 / (WEIGHT + NOISE * float((phi**2).sum()))
    m = NOISE * v * float(phi[:, 0] @ y)
    chance = expit(-0.7 + 0.5 * np.log(WEIGHT * v) + m**2 / (2 * v))
    used, weights, _ = kernel.draw_codes(rng, position, kernel.data.values)
    assert abs(used.mean() - chance) < 5 * np.sqrt(chance * (1 - chance) / n_rows)  # false alarms below 1e-6
    assert kstest((weights[used == 1] - m) / np.sqrt(v), "norm").pvalue > 1e-5
    assert (weights[used == 0] == 0).all()


def blind_problem(shared, n_rows=12, n=3, P=4, K=3, seed=0):
    rng = np.random.default_rng(seed)
    S = random_projections(n, P, None if shared else n_rows, random_state=seed)
    data = Measurements(rng.normal(size=(n_rows, n)), S)
    codes = rng.normal(size=(n_rows, K)) * (rng.random((n_rows, K)) < 0.6)
    return data, codes, rng.normal(size=(K, P)) / 2


@pytest.mark.parametrize("kept", [True, False])
def test_an_atom_given_the_rest_has_the_gradient_and_curvature_of_the_joint_density(kept):
    data, codes, atoms = blind_problem(shared=False)
    usage = BetaProcessUsage(12, 3, 1.0, 1.0)
    kernel = RecoveryGibbs(data, usage, 3, Gamma(2.0, 2.0), Gamma(2.0, 2.0))
    used = (codes != 0).astype(np.int8)
    position = DictionaryState(
        atoms, codes, used, np.array([NOISE]), WEIGHT, usage.start(used, np.random.default_rng(0))
    )
    users = np.flatnonzero(codes[:, 1])
    without = data.values - data.seen(codes @ atoms - np.outer(codes[:, 1], atoms[1]))
    grams = gram_matrices(data)[users] if kept else None
    precision, linear = atom_posterior(data.projections[users], without[users], codes[users, 1], NOISE, grams)

    def density(atom):
        moved = atoms.copy()
        moved[1] = atom
        return kernel.log_joint(replace(position, components=moved), data.values)

    mean, step = np.linalg.solve(precision, linear), 1e-3 * np.eye(4)
    gradient = [(density(mean + e) - density(mean - e)) / 2e-3 for e in step]
    np.testing.assert_allclose(gradient, 0, atol=1e-6)

    def mixed(e, f):
        return density(mean + e + f) - density(mean + e - f) - density(mean - e + f) + density(mean - e - f)

    curvature = [[mixed(e, f) / 4e-6 for f in step] for e in step]
    np.testing.assert_allclose(curvature, -precision, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("whole", [True, False])
def test_one_projection_for_all_gives_the_dictionary_of_turned_rows(whole):
    data, codes, atoms = blind_problem(shared=True)
    if whole:  # rows that are seen themselves: the conditional of a dictionary
        data = replace(data, projections=np.eye(4), values=np.random.default_rng(5).normal(size=(12, 4)))
        precision, linear = component_posterior(Rows.of(data.values), codes, np.full(12, NOISE))
        precisions, rotation = np.stack([precision] * 4), np.eye(4)
    else:
        left, size, rotation = np.linalg.svd(data.projections)
        size = np.append(size, 0.0)
        precisions = 4 * np.eye(3) + NOISE * size[:, None, None] ** 2 * (codes.T @ codes)
        linear = np.zeros((3, 4))
        linear[:, :3] = NOISE * codes.T @ data.values @ left * size[:3]
    mean = draw_dictionary(Fixed(0.0), data, codes, atoms, NOISE, None)
    expected = np.stack([np.linalg.solve(precisions[j], linear[:, j]) for j in range(4)], axis=1)
    np.testing.assert_allclose(mean @ rotation.T, expected, atol=1e-10)
    covariance = np.zeros((3, 4, 3, 4))
    for unit in np.eye(12):
        move = (draw_dictionary(Fixed(unit), data, codes, atoms, NOISE, None) - mean) @ rotation.T
        covariance += np.multiply.outer(move, move)
    for j in range(4):
        np.testing.assert_allclose(covariance[:, j, :, j], np.linalg.inv(precisions[j]), atol=1e-10)


def test_directions_that_one_projection_does_not_see_are_drawn_from_the_prior():
    data, codes, atoms = blind_problem(shared=True, n=2, P=6, K=5)
    hidden = np.linalg.svd(data.projections)[2][2:]
    rng = np.random.default_rng(3)
    draws = [draw_dictionary(rng, data, codes, atoms, NOISE, None) @ hidden.T for _ in range(200)]
    assert kstest(np.sqrt(6) * np.ravel(draws), "norm").pvalue > 1e-5  # the false-alarm rate


def test_a_projection_of_its_own_for_each_row_agrees_with_one_for_all_where_they_are_the_same():
    data, codes, atoms = blind_problem(shared=True)
    tiled = replace(data, projections=np.tile(data.projections, (12, 1, 1)))
    together = draw_dictionary(Fixed(0.0), data, codes, atoms, NOISE, None)  # the mean of all atoms
    for _ in range(400):  # conditional means one after the other lead there too
        atoms = draw_dictionary(Fixed(0.0), tiled, codes, atoms, NOISE, gram_matrices(tiled))
    np.testing.assert_allclose(atoms, together, atol=1e-8)


@pytest.mark.parametrize("shared", [True, False])
def test_the_constant_of_a_row_is_an_atom_of_ones_with_a_flat_prior(shared):
    rng = np.random.default_rng(4)
    S = random_projections(5, 7, None if shared else 3, random_state=0)
    atoms, Y = rng.normal(size=(4, 7)), rng.normal(size=(3, 5)) + 10.0
    data = prepare_measurements(Y, S, n_features=7, noise_model="measurement", center="sample")
    Phi = np.broadcast_to(np.swapaxes(data.measured(atoms), -1, -2), (3, 4, 4))
    for i in range(3):
        weight, noise = WEIGHT * data.scale**2, NOISE * data.unit**2  # in the units of the measurements
        code = np.linalg.solve(weight * np.eye(4) + noise * Phi[i].T @ Phi[i], noise * Phi[i].T @ data.values[i])
        found = data.whole(np.tile(code @ atoms, (3, 1)))[i] * data.scale
        own = S if shared else S[i]
        dense = np.vstack([atoms, np.ones(7)])
        measured = own @ dense.T
        prior = np.diag([WEIGHT] * 4 + [1e-12])
        direct = np.linalg.solve(prior + NOISE * measured.T @ measured, NOISE * measured.T @ Y[i]) @ dense
        np.testing.assert_allclose(found, direct, atol=1e-6)


def test_noise_of_the_signal_is_noise_of_the_measurements_after_whitening():
    rng = np.random.default_rng(5)
    orthonormal = np.linalg.qr(rng.normal(size=(6, 3)))[0].T
    Y, mixing = rng.normal(size=(4, 3)), rng.normal(size=(3, 3))
    plain = prepare_measurements(Y, orthonormal, n_features=6, noise_model="measurement", center=None)
    mixed = prepare_measurements(Y @ mixing.T, mixing @ orthonormal, n_features=6, noise_model="signal", center=None)
    # Up to a rotation of the measurements: what matters are the products.
    np.testing.assert_allclose(
        mixed.projections.T @ mixed.projections, plain.projections.T @ plain.projections, atol=1e-10
    )
    np.testing.assert_allclose(
        mixed.scale * mixed.values @ mixed.projections, plain.scale * plain.values @ plain.projections, atol=1e-10
    )
