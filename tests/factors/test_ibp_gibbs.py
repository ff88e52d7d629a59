"""The collapsed sampler: its compiled sums against dense algebra, its law against enumeration and Geweke's test."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from pluri.factors import IndianBuffetGibbs
from pluri.factors._ibp_kernels import Buffet, draw_new_features
from pluri.factors.ibp_likelihood import collapsed_log_likelihood, feature_posterior
from pluri.inference import mcmc
from pluri.priors import Gamma
from pluri.processes import IndianBuffetProcess
from pluri.testing import geweke_test

FIXED = {"noise_prior": None, "feature_prior": None}


@pytest.mark.parametrize("bias", [None, 2.0])
def test_the_collapsed_likelihood_is_that_of_a_gaussian(bias):
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(5, 3)), rng.integers(0, 2, size=(5, 2)).astype(np.int8)
    covariance = 0.3 * np.eye(5) + 1.7 * Z @ Z.T + (bias or 0.0) * np.ones((5, 5))
    expected = stats.multivariate_normal(np.zeros(5), covariance).logpdf(X.T).sum()
    assert collapsed_log_likelihood(X, Z, 0.3, 1.7, bias) == pytest.approx(expected, abs=1e-10)
    none = np.zeros((5, 0), dtype=np.int8)
    empty = stats.multivariate_normal(np.zeros(5), 0.3 * np.eye(5) + (bias or 0.0) * np.ones((5, 5)))
    assert collapsed_log_likelihood(X, none, 0.3, 1.7, bias) == pytest.approx(empty.logpdf(X.T).sum(), abs=1e-10)


def test_a_flat_bias_is_the_limit_of_wide_ones():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(6, 2)) + 5, rng.integers(0, 2, size=(6, 3)).astype(np.int8)
    other = rng.integers(0, 2, size=(6, 3)).astype(np.int8)
    flat, wide = (
        collapsed_log_likelihood(X, Z, 0.3, 1.0, v) - collapsed_log_likelihood(X, other, 0.3, 1.0, v)
        for v in (np.inf, 1e8)
    )
    assert flat == pytest.approx(wide, abs=1e-6)
    assert feature_posterior(X, Z, 0.3, 1.0, np.inf).mean[0] == pytest.approx(
        feature_posterior(X, Z, 0.3, 1.0, 1e8).mean[0], abs=1e-6
    )


@pytest.mark.parametrize(("rate", "spread", "size", "misfit"), [(0.5, 2.0, 1.5, 3.0), (3.0, 0.01, 1.0, 400.0)])
def test_the_number_of_new_features_has_its_exact_law(rate, spread, size, misfit):
    # The law is read off at 4000 evenly spaced uniforms: each probability to within 1/4000.
    n_dims, j = 3, np.arange(200)
    variance = size + j * spread
    logs = stats.poisson.logpmf(j, rate) - n_dims / 2 * np.log(variance) - misfit / (2 * variance)
    p = np.exp(logs - np.logaddexp.reduce(logs))
    drawn = [draw_new_features(rate, spread, size, misfit, n_dims, u) for u in (np.arange(4000) + 0.5) / 4000]
    seen = np.bincount(drawn, minlength=200) / 4000
    assert np.abs(seen - p).max() <= 1 / 4000 + 1e-12


@pytest.mark.parametrize("bias", [None, 2.0, np.inf])
def test_rank_one_changes_agree_with_the_inverse_from_scratch(bias, monkeypatch):
    # The same chain with the inverse computed anew for every row, and once a sweep.
    from pluri.factors import ibp_gibbs

    rng = np.random.default_rng(2)
    Z = (rng.random((40, 5)) < 0.4).astype(np.int8)
    X = 3 * Z @ rng.normal(size=(5, 6)) + 0.5 * rng.normal(size=(40, 6))
    kernel = IndianBuffetGibbs(X, 1.0, 0.25, 9.0, **FIXED, bias_variance=bias)
    start = {
        "Z": Z,
        "concentration": np.array(2.0),
        "noise_variance": np.array(0.25),
        "feature_variance": np.array(9.0),
    }
    ends = []
    for refresh in (1, 256):
        monkeypatch.setattr(ibp_gibbs, "REFRESH", refresh)
        position, stream = start, np.random.default_rng(3)
        for _ in range(5):
            position = kernel.sweep(stream, position, X)
        ends.append(position["Z"])
    assert ends[0].shape == ends[1].shape
    assert (ends[0] == ends[1]).all()


def test_arrays_that_are_full_grow_in_the_middle_of_a_row(monkeypatch):
    # Little room, and a row that wants many features: the law of their number must not notice.
    from pluri.factors import ibp_gibbs

    X = np.array([[30.0], [0.1]])
    kernel = IndianBuffetGibbs(X, 20.0, 0.1, 1.0, **FIXED)
    means = []
    for spare in (2, 100):
        monkeypatch.setattr(ibp_gibbs, "SPARE", spare)
        rng, counts = np.random.default_rng(4), []
        position = kernel.sample_prior(rng)
        for _ in range(600):
            position = kernel.sweep(rng, position, X)
            counts.append(position["Z"].shape[1])
        batches = np.array(counts).reshape(30, -1).mean(axis=1)
        means.append((batches.mean(), batches.std(ddof=1) / np.sqrt(30)))
    gap = abs(means[0][0] - means[1][0])
    # Student with some 58 degrees of freedom goes beyond 6 once in 8 million.
    assert gap < 6 * np.hypot(means[0][1], means[1][1])
    assert means[0][0] > 20


def classes(n_rows, most):
    """A matrix of every left-ordered class with at most `most` columns of each kind, and how many of each kind."""
    kinds = [kind for kind in product([0, 1], repeat=n_rows) if any(kind)]
    for counts in product(range(most + 1), repeat=len(kinds)):
        if sum(counts) <= most:
            yield counts, np.repeat(np.array(kinds, dtype=np.int8).T, counts, axis=1)


@pytest.mark.parametrize("X", [[[1.0], [-0.5]], [[2.0, 0.1], [1.8, -0.2], [0.1, 1.0]]])
def test_the_chain_has_the_enumerated_posterior(X):
    # 20000 sweeps; every class of probability above 1 % within 6.5 standard errors by 50 batches: for 30 classes
    # a false alarm in a million.
    X = np.array(X)
    n = len(X)
    buffet = IndianBuffetProcess(1.0)
    found = list(classes(n, 9 if n == 2 else 7))
    logs = [buffet.logpmf(Z) + collapsed_log_likelihood(X, Z, 0.25, 1.0) for _, Z in found]
    p = np.exp(logs - np.logaddexp.reduce(logs))
    kernel = IndianBuffetGibbs(X, 1.0, 0.25, 1.0, **FIXED)
    rng, powers = np.random.default_rng(5), 2 ** np.arange(n)[::-1]
    position, seen, widths = kernel.sample_prior(rng), [], []
    for _ in range(20_000):
        position = kernel.sweep(rng, position, X)
        seen.append(tuple(np.bincount(powers @ position["Z"], minlength=2**n)[1:].tolist()))
        widths.append(position["Z"].shape[1])
    checked = 0
    for (counts, _), probability in zip(found, p):
        if probability > 0.01:
            hits = np.array([one == counts for one in seen], dtype=float)
            error = hits.reshape(50, -1).mean(axis=1).std(ddof=1) / np.sqrt(50)
            assert abs(hits.mean() - probability) < 6.5 * error, counts
            checked += 1
    assert checked >= 5
    expected = p @ [Z.shape[1] for _, Z in found]
    error = np.array(widths, dtype=float).reshape(50, -1).mean(axis=1).std(ddof=1) / np.sqrt(50)
    assert abs(np.mean(widths) - expected) < 6.5 * error + 1e-3


def test_prior_and_sampler_agree_on_the_joint_distribution_without_a_bias():
    """Geweke's test with everything learned, at a false-alarm rate of 1e-6; with a bias: the table of all samplers."""
    kernel = IndianBuffetGibbs(
        np.zeros((4, 2)),
        concentration=Gamma(4.0, 4.0),
        noise_prior=Gamma(6.0, 3.0),
        feature_prior=Gamma(6.0, 6.0),
        bias_variance=None,
    )

    def statistics(position, X):
        Z = position["Z"]
        return {
            "concentration": float(position["concentration"]),
            "noise": float(np.log(position["noise_variance"])),
            "feature": float(np.log(position["feature_variance"])),
            "features": float(Z.shape[1]),
            "ones": float(Z.sum()),
            "first": float(Z[0].sum()),
            "last": float(Z[-1].sum()),
            "shared": float((Z.sum(axis=0) > 1).sum()),
            "fit": float((Z.sum(axis=1) * (X**2).sum(axis=1)).mean()),
        }

    result = geweke_test(
        kernel.sample_prior, kernel.sample_data, kernel.sweep, statistics, n_marginal=2000, n_successive=750,
        n_steps=6, alpha=1e-6, max_stages=5, random_state=0,
    )  # fmt: skip
    assert result.passed, result.summary()


