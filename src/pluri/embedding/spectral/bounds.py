"""Lower bounds on the cost of k-means: no partition, found or not, costs less.

With X the n x k matrix of normalised indicators of a partition, its cost is ``tr(A'A) - tr(X' A'A X)``. Over all
orthonormal X the second term is at most the sum of the k largest eigenvalues (Ky Fan), hence

- plain: ``cost >= sum_{i > k} sigma_i^2``, sigma_i the singular values of the data;
- centred: the span of X holds the constant vector, on which centred data are zero, so that only k - 1 directions can be
  gained: ``cost >= sum_{i >= k} sigma_i^2``, sigma_i those of the centred data. It is never below the plain one.

Rows of weight w are written out w times: rows are scaled by ``sqrt(w)`` and ``sqrt(w)`` takes the place of the constant
vector.

References
----------
Zha, He, Ding, Simon and Gu (2001), Spectral relaxation for k-means clustering, NIPS (the plain bound).
Ding and He (2004), K-means clustering via principal component analysis, ICML (the centred bound).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_array

from pluri.embedding.spectral.eigen import WeightedRows, right_singular
from pluri.validation import Only, check_count, check_row_weight, check_value

#: Larger data could not be squared and summed.
LARGEST = 1e100


def kmeans_lower_bound(
    X: Any, n_clusters: int | ArrayLike, *, kind: str = "centered", sample_weight: ArrayLike | None = None
) -> float | NDArray[np.float64]:
    """Cost below which no partition into so many clusters can be.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
    n_clusters : int or array-like of int
        One number of clusters, or several, for which the data are decomposed once.
    kind : {"centered", "plain"}, default="centered"
        The plain one is never higher.
    sample_weight : array-like of shape (n_samples,), optional
        A row of weight 2 counts as two rows.

    Returns
    -------
    float, or array of the shape of `n_clusters`

    Examples
    --------
    >>> from pluri.embedding import kmeans_lower_bound
    >>> X = [[0.0, 0.0], [0.0, 2.0], [9.0, 0.0], [9.0, 2.0]]
    >>> kmeans_lower_bound(X, 2)  # the cost of the best two clusters is 4 as well
    4.0
    >>> kmeans_lower_bound(X, [1, 2, 3], kind="plain").round(3) + 0.0
    array([5.924, 0.   , 0.   ])
    """
    check_value(kind, "kind", Only("centered", "plain"))
    rows = check_array(X, accept_sparse="csr", dtype=np.float64)
    check_size(rows)
    weight = check_row_weight(sample_weight, rows.shape[0])
    weight = np.ones(rows.shape[0]) if weight is None else weight
    numbers = [check_count(number, "n_clusters") for number in np.ravel(n_clusters).tolist()]
    centred = kind == "centered"
    skipped = [min(number - centred, *rows.shape) for number in numbers]
    weighted = WeightedRows(rows, np.sqrt(weight), weighted_mean_row(rows, weight) if centred else zero_row(rows))
    spectrum = right_singular(weighted, max(skipped), "auto", np.random.default_rng(0))
    bounds = np.array([spectrum.tail(number) for number in skipped])
    return float(bounds[0]) if np.ndim(n_clusters) == 0 else bounds.reshape(np.shape(n_clusters))


def check_size(rows: Any) -> None:
    """Refuse what could not be squared and summed."""
    values = rows.data if sparse.issparse(rows) else rows
    if values.size and np.abs(values).max() > LARGEST:
        raise ValueError(f"X must not exceed {LARGEST:g} in size, got {np.abs(values).max():g}; rescale it")


def weighted_mean_row(rows: Any, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted mean of the rows of an array or a sparse matrix."""
    return np.asarray(rows.T @ (weight / weight.sum())).ravel()


def zero_row(rows: Any) -> NDArray[np.float64]:
    """What is taken off rows that are not centred."""
    return np.zeros(rows.shape[1])


def relative_gap(inertia: float, lower_bound: float) -> float:
    """By which share a cost exceeds the bound: infinite if only the bound is zero, zero if both are."""
    if lower_bound <= 0:
        return float("inf") if inertia > 0 else 0.0
    return max(inertia / lower_bound - 1.0, 0.0)
