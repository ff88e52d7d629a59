"""Variational inference of regimes and states against every path of regimes, and against its own laws."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from pluri.dynamics.switching.smoothing import filtered_start, infer
from pluri.validation import as_generator


def with_holes(X, rng, share=0.3):
    X = X.copy()
    X[rng.random(X.shape) < share] = np.nan
    X[len(X) // 2] = np.nan
    return X


@pytest.mark.parametrize("noise", ["diag", "full"])
@pytest.mark.parametrize("seed", range(4))
def test_one_regime_is_exact_conditioning(systems, seed, noise):
    rng = as_generator(seed)
    d, m = rng.integers(1, 4, size=2)
    params = systems.random(1, int(d), int(m), rng, noise=noise)
    X = [with_holes(systems.draw(params, n, rng)[0], rng) for n in (1, 5, 9)]
    offsets = np.array([0, 1, 1, 6, 15])  # one sequence is empty
    q = infer(params, np.concatenate(X), offsets)
    for s, part in zip((0, 2, 3), X):
        log_density, mean, covariance = systems.given_regimes(params, part, [0] * len(part))
        rows = slice(offsets[s], offsets[s + 1])
        assert q.elbo[s] == pytest.approx(log_density, abs=1e-9)
        np.testing.assert_allclose(q.mean[rows], mean, atol=1e-9)
        for t in range(len(part)):
            here, after = slice(t * d, (t + 1) * d), slice((t + 1) * d, (t + 2) * d)
            np.testing.assert_allclose(q.covariance[offsets[s] + t], covariance[here, here], atol=1e-9)
            if t + 1 < len(part):
                np.testing.assert_allclose(q.lagged[offsets[s] + t], covariance[after, here], atol=1e-9)
    assert q.elbo[1] == 0.0


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_below_the_evidence_and_rises_with_every_sweep(systems, seed, zero, groups):
    rng = as_generator(seed)
    params = systems.random(3, 2, 2, rng, groups=groups, noise="full", zero=zero)
    X = with_holes(systems.draw(params, 6, rng)[0], rng)
    offsets = np.array([0, 6])
    log_evidence, _, _ = systems.enumerate(params, X)
    bounds = [float(infer(params, X, offsets, max_iter=n, tol=-np.inf).elbo[0]) for n in (*range(1, 9), 14)]
    assert (np.diff(bounds) > -1e-9).all()
    assert bounds[-1] <= log_evidence + 1e-9


def test_regimes_that_the_data_tell_apart_are_those_of_the_enumeration(systems):
    # Moves are told apart by offsets 36 standard deviations away, and alike otherwise: one path of regimes has all the
    # probability but for the first regime, which moves nothing, so that the posterior is a product.
    rng = as_generator(0)
    params = systems.random(2, 1, 2, rng)
    far = {"dynamics_offset": np.array([[4.0], [-4.0]]), "emission": np.array([[[1.0], [0.7]]])}
    alike = {"dynamics": np.full((2, 1, 1), 0.5)}
    calm = {"dynamics_covariance": np.full((2, 1, 1), 0.05), "emission_covariance": 0.05 * np.eye(2)[None]}
    params = type(params)(**{**vars(params), **far, **alike, **calm})
    X, _ = systems.draw(params, 8, rng)
    log_evidence, marginals, mean = systems.enumerate(params, X)
    q = infer(params, X, np.array([0, 8]))
    assert q.elbo[0] == pytest.approx(log_evidence, abs=1e-6)
    np.testing.assert_allclose(q.regimes, marginals, atol=1e-6)
    np.testing.assert_allclose(q.mean, mean, atol=1e-6)


def test_the_filter_that_it_starts_from_is_exact_where_the_past_does_not_matter(systems):
    # With A = 0 the state forgets: one Gaussian for each regime is all there is, and regimes are a hidden Markov chain.
    rng = as_generator(1)
    params = systems.random(3, 2, 2, rng, groups=3, noise="full")
    params = type(params)(**{**vars(params), "dynamics": np.zeros((3, 2, 2))})
    X = with_holes(systems.draw(params, 6, rng)[0], rng)
    _, marginals, _ = systems.enumerate(params, X)
    np.testing.assert_allclose(filtered_start(params, X, np.array([0, 6])), marginals, atol=1e-9)


def test_sequences_do_not_disturb_each_other(systems):
    rng = as_generator(2)
    params = systems.random(3, 2, 3, rng)
    parts = [with_holes(systems.draw(params, n, rng)[0], rng) for n in (12, 3, 20, 1)]
    offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    together = infer(params, np.concatenate(parts), offsets)
    for s, part in enumerate(parts):
        alone = infer(params, part, np.array([0, len(part)]))
        rows = slice(offsets[s], offsets[s + 1])
        assert together.elbo[s] == pytest.approx(alone.elbo[0], abs=1e-9)
        np.testing.assert_allclose(together.regimes[rows], alone.regimes, atol=1e-9)
        np.testing.assert_allclose(together.mean[rows], alone.mean, atol=1e-9)


def test_converged_regimes_are_a_stationary_point_of_the_bound(systems):
    rng = as_generator(3)
    params = systems.random(2, 2, 2, rng)
    X, _ = systems.draw(params, 5, rng)
    offsets = np.array([0, 5])
    best = infer(params, X, offsets, max_iter=2000, tol=0.0)

    def bound(logits):
        """The bound with both factors at their best after one sweep from these regimes."""
        share = 1.0 / (1.0 + np.exp(-logits))
        return float(infer(params, X, offsets, np.column_stack([share, 1.0 - share]), max_iter=1).elbo[0])

    inside = np.clip(best.regimes[:, 0], 1e-6, 1 - 1e-6)
    gradient = approx_fprime(np.log(inside / (1 - inside)), bound, 1e-5)
    assert np.abs(gradient).max() < 1e-4
