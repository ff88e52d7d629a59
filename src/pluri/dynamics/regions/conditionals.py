"""Conditional distributions of a flow by regions (model in `records`), from sums over transitions.

The log density of a transition in a region is linear in the products of its entries, ``t_i t_j``, ``y_i t_j`` and
``||y||^2`` with t = (x, 1). These are multiplied out once (n (K + 1)(3 K + 2) / 2 numbers); the densities of all
transitions in all regions are then one matrix product a sweep, and so are the sums by region.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.regions.records import Moments, Position

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LOG_2_PI = math.log(2 * math.pi)


def multiplied_out(x: Array, y: Array) -> Array:
    """Products of the entries of transitions: (n, (K + 1)(K + 2) / 2 + K (K + 1) + 1)."""
    t = np.column_stack([x, np.ones(len(x))])
    first, second = np.triu_indices(t.shape[1])
    cross = (y[:, :, None] * t[:, None, :]).reshape(len(y), -1)
    return np.hstack([t[:, first] * t[:, second], cross, (y * y).sum(axis=1, keepdims=True)])


def log_joint_rows(position: Position, products: Array, offsets: Integers) -> Array:
    """Log weight plus log density of each transition in each region of its task: (n, H).

    `offsets` (L + 1,) says where the transitions of each task begin and end.
    """
    weights = _density_weights(position)
    rows = [products[a:b] @ weights[task].T for task, (a, b) in enumerate(pairwise(offsets))]
    return np.concatenate(rows)


def cumulated(log_joint: Array) -> tuple[Array, float]:
    """Shares of the regions of each transition, summed up from region to region, and the log-likelihood of all."""
    top = log_joint.max(axis=1, keepdims=True)
    edges = np.exp(log_joint - top)
    np.cumsum(edges, axis=1, out=edges)
    return edges, float((top[:, 0] + np.log(edges[:, -1])).sum())


def chosen_regions(rng: np.random.Generator, edges: Array) -> Integers:
    """A region for each transition, by its shares."""
    threshold = rng.random(len(edges)) * edges[:, -1]
    return np.minimum((edges <= threshold[:, None]).sum(axis=1), edges.shape[1] - 1).astype(np.int64)


def _density_weights(position: Position) -> Array:
    """Numbers (L, H, n_products) by which products are multiplied to give log densities."""
    centers, Q = position["centers"], position["precisions"]
    M = position["matrices"][position["pointers"]]
    g = position["noise_precision"][:, None]
    L, H, K = centers.shape
    quadratic = np.empty((L, H, K + 1, K + 1))
    pulled = (Q @ centers[..., None])[..., 0]
    quadratic[..., :K, :K] = Q
    quadratic[..., :K, K] = quadratic[..., K, :K] = -pulled
    quadratic[..., K, K] = (
        (centers * pulled).sum(axis=-1)
        - 2 * position["log_weights"]
        - np.linalg.slogdet(Q)[1]
        - K * (np.log(g) - 2 * LOG_2_PI)
    )
    quadratic += g[..., None, None] * (np.swapaxes(M, -1, -2) @ M)
    first, second = np.triu_indices(K + 1)
    once = np.where(first == second, -0.5, -1.0)
    cross = (g[..., None, None] * M).reshape(L, H, -1)
    squares = np.broadcast_to(-0.5 * g[..., None], (L, H, 1))
    return np.concatenate([quadratic[..., first, second] * once, cross, squares], axis=-1)


def region_moments(products: Array, labels: Integers, offsets: Integers, n_regions: int, K: int) -> Moments:
    """Sums over the transitions of each region."""
    regions = np.arange(n_regions)[:, None]
    sums = np.stack([
        (labels[a:b] == regions).astype(np.float64) @ products[a:b] for a, b in pairwise(offsets)
    ])  # fmt: skip
    first, second = np.triu_indices(K + 1)
    gram = np.empty((*sums.shape[:2], K + 1, K + 1))
    gram[..., first, second] = gram[..., second, first] = sums[..., : len(first)]
    cross = sums[..., len(first) : -1].reshape(*sums.shape[:2], K, K + 1)
    return Moments(gram[..., K, K].copy(), gram, cross, sums[..., -1])


def draw_places(
    rng: np.random.Generator, moments: Moments, scatter: Array, strength: float, freedom: float
) -> tuple[Array, Array]:
    """Centres (L, H, K) and precisions (L, H, K, K) of the regions, those without transitions from the prior.

    The prior mean of centres is zero, and `scatter` is the inverse of B0:
    ``Q ~ Wishart(Bn, freedom + n)`` with ``Bn^-1 = scatter + sum xx' - u mm'``, ``u = strength + n`` and
    ``m = sum x / u``; the centre is ``N(m, (u Q)^-1)``.
    """
    K = len(scatter)
    total = moments.gram[..., :K, K]
    u = strength + moments.counts
    mean = total / u[..., None]
    inverse = scatter + moments.gram[..., :K, :K] - u[..., None, None] * mean[..., :, None] * mean[..., None, :]
    root = np.linalg.cholesky((inverse + np.swapaxes(inverse, -1, -2)) / 2)
    # Bartlett: Q = R R' with R = root^-T A, A lower triangular.
    A = np.tril(rng.standard_normal(root.shape), -1)
    diagonal = np.arange(K)
    A[..., diagonal, diagonal] = np.sqrt(rng.chisquare((freedom + moments.counts)[..., None] - diagonal))
    half = np.linalg.solve(np.swapaxes(root, -1, -2), A)
    # A centre has the covariance R^-T R^-1 / u, and R^-T = root A^-T.
    away = root @ np.linalg.solve(np.swapaxes(A, -1, -2), rng.standard_normal((*mean.shape, 1)))
    return mean + away[..., 0] / np.sqrt(u)[..., None], np.asarray(half @ np.swapaxes(half, -1, -2))


def regression_posterior(gram: Array, cross: Array, relevance: Array) -> tuple[Array, Array]:
    """Precision (..., P, P) of the rows of a matrix, and means (..., P, K); sums are weighted by noise precisions."""
    P = len(relevance)
    precision = gram[..., :P, :P] + np.diag(relevance)
    return precision, np.asarray(np.linalg.solve(precision, np.swapaxes(cross[..., :P], -1, -2)))


def draw_matrices(rng: np.random.Generator, precision: Array, mean: Array) -> Array:
    """Matrices (..., K, P) from their Gaussian posteriors."""
    root = np.linalg.cholesky(precision)
    drawn = mean + np.linalg.solve(np.swapaxes(root, -1, -2), rng.standard_normal(mean.shape))
    return np.ascontiguousarray(np.swapaxes(drawn, -1, -2))


def log_evidence(gram: Array, cross: Array, squares: Array, relevance: Array) -> Array:
    """Log density (R,) of the transitions of R regions, up to a constant of each, with its matrix integrated out.

    ``-(||y||^2 - 2 tr(M' S_yt) + tr(M S_tt M')) / 2`` under the prior of M; sums are weighted by the noise precision.
    """
    precision, mean = regression_posterior(gram, cross, relevance)
    P, K = mean.shape[-2:]
    gain = (np.swapaxes(cross[..., :P], -1, -2) * mean).sum(axis=(-2, -1))
    log_det = np.linalg.slogdet(precision)[1]
    return np.asarray(0.5 * (K * (np.log(relevance).sum() - log_det) + gain - squares))


def squared_residuals(moments: Moments, matrices: Array) -> Array:
    """Sum of squared residuals of each region (L, H) under its own matrix (L, H, K, K + 1)."""
    through = (matrices * (matrices @ moments.gram - 2 * moments.cross)).sum(axis=(-2, -1))
    return np.maximum(moments.squares + through, 0.0)
