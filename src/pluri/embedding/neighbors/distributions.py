"""Which objects are neighbours of which: a distribution over the others for each object.

``p_ij ~ exp(-d_ij / (2 sigma_i^2))`` for j other than i, where d is a squared distance or any dissimilarity, not
necessarily symmetric. The width sigma_i is such that the entropy of row i is the logarithm of the perplexity asked for.

References
----------
Hinton, G. and Roweis, S. (2002). Stochastic neighbor embedding. NIPS 15.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.validation import plain_array

Array = NDArray[np.float64]

#: Entries of a block of distances.
BLOCK = 2_000_000
#: Below this part of the squared lengths, what a difference of products leaves is rounding.
CANCELLED = 1e-9


@dataclass(frozen=True, eq=False)
class Neighbors:
    """A distribution over the others for each object.

    Attributes
    ----------
    P : (n, n), dense or CSR; rows sum to one, the diagonal is zero
    scales : (n,): 1 / (2 sigma_i^2), by which dissimilarities are multiplied
    entropy : (n,): of the rows, in nats
    """

    P: Any
    scales: Array
    entropy: Array

    @property
    def in_degree(self) -> Array:
        """(n,): sums of the columns of P, by which others pull at an object."""
        return np.asarray(self.P.sum(axis=0), dtype=np.float64).ravel()


def squared_distances(X: Array, Y: Array) -> Array:
    """Squared Euclidean distances (n, m); those of equal rows are zero exactly."""
    lengths = (X**2).sum(axis=1)[:, None] + (Y**2).sum(axis=1)
    d = lengths - 2.0 * (X @ Y.T)
    rows, columns = np.nonzero(d < CANCELLED * lengths)
    step = max(1, BLOCK // max(X.shape[1], 1))
    for first in range(0, len(rows), step):
        i, j = rows[first : first + step], columns[first : first + step]
        d[i, j] = ((X[i] - Y[j]) ** 2).sum(axis=1)
    return np.maximum(d, 0.0, out=d)


def dissimilarities(X: Array, Y: Array, metric: Any) -> Array:
    """Squared distances (n, m) in a metric of scikit-learn's, or by a function of two rows."""
    if metric == "euclidean":
        return squared_distances(X, Y)
    from sklearn.metrics import pairwise_distances

    return np.asarray(pairwise_distances(X, Y, metric=metric), dtype=np.float64) ** 2


def probabilities_of_rows(
    distances: Array, perplexity: float | None, own: NDArray[np.int64]
) -> tuple[Array, Array, int]:
    """Distributions over the columns of dense rows, their scales, and the first row that could not be had (or -1)."""
    n_rows, width = distances.shape
    offsets = np.arange(n_rows + 1, dtype=np.int64) * width
    P, scales, failed = _searched(plain_array(distances).ravel(), perplexity, offsets, own)
    return P.reshape(n_rows, width), scales, failed


def _searched(
    distances: Array, perplexity: float | None, offsets: NDArray[np.int64], own: NDArray[np.int64]
) -> tuple[Array, Array, int]:
    from pluri.embedding.neighbors._kernels import row_scales

    scales = np.ones(len(offsets) - 1)
    P = np.empty_like(distances)
    target = -1.0 if perplexity is None else math.log(perplexity)
    failed = int(row_scales(distances, offsets, own, target, scales, P))
    return P, scales, failed


def from_dissimilarities(distances: Array, perplexity: float | None) -> Neighbors:
    """Neighbours from dissimilarities (n, n), of which the diagonal is ignored.

    With perplexity None the dissimilarities are taken as they are: ``p_ij ~ exp(-d_ij)``.
    """
    check_perplexity(perplexity, len(distances))
    P, scales, failed = probabilities_of_rows(distances, perplexity, np.arange(len(distances), dtype=np.int64))
    warn_of_ties(failed, perplexity)
    return Neighbors(P, scales, row_entropy(P))


def from_graph(graph: Any, perplexity: float | None) -> Neighbors:
    """Neighbours from a CSR matrix that holds the dissimilarities of some pairs; the others are no neighbours."""
    n = graph.shape[0]
    graph = sparse.csr_matrix(graph, copy=True)
    graph.sum_duplicates()
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    others = rows != graph.indices
    counts = np.bincount(rows[others], minlength=n)
    if counts.min() < 1:
        raise ValueError(f"X must hold a neighbor for each row, got none in row {int(counts.argmin())}")
    if perplexity is not None and counts.min() <= perplexity:
        raise ValueError(
            f"perplexity must be smaller than the number of neighbors in each row of X ({counts.min()} in row "
            f"{int(counts.argmin())}), got {perplexity}"
        )
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    values = np.ascontiguousarray(graph.data[others], dtype=np.float64)
    values, scales, failed = _searched(values, perplexity, offsets, np.full(n, -1, dtype=np.int64))
    warn_of_ties(failed, perplexity)
    P = sparse.csr_matrix((values, graph.indices[others].astype(np.int64), offsets), shape=(n, n))
    return Neighbors(P, scales, row_entropy(P))


def nearest_graph(X: Array, n_neighbors: int, metric: Any, n_jobs: int | None = None) -> Any:
    """CSR matrix of the squared distances of each row of X to its nearest others."""
    from sklearn.neighbors import NearestNeighbors

    n = len(X)
    n_neighbors = min(n_neighbors, n - 1)
    search = NearestNeighbors(n_neighbors=n_neighbors, metric=metric, n_jobs=n_jobs).fit(X)
    distances, indices = search.kneighbors()
    order = np.argsort(indices, axis=1)
    distances, indices = np.take_along_axis(distances, order, 1), np.take_along_axis(indices, order, 1)
    if metric == "euclidean":  # anew: those of scikit-learn are rounded where rows are equal
        step = max(1, BLOCK // (n_neighbors * max(X.shape[1], 1)))
        for first in range(0, n, step):
            block = slice(first, first + step)
            distances[block] = np.sqrt(((X[indices[block]] - X[block, None]) ** 2).sum(axis=2))
    offsets = np.arange(n + 1) * n_neighbors
    return sparse.csr_matrix((distances.ravel() ** 2, indices.ravel(), offsets), shape=(n, n))


def row_entropy(P: Any) -> Array:
    """Entropy of each row, in nats."""
    values = P.data if sparse.issparse(P) else P
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(values > 0, -values * np.log(values), 0.0)
    if sparse.issparse(P):
        return np.asarray(np.add.reduceat(terms, P.indptr[:-1]), dtype=np.float64)
    return np.asarray(terms.sum(axis=1))


def check_perplexity(perplexity: float | None, n_samples: int) -> None:
    """Refuse a perplexity that no distribution over the others has."""
    if perplexity is not None and perplexity >= n_samples - 1:
        raise ValueError(
            f"perplexity must be smaller than n_samples - 1, the number of other objects, got {perplexity} with "
            f"n_samples = {n_samples}"
        )


def warn_of_ties(row: int, perplexity: float | None) -> None:
    """Say that a row has more nearest neighbours at the same distance than the perplexity asks for."""
    if row >= 0:
        warnings.warn(
            f"row {row} (perhaps others too) has more than perplexity={perplexity} nearest neighbors at the same "
            "distance, such as exact duplicates: its neighbors are those alone, each as probable as the other",
            UserWarning,
            stacklevel=2,
        )
