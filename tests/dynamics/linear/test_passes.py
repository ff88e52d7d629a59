"""The compiled filter and smoother against conditioning of the joint Gaussian distribution."""

import itertools

import numpy as np
import pytest

from pluri.dynamics.linear.passes import Emission, collapse, filter_sequences, linear_system, smooth_sequences
from pluri.inference.smc.gaussian import covariance_factor


def random_system(dense, rng, d, m, *, singular, diagonal):
    A = rng.normal(size=(d, d))
    A *= rng.uniform(0.5, 1.02) / max(abs(np.linalg.eigvals(A)).max(), 1e-3)
    Q = dense.random_covariance(rng, d, rng.integers(0, d) if singular else None)
    P = dense.random_covariance(rng, d, rng.integers(0, d + 1) if singular else None)
    R = rng.uniform(0.2, 2.0, size=m) if diagonal else dense.random_covariance(rng, m)
    return A, Q, rng.normal(size=d), P, rng.normal(size=(m, d)), R


def run(A, Q, m, P, C, R, rows, drift, offsets):
    system = linear_system(A, covariance_factor(Q, "Q"), m, covariance_factor(P, "P"))
    result = filter_sequences(system, collapse(rows, Emission(C, R)), drift, np.asarray(offsets))
    return result, smooth_sequences(result)


def blocks(covariance, d, lag=0):
    steps = len(covariance) // d
    found = [covariance[(t + lag) * d : (t + lag + 1) * d, t * d : (t + 1) * d] for t in range(steps - lag)]
    return np.array(found).reshape(-1, d, d)


@pytest.mark.parametrize("seed", range(30))
def test_filter_and_smoother_equal_dense_conditioning(seed, dense):
    rng = np.random.default_rng(seed)
    d, m = rng.integers(1, 5), rng.integers(1, 6)
    diagonal = bool(seed % 2)
    A, Q, first, P, C, R = random_system(dense, rng, d, m, singular=seed % 3 == 0, diagonal=diagonal)
    lengths = np.array([rng.integers(1, 25), 0, 1, rng.integers(1, 25), 12])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    Y, drift = rng.normal(size=(offsets[-1], m)) * 3, rng.normal(size=(offsets[-1], d))
    Y[rng.random(Y.shape) < rng.choice([0.0, 0.1, 0.5])] = np.nan
    Y[rng.random(len(Y)) < 0.1] = np.nan
    result, smoothed = run(A, Q, first, P, C, R, Y, drift, offsets)
    for s, (begin, end) in enumerate(itertools.pairwise(offsets)):
        if begin == end:
            assert result.log_likelihoods()[s] == 0.0
            continue
        here = slice(begin, end)
        exact = dense.joint(first, P, A, drift[here], Q, C, np.zeros((end - begin, m)), np.diag(R) if diagonal else R)
        mean, covariance, score = exact.condition(Y[here])
        assert result.log_likelihoods()[s] == pytest.approx(score, abs=1e-9, rel=1e-9)
        assert smoothed.mean[here].ravel() == pytest.approx(mean, abs=1e-9, rel=1e-9)
        places = smoothed.slot[here]
        assert smoothed.covariance[places] == pytest.approx(blocks(covariance, d), abs=1e-9, rel=1e-9)
        assert smoothed.lagged[places][:-1] == pytest.approx(blocks(covariance, d, 1), abs=1e-9, rel=1e-9)
        for t in (0, (end - begin) // 2, end - begin - 1):
            known = np.repeat(np.arange(end - begin) <= t, m).reshape(-1, m)
            mean, covariance, _ = exact.condition(Y[here], known)
            at = slice(t * d, (t + 1) * d)
            assert result.mean[begin + t] == pytest.approx(mean[at], abs=1e-9, rel=1e-9)
            slot = result.slot[begin + t]
            assert result.covariance[slot] == pytest.approx(covariance[at, at], abs=1e-9, rel=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_reused_covariances_stay_exact_over_a_long_sequence(seed, dense):
    """Where covariances are taken for settled nothing of it may be seen in the results, however slow the system."""
    rng = np.random.default_rng(seed)
    d, m, n = 2, 2, 500
    A, Q, first, P, C, R = random_system(dense, rng, d, m, singular=False, diagonal=True)
    A *= 0.999 / abs(np.linalg.eigvals(A)).max()
    Y, drift = 2 * rng.normal(size=(n, m)), np.zeros((n, d))
    Y[250:253] = np.nan
    Y[270, 0] = np.nan
    result, smoothed = run(A, Q, first, P, C, R, Y, drift, [0, n])
    assert len(result.slots.log_det) < 0.9 * n
    assert len(smoothed.covariance) < 0.9 * n
    mean, covariance, score = dense.joint(first, P, A, drift, Q, C, np.zeros((n, m)), np.diag(R)).condition(Y)
    assert result.log_likelihoods()[0] == pytest.approx(score, abs=1e-8)
    assert smoothed.mean.ravel() == pytest.approx(mean, abs=1e-9)
    assert smoothed.covariance[smoothed.slot] == pytest.approx(blocks(covariance, d), abs=1e-9)
    assert smoothed.lagged[smoothed.slot][:-1] == pytest.approx(blocks(covariance, d, 1), abs=1e-9)


def test_sequences_seen_alike_share_their_covariances(dense):
    rng = np.random.default_rng(0)
    A, Q, first, P, C, R = random_system(dense, rng, 2, 3, singular=False, diagonal=True)
    lengths = rng.integers(40, 80, size=50)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    Y = rng.normal(size=(offsets[-1], 3))
    result, _ = run(A, Q, first, P, C, R, Y, np.zeros((len(Y), 2)), offsets)
    assert len(result.slots.log_det) <= 80
    for s in (0, 20, 49):
        here = slice(offsets[s], offsets[s + 1])
        alone, _ = run(A, Q, first, P, C, R, Y[here], np.zeros((lengths[s], 2)), [0, lengths[s]])
        assert result.log_likelihoods()[s] == pytest.approx(alone.log_likelihoods()[0], rel=1e-12)


def test_a_large_offset_of_the_data_costs_no_digits_of_the_likelihood():
    rng = np.random.default_rng(1)
    C, R = rng.normal(size=(4, 1)), np.full(4, 0.01)
    Y = np.cumsum(rng.normal(size=(60, 1)), axis=0) @ C.T + 0.1 * rng.normal(size=(60, 4))
    args = (np.eye(1), np.eye(1), np.zeros(1), np.eye(1), C, R)
    near, _ = run(*args, Y, np.zeros((60, 1)), [0, 60])
    far, _ = run(np.eye(1), np.eye(1), np.array([1e6]), np.eye(1), C, R, Y + 1e6 * C[:, 0], np.zeros((60, 1)), [0, 60])
    assert far.log_likelihoods()[0] == pytest.approx(near.log_likelihoods()[0], abs=1e-4)


def test_a_nearly_exact_sensor_and_a_vague_start_keep_covariances_positive():
    A = np.array([[1.0, 1.0], [0.0, 1.0]])
    Q, C = np.zeros((2, 2)), np.array([[1.0, 0.0]])
    Y = np.arange(50.0)[:, None]
    result, smoothed = run(A, Q, np.zeros(2), 1e8 * np.eye(2), C, np.array([1e-4]), Y, np.zeros((50, 2)), [0, 50])
    assert np.linalg.eigvalsh(result.covariance).min() >= 0.0
    assert smoothed.mean == pytest.approx(np.stack([np.arange(50.0), np.ones(50)], axis=1), abs=1e-5)
