"""Statistics of one-parameter exponential families: sums of observed values, and how much was observed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.components.sparse_rows import sparse_sums
from pluri.components.starting_shares import divide_rows, most_rows, shares_to_weights, some_rows
from pluri.engine import Batch, Source, Statistics, map_reduce

Array = NDArray[np.float64]

#: Centres of few rows have exact zeros that mean little: they start with this share of everybody's mean.
SHRINKAGE = 0.1


@dataclass(frozen=True)
class WeightedSums(Statistics):
    """total (k, D): sum of weight * x; exposure (k, D): sum of weight; both over observed values."""

    total: Array
    exposure: Array


def weighted_sums(X: Any, posterior: Array, n_components: int) -> WeightedSums:
    """Sums of X (CSR, or dense with NaN for missing) under the weights `posterior` (n_samples, padded width)."""
    weights = posterior[:, :n_components].T
    if sparse.issparse(X):
        return WeightedSums(sparse_sums(X, posterior, n_components), _everywhere(weights, X.shape[1]))
    missing = np.isnan(X)
    if not missing.any():
        return WeightedSums(weights @ X, _everywhere(weights, X.shape[1]))
    return WeightedSums(weights @ np.where(missing, 0.0, X), weights @ (~missing).astype(np.float64))


def _everywhere(weights: Array, n_features: int) -> Array:
    return np.repeat(weights.sum(axis=1)[:, None], n_features, axis=1)


def split_missing(X: Array) -> tuple[Array, Array | None]:
    """X with 0 for NaN, and the 0/1 mask of observed values (None if nothing is missing)."""
    missing = np.isnan(X)
    if not missing.any():
        return X, None
    return np.where(missing, 0.0, X), (~missing).astype(np.float64)


def pooled_sums(source: Source, prepare: Callable[[Any], Any]) -> WeightedSums:
    """Sums over all rows, whatever their component: (1, D)."""
    return map_reduce(partial(_pooled_batch, prepare), source)


def _pooled_batch(prepare: Callable[[Any], Any], batch: Batch) -> WeightedSums:
    weight = np.ones(batch.n_samples) if batch.weight is None else batch.weight
    return weighted_sums(prepare(batch.X), weight[:, None], 1)


def expected_sums(means: Array, mass: Array) -> WeightedSums:
    """Sums that rows with these means (k, D) are expected to have, `mass` (k,) of each."""
    exposure = np.repeat(mass[:, None], means.shape[1], axis=1)
    return WeightedSums(exposure * means, exposure)


def averages(sums: WeightedSums) -> Array:
    """Mean of each feature in each component: (k, D); 0 for a feature that was never observed."""
    return np.asarray(sums.total / np.maximum(sums.exposure, np.finfo(np.float64).tiny))


def starting_averages(
    X: Any,
    weight: Array | None,
    n_components: int,
    how: str,
    rng: np.random.Generator,
    features: Callable[[Any], Any],
) -> tuple[Array, Array]:
    """Weights (k,) and means (k, D) of (some of) the rows as `how` divides them, by what `features` sees of them.

    The means are drawn a little towards the mean of all rows, so that what one component has not seen, but another has,
    is not ruled out.
    """
    rows, weight = some_rows(X, weight, most_rows(how, n_components), rng)
    shares = divide_rows(features(rows), weight, n_components, how, rng) * weight[:, None]
    sums = weighted_sums(rows, shares, n_components)
    mean = averages(WeightedSums(sums.total.sum(axis=0), sums.exposure.sum(axis=0)))
    own = np.where(sums.exposure > 0, averages(sums), mean)
    return shares_to_weights(shares), (1.0 - SHRINKAGE) * own + SHRINKAGE * mean
