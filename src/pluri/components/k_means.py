"""k-means as a start for other models: all starts at once on few rows, scikit-learn's on many.

On a few hundred rows a call of scikit-learn's estimator costs several milliseconds, more than the EM steps that follow
it. There all starts are taken through Lloyd's algorithm together, as one matrix product for each iteration.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.float64]
Integers = NDArray[np.intp]

#: Rows times starts times clusters times features (and four for what does not depend on them) up to which all starts
#: are taken together; `benchmarks/peers/small_data.py` has sizes on both sides of it.
FEW = 400_000
MAX_ITER = 300
#: Starting values look at this many rows at most, and take the best of `N_STARTS` starts on fewer than `FEW_ROWS`.
MAX_ROWS = 10_000
FEW_ROWS = 5_000
N_STARTS = 10


def k_means(
    X: Any, weight: Array | None, n_clusters: int, rng: np.random.Generator, *, n_init: int, max_iter: int = MAX_ITER
) -> tuple[Integers, Array]:
    """Labels of rows, dense or CSR, and centres (n_clusters, n_features): the best of `n_init` starts by k-means++."""
    n = X.shape[0]
    if sparse.issparse(X) or n * n_init * n_clusters * (X.shape[1] + 4) > FEW:
        return _of_scikit_learn(X, weight, n_clusters, int(rng.integers(2**31)), n_init, max_iter)
    weight = np.ones(n) if weight is None else weight
    middle = weight @ X / weight.sum()  # distances are found from squares, which should be small
    rows = np.ascontiguousarray((X - middle).T)
    centers = _scattered(rows, weight, n_clusters, n_init, rng)
    labels, centers = _settled(rows, weight, centers, max_iter)
    within = np.array([_within(rows, weight, *found) for found in zip(labels, centers)])
    best = int(np.argmax(within <= within.min() * (1 + 1e-9)))  # of equal ones the first, whatever the rounding
    return labels[best], centers[best] + middle


def _scattered(rows: Array, weight: Array, n_clusters: int, n_init: int, rng: np.random.Generator) -> Array:
    """Centres (n_init, n_clusters, D) by k-means++: each the best of a few rows drawn by their squared distance."""
    n_trials = 2 + int(np.log(n_clusters))
    squares = np.einsum("dt,dt->t", rows, rows)
    starts = np.arange(n_init)
    chosen = np.empty((n_init, n_clusters), dtype=np.intp)
    chosen[:, 0] = _drawn(np.broadcast_to(weight, (n_init, len(weight))), rng.random((n_init, 1)))[:, 0]
    closest = _distances(rows, squares, chosen[:, 0])
    for place in range(1, n_clusters):
        tried = _drawn(closest * weight, rng.random((n_init, n_trials)))
        distances = np.minimum(_distances(rows, squares, tried.ravel()).reshape(n_init, n_trials, -1), closest[:, None])
        best = (distances @ weight).argmin(axis=1)
        chosen[:, place], closest = tried[starts, best], distances[starts, best]
    return np.ascontiguousarray(rows.T)[chosen]


def _drawn(mass: Array, uniform: Array) -> Integers:
    """Places in the rows of `mass`, drawn in proportion to it."""
    n_rows, n = mass.shape
    total = np.cumsum(mass, axis=1)
    found = [np.searchsorted(each, draws * each[-1], side="right") for each, draws in zip(total, uniform)]
    return np.minimum(np.array(found).reshape(n_rows, -1), n - 1)


def _distances(rows: Array, squares: Array, chosen: Integers) -> Array:
    """Squared distances of all rows to some of them: (len(chosen), n_samples)."""
    products = rows[:, chosen].T @ rows
    return np.maximum(squares[chosen, None] + squares - 2.0 * products, 0.0)


def _settled(rows: Array, weight: Array, centers: Array, max_iter: int) -> tuple[Integers, Array]:
    """Lloyd's algorithm from all starts at once, until no row moves."""
    n_init, n_clusters, d = centers.shape
    n = rows.shape[1]
    clusters = np.arange(n_clusters)[:, None]
    weighted = np.vstack([rows * weight, weight]).T
    member = np.empty((n_init, n_clusters, n))
    last = np.full((n_init, n), -1)
    for _ in range(max_iter):
        labels = _nearest(rows, centers)
        if (labels == last).all():
            break
        last = labels
        np.equal(labels[:, None], clusters, out=member)
        sums = (member.reshape(-1, n) @ weighted).reshape(n_init, n_clusters, d + 1)
        empty = sums[:, :, d] <= 0.0
        centers = np.where(empty[:, :, None], centers, sums[:, :, :d] / np.where(empty, 1.0, sums[:, :, d])[:, :, None])
        for start in np.flatnonzero(empty.any(axis=1)):
            _move_empty(rows, weight, labels[start], centers[start], np.flatnonzero(empty[start]))
    return last, centers


