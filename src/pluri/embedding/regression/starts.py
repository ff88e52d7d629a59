"""Where chains begin: clusters of the coordinates, each with its own ridge regression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pluri.components.k_means import kmeans_centers, nearest_center
from pluri.embedding.regression.conditionals import about_centers, cluster_moments, residual_squares
from pluri.embedding.regression.records import Position
from pluri.embedding.regression.sweep import ClusterRegression
from pluri.processes.stick_draws import draw_sticks

Array = NDArray[np.float64]

#: Rows that a cluster has at the start where nothing is known of it, on average at least.
ROWS_EACH = 50.0
#: Clusters that there is room for, by those at the start: empty ones cost time, and are rarely filled.
ROOM = 2
#: Ridge of the first regressions, as a share of the variance of each coordinate.
RIDGE = 1e-2
#: Variances of noise and of coordinates at the start, at least.
LEAST_VARIANCE = 1e-4


def number_begun(n_components: int, n_samples: int, rows_each: float) -> int:
    """Clusters at the start, of so many rows each on average, if there may be so many clusters."""
    return max(1, min(n_components, int(n_samples / rows_each)))


def room(n_components: int, n_samples: int, rows_each: float) -> int:
    """Clusters that sampling has room for: twice as many as at the start, if there may be so many."""
    return min(n_components, ROOM * number_begun(n_components, n_samples, rows_each))


def starting_position(
    rng: np.random.Generator, model: ClusterRegression, x: Array, rows: Array, rows_each: float, scattered: bool
) -> Position:
    """Rows in clusters of k-means of their coordinates, or about random rows, with all coordinates in use."""
    J, K = model.n_components, model.n_coordinates
    n_begun = number_begun(J, len(x), rows_each)
    centers = x[rng.choice(len(x), n_begun, replace=False)] if scattered else kmeans_centers(x, n_begun, rng)
    labels = nearest_center(x, centers).astype(np.int64)
    labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    labels = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))[labels]  # the largest has the first stick
    moments = cluster_moments(x, rows, x, labels, J)
    position = dict(model.sample_prior(rng, len(x)))
    filled = moments.counts > 0
    counts = np.maximum(moments.counts, 1.0)[:, None]
    centers = np.where(filled[:, None], moments.first / counts, position["centers"])
    variance = np.maximum(moments.second / counts - (moments.first / counts) ** 2, LEAST_VARIANCE)
    if model.isotropic:
        variance = np.tile(variance.mean(axis=1, keepdims=True), (1, K))
    scales = np.ones(K) if model.scales is None else model.scales
    gram, cross = about_centers(moments, centers, scales)
    diagonal = np.arange(K + 1)
    ridge = RIDGE * gram[:, diagonal, diagonal] + 1e-6
    ridge[:, K] = 1e-9
    precision = gram.copy()
    precision[:, diagonal, diagonal] += ridge
    coefficients = np.asarray(np.linalg.solve(precision, cross), dtype=np.float64)
    noise = residual_squares(moments, gram, cross, coefficients).sum() / rows.size
    log_weights, _ = draw_sticks(rng, moments.counts, 1.0)
    return position | {
        "labels": labels,
        "log_weights": log_weights,
        "centers": centers,
        "precisions": np.where(filled[:, None], 1 / variance, position["precisions"]),
        "means": np.where(filled[:, None], coefficients[:, K], position["means"]),
        "loadings": coefficients[:, :K],
        "support": np.ones((J, K), dtype=np.int8),
        "scales": scales,
        "noise_precision": np.full(J, 1 / max(float(noise), LEAST_VARIANCE)),
        "loading_precision": np.asarray(1.0),
        "mean_precision": np.asarray(1.0),
    }
