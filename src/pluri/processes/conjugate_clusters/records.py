"""Data, prior and clusters as arrays that compiled loops take, for each conjugate likelihood.

See `pluri.processes.conjugate_clusters._kernels` for what the arrays mean.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

from pluri.processes.conjugate import BetaBernoulli, DirichletMultinomial, GammaPoisson
from pluri.processes.conjugate_clusters._kernels import (
    BINARY,
    CENTER,
    COLUMNS,
    CONSTANT,
    COUNTS,
    GAUSSIAN,
    LOG_SIZE,
    POWER,
    SHRINK,
    SIZE,
    TOKENS,
    Clusters,
    Law,
    Rows,
    log_predictive_table,
)
from pluri.processes.conjugate_gaussian import NormalGamma, NormalInverseWishart

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

#: Products of the columns of all rows are held at once up to this number of them.
PRODUCTS_AT_ONCE = 1 << 20

KINDS = {
    NormalInverseWishart: GAUSSIAN, NormalGamma: COLUMNS, BetaBernoulli: BINARY, DirichletMultinomial: TOKENS,
    GammaPoisson: COUNTS,
}  # fmt: skip


def kind_of(likelihood: Any) -> int:
    """Which of the compiled likelihoods this is."""
    for known, kind in KINDS.items():
        if isinstance(likelihood, known):
            return kind
    names = ", ".join(known.__name__ for known in KINDS)
    raise ValueError(f"the likelihood must be one of {names}, got {type(likelihood).__name__}")


def check_values(kind: int, data: Any) -> None:
    """Refuse numbers that are not counts, or not zeros and ones, where these are needed."""
    if kind in (GAUSSIAN, COLUMNS):
        return
    value = data.data if sparse.issparse(data) else np.asarray(data)
    what = "zeros and ones" if kind == BINARY else "counts"
    if (value < 0).any():
        raise ValueError(f"Negative values in data: X must hold {what}")
    if not (value == np.rint(value)).all() or (kind == BINARY and (value > 1).any()):
        raise ValueError(f"X must hold {what}, got other values")


def checked_data(likelihood: Any, data: Any) -> Any:
    """A finite matrix that the likelihood allows; sparse counts stay sparse, in CSR form without zeros."""
    kind = kind_of(likelihood)
    if not sparse.issparse(data):
        return np.ascontiguousarray(likelihood.check(data), dtype=np.float64)
    if kind in (GAUSSIAN, COLUMNS):
        raise ValueError("data must be dense for Gaussian clusters, got a sparse matrix")
    matrix = sparse.csr_matrix(data, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    if matrix.shape[1] != likelihood.n_features:
        raise ValueError(f"X must have {likelihood.n_features} columns, got {matrix.shape[1]}")
    if not np.isfinite(matrix.data).all():
        raise ValueError("X must be finite, got NaN or infinity")
    check_values(kind, matrix)
    return matrix


def as_rows(likelihood: Any, data: Any) -> Rows:
    """Data as compiled loops read them."""
    if kind_of(likelihood) in (GAUSSIAN, COLUMNS):
        dense = np.ascontiguousarray(data - np.asarray(likelihood.mean, dtype=np.float64))
        none = np.zeros(0, dtype=np.int64)
        return Rows(dense, none, none, np.zeros(0), np.zeros(0))
    matrix = data if sparse.issparse(data) else sparse.csr_matrix(data)
    total = np.asarray(matrix.sum(axis=1), dtype=np.float64).ravel()
    start, column = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    return Rows(np.zeros((0, 0)), start, column, matrix.data.astype(np.float64), total)


def row_constants(likelihood: Any, data: Any) -> Array:
    """What the loops leave out of the log density of each row because no cluster changes it: ``- sum log x!``."""
    if kind_of(likelihood) != COUNTS:
        return np.zeros(data.shape[0])
    if not sparse.issparse(data):
        return np.asarray(-gammaln(np.asarray(data) + 1.0).sum(axis=1))
    logs = data.copy()
    logs.data = gammaln(logs.data + 1.0)
    return -np.asarray(logs.sum(axis=1)).ravel()


def as_law(likelihood: Any, n_rows: int) -> Law:
    """Likelihood as compiled loops read it, for clusters of up to `n_rows` rows."""
    kind, d = kind_of(likelihood), likelihood.n_features
    n = np.arange(n_rows + 2, dtype=np.float64)
    if kind == GAUSSIAN:
        return Law(kind, float(likelihood.strength), float(likelihood.df), _gaussian_constant(likelihood, n))
    if kind == COLUMNS:
        # Twice the shape, so that both kinds of Gaussian have (freedom + n + 1) / 2 as their power.
        return Law(kind, float(likelihood.strength), 2.0 * likelihood.shape, d * _column_constant(likelihood, n))
    if kind == TOKENS:
        return Law(kind, 0.0, 0.0, np.zeros(1))
    if kind == BINARY:
        values, times = np.unique(_vector(likelihood.a, d) + _vector(likelihood.b, d), return_counts=True)
        return Law(kind, 0.0, 0.0, sum((count * np.log(value + n) for value, count in zip(values, times)), 0.0 * n))
    rate = _vector(likelihood.rate, d)
    return Law(kind, 0.0, float((rate == rate[0]).all()), np.log1p(1 / (rate[0] + n)))


def _vector(value: Any, n_features: int) -> Array:
    return np.ascontiguousarray(np.broadcast_to(np.asarray(value, dtype=np.float64), (n_features,)))


def _gaussian_constant(likelihood: Any, n: Array) -> Array:
    d = likelihood.n_features
    k, v = likelihood.strength + n, likelihood.df + n
    return np.asarray(gammaln((v + 1) / 2) - gammaln((v - d + 1) / 2) - d / 2 * (math.log(math.pi) + np.log1p(1 / k)))


def _column_constant(likelihood: Any, n: Array) -> Array:
    k, shape = likelihood.strength + n, likelihood.shape + n / 2
    return np.asarray(gammaln(shape + 0.5) - gammaln(shape) - 0.5 * (math.log(2 * math.pi) + np.log1p(1 / k)))


def cluster_sums(likelihood: Any, data: Any, labels: Integers, n_clusters: int) -> Array:
    """Statistics of each cluster, (n_clusters, n_statistics), without those of each row in memory; none is empty."""
    if not n_clusters:
        return np.asarray(likelihood.empty(0))
    if sparse.issparse(data):
        places = np.arange(len(labels) + 1)
        indicator = sparse.csr_matrix((np.ones(len(labels)), labels, places), shape=(len(labels), n_clusters))
        return weighted_sums(likelihood, data, indicator)
    order = np.argsort(labels, kind="stable")
    size = np.bincount(labels, minlength=n_clusters)
    begin = np.cumsum(size) - size
    rows = data[order]
    kind = kind_of(likelihood)
    if kind == COUNTS:
        factorials = np.add.reduceat(-row_constants(likelihood, rows), begin)
        return np.column_stack([size, factorials, np.add.reduceat(rows, begin, axis=0)])
    if kind in (TOKENS, BINARY):
        total = np.add.reduceat(rows, begin, axis=0)
        return total if kind == TOKENS else np.column_stack([size, total])
    rows -= np.asarray(likelihood.mean)
    total = np.add.reduceat(rows, begin, axis=0)
    if kind == COLUMNS:
        return np.column_stack([size, total, np.add.reduceat(rows**2, begin, axis=0)])
    products = [(rows[first : first + n].T @ rows[first : first + n]).ravel() for first, n in zip(begin, size)]
    return np.column_stack([size, total, products])


def weighted_sums(likelihood: Any, data: Any, weights: Any) -> Array:
    """Statistics of each cluster given the weight of each row in it, (n_samples, n_clusters)."""
    kind = kind_of(likelihood)
    size = np.asarray(weights.sum(axis=0), dtype=np.float64).reshape(-1, 1)
    if kind in (GAUSSIAN, COLUMNS):
        data = np.asarray(data) - np.asarray(likelihood.mean)
    total = weights.T @ data
    total = total.toarray() if sparse.issparse(total) else np.asarray(total)
    if kind == TOKENS:
        return total
    if kind == BINARY:
        return np.hstack([size, total])
    if kind == COUNTS:
        factorials = -np.asarray(weights.T @ row_constants(likelihood, data)).reshape(-1, 1)
        return np.hstack([size, factorials, total])
    if kind == COLUMNS:
        return np.hstack([size, total, weights.T @ data**2])
    if data.size * data.shape[1] <= PRODUCTS_AT_ONCE:
        products = weights.T @ (data[:, :, None] * data[:, None, :]).reshape(len(data), -1)
    else:
        products = np.stack([((data * weights[:, k : k + 1]).T @ data).ravel() for k in range(len(total))])
    return np.hstack([size, total, products])


def safe_cholesky(matrices: Array) -> Array:
    """Cholesky factors; rounding that made a matrix indefinite is mended by a little more on its diagonal."""
    try:
        return np.asarray(np.linalg.cholesky(matrices))
    except np.linalg.LinAlgError:
        jitter = 1e-14
    while True:
        try:
            diagonal = np.diagonal(matrices, axis1=-2, axis2=-1)
            spread = jitter * diagonal.max(axis=-1)[..., None, None] * np.eye(matrices.shape[-1])
            return np.asarray(np.linalg.cholesky(matrices + spread))
        except np.linalg.LinAlgError:
            jitter *= 10
            if jitter > 1e-4:
                raise


def as_slots(likelihood: Any, statistics: Array, sizes: Array) -> Array:
    """Slots of clusters with given statistics, in their order."""
    kind, d = kind_of(likelihood), likelihood.n_features
    slots = np.zeros((len(statistics), CENTER + 2 * d + (d * (d + 1) // 2 if kind == GAUSSIAN else 0)))
    n = np.asarray(sizes, dtype=np.float64)
    slots[:, SIZE] = n
    with np.errstate(divide="ignore"):
        slots[:, LOG_SIZE] = np.log(n)
    center, scale = slots[:, CENTER : CENTER + d], slots[:, CENTER + d : CENTER + 2 * d]
    if kind == GAUSSIAN:
        k, v, center[:], scatter = likelihood._posterior(statistics)
        factor = safe_cholesky(scatter)
        slots[:, CENTER + 2 * d :] = factor[:, *np.tril_indices(d)]
        scale[:] = 1 / np.diagonal(factor, axis1=1, axis2=2)
        slots[:, CONSTANT] = _gaussian_constant(likelihood, n) + np.log(scale).sum(axis=1)
        slots[:, POWER], slots[:, SHRINK] = (v + 1) / 2, k / (k + 1)
    elif kind == COLUMNS:
        k, center[:], shape, scale[:] = likelihood._posterior(statistics)
        slots[:, CONSTANT] = d * _column_constant(likelihood, n) - 0.5 * np.log(scale).sum(axis=1)
        slots[:, POWER], slots[:, SHRINK] = shape[:, 0] + 0.5, 0.5 * (k / (k + 1))[:, 0]
    elif kind == TOKENS:
        center[:] = _vector(likelihood.concentration, d) + statistics
        slots[:, POWER] = center.sum(axis=1)
    elif kind == BINARY:
        center[:], scale[:] = likelihood._heads_and_tails(statistics)
        slots[:, CONSTANT] = (np.log(scale) - np.log(center + scale)).sum(axis=1)
    else:
        center[:] = _vector(likelihood.shape, d) + statistics[:, 2:]
        scale[:] = _vector(likelihood.rate, d) + statistics[:, :1]
        slots[:, POWER] = center.sum(axis=1)
        slots[:, CONSTANT] = -(center * np.log1p(1 / scale)).sum(axis=1)
    return slots


def log_predictive(likelihood: Any, data: Any, statistics: Array, sizes: Array) -> Array:
    """Log density of each row after those that the statistics of each cluster sum up: (n_samples, n_clusters)."""
    n, d = data.shape
    out = np.empty((n, len(statistics)))
    slots = as_slots(likelihood, statistics, sizes)
    clusters = Clusters(as_rows(likelihood, data), as_law(likelihood, 1), slots, np.empty(d))
    log_predictive_table(clusters, out)
    return out + row_constants(likelihood, data)[:, None]