def _nearest(rows: Array, centers: Array) -> Integers:
    """Which centre of each start is nearest to each row: (n_init, n_samples)."""
    n_init, n_clusters, d = centers.shape
    scores = (-2.0 * centers.reshape(-1, d) @ rows).reshape(n_init, n_clusters, -1)
    scores += np.einsum("skd,skd->sk", centers, centers)[:, :, None]
    labels = np.zeros((n_init, rows.shape[1]), dtype=np.intp)
    least = scores[:, 0]
    for place in range(1, n_clusters):
        labels[scores[:, place] < least] = place
        least = np.minimum(least, scores[:, place])
    return labels


def _move_empty(rows: Array, weight: Array, labels: Integers, centers: Array, empty: Integers) -> None:
    """Put centres that no row is nearest to on the rows that are farthest from their own; changes `centers`."""
    away = ((rows.T - centers[labels]) ** 2).sum(axis=1) * (weight > 0)
    farthest = np.argsort(-away, kind="stable")[: len(empty)]
    centers[empty] = rows.T[farthest]


def _within(rows: Array, weight: Array, labels: Integers, centers: Array) -> float:
    """Weighted sum of squared distances of the rows to their centres."""
    away = rows - centers[labels].T
    return float(np.einsum("dt,dt->t", away, away) @ weight)


def _of_scikit_learn(
    X: Any, weight: Array | None, n_clusters: int, number: int, n_init: int, max_iter: int
) -> tuple[Integers, Array]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    if sparse.issparse(X):
        X = sparse.csr_matrix(X)  # what scikit-learn's compiled loops know
    # On so few rows threads only wait for each other; and fewer distinct rows than clusters are no surprise here.
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = KMeans(n_clusters, n_init=n_init, max_iter=max_iter, random_state=number).fit(X, sample_weight=weight)
    return np.asarray(found.labels_, dtype=np.intp), np.asarray(found.cluster_centers_, dtype=np.float64)


def one_thread() -> Any:
    """Hold the libraries that scikit-learn's clustering uses to one thread each, as a context manager."""
    return _libraries().limit(limits=1)


@cache
def _libraries() -> Any:
    """The thread pools of this process: looking for them takes longer than clustering a thousand rows."""
    import sklearn.cluster  # noqa: F401  brings its libraries with it
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def filled(X: Array) -> Array:
    """X with each missing value replaced by its feature's mean (0 if the feature was never seen)."""
    missing = np.isnan(X)
    if not missing.any():
        return X
    observed = np.maximum((~missing).sum(axis=0), 1)
    means = np.where(missing, 0.0, X).sum(axis=0) / observed
    return np.where(missing, means, X)


def observed(X: Array) -> Array:
    """The rows of which something was observed; all of them if that is none."""
    empty = np.isnan(X).all(axis=1)
    return X if not empty.any() or empty.all() else X[~empty]


def centers_and_covariance(
    X: Array, n_components: int, rng: np.random.Generator, *, with_centers: bool = True
) -> tuple[Array, Array]:
    """k-means centres (k, D) and the covariance matrix (D, D) of the rows about them (about the mean without)."""
    complete = filled(observed(X))
    if len(complete) > MAX_ROWS:
        complete = complete[np.sort(rng.choice(len(complete), MAX_ROWS, replace=False))]
    if not with_centers:
        centered = complete - complete.mean(axis=0)
        return np.empty((0, X.shape[1])), centered.T @ centered / max(len(complete) - 1, 1)
    centers = kmeans_centers(complete, n_components, rng)
    return centers, within_covariance(complete, centers)


def within_covariance(X: Array, centers: Array) -> Array:
    """Covariance matrix of the rows about the nearest centre: (D, D)."""
    centered = X - centers[nearest_center(X, centers)]
    return centered.T @ centered / max(len(X) - 1, 1)


def nearest_center(X: Array, centers: Array) -> NDArray[np.intp]:
    """Which centre is nearest to each row."""
    distances = np.stack([((X - center) ** 2).sum(axis=1) for center in centers], axis=1)
    return distances.argmin(axis=1)


def kmeans_centers(X: Array, n_components: int, rng: np.random.Generator) -> Array:
    """Centres of k-means on at most `MAX_ROWS` rows; distinct even if the data have fewer distinct rows."""
    if len(X) > MAX_ROWS:
        X = X[np.sort(rng.choice(len(X), MAX_ROWS, replace=False))]
    distinct = np.unique(X, axis=0) if len(X) <= 1000 else X
    if len(distinct) <= n_components:
        spread = np.maximum(X.std(axis=0), 1e-3)
        extra = X[rng.integers(len(X), size=n_components - len(distinct))]
        return np.concatenate([distinct, extra + rng.normal(size=extra.shape) * spread])
    return k_means(X, None, n_components, rng, n_init=N_STARTS if len(X) <= FEW_ROWS else 2)[1]


def spread_covariance(covariance: Array, covariance_type: str, n_components: int) -> Array:
    """The covariance matrix of all data, as the starting value of each state."""
    if covariance_type == "spherical":
        return np.full(n_components, np.trace(covariance) / len(covariance))
    if covariance_type == "diag":
        return np.tile(np.diag(covariance), (n_components, 1))
    if covariance_type == "full":
        return np.tile(covariance, (n_components, 1, 1))
    return covariance.copy()
