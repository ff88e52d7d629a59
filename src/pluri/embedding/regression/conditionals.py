"""Conditional distributions of a regression of rows on coordinates by clusters (notation of `records`).

Given labels, a cluster is a linear regression on ``u = lam * (x - mh)`` and a constant. Which coordinates are on is
drawn with all loadings and the mean of the cluster integrated out: with S the columns that are on besides k, the
constant among them, ``P = diag(prior) + a0 G`` for the gram matrix G of the columns and C their products with the rows,

    q = zt + a0 G_kk - a0^2 G_kS P_SS^-1 G_Sk,    h = C_k - a0 G_kS P_SS^-1 C_S,
    logit P(b_k = 1) = prior logit + D/2 log(zt / q) + a0^2 ||h||^2 / (2 q),

which needs C only as C C'. Centres mh are drawn given the constants ``c = m - A L mh``, not given the means m: c and A
say all about the rows, so that centres move freely instead of by the width of the noise.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.embedding.regression.records import Moments

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Log odds are kept within this.
LARGEST_LOGIT = 700.0


def cluster_moments(x: Array, rows: Array, places: Array, labels: Integers, n_clusters: int) -> Moments:
    """Moments of the rows of each cluster; `places` (n, K) is what the centres are the means of."""
    (n, K), D = x.shape, rows.shape[1]
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels, minlength=n_clusters)
    ends = np.cumsum(counts)
    T, Y, Z = np.ones((n, K + 1)), rows[order], places[order]
    T[:, :K] = x[order]
    gram, cross = np.zeros((n_clusters, K + 1, K + 1)), np.zeros((n_clusters, K + 1, D))
    squares, first, second = np.zeros(n_clusters), np.zeros((n_clusters, K)), np.zeros((n_clusters, K))
    for j in np.flatnonzero(counts):
        mine = slice(ends[j] - counts[j], ends[j])
        gram[j], cross[j] = T[mine].T @ T[mine], T[mine].T @ Y[mine]
        squares[j] = np.einsum("nd,nd->", Y[mine], Y[mine])
        first[j], second[j] = Z[mine].sum(axis=0), (Z[mine] ** 2).sum(axis=0)
    return Moments(counts.astype(np.float64), gram, cross, squares, first, second)


def about_centers(moments: Moments, centers: Array, scales: Array) -> tuple[Array, Array]:
    """Gram matrices (J, P, P) and products with the rows (J, P, D) of the columns ``(lam * (x - mh), 1)``."""
    J, K = centers.shape
    turn = np.zeros((J, K + 1, K + 1))
    diagonal = np.arange(K)
    turn[:, diagonal, diagonal] = scales
    turn[:, :K, K] = -scales * centers
    turn[:, K, K] = 1.0
    return turn @ moments.gram @ turn.transpose(0, 2, 1), turn @ moments.cross


def support_gain(
    k: int, gram: Array, outer: Array, noise: Array, prior: Array, inverse: Array, n_outputs: int
) -> tuple[Array, Array, Array]:
    """Log evidence that column k adds to those in `inverse`, for each cluster; and ``P_SS^-1 G_Sk`` and q.

    `inverse` (J, P, P) is the inverse of the precision of the columns that are on, zero in rows and columns of others,
    k among them; `outer` is C C'.
    """
    column = np.einsum("jpq,jq->jp", inverse, gram[:, :, k])
    q = prior[:, k] + noise * (gram[:, k, k] - noise * np.einsum("jp,jp->j", gram[:, :, k], column))
    q = np.maximum(q, prior[:, k])
    pushed = np.einsum("jpq,jq->jp", outer, column)
    square = outer[:, k, k] - 2 * noise * pushed[:, k] + noise**2 * np.einsum("jp,jp->j", column, pushed)
    gain = 0.5 * (n_outputs * np.log(prior[:, k] / q) + noise**2 * np.maximum(square, 0.0) / q)
    return gain, column, q


def draw_support(
    rng: np.random.Generator, gram: Array, cross: Array, noise: Array, prior: Array, on: Array, log_odds: float,
    shared: bool,
) -> Array:  # fmt: skip
    """Which of the first K columns are on (J, K), one after the other, all coefficients integrated out.

    Parameters
    ----------
    gram, cross : arrays of shape (J, P, P) and (J, P, D)
        Of the columns, P = K + 1; the last is always on.
    noise : array of shape (J,)
        Precisions of the noise.
    prior : array of shape (J, P)
        Prior precisions of the coefficients.
    on : array of shape (J, K) of zeros and ones
    log_odds : float
    shared : bool
        Whether all clusters use the same columns.
    """
    J, K = on.shape
    outer = cross @ cross.transpose(0, 2, 1)
    present = np.concatenate([on > 0, np.ones((J, 1), dtype=bool)], axis=1)
    inverse = _inverse_of_present(gram, noise, prior, present)
    uniforms = rng.random((K, 1 if shared else J))
    for k in range(K):
        there = present[:, k]
        pivot = np.where(there, inverse[:, k, k], 1.0)
        inverse = inverse - inverse[:, :, k, None] * inverse[:, None, k, :] / pivot[:, None, None]
        inverse[:, k, :] = inverse[:, :, k] = 0.0
        gain, column, q = support_gain(k, gram, outer, noise, prior, inverse, cross.shape[2])
        logit = log_odds + (gain.sum(keepdims=True) if shared else gain)
        chosen = np.broadcast_to(
            uniforms[k] * (1 + np.exp(-np.clip(logit, -LARGEST_LOGIT, LARGEST_LOGIT))) < 1, (J,)
        )  # fmt: skip
        present[:, k] = chosen
        border = noise[:, None] * column
        border[:, k] = -1.0
        inverse = inverse + np.where(chosen, 1 / q, 0.0)[:, None, None] * border[:, :, None] * border[:, None, :]
    return present[:, :K].astype(np.float64)


def _inverse_of_present(gram: Array, noise: Array, prior: Array, present: NDArray[np.bool_]) -> Array:
    """Inverse of ``diag(prior) + a0 G`` among columns that are present, zero elsewhere."""
    both = present[:, :, None] & present[:, None, :]
    precision = np.where(both, noise[:, None, None] * gram, 0.0)
    diagonal = np.arange(gram.shape[1])
    precision[:, diagonal, diagonal] += np.where(present, prior, 1.0)
    return np.where(both, np.linalg.inv(precision), 0.0)


def scale_posterior(gram: Array, cross: Array, loadings: Array, means: Array, noise: Array) -> tuple[Array, Array]:
    """Precision (K, K) and linear term (K,) of the scales; gram and cross of ``(x - mh, 1)``, loadings 0 where off."""
    K = loadings.shape[1]
    inner = loadings @ loadings.transpose(0, 2, 1)
    precision = np.eye(K) + np.einsum("j,jkl,jkl->kl", noise, gram[:, :K, :K], inner)
    target = cross[:, :K] - gram[:, :K, K, None] * means[:, None, :]
    return precision, np.einsum("j,jkd,jkd->k", noise, loadings, target)


def center_posterior(
    moments: Moments, precisions: Array, used: Array, constants: Array, mean_precision: float
) -> tuple[Array, Array]:
    """Precisions (J, K, K) and linear terms (J, K) of the centres mh given ``c = m - A L mh``; used = rows of A L."""
    K = precisions.shape[1]
    precision = mean_precision * (used @ used.transpose(0, 2, 1))
    diagonal = np.arange(K)
    precision[:, diagonal, diagonal] += 1.0 + moments.counts[:, None] * precisions
    linear = precisions * moments.first - mean_precision * np.einsum("jkd,jd->jk", used, constants)
    return precision, linear


def draw_gaussian(rng: np.random.Generator, precision: Array, linear: Array) -> Array:
    """Draw from ``N(precision^-1 linear, precision^-1)``, over leading axes."""
    root = np.linalg.cholesky(precision)
    half = np.linalg.solve(root, linear[..., None]) + rng.standard_normal((*linear.shape, 1))
    return np.asarray(np.linalg.solve(np.swapaxes(root, -1, -2), half)[..., 0])


def residual_squares(moments: Moments, gram: Array, cross: Array, coefficients: Array) -> Array:
    """Sums (J,) of the squared residuals of the rows of each cluster."""
    found = moments.squares - 2 * (coefficients * cross).sum(axis=(1, 2))
    found += (coefficients * (gram @ coefficients)).sum(axis=(1, 2))
    return np.asarray(np.maximum(found, 0.0))


def place_squares(moments: Moments, centers: Array) -> Array:
    """Sums (J, K) of the squared distances of places from the centres."""
    found = moments.second - 2 * centers * moments.first + moments.counts[:, None] * centers**2
    return np.asarray(np.maximum(found, 0.0))


def log_joint_rows(position: Any, x: Array, rows: Array, places: Array) -> Array:
    """Log weight plus log density of each row and its place under each cluster: (n, J)."""
    D, K = rows.shape[1], x.shape[1]
    noise, precisions, centers = position["noise_precision"], position["precisions"], position["centers"]
    found = position["log_weights"] + 0.5 * (D * np.log(noise) + np.log(precisions).sum(axis=1))
    found = found - 0.5 * (D + K) * np.log(2 * np.pi)
    found = np.tile(found, (len(rows), 1))
    used = position["loadings"] * position["scales"][:, None]
    constants = position["means"] - np.einsum("jk,jkd->jd", centers, used)
    found -= 0.5 * noise * residuals_of_rows(x, rows, constants, used, position["support"])
    return np.asarray(
        found
        - 0.5
        * (places**2 @ precisions.T - 2 * places @ (precisions * centers).T + (precisions * centers**2).sum(axis=1))
    )


def residuals_of_rows(x: Array, rows: Array, constants: Array, used: Array, support: Array) -> Array:
    """Squared residuals (n, J) of all rows under all regressions, ``|y - c_j - B_j' x|^2``, by products of matrices."""
    J = len(constants)
    cluster, coordinate = np.nonzero(support)
    # y'B for each coordinate that is in use, times x, added up over those of a cluster.
    fitted = (rows @ used[cluster, coordinate].T) * x[:, coordinate]
    fitted = fitted @ (cluster[:, None] == np.arange(J)).astype(np.float64)
    fitted += rows @ constants.T
    lengths = (constants**2).sum(axis=1) + 2 * x @ np.einsum("jkd,jd->kj", used, constants)
    lengths += ((x @ (used @ used.transpose(0, 2, 1))) * x).sum(axis=2).T
    squares = np.einsum("nd,nd->n", rows, rows)[:, None] - 2 * fitted + lengths
    return np.asarray(np.maximum(squares, 0.0))
