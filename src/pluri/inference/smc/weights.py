"""Weights of particles, kept as logarithms: normalisation and effective sample size."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["ParticleDegeneracyError", "effective_sample_size", "normalize_log_weights"]

Floats = NDArray[np.float64]


class ParticleDegeneracyError(FloatingPointError):
    """All particles have weight zero: what was observed is impossible for every one of them.

    Parameters
    ----------
    message : str
        What happened.
    t : int, optional
        Time step at which it happened, from 0.
    """

    def __init__(self, message: str, t: int | None = None) -> None:
        super().__init__(message)
        self.t = t


def normalize_log_weights(log_weights: ArrayLike) -> tuple[Floats, float]:
    """Weights that add up to one, and the logarithm of what they added up to.

    Parameters
    ----------
    log_weights : array-like (n,)
        Logarithms of unnormalised weights; -inf is weight zero.

    Returns
    -------
    weights : ndarray (n,)
        exp(log_weights - log_total).
    log_total : float
        log sum_i exp(log_weights_i), computed without overflow.

    Raises
    ------
    ParticleDegeneracyError
        If every weight is zero.

    Examples
    --------
    >>> from pluri.inference.smc import normalize_log_weights
    >>> weights, log_total = normalize_log_weights([-1000.0, -1000.0])
    >>> weights.tolist(), round(log_total, 3)
    ([0.5, 0.5], -999.307)
    """
    values = np.asarray(log_weights, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"log_weights must be a vector with at least one entry, got shape {values.shape}")
    largest = float(values.max())  # NaN if any is
    if math.isnan(largest) or largest == math.inf:
        bad = int(np.flatnonzero(np.isnan(values) | (values == math.inf))[0])
        raise ValueError(f"log_weights must be below infinity and not NaN, got {values[bad]} at particle {bad}")
    if largest == -math.inf:
        raise ParticleDegeneracyError(f"all {values.size} log_weights are -inf: every particle has weight zero")
    weights = np.exp(values - largest)
    total = float(weights.sum())
    return weights / total, largest + math.log(total)


def effective_sample_size(weights: ArrayLike) -> float:
    """Number of equally weighted particles that are worth as much: (sum w)^2 / sum w^2.

    Parameters
    ----------
    weights : array-like (n,)
        Weights, not necessarily normalised.

    Examples
    --------
    >>> from pluri.inference.smc import effective_sample_size
    >>> effective_sample_size([1.0, 1.0, 0.0])
    2.0
    """
    values = np.asarray(weights, dtype=np.float64)
    return float(values.sum() ** 2 / np.square(values).sum())
