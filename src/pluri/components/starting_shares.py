"""How rows are divided among components before the first sweep: dense or sparse, weighted, with duplicates or not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.components.k_means import FEW_ROWS, MAX_ROWS, k_means, one_thread

Array = NDArray[np.float64]

INIT_PARAMS = ("kmeans", "k-means++", "random", "random_from_data")
#: Random shares of more rows than this for each component average out: all components would start alike.
ROWS_OF_RANDOM_SHARES = 20
CONCENTRATION = 0.1


def some_rows(X: Any, weight: Array | None, limit: int, rng: np.random.Generator) -> tuple[Any, Array]:
    """At most `limit` rows, in order, and their weights."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    if X.shape[0] <= limit:
        return X, weight
    chosen = np.sort(rng.choice(X.shape[0], limit, replace=False))
    return X[chosen], weight[chosen]


def most_rows(how: str, n_components: int) -> int:
    """Number of rows to look at for a way of dividing them."""
    return ROWS_OF_RANDOM_SHARES * n_components if how == "random" else max(MAX_ROWS, 2 * n_components)


def divide_rows(X: Any, weight: Array, n_components: int, how: str, rng: np.random.Generator) -> Array:
    """Shares (n_samples, n_components) of complete rows, dense or CSR, in the components.

    "kmeans" gives each row to its cluster, "k-means++" and "random_from_data" to the nearest of rows that are picked,
    "random" in shares from a Dirichlet distribution of concentration 0.1. A component that gets no row shares one with
    another component.
    """
    n = X.shape[0]
    if n_components == 1:
        return np.ones((n, 1))
    if how == "random":
        return rng.dirichlet(np.full(n_components, CONCENTRATION), size=n)
    labels = _labels(X, weight, n_components, how, rng)
    shares = np.zeros((n, n_components))
    shares[np.arange(n), labels] = 1.0
    empty = np.flatnonzero(shares.sum(axis=0) == 0)
    if empty.size:
        shares[rng.choice(n, empty.size, replace=n < empty.size), empty] = 1.0
        shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _labels(X: Any, weight: Array, k: int, how: str, rng: np.random.Generator) -> NDArray[np.intp]:
    if k >= X.shape[0]:
        return np.arange(X.shape[0])
    if how == "kmeans":
        return k_means(X, weight, k, rng, n_init=3 if X.shape[0] <= FEW_ROWS else 1)[0]
    from sklearn.cluster import kmeans_plusplus
    from sklearn.metrics import pairwise_distances_argmin

    # k-means does so by itself: distances are found from squares, which should be small.
    X = sparse.csr_matrix(X) if sparse.issparse(X) else X - X.mean(axis=0)
    with one_thread():
        if how == "k-means++":
            centers = kmeans_plusplus(X, k, sample_weight=weight, random_state=int(rng.integers(2**31)))[0]
        else:
            centers = X[np.sort(rng.choice(X.shape[0], k, replace=False))]
        return np.asarray(pairwise_distances_argmin(X, centers))


def shortened(X: Any, power: float) -> Any:
    """Complete rows, dense or CSR, divided by their length to a power.

    Distances between sparse rows are mostly a matter of how many entries they have: k-means then puts all short rows
    in one cluster. Between rows of length one they tell how much the rows share.
    """
    if sparse.issparse(X):
        lengths = np.sqrt(sparse.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape).sum(axis=1))
        scale = np.where(lengths > 0, np.maximum(lengths, 1e-300) ** -power, 0.0)
        return sparse.csr_array((X.data * np.repeat(scale, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape)
    lengths = np.sqrt(np.einsum("td,td->t", X, X))
    return X * np.where(lengths > 0, np.maximum(lengths, 1e-300) ** -power, 0.0)[:, None]


def shares_to_weights(shares: Array) -> Array:
    """Weights of the components, none of them zero: as if each had half a row more."""
    counts = shares.sum(axis=0) + 0.5
    return np.asarray(counts / counts.sum())
