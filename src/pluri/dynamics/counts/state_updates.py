"""The model of the states: its M-step, a start by least squares, and the coordinates that results are told in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.counts.records import StateModel, SystemParameters, SystemStatistics

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Smallest eigenvalue of a covariance of states.
FLOOR = 1e-8
#: Largest absolute eigenvalue of a transition matrix: beyond 1 states would explode.
LARGEST_RADIUS = 1.0 - 1e-4


def update_states(stats: SystemStatistics, states: StateModel) -> StateModel:
    """The maximum of the expected log density of the paths.

    Where the transition matrix would be unstable, only a part of the way to it is gone: the objective is quadratic in
    A and rises all along, so that EM still never falls. Eigenvalues that are raised to the floor are the maximum among
    the covariances above it.
    """
    S00, S10, S11 = stats.before, stats.across, stats.after
    n_times = len(stats.n_by_time)
    centers = np.zeros((n_times, states.n_states))
    if n_times:
        centers = stats.by_time / stats.n_by_time[:, None]
        early, late, n = centers[:-1], centers[1:], stats.n_by_time[1:, None]
        S00, S10, S11 = S00 - (n * early).T @ early, S10 - (n * late).T @ early, S11 - (n * late).T @ late
    A, Q = states.transition, states.noise
    if stats.n_steps > 0:
        ridge = 1e-10 * np.trace(S00) / len(S00) * np.eye(len(S00))
        A = stable_towards(A, np.linalg.solve(S00 + ridge, S10.T).T)
        Q = floored((S11 - A @ S10.T - S10 @ A.T + A @ S00 @ A.T) / stats.n_steps)
    mu = stats.first / stats.n_sequences
    Q1 = floored(stats.first_square / stats.n_sequences - np.outer(mu, mu))
    drift = centers[1:] - centers[:-1] @ A.T if n_times else states.drift
    return StateModel(A, Q, mu, Q1, drift)


def radius(A: Array) -> float:
    """Largest absolute eigenvalue."""
    return float(np.abs(np.linalg.eigvals(A)).max())


def stable_towards(before: Array, wanted: Array) -> Array:
    """`wanted`, or the last stable matrix on the way from `before`, which is stable, to it."""
    if radius(wanted) <= LARGEST_RADIUS:
        return wanted
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        if radius(before + middle * (wanted - before)) <= LARGEST_RADIUS:
            low = middle
        else:
            high = middle
    return np.asarray(before + low * (wanted - before))


def floored(covariance: Array) -> Array:
    """The symmetric part with eigenvalues of at least `FLOOR`."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    if values[0] >= FLOOR:
        return np.asarray(0.5 * (covariance + covariance.T))
    return np.asarray((vectors * np.maximum(values, FLOOR)) @ vectors.T)


def states_by_least_squares(paths: Array, offsets: Integers, n_times: int) -> StateModel:
    """A model of the states from paths (n, p) that are taken to be known."""
    p = paths.shape[1]
    lengths = np.diff(offsets)
    firsts = offsets[:-1][lengths > 0]
    starts_next = np.zeros(len(paths) + 1, dtype=bool)
    starts_next[offsets] = True
    before = np.flatnonzero(~starts_next[1 : len(paths)])
    spread = floored(np.cov(paths.T, bias=True).reshape(p, p) + 1e-3 * np.eye(p))
    drift = np.zeros((max(n_times - 1, 0), p))
    mu = paths[firsts].mean(axis=0)
    if len(before) < p + 1:
        return StateModel(0.9 * np.eye(p), 0.19 * spread, mu, spread, drift)
    early, late = paths[before], paths[before + 1]
    ridge = 1e-3 * len(early) * np.trace(spread) / p * np.eye(p)
    A = np.linalg.solve(early.T @ early + ridge, early.T @ late).T
    A = A * min(1.0, 0.98 / max(radius(A), 1e-12))
    residual = late - early @ A.T
    Q = floored(residual.T @ residual / len(early) + 1e-3 * spread)
    away = paths[firsts] - mu
    Q1 = floored(away.T @ away / len(firsts) + 1e-3 * spread) if len(firsts) > 2 * p else spread
    return StateModel(A, Q, mu, Q1, drift)


def change_coordinates(parameters: SystemParameters, T: Array) -> SystemParameters:
    """The same system in the coordinates x' = T x of the states."""
    states, back = parameters.states, np.linalg.inv(T)
    turned = StateModel(
        transition=T @ states.transition @ back,
        noise=_even(T @ states.noise @ T.T),
        initial_mean=T @ states.initial_mean,
        initial_covariance=_even(T @ states.initial_covariance @ T.T),
        drift=states.drift @ T.T,
    )
    observation = replace(parameters.observation, loadings=parameters.observation.loadings @ back)
    return replace(parameters, states=turned, observation=observation)


def canonical(parameters: SystemParameters) -> SystemParameters:
    """Coordinates in which states have unit covariance on average and loadings are orthogonal, the largest first.

    Nothing else makes the axes of the states unique. The average is over the steps of a sequence of typical length.
    """
    loadings = parameters.observation.loadings
    spread = floored(parameters.states.covariances(max(parameters.typical_length, 1)).mean(axis=0))
    values, vectors = np.linalg.eigh(spread)
    root = (vectors * np.sqrt(values)) @ vectors.T
    _, _, axes = np.linalg.svd(loadings @ root, full_matrices=False)
    T = axes @ (vectors / np.sqrt(values)) @ vectors.T
    turned = loadings @ np.linalg.inv(T)
    signs = np.sign(turned[np.abs(turned).argmax(axis=0), np.arange(turned.shape[1])])
    return change_coordinates(parameters, np.where(signs == 0, 1.0, signs)[:, None] * T)


def _even(matrix: Array) -> Array:
    return np.asarray(0.5 * (matrix + matrix.T))
