"""A random walk on the rows of a table: near rows are reached often, far ones hardly ever.

``k(i, j) = exp(-||y_i - y_j||^2 / (s_i s_j))`` is symmetric, so that its walk ``P = D^{-1} K`` has real eigenvalues
[1]_; s_i is the distance of row i to its 7th neighbour [2]_. The walk of `walk_matrix` uses the scale of the starting
row alone, ``exp(-||y_i - y_j||^2 / s_i^2)``: row stochastic, not symmetric. For many rows only the nearest neighbours
of each have an entry.

References
----------
.. [1] Coifman, R. R. & Lafon, S. (2006). Diffusion maps. Applied and Computational Harmonic Analysis 21, 5-30.
.. [2] Zelnik-Manor, L. & Perona, P. (2004). Self-tuning spectral clustering. NIPS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_array

from pluri.optimize.fixed_point import iterate
from pluri.validation import Number, Only, check_count, check_value

Array = NDArray[np.float64]
#: Up to so many rows all pairs have an entry, unless a number of neighbours is asked for.
ALL_PAIRS = 2000
#: Neighbours of a row, where there are more rows than that.
NEIGHBORS = 64


def squared_distance_table(X: Array, Y: Array, n_neighbors: int | None) -> Any:
    """Squared distances of rows of X to rows of Y: all, or those to the nearest as a CSR matrix of stored entries."""
    if n_neighbors is None or n_neighbors >= len(Y):
        return cdist(X, Y, "sqeuclidean")
    finder = NearestNeighbors(n_neighbors=n_neighbors).fit(Y)
    distance, neighbor = finder.kneighbors(X)
    begins = np.arange(0, len(X) * n_neighbors + 1, n_neighbors)
    return sparse.csr_matrix((distance.ravel() ** 2, neighbor.ravel(), begins), shape=(len(X), len(Y)))


def neighbor_scales(squared: Any, rank: int) -> Array:
    """Distance of each row to its `rank`-th neighbour; to the nearest that is not at zero distance, if that is zero.

    The nearest entry of each row counts as the row itself.
    """
    table = squared.data.reshape(squared.shape[0], -1) if sparse.issparse(squared) else np.asarray(squared)
    place = min(rank, table.shape[1] - 1)
    scales = np.sqrt(np.partition(table, place, axis=1)[:, place])
    if (scales == 0).any():
        beyond = np.where(table > 0, table, np.inf).min(axis=1)
        scales = np.where(scales > 0, scales, np.where(np.isfinite(beyond), np.sqrt(beyond), 1.0))
    return np.asarray(scales)


def perplexity_scales(squared: Any, perplexity: float) -> Array:
    """Scales under which the walk from each row has this perplexity (the exponential of its entropy), by bisection."""
    table = squared.data.reshape(squared.shape[0], -1) if sparse.issparse(squared) else np.asarray(squared)
    if not 1 < perplexity < table.shape[1]:
        raise ValueError(f"perplexity must be above 1 and below the number of neighbours ({table.shape[1]}), "
                         f"got {perplexity:g}")  # fmt: skip
    shifted = table - table.min(axis=1, keepdims=True)
    spread = np.maximum(shifted.max(axis=1), np.finfo(np.float64).tiny)

    def halve(bounds: tuple[Array, Array]) -> tuple[tuple[Array, Array], float]:
        low, high = bounds
        middle = 0.5 * (low + high)
        weight = np.exp(-shifted / (spread * np.exp(middle))[:, None])
        total = weight.sum(axis=1)
        entropy = np.log(total) + (weight * shifted).sum(axis=1) / (total * spread * np.exp(middle))
        high_enough = entropy > np.log(perplexity)
        new = np.where(high_enough, low, middle), np.where(high_enough, middle, high)
        return new, float((new[1] - new[0]).max())

    start = np.full(len(table), -60.0), np.full(len(table), 20.0)
    low, high = iterate(halve, start, max_iter=80, tol=1e-10).state
    return np.asarray(np.sqrt(spread * np.exp(0.5 * (low + high))))


def scales_of(squared: Any, scale: str | float, rank: int, perplexity: float) -> Array:
    """Scale of each row by the chosen rule."""
    if scale == "neighbor":
        return neighbor_scales(squared, rank)
    if scale == "perplexity":
        return perplexity_scales(squared, perplexity)
    return np.full(squared.shape[0], float(scale))


def walk_matrix(
    X: Any,
    *,
    scale: str | float = "neighbor",
    scale_neighbor: int = 7,
    perplexity: float = 10.0,
    n_neighbors: int | None = None,
    threshold: float = 1e-4,
) -> sparse.csr_matrix:
    """The row-stochastic matrix of a random walk on the rows of a table, each with a scale of its own.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    scale : {"neighbor", "perplexity"} or float, default="neighbor"
        The distance to the neighbour `scale_neighbor`, the scale that gives the walk the `perplexity`, or a number for
        all rows.
    scale_neighbor : int, default=7
    perplexity : float, default=10.0
        Number of rows that the walk reaches in one step, so to speak; only with ``scale="perplexity"``.
    n_neighbors : int, optional
        Number of nearest rows (the row itself among them) that a step may reach; by default all up to 2,000 rows, and
        64 if there are more.
    threshold : float, default=1e-4
        Smaller probabilities are set to zero, and the others divided by their sum.

    Returns
    -------
    csr_matrix of shape (n_samples, n_samples)
        Rows sum to one; the diagonal is not zero.

    Examples
    --------
    >>> from pluri.embedding import walk_matrix
    >>> walk_matrix([[0.0], [1.0], [5.0]], scale=1.0).toarray().round(2)
    array([[0.73, 0.27, 0.  ],
           [0.27, 0.73, 0.  ],
           [0.  , 0.  , 1.  ]])
    """
    check_scale(scale)
    check_value(threshold, "threshold", Number(least=0, below=1))
    rows = check_array(X, dtype=np.float64)
    rank = check_count(scale_neighbor, "scale_neighbor")
    table = squared_distance_table(rows, rows, neighbors_for(len(rows), n_neighbors))
    scales = scales_of(table, scale, rank, perplexity)
    walk = similarities(table, scales, scales)
    walk.data /= np.repeat(np.asarray(walk.sum(axis=1)).ravel(), np.diff(walk.indptr))
    walk.data[walk.data < threshold] = 0.0
    walk.eliminate_zeros()
    walk.data /= np.repeat(np.asarray(walk.sum(axis=1)).ravel(), np.diff(walk.indptr))
    return walk


def check_scale(scale: Any) -> None:
    """Refuse what is neither a rule nor a positive number."""
    check_value(scale, "scale", Only("neighbor", "perplexity") | Number(above=0))


def neighbors_for(n_rows: int, n_neighbors: int | None) -> int | None:
    """How many neighbours have entries; None for all."""
    if n_neighbors is not None:
        return check_count(n_neighbors, "n_neighbors", 2)
    return None if n_rows <= ALL_PAIRS else NEIGHBORS


def similarities(squared: Any, row_scales: Array, column_scales: Array, *, symmetric: bool = False) -> Any:
    """``exp(-d^2 / s_i^2)``, or ``exp(-d^2 / (s_i s_j))`` if `symmetric`, as a CSR matrix with the same entries."""
    if not sparse.issparse(squared):
        n_rows, n_columns = squared.shape
        begins = np.arange(0, n_rows * n_columns + 1, n_columns)
        squared = sparse.csr_matrix(
            (squared.ravel(), np.tile(np.arange(n_columns), n_rows), begins), shape=(n_rows, n_columns)
        )
    rows = np.repeat(np.arange(squared.shape[0]), np.diff(squared.indptr))
    other = column_scales[squared.indices] if symmetric else row_scales[rows]
    # Divided twice: the product of two tiny scales is zero.
    values = np.exp(-(squared.data / row_scales[rows]) / other)
    return sparse.csr_matrix((values, squared.indices, squared.indptr), shape=squared.shape)
