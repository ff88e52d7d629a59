"""Dimension from distances to neighbours, from counts of near pairs, and from eigenvalues of the covariance.

- Maximum likelihood [1]_: with T_j the distance of a row to its j-th neighbour, the number of rows within a distance
  grows as a Poisson process of rate ``t^(d-1)``, whence ``d_k = [(1 / (k-1)) sum_{j<k} log(T_k / T_j)]^{-1}`` for each
  row; averaged over k and over rows, or over rows harmonically [2]_, which is the maximum of the joint likelihood.
- Correlation dimension [3]_: slope of ``log C(r)`` between two radii, C(r) the share of pairs that are closer than r.
- Eigenvalues: how many exceed a share of their sum. It sees flat spaces only: a Swiss roll has three dimensions for it.

References
----------
.. [1] Levina, E. & Bickel, P. (2004). Maximum likelihood estimation of intrinsic dimension. NIPS.
.. [2] MacKay, D. & Ghahramani, Z. (2005). Comments on [1]. inference.org.uk/mackay/dimension
.. [3] Grassberger, P. & Procaccia, I. (1983). Measuring the strangeness of strange attractors. Physica D 9, 189-208.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist, squareform
from sklearn.neighbors import NearestNeighbors

from pluri.embedding.dimension.records import DimensionSettings, Estimate

Array = NDArray[np.float64]
#: Neighbours whose distances give the two radii of the correlation dimension.
RADIUS_NEIGHBORS = 5


def neighbor_distances(X: Array, n_neighbors: int) -> Array:
    """Distances to the nearest other rows, (n_samples, n_neighbors), in ascending order."""
    distance, _ = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
    return np.asarray(distance)


def maximum_likelihood(X: Array, settings: DimensionSettings, rng: np.random.Generator) -> Estimate:
    """Levina and Bickel's estimate, averaged over numbers of neighbours and over rows."""
    logs = np.log(neighbor_distances(X, settings.n_neighbors))
    sums = np.cumsum(logs, axis=1)
    inverse = []
    for k in range(settings.min_neighbors, settings.n_neighbors + 1):
        inverse.append(logs[:, k - 1] - sums[:, k - 2] / (k - 1))
    # Neighbours at one and the same distance have an infinite dimension.
    table = np.maximum(np.column_stack(inverse), 1e-12)
    local = (1.0 / table).mean(axis=1)
    if settings.averaging == "harmonic":
        return Estimate(float((1.0 / table.mean(axis=0)).mean()), local)
    return Estimate(float(local.mean()), local)


def correlation(X: Array, settings: DimensionSettings, rng: np.random.Generator) -> Estimate:
    """Slope of the logarithm of the number of near pairs."""
    if settings.radii is None:
        last = neighbor_distances(X, min(RADIUS_NEIGHBORS, len(X) - 1))[:, -1]
        small, large = float(np.median(last)), float(last.max())
    else:
        small, large = settings.radii
    if not 0 < small < large:
        raise ValueError(
            f"radii must be two numbers, 0 < small < large, got {small:g} and {large:g}; by default they are the "
            f"median and the maximum of the distances to neighbour {RADIUS_NEIGHBORS}"
        )
    distance = squareform(pdist(X))
    np.fill_diagonal(distance, np.inf)
    near, far = (distance < small).sum(axis=1), (distance < large).sum(axis=1)
    if near.sum() == 0:
        raise ValueError(f"radii must leave some pairs within the smaller one, got none within {small:g}")
    step = np.log(large / small)
    some = near > 0
    local = np.full(len(X), np.nan)
    local[some] = np.log(far[some] / near[some]) / step
    return Estimate(float(np.log(far.sum() / near.sum()) / step), local)


def eigenvalues(X: Array, settings: DimensionSettings, rng: np.random.Generator) -> Estimate:
    """Number of eigenvalues of the covariance above a share of their sum; around each row, with its neighbours."""
    n_neighbors = min(settings.n_neighbors, len(X) - 1)
    _, neighbor = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
    groups = X[np.column_stack([np.arange(len(X)), neighbor])]
    groups = groups - groups.mean(axis=1, keepdims=True)
    shares = np.linalg.svd(groups, compute_uv=False) ** 2
    return Estimate(float(_count(X, settings.threshold)), _above(shares, settings.threshold).astype(np.float64))


def _count(X: Array, threshold: float) -> int:
    singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    return int(_above(singular[None] ** 2, threshold)[0])


def _above(values: Array, threshold: float) -> NDArray[np.int64]:
    total = values.sum(axis=1, keepdims=True)
    return np.asarray(((values > threshold * total) & (total > 0)).sum(axis=1), dtype=np.int64)
