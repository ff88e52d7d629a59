r"""Whether a map keeps neighbours: shares of neighbours that are kept, and a mismatch of squared distances.

References
----------
.. [1] Venna, J. and Kaski, S. (2001). Neighborhood preservation in nonlinear projection methods. ICANN
   (trustworthiness).
.. [2] Hinton, G. and Roweis, S. (2002). Stochastic neighbor embedding. NIPS 15, section 5 (the mismatch).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from sklearn.utils.validation import check_array, check_consistent_length

from pluri.validation import check_count

Array = NDArray[np.float64]

#: Entries of a block of distances.
BLOCK = 4_000_000


def neighborhood_preservation(X: Any, embedding: Any, n_neighbors: int = 10, *, metric: Any = "euclidean") -> float:
    """Share of the nearest neighbours of each object that are among its nearest neighbours on the map.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Or dissimilarities of shape (n_samples, n_samples), with ``metric="precomputed"``; not necessarily symmetric.
    embedding : array-like of shape (n_samples, n_components)
    n_neighbors : int, default=10
    metric : str or callable, default="euclidean"
        Of X; distances on the map are Euclidean.

    Returns
    -------
    share : float
        From 0 to 1; ``n_neighbors / (n_samples - 1)`` on average for a map that knows nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import neighborhood_preservation
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> neighborhood_preservation(X, 3.0 * X + 1.0)
    1.0
    """
    X, points = _checked(X, embedding, n_neighbors, metric)
    ours = _nearest(points, n_neighbors, "euclidean")
    theirs = _nearest(X, n_neighbors, metric)
    kept = (np.sort(theirs, axis=1)[:, :, None] == ours[:, None, :]).any(axis=2)
    return float(kept.mean())


def trustworthiness(X: Any, embedding: Any, n_neighbors: int = 5, *, metric: Any = "euclidean") -> float:
    r"""One minus a penalty for neighbours on the map that are none in X, by how far down the list of X they are.

    .. math:: 1 - \frac{2}{n k (2 n - 3 k - 1)} \sum_i \sum_{j \in U_i} (\text{rank}_i(j) - k),

    with U_i the neighbours of i on the map that are not among its k nearest in X. The same as scikit-learn's
    ``manifold.trustworthiness``, in blocks of rows: it never holds all distances.

    Parameters
    ----------
    X, embedding, metric
        As in :func:`neighborhood_preservation`.
    n_neighbors : int, default=5
        Below half the number of samples.

    Returns
    -------
    trustworthiness : float
        From 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import trustworthiness
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> trustworthiness(X, 3.0 * X + 1.0)
    1.0
    """
    X, points = _checked(X, embedding, n_neighbors, metric)
    n = len(points)
    if n_neighbors >= n / 2:
        raise ValueError(f"n_neighbors must be below half the number of samples ({n}), got {n_neighbors}")
    ours = _nearest(points, n_neighbors, "euclidean")
    excess = 0.0
    step = max(1, BLOCK // n)
    for first in range(0, n, step):
        rows = np.arange(first, min(first + step, n))
        d = _distances(X, rows, metric)
        d[np.arange(len(rows)), rows] = -np.inf
        ranks = np.empty(d.shape, dtype=np.int64)
        np.put_along_axis(ranks, np.argsort(d, axis=1, kind="stable"), np.arange(n), axis=1)
        excess += float(np.maximum(np.take_along_axis(ranks, ours[rows], axis=1) - n_neighbors, 0).sum())
    return 1.0 - 2.0 * excess / (n * n_neighbors * (2.0 * n - 3.0 * n_neighbors - 1.0))


def antigeometric_mismatch(D2: Any, embedding_D2: Any) -> float:
    r"""Sum over pairs of the squared difference between squared distances of objects and of points, less row means.

    .. math:: \sum_{i \ne j} \left[(d_{ij}^2 - g_i^2) - (\hat d_{ij}^2 - \hat g_i^2)\right]^2, \qquad
       g_i^2 = -\log \frac{1}{n - 1} \sum_{k \ne i} e^{-d_{ik}^2},

    where :math:`g_i` is the "antigeometric mean" of a row, and likewise for the points. With squared distances divided
    by a variance that grows, the cost of stochastic neighbor embedding tends to this over ``2 (n - 1)``: it is then
    multidimensional scaling of squared distances, up to a constant for each row.

    Parameters
    ----------
    D2, embedding_D2 : array-like of shape (n_samples, n_samples)
        Squared distances of the objects and of the points; diagonals are ignored.

    Returns
    -------
    mismatch : float

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.metrics import antigeometric_mismatch
    >>> D2 = np.array([[0.0, 1.0, 4.0], [1.0, 0.0, 1.0], [4.0, 1.0, 0.0]])
    >>> antigeometric_mismatch(D2, D2)
    0.0
    """
    tables = [check_array(D2, dtype=np.float64, input_name="D2")]
    tables.append(check_array(embedding_D2, dtype=np.float64, input_name="embedding_D2"))
    n = len(tables[0])
    if any(table.shape != (n, n) for table in tables) or n < 2:
        raise ValueError(
            f"D2 and embedding_D2 must be square, of the same shape and of at least 2 rows, got {tables[0].shape} and "
            f"{tables[1].shape}"
        )
    others = ~np.eye(n, dtype=bool)
    centred = []
    for table in tables:
        log_terms = np.where(others, -table, -np.inf)
        mean = -(logsumexp(log_terms, axis=1, keepdims=True) - np.log(n - 1))
        centred.append(table - mean)
    return float((np.where(others, centred[0] - centred[1], 0.0) ** 2).sum())


def _checked(X: Any, embedding: Any, n_neighbors: int, metric: Any) -> tuple[Array, Array]:
    X = check_array(X, dtype=np.float64, input_name="X")
    points = check_array(embedding, dtype=np.float64, input_name="embedding")
    check_consistent_length(X, points)
    check_count(n_neighbors, "n_neighbors")
    if n_neighbors >= len(X):
        raise ValueError(f"n_neighbors must be below the number of samples ({len(X)}), got {n_neighbors}")
    if isinstance(metric, str) and metric == "precomputed" and X.shape[0] != X.shape[1]:
        raise ValueError(f"X must be square with metric='precomputed', got shape {X.shape}")
    return X, points


def _nearest(X: Array, n_neighbors: int, metric: Any) -> NDArray[np.int64]:
    """Indices (n, n_neighbors) of the nearest others."""
    if isinstance(metric, str) and metric == "precomputed":
        d = X.copy()
        np.fill_diagonal(d, np.inf)
        return np.argsort(d, axis=1, kind="stable")[:, :n_neighbors]
    search = NearestNeighbors(n_neighbors=n_neighbors, metric=metric).fit(X)
    return np.asarray(search.kneighbors(return_distance=False))


def _distances(X: Array, rows: NDArray[np.int64], metric: Any) -> Array:
    """Dissimilarities (m, n) of some rows and all."""
    if isinstance(metric, str) and metric == "precomputed":
        return X[rows]
    return np.asarray(pairwise_distances(X[rows], X, metric=metric), dtype=np.float64)
