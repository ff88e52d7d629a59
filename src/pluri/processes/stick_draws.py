"""Draws that concern which row belongs to which component: labels, their exchange, and the sticks of the weights."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Logarithm of the smallest share that may be left of a stick.
LEAST_LOG_REST = -700.0


def choose_rows(rng: np.random.Generator, log_weights: Array) -> Integers:
    """One column for each row, with probability proportional to the exponential of its entry."""
    shares = np.exp(log_weights - log_weights.max(axis=1, keepdims=True)).cumsum(axis=1)
    threshold = rng.random(len(shares)) * shares[:, -1]
    return np.minimum((shares <= threshold[:, None]).sum(axis=1), shares.shape[1] - 1).astype(np.int64)


def exchange_labels(rng: np.random.Generator, log_weights: Array, counts: Integers) -> Integers:
    """Order in which components take the sticks, after Metropolis proposals to exchange two of them.

    Exchanging j and l multiplies the probability of the labels by ``(w_j / w_l)^(n_l - n_j)``.
    """
    J = len(counts)
    order = np.arange(J)
    pairs, uniforms = rng.integers(J, size=(J, 2)), rng.random(J)
    for (j, m), u in zip(pairs.tolist(), uniforms.tolist()):
        gap = counts[order[m]] - counts[order[j]]
        if gap == 0 or math.log(u + 1e-300) < float(log_weights[j] - log_weights[m]) * gap:
            order[[j, m]] = order[[m, j]]
    return order


def draw_sticks(rng: np.random.Generator, counts: ArrayLike, concentration: float) -> tuple[Array, Array]:
    """Logarithms of the weights and of ``1 - V`` given how many rows each component has: none rounds to one."""
    counts = np.asarray(counts, dtype=np.float64)
    beyond = np.cumsum(counts[::-1])[::-1] - counts
    first, second = log_gamma_draws(rng, 1.0 + counts), log_gamma_draws(rng, concentration + beyond)
    total = np.logaddexp(first, second)
    log_stick, log_rest = first - total, np.maximum(second - total, LEAST_LOG_REST)
    log_stick[-1] = 0.0
    before = np.concatenate([[0.0], np.cumsum(log_rest[:-1])])
    return log_stick + before, log_rest


def log_gamma_draws(rng: np.random.Generator, shape: Array) -> Array:
    """Logarithms of Gamma(shape, 1) draws, without underflow for small shapes."""
    shape = np.asarray(shape, dtype=np.float64)
    return np.asarray(np.log(rng.gamma(shape + 1)) + np.log(1 - rng.random(shape.shape)) / shape)
