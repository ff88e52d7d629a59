"""Draws that concern which row belongs to which component: labels, their exchange, and the sticks of the weights.

Shares are drawn as logarithms, so that none rounds to zero or one. Sticks whose shares depend on the row are broken at
normal probabilities, ``v_k(x) = Phi(e_k(x))``, ``w_k(x) = v_k(x) prod_{j<k} (1 - v_j(x))``; the last of K components
takes what is left [1]_.

References
----------
.. [1] Rodriguez, A. and Dunson, D. B. (2011). Nonparametric Bayesian models through probit stick-breaking processes.
   Bayesian Analysis 6, 145-178.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtr, ndtri_exp

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
    log_stick, log_rest = log_beta_draws(rng, 1.0 + counts, concentration + beyond)
    log_rest = np.maximum(log_rest, LEAST_LOG_REST)
    log_stick[-1] = 0.0
    before = np.concatenate([[0.0], np.cumsum(log_rest[:-1])])
    return log_stick + before, log_rest


def log_gamma_draws(rng: np.random.Generator, shape: Array) -> Array:
    """Logarithms of Gamma(shape, 1) draws, without underflow for small shapes."""
    shape = np.asarray(shape, dtype=np.float64)
    return np.asarray(np.log(rng.gamma(shape + 1)) + np.log(1 - rng.random(shape.shape)) / shape)


def log_beta_draws(rng: np.random.Generator, first: Array, second: Array) -> tuple[Array, Array]:
    """Logarithms of Beta(first, second) draws and of one minus them, exact however small the parameters."""
    log_on, log_off = log_gamma_draws(rng, first), log_gamma_draws(rng, second)
    total = np.logaddexp(log_on, log_off)
    return np.asarray(log_on - total), np.asarray(log_off - total)


def probit_stick_weights(predictors: Array) -> Array:
    """Weights of K components from the predictors of K - 1 sticks, on the last axis.

    Parameters
    ----------
    predictors : array of shape (..., K - 1)

    Returns
    -------
    array of shape (..., K)

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.stick_draws import probit_stick_weights
    >>> probit_stick_weights(np.zeros(3))
    array([0.5  , 0.25 , 0.125, 0.125])
    """
    shape = (*predictors.shape[:-1], 1)
    taken = np.concatenate([ndtr(predictors), np.ones(shape)], axis=-1)
    left = np.concatenate([np.ones(shape), np.cumprod(ndtr(-predictors), axis=-1)], axis=-1)
    return np.asarray(taken * left)


def log_probit_stick_weights(predictors: Array) -> Array:
    """Logarithms of `probit_stick_weights`, finite where a weight would round to zero."""
    shape = (*predictors.shape[:-1], 1)
    taken = np.concatenate([log_ndtr(predictors), np.zeros(shape)], axis=-1)
    left = np.concatenate([np.zeros(shape), np.cumsum(log_ndtr(-predictors), axis=-1)], axis=-1)
    return np.asarray(taken + left)


def draw_truncated(rng: np.random.Generator, means: Array, positive: NDArray[np.bool_]) -> Array:
    """Draw normals of given means and variance 1, positive or negative as told; exact however unlikely that is."""
    sign = np.where(positive, 1.0, -1.0)
    # One minus a number below 1 is never 0, whose logarithm would be infinite.
    log_share = np.log1p(-rng.random(means.shape)) + log_ndtr(sign * means)
    return np.asarray(means - sign * ndtri_exp(log_share))
