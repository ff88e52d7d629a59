"""Where EM starts: cluster centres of (a sample of) the observations."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.components.k_means import k_means

Array = NDArray[np.float64]

#: k-means looks at this many rows at most, and is repeated from `N_STARTS` starts on fewer than `FEW_ROWS`.
MAX_ROWS = 10_000
FEW_ROWS = 5_000
N_STARTS = 10


def filled(X: Array) -> Array:
    """X with each missing value replaced by its feature's mean (0 if the feature was never seen)."""
    missing = np.isnan(X)
    if not missing.any():
        return X
    observed = np.maximum((~missing).sum(axis=0), 1)
    means = np.where(missing, 0.0, X).sum(axis=0) / observed
    return np.where(missing, means, X)


def observed(X: Array) -> Array:
    """The rows of which something was observed; all of them if that is none."""
    empty = np.isnan(X).all(axis=1)
    return X if not empty.any() or empty.all() else X[~empty]


def centers_and_covariance(
    X: Array, n_components: int, rng: np.random.Generator, *, with_centers: bool = True
) -> tuple[Array, Array]:
    """k-means centres (k, D) and the covariance matrix (D, D) of the rows about them (about the mean without)."""
    complete = filled(observed(X))
    if len(complete) > MAX_ROWS:
        complete = complete[np.sort(rng.choice(len(complete), MAX_ROWS, replace=False))]
    if not with_centers:
        centered = complete - complete.mean(axis=0)
        return np.empty((0, X.shape[1])), centered.T @ centered / max(len(complete) - 1, 1)
    centers = kmeans_centers(complete, n_components, rng)
    return centers, within_covariance(complete, centers)


def within_covariance(X: Array, centers: Array) -> Array:
    """Covariance matrix of the rows about the nearest centre: (D, D)."""
    centered = X - centers[nearest_center(X, centers)]
    return centered.T @ centered / max(len(X) - 1, 1)


def nearest_center(X: Array, centers: Array) -> NDArray[np.intp]:
    """Which centre is nearest to each row."""
    distances = np.stack([((X - center) ** 2).sum(axis=1) for center in centers], axis=1)
    return distances.argmin(axis=1)


def kmeans_centers(X: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Centres of k-means on at most `MAX_ROWS` rows; distinct even if the data have fewer distinct rows."""
    if len(X) > MAX_ROWS:
        X = X[np.sort(rng.choice(len(X), MAX_ROWS, replace=False))]
    distinct = np.unique(X, axis=0) if len(X) <= 1000 else X
    if len(distinct) <= n_components:
        spread = np.maximum(X.std(axis=0), 1e-3)
        extra = X[rng.integers(len(X), size=n_components - len(distinct))]
        return np.concatenate([distinct, extra + rng.normal(size=extra.shape) * spread])
    return k_means(X, None, n_components, rng, n_init=N_STARTS if len(X) <= FEW_ROWS else 2)[1]
