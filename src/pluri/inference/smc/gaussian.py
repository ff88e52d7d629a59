"""Checks and factors of the matrices that linear Gaussian models are made of."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def as_array(value: ArrayLike, shape: tuple[int | None, ...], name: str) -> Floats:
    """A finite array of this shape (None is any length), or a sentence that names it."""
    array = np.array(value, dtype=np.float64)
    if array.ndim == 0:
        array = array.reshape((1,) * len(shape))
    wanted = "(" + ", ".join("n" if length is None else str(length) for length in shape) + ")"
    if array.ndim != len(shape) or any(w is not None and w != s for w, s in zip(shape, array.shape)):
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    array.flags.writeable = False
    return array


def covariance_factor(covariance: Floats, name: str, *, definite: bool = False) -> Floats:
    """A matrix L with L L^T = covariance; lower triangular if the covariance is positive definite.

    A singular covariance (noise in some directions only, or none at all) has a factor as well, but no density.
    """
    if not np.allclose(covariance, covariance.T, rtol=1e-8, atol=1e-12 * max(1.0, float(np.abs(covariance).max()))):
        raise ValueError(f"{name} must be symmetric")
    try:
        return cholesky(covariance)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(covariance)
    if definite:
        raise ValueError(f"{name} must be positive definite, its smallest eigenvalue is {values[0]:.3g}")
    if values[0] < -1e-10 * max(values[-1], 1e-300):
        raise ValueError(f"{name} must be positive semi-definite, its smallest eigenvalue is {values[0]:.3g}")
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), dtype=np.float64)


def cholesky(covariance: Floats) -> Floats:
    """Lower triangular factors, over the last two axes."""
    return np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)


def log_density(difference: Floats, factor: Floats) -> Floats:
    """Log density (n,) of differences (n, d) from the mean, for a lower triangular factor (d, d) of the covariance."""
    constant = 0.5 * len(factor) * np.log(2 * np.pi) + np.log(np.diag(factor)).sum()
    with np.errstate(over="ignore"):  # so far out that the density is zero
        if len(factor) == 1:
            return -0.5 * np.square(difference[:, 0] / factor[0, 0]) - constant
        return -0.5 * np.square(difference @ np.linalg.inv(factor).T).sum(axis=1) - constant


def symmetric(matrix: Floats) -> Floats:
    """The symmetric part, over the last two axes."""
    return 0.5 * (matrix + np.swapaxes(matrix, -1, -2))
