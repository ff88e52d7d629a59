"""Entropy, divergence and mutual information of Gaussian distributions, in closed form.

``h = log |2 pi e S| / 2`` is the largest entropy that a covariance allows;
``KL(1 || 2) = (log |S2| / |S1| - d + tr(S2^-1 S1) + (m2 - m1)' S2^-1 (m2 - m1)) / 2``;
``I(X; Y) = log(|Sx| |Sy| / |S|) / 2``, which is ``-log(1 - rho^2) / 2`` for two numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.metrics.entropies import log_base

Array = NDArray[np.float64]


def as_covariance(cov: ArrayLike, name: str) -> Array:
    """Check a covariance: a number, or a finite symmetric matrix. Positive definite is for the factor to find out."""
    matrix = np.asarray(cov, dtype=np.float64)
    if matrix.ndim == 0:
        matrix = matrix.reshape(1, 1)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(f"{name} must be a number or a square matrix, got shape {matrix.shape}")
    if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12):
        raise ValueError(f"{name} must be finite and symmetric, got other values")
    return matrix


def cholesky_factor(cov: ArrayLike, name: str) -> Array:
    """Lower triangular factor of a covariance."""
    try:
        return np.asarray(np.linalg.cholesky(as_covariance(cov, name)), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise ValueError(f"{name} must be positive definite, got a matrix that is not") from None


def log_determinant_of(factor: Array) -> float:
    """Log determinant of a matrix from its Cholesky factor."""
    return 2.0 * float(np.log(np.diagonal(factor)).sum())


def gaussian_entropy(cov: ArrayLike, *, base: float = math.e) -> float:
    """Differential entropy of a Gaussian.

    Parameters
    ----------
    cov : float or array-like of shape (d, d)
        Variance or covariance.
    base : float, default=e

    Examples
    --------
    >>> from pluri.metrics import gaussian_entropy
    >>> gaussian_entropy(1.0)
    1.4189385
    """
    factor = cholesky_factor(cov, "cov")
    return (len(factor) * math.log(2 * math.pi * math.e) + log_determinant_of(factor)) / 2 / log_base(base)


def gaussian_kl(
    mean_p: ArrayLike, cov_p: ArrayLike, mean_q: ArrayLike, cov_q: ArrayLike, *, base: float = math.e
) -> float:
    """Kullback-Leibler divergence of the Gaussian q from the Gaussian p: ``KL(p || q)``.

    Parameters
    ----------
    mean_p, mean_q : float or array-like of shape (d,)
    cov_p, cov_q : float or array-like of shape (d, d)
    base : float, default=e

    Examples
    --------
    >>> from pluri.metrics import gaussian_kl
    >>> gaussian_kl(1.0, 1.0, 0.0, 1.0)
    0.5
    """
    factor_p, factor_q = cholesky_factor(cov_p, "cov_p"), cholesky_factor(cov_q, "cov_q")
    size = len(factor_p)
    means = []
    for name, given in (("mean_p", mean_p), ("mean_q", mean_q)):
        mean = np.atleast_1d(np.asarray(given, dtype=np.float64))
        if mean.shape != (size,) or not np.isfinite(mean).all():
            raise ValueError(f"{name} must hold {size} finite numbers, as cov_p asks, got shape {mean.shape}")
        means.append(mean)
    if len(factor_q) != size:
        raise ValueError(f"cov_q must have the shape of cov_p, {(size, size)}, got {factor_q.shape}")
    whitened = np.linalg.solve(factor_q, np.column_stack([factor_p, means[1] - means[0]]))
    nats = (log_determinant_of(factor_q) - log_determinant_of(factor_p) - size + float((whitened**2).sum())) / 2
    return max(nats, 0.0) / log_base(base)


def gaussian_mutual_information(cov: ArrayLike, n_first: int = 1, *, base: float = math.e) -> float:
    """Mutual information of the first `n_first` coordinates of a Gaussian and the rest.

    Parameters
    ----------
    cov : array-like of shape (d, d)
        Covariance of all coordinates.
    n_first : int, default=1
        How many belong to X; the others are Y.
    base : float, default=e

    Examples
    --------
    >>> from pluri.metrics import gaussian_mutual_information
    >>> gaussian_mutual_information([[1.0, 0.9], [0.9, 1.0]])
    0.8303656
    """
    matrix = as_covariance(cov, "cov")
    if not (isinstance(n_first, int | np.integer) and 0 < n_first < len(matrix)):
        raise ValueError(f"n_first must be an integer from 1 to {len(matrix) - 1}, got {n_first!r}")
    whole, first, second = (
        log_determinant_of(cholesky_factor(part, "cov"))
        for part in (matrix, matrix[:n_first, :n_first], matrix[n_first:, n_first:])
    )
    return max((first + second - whole) / 2, 0.0) / log_base(base)
