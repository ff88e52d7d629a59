"""Statistics of one-parameter exponential families: sums of observed values, and how much was observed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Statistics

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WeightedSums(Statistics):
    """total (k, D): sum of weight * x; exposure (k, D): sum of weight; both over observed values."""

    total: Array
    exposure: Array


def weighted_sums(X: Array, posterior: Array, n_components: int) -> WeightedSums:
    """Sums of X (NaN: missing) under the weights `posterior` (n_samples, padded width)."""
    weights = posterior[:, :n_components].T
    missing = np.isnan(X)
    if not missing.any():
        exposure = np.repeat(weights.sum(axis=1)[:, None], X.shape[1], axis=1)
        return WeightedSums(weights @ X, exposure)
    return WeightedSums(weights @ np.where(missing, 0.0, X), weights @ (~missing).astype(np.float64))


def split_missing(X: Array) -> tuple[Array, Array | None]:
    """X with 0 for NaN, and the 0/1 mask of observed values (None if nothing is missing)."""
    missing = np.isnan(X)
    if not missing.any():
        return X, None
    return np.where(missing, 0.0, X), (~missing).astype(np.float64)