def test_the_state_remembers_the_best_position_and_the_chain_can_be_recorded():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(12, 3))
    kernel = IndianBuffetGibbs(X)
    trace = mcmc.sample(
        kernel,
        kernel.sample_prior,
        record=kernel.record,
        n_draws=30,
        n_warmup=0,
        n_chains=2,
        random_state=0,
        warn=False,
    )
    assert set(trace) == {"concentration", "noise_variance", "feature_variance", "n_features", "n_ones"}
    for chain, end in enumerate(trace.ends):
        assert end.state.best_log_density >= trace.stats["log_density"][chain].max() - 1e-9
        assert kernel.log_joint(end.state.best) == pytest.approx(end.state.best_log_density)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: IndianBuffetGibbs(np.zeros(3)), "data must be a finite matrix"),
        (lambda: IndianBuffetGibbs([[np.nan]]), "data must be a finite matrix"),
        (lambda: IndianBuffetGibbs([[1.0]], noise_variance=0), "noise_variance must be a positive number"),
        (
            lambda: IndianBuffetGibbs([[1.0]], concentration="fixed"),
            "concentration must be a positive number or 'learn'",
        ),
        (lambda: IndianBuffetGibbs([[1.0]], bias_variance=-1), "bias_variance must be None or positive"),
        (lambda: IndianBuffetGibbs([[1.0]], bias_variance=np.inf), "at least two rows for a flat prior"),
        (lambda: IndianBuffetGibbs([[1.0]], noise_prior=(1.0, 0.0)), "noise_prior must be a prior"),
    ],
)
def test_wrong_input_gets_one_sentence(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_wrong_position_and_data_from_a_flat_prior_are_refused():
    kernel, rng = IndianBuffetGibbs(np.zeros((3, 1)), bias_variance=np.inf), np.random.default_rng(0)
    with pytest.raises(ValueError, match="must have 3 rows"):
        kernel.init(rng, {"Z": np.ones((2, 1))})
    with pytest.raises(ValueError, match="a flat prior has no draws"):
        kernel.sample_data(rng, kernel.sample_prior(rng))


@pytest.mark.parametrize("noise", [1e-5, 1e-7])
def test_data_with_hardly_any_noise_do_not_spoil_the_inverse(noise, monkeypatch):
    # A feature that a single row has leaves next to nothing to divide by when that row is taken away.
    from pluri.factors import ibp_gibbs

    errors = []

    def fill(room, P, W, Z):
        if len(Z) == 30 and room.W.any():
            errors.append(float(np.abs(room.W[: len(W)] - W).max()))
        original(room, P, W, Z)

    original = Buffet.fill
    monkeypatch.setattr(Buffet, "fill", fill)
    monkeypatch.setattr(ibp_gibbs, "REFRESH", 10)
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, size=(30, 3)) @ rng.normal(size=(3, 4)) + np.sqrt(noise) * rng.normal(size=(30, 4))
    kernel = IndianBuffetGibbs(X, 2.0, noise, 1.0, **FIXED)
    position = kernel.sample_prior(rng)
    for _ in range(2):
        position = kernel.sweep(rng, position, X)
    assert max(errors) < 0.05 * np.sqrt(noise)


def test_noise_below_what_arithmetic_can_tell_is_refused():
    kernel = IndianBuffetGibbs(np.ones((3, 2)), 1.0, 1e-12, 1.0, **FIXED)
    with pytest.raises(ValueError, match="noise_variance must be at least 1e-09 of feature_variance"):
        kernel.sweep(np.random.default_rng(0), kernel.sample_prior(np.random.default_rng(0)), kernel.data)
