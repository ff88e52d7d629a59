"""Every conditional of the dictionary sampler against the log joint density, and codes against enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, logsumexp
from scipy.stats import chisquare, multivariate_normal

from pluri.factors.dictionaries._code_kernels import (
    CodePrior,
    CodeState,
    Draws,
    draw_codes_with_gram,
    draw_codes_with_residuals,
)
from pluri.factors.dictionaries.conditionals import component_posterior, draw_codes, squared_residuals
from pluri.factors.dictionaries.gibbs import DictionaryGibbs, _draw_precision
from pluri.factors.dictionaries.records import Rows
from pluri.factors.dictionaries.usage import BetaProcessUsage
from pluri.priors import Gamma

PROPER = Gamma(2.0, 2.0)


def problem(seed, *, missing=False, collapsed=True, n_groups=1, n=5, K=4, P=3):
    """A kernel whose data are drawn from its model, and the position that they were drawn from."""
    rng = np.random.default_rng(seed)
    values, group = np.zeros((n, P)), np.arange(n) % n_groups
    observed = rng.random((n, P)) < 0.7 if missing else None
    rows = Rows(values, observed, group.astype(np.intp), n_groups)
    kernel = DictionaryGibbs(rows, BetaProcessUsage(n, K, 3.0, 1.0), K, collapsed, PROPER, PROPER)
    position = kernel.sample_prior(rng)
    data = kernel.sample_data(rng, position)
    return replace(kernel, rows=replace(rows, values=data)), position


def log_joint(kernel, position):
    codes = position.weights * position.used
    return kernel.log_joint(position, squared_residuals(kernel.rows, codes @ position.components))


def derivatives(function, at, step=1e-3):
    up, middle, down = function(at + step), function(at), function(at - step)
    return (up - down) / (2 * step), (up - 2 * middle + down) / step**2


def sweep_codes(kernel, position, uniforms, normals):
    """Weights and usage after one pass with these random numbers."""
    rows, atoms = kernel.rows, position.components
    log_odds, group = kernel.usage.log_odds(position.usage)
    noise = position.noise_precision[rows.noise_group]
    prior = CodePrior(log_odds, group, noise, float(position.weight_precision), kernel.collapsed)
    codes = CodeState(position.weights.copy(), position.used.copy(), np.empty((0, 0)))
    if rows.observed is None:
        draw_codes_with_gram(rows.values @ atoms.T, atoms @ atoms.T, prior, Draws(uniforms, normals), codes)
    else:
        there = rows.observed.astype(float)
        draw_codes_with_residuals(rows.values.copy(), atoms[None], there, prior, Draws(uniforms, normals), codes)
    return codes.weights, codes.used


def with_entry(position, i, k, used, weight):
    z, s = position.used.copy(), position.weights.copy()
    z[i, k], s[i, k] = used, weight
    return replace(position, used=z, weights=s)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_weight_has_the_mean_and_precision_of_the_log_joint(seed, missing):
    kernel, position = problem(seed, missing=missing, n_groups=2)
    n, K = position.used.shape
    on, zero = np.zeros((n, K)), np.zeros((n, K))  # a uniform number of 0 switches an atom on
    mean, used = sweep_codes(kernel, position, on, zero)
    shifted = zero.copy()
    shifted[:, -1] = 1.0
    above, _ = sweep_codes(kernel, position, on, shifted)
    after = replace(position, weights=mean, used=used)  # the last atom was drawn given all others as they are here
    for i in range(n):
        gradient, hessian = derivatives(
            lambda s, i=i: log_joint(kernel, with_entry(after, i, K - 1, 1, s)), mean[i, K - 1]
        )
        assert gradient == pytest.approx(0.0, abs=1e-6)
        assert -1 / hessian == pytest.approx((above[i, K - 1] - mean[i, K - 1]) ** 2, rel=1e-5)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("collapsed", [False, True])
def test_an_atom_is_used_with_the_probability_of_the_log_joint(collapsed, missing):
    kernel, position = problem(5, missing=missing, collapsed=collapsed, n_groups=2)
    n, K = position.used.shape
    off, zero = np.full((n, K), 1 - 1e-12), np.zeros((n, K))
    plain = replace(kernel, collapsed=False)  # its log joint has all weights in it
    weights = position.weights if not collapsed else np.where(position.used, position.weights, 0.3)
    position = replace(position, weights=np.where(position.used, weights, 0.3))
    before, used = sweep_codes(kernel, position, off, zero)
    start = replace(position, weights=before, used=used)
    for i in range(n):

        def density(z, s, i=i):
            return log_joint(plain, with_entry(start, i, K - 1, z, s))

        if collapsed:
            base = density(0, 0.0)
            ratio = [quad(lambda s, z=z, base=base: math.exp(density(z, s) - base), -np.inf, np.inf)[0] for z in (0, 1)]
            probability = ratio[1] / sum(ratio)
        else:
            s = position.weights[i, K - 1]
            probability = expit(density(1, s) - density(0, s))
        for factor, expected in ((1 - 1e-6, 1), (1 + 1e-6, 0)):
            uniforms = off.copy()
            uniforms[i, K - 1] = min(probability * factor, 1 - 1e-16)
            assert sweep_codes(kernel, position, uniforms, zero)[1][i, K - 1] == expected


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_dictionary_has_the_mean_and_precision_of_the_log_joint(seed, missing):
    kernel, position = problem(seed, missing=missing, n_groups=2, n=8)
    rows, noise = kernel.rows, position.noise_precision[kernel.rows.noise_group]
    precision, linear = component_posterior(rows, position.weights, noise)
    K, P = linear.shape
    each = np.repeat(precision[:, :, None], P, axis=2) if precision.ndim == 2 else precision
    each = np.array([np.tril(each[:, :, p]) + np.tril(each[:, :, p], -1).T for p in range(P)])
    mean = np.array([np.linalg.solve(each[p], linear[:, p]) for p in range(P)]).T

    def value(change):
        return log_joint(kernel, replace(position, components=mean + change))

    rng = np.random.default_rng(seed)
    for _ in range(10):
        direction = rng.normal(size=(K, P))
        gradient, hessian = derivatives(lambda t, u=direction: value(t * u), 0.0)
        assert gradient == pytest.approx(0.0, abs=1e-5)
        assert -hessian == pytest.approx(np.einsum("kp,pkl,lp->", direction, each, direction), rel=1e-5)


@pytest.mark.parametrize("collapsed", [False, True])
def test_precisions_and_probabilities_have_the_densities_of_the_log_joint(collapsed):
    kernel, position = problem(1, collapsed=collapsed, n_groups=2, missing=True)
    codes = position.weights * position.used
    left = squared_residuals(kernel.rows, codes @ position.components)
    group = kernel.rows.noise_group == 1
    n_weights = position.used.sum() if collapsed else position.used.size
    cases = {
        "weight_precision": (n_weights, (position.weights**2).sum()),
        "noise_precision": (kernel.rows.observed[group].sum(), left[group].sum()),
    }
    for name, (count, squares) in cases.items():
        posterior = Gamma(PROPER.shape + count / 2, PROPER.rate + squares / 2)
        old = getattr(position, name)
        pair = [0.7, 1.9] if name == "weight_precision" else [np.array([old[0], g]) for g in (0.7, 1.9)]
        gap = log_joint(kernel, replace(position, **{name: pair[1]})) - log_joint(
            kernel, replace(position, **{name: pair[0]})
        )
        assert gap == pytest.approx(posterior.log_density(1.9) - posterior.log_density(0.7))
        drawn = _draw_precision(np.random.default_rng(3), PROPER, count, squares)
        assert drawn == pytest.approx(np.random.default_rng(3).gamma(posterior.shape) / posterior.rate)
    # With pi on the scale of its log odds, Beta(p, q) has log density p log pi + q log (1 - pi) up to a constant.
    first, second = kernel.usage.shapes
    counts, n = position.used.sum(axis=0), len(position.used)
    states = [kernel.usage.sample(n, np.random.default_rng(seed))[0] for seed in (1, 2)]
    densities = [(first + counts) @ s.log_on + (second + n - counts) @ s.log_off for s in states]
    gap = np.subtract(*(log_joint(kernel, replace(position, usage=state)) for state in states))
    assert gap == pytest.approx(densities[0] - densities[1])


def exact_usage(x, atoms, log_odds, noise, precision):
    """Probabilities of all 2^K patterns of usage of one row, weights integrated out."""
    K, P = atoms.shape
    patterns = np.array(list(itertools.product((0, 1), repeat=K)))
    weights = [
        z @ log_odds + multivariate_normal(np.zeros(P), np.eye(P) / noise + (atoms.T * z) @ atoms / precision).logpdf(x)
        for z in patterns
    ]
    return np.exp(weights - logsumexp(weights))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("path", ["gram", "residuals", "own dictionaries"])
@pytest.mark.parametrize("collapsed", [False, True])
def test_usage_of_six_atoms_equals_enumeration(collapsed, path, dtype):
    """A chi-squared test of independent chains: false-alarm rate 1e-5 each, 1.2e-4 in all."""
    K, P, n = 6, 5, 4000
    rng = np.random.default_rng(2)
    atoms, log_odds = rng.normal(size=(K, P)) / math.sqrt(P), rng.normal(-1, 1, size=K)
    x = rng.normal(size=P)
    exact = exact_usage(x, atoms, log_odds, 3.0, 1.0)
    prior = CodePrior(log_odds[None], np.zeros(n, dtype=np.intp), np.full(n, 3.0), 1.0, collapsed)
    codes = CodeState(np.zeros((n, K), dtype), np.zeros((n, K), np.int8), np.empty((0, 0), dtype))
    dictionary = np.repeat(atoms[None], n, axis=0) if path == "own dictionaries" else atoms
    seen = np.ones((n, P), dtype=bool) if path == "residuals" else None
    for _ in range(60):
        draw_codes(rng, np.tile(x, (n, 1)).astype(dtype), dictionary.astype(dtype), prior, codes, observed=seen)
    counts = np.bincount(codes.used @ (2 ** np.arange(K)[::-1]), minlength=2**K)
    cell = np.where(exact * n >= 10, np.arange(2**K), np.argmin(exact))  # rare patterns are counted together
    observed, expected = np.bincount(cell, counts), np.bincount(cell, exact * n)
    there = expected > 0
    assert chisquare(observed[there], expected[there]).pvalue > 1e-5


@pytest.mark.parametrize("collapsed", [False, True])
def test_missing_values_and_own_dictionaries_agree_with_the_complete_path(collapsed):
    kernel, position = problem(4, n=40, K=8, P=6, collapsed=collapsed)
    log_odds, group = kernel.usage.log_odds(position.usage)
    prior = CodePrior(log_odds, group, np.full(40, 5.0), 1.0, collapsed)
    found = []
    for dictionary, seen in (
        (position.components, None),
        (position.components, np.ones((40, 6), dtype=bool)),
        (np.repeat(position.components[None], 40, axis=0), None),
    ):
        codes = CodeState(position.weights.copy(), position.used.copy(), np.zeros((40, 8)))
        draw_codes(np.random.default_rng(0), kernel.rows.values, dictionary, prior, codes, observed=seen)
        found.append(codes)
    for codes in found[1:]:
        assert (codes.used == found[0].used).all()
        np.testing.assert_allclose(codes.weights, found[0].weights, atol=1e-10)
        np.testing.assert_allclose(codes.mean, found[0].mean, atol=1e-10)


def test_residuals_are_kept_in_step():
    kernel, position = problem(6, n=30, K=7, P=5)
    rows, atoms = kernel.rows, position.components
    rng = np.random.default_rng(0)
    draws = Draws(rng.random((30, 7)), rng.normal(size=(30, 7)))
    prior = CodePrior(np.zeros((1, 7)), np.zeros(30, dtype=np.intp), np.full(30, 2.0), 1.0, True)
    there = (rng.random((30, 5)) < 0.6).astype(float)
    for seen in (None, there):
        codes = CodeState(position.weights.copy(), position.used.copy(), np.empty((0, 0)))
        if seen is None:
            kept = rows.values @ atoms.T
            draw_codes_with_gram(kept, atoms @ atoms.T, prior, draws, codes)
            expected = (rows.values - codes.weights @ atoms) @ atoms.T
        else:
            kept = rows.values * seen
            draw_codes_with_residuals(kept, atoms[None], seen, prior, draws, codes)
            expected = (rows.values - codes.weights @ atoms) * seen
        np.testing.assert_allclose(kept, expected, atol=1e-8)


def test_a_missing_feature_costs_nothing_to_know():
    """Values that are marked as missing have no influence, whatever stands there."""
    kernel, position = problem(8, missing=True, n=20)
    rows = kernel.rows
    precision, linear = component_posterior(rows, position.weights, np.ones(20))
    dense = np.array([
        3 * np.eye(4) + position.weights[rows.observed[:, p]].T @ position.weights[rows.observed[:, p]]
        for p in range(3)
    ])  # fmt: skip
    np.testing.assert_allclose(np.tril(np.moveaxis(precision, 2, 0)), np.tril(dense), atol=1e-10)
    np.testing.assert_allclose(linear, position.weights.T @ (rows.values * rows.observed), atol=1e-10)
