"""Where chains begin: regions of rows that are near each other and move alike, each with a ridge regression."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pluri.components.k_means import kmeans_centers, nearest_center
from pluri.dynamics.regions.conditionals import region_moments, regression_posterior, squared_residuals
from pluri.dynamics.regions.gibbs import RegionGibbs
from pluri.dynamics.regions.records import Moments, Position
from pluri.processes.stick_draws import draw_sticks

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Transitions that a region has at the start, on average at least, and for each input of a regression.
LEAST_ROWS, ROWS_PER_INPUT = 10, 2
#: Ridge of the first regressions.
RIDGE = 1e-3
#: Variance of the noise at the start, at least.
LEAST_VARIANCE = 1e-8


def starting_position(rng: np.random.Generator, kernel: RegionGibbs, scattered: bool) -> Position:
    """Transitions in clusters of k-means of rows and steps, or about random ones, and all else drawn given these."""
    _, H, J, K = kernel.sizes
    position = dict(kernel.sample_prior(rng))
    labels = np.concatenate([
        _clusters(rng, kernel.starts[a:b], kernel.ends[a:b], H, kernel.n_inputs, scattered)
        for a, b in pairwise(kernel.offsets)
    ])  # fmt: skip
    moments = region_moments(kernel.products, labels, kernel.offsets, H, K)
    _, found = regression_posterior(moments.gram, moments.cross, np.full(kernel.n_inputs, RIDGE))
    matrices = np.zeros((*found.shape[:2], K, K + 1))
    matrices[..., : kernel.n_inputs] = np.swapaxes(found, -1, -2)
    variance = squared_residuals(moments, matrices).sum(axis=1) / (K * moments.counts.sum(axis=1))
    position |= {
        "labels": labels,
        "noise_precision": 1 / np.maximum(variance, LEAST_VARIANCE),
        "relevance": np.ones(kernel.n_inputs),
        "log_weights": np.stack([draw_sticks(rng, counts, 1.0)[0] for counts in moments.counts]),
    }
    if kernel.n_regions is not None:
        position["pointers"] = _pointers(rng, moments, matrices, position["pointers"], J)
        counts = np.bincount(position["pointers"][moments.counts > 0], minlength=J)
        position["regime_log_weights"] = draw_sticks(rng, counts, 1.0)[0]
    return kernel.drawn_parameters(rng, position, moments)


def _clusters(rng: np.random.Generator, x: Array, y: Array, n_regions: int, n_inputs: int, scattered: bool) -> Integers:
    """Clusters of [x, y - x], both of order one; the largest is the first."""
    steps = y - x
    rows = np.hstack([part / max(float(part.std()), 1e-12) for part in (x - x.mean(axis=0), steps)])
    n_begun = max(1, min(n_regions, len(x) // max(LEAST_ROWS, ROWS_PER_INPUT * n_inputs)))
    centers = rows[rng.choice(len(x), n_begun, replace=False)] if scattered else kmeans_centers(rows, n_begun, rng)
    labels = np.unique(nearest_center(rows, centers), return_inverse=True)[1]
    return np.argsort(np.argsort(-np.bincount(labels), kind="stable"))[labels].astype(np.int64)


def _pointers(rng: np.random.Generator, moments: Moments, matrices: Array, pointers: Integers, J: int) -> Integers:
    """A matrix for each region, or for regions that k-means takes for alike if there are too few matrices."""
    filled = moments.counts > 0
    rows = matrices[filled].reshape(int(filled.sum()), -1)
    found = np.arange(len(rows)) if len(rows) <= J else nearest_center(rows, kmeans_centers(rows, J, rng))
    pointers = np.array(pointers)
    pointers[filled] = found
    return pointers
