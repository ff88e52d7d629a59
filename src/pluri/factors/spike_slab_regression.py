"""Regression with columns that may be off, as one step of a Gibbs sampler.

``Y = T diag(b) C + noise`` with rows of C ~ N(0, 1/prior_p), noise of precision a, and b of zeros and ones. C is
integrated out when b is drawn: with ``P = diag(prior) + a (b b') * T'T`` and ``h = a b * T'y``, a column of Y has the
evidence ``(log det diag(prior) - log det P + h' P^-1 h) / 2`` up to what does not depend on b. Many regressions are
done at a time (one for each component of a mixture), each with one noise for all its outputs or one for each.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from pluri.priors import Gamma

Array = NDArray[np.float64]


def _posterior(gram: Array, cross: Array, noise: Array, prior: Array, on: Array) -> tuple[Array, Array]:
    """Precisions (J, G, P, P) and linear terms (J, G, P, D / G) of the coefficients."""
    J, P, D = cross.shape
    G = noise.shape[1]
    precision = noise[:, :, None, None] * (gram * (on[:, :, None] * on[:, None, :]))[:, None]
    diagonal = np.arange(P)
    precision[:, :, diagonal, diagonal] += prior[:, None, :]
    grouped = (on[:, :, None] * cross).reshape(J, P, G, D // G).transpose(0, 2, 1, 3)
    return precision, noise[:, :, None, None] * grouped


def log_evidence(gram: Array, cross: Array, noise: Array, prior: Array, on: Array) -> Array:
    """Evidence of the columns that are on, up to a constant.

    Parameters
    ----------
    gram : array of shape (J, P, P)
        T'T of each regression.
    cross : array of shape (J, P, D)
        T'Y.
    noise : array of shape (J, 1) or (J, D)
        Precision of the noise, of all outputs or of each.
    prior : array of shape (J, P)
        Prior precision of the coefficients of each column.
    on : array of shape (J, P) of zeros and ones

    Returns
    -------
    array of shape (J,)
    """
    precision, linear = _posterior(gram, cross, noise, prior, on)
    _, log_det = np.linalg.slogdet(precision)
    quad = (linear * np.linalg.solve(precision, linear)).sum(axis=(1, 2, 3))
    n_each = cross.shape[2] // noise.shape[1]
    return np.asarray(
        0.5 * (n_each * (noise.shape[1] * np.log(prior).sum(axis=1) - log_det.sum(axis=1)) + quad), dtype=np.float64
    )


def draw_support(
    rng: np.random.Generator, gram: Array, cross: Array, noise: Array, prior: Array, on: Array, log_odds: float
) -> Array:
    """Each column on or off given the others, coefficients integrated out; columns after the last of `on` stay on.

    `on` has shape (J, K) with K <= P, the rest is as in `log_evidence`.
    """
    J, K = on.shape
    present = np.ones(gram.shape[:2])
    present[:, :K] = on
    uniforms = rng.random((K, J))
    evidence = log_evidence(gram, cross, noise, prior, present)
    for k in range(K):
        flipped = present.copy()
        flipped[:, k] = 1 - flipped[:, k]
        other = log_evidence(gram, cross, noise, prior, flipped)
        gain = other - evidence + np.where(flipped[:, k] > 0, log_odds, -log_odds)
        chosen = uniforms[k] * (1 + np.exp(-np.clip(gain, -700, 700))) < 1
        present[chosen] = flipped[chosen]
        evidence = np.where(chosen, other, evidence)
    return present[:, :K].copy()


def draw_coefficients(
    rng: np.random.Generator, gram: Array, cross: Array, noise: Array, prior: Array, on: Array
) -> Array:
    """Coefficients (J, P, D) given which columns are on; zero for the others."""
    J, P, D = cross.shape
    precision, linear = _posterior(gram, cross, noise, prior, on)
    root = np.linalg.cholesky(precision)
    scatter = np.linalg.solve(root.transpose(0, 1, 3, 2), rng.standard_normal(linear.shape))
    found = (np.linalg.solve(precision, linear) + scatter).transpose(0, 2, 1, 3).reshape(J, P, D)
    return np.asarray(found * on[:, :, None])


def draw_gamma(rng: np.random.Generator, prior: Gamma, shape: Any, rate: Any) -> Any:
    """Draw from the gamma posterior: prior plus what the data add."""
    return rng.gamma(prior.shape + shape) / (prior.rate + rate)


def log_gamma_density(value: Any, prior: Gamma) -> float:
    """Sum of the log densities of gamma variables."""
    shape, rate = prior.shape, prior.rate
    constant = shape * math.log(rate) - float(gammaln(shape))
    return float((constant + (shape - 1) * np.log(value) - rate * value).sum())
