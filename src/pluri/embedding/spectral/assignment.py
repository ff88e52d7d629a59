"""From spectral coordinates to clusters: p-QR, cluster QR, and k-means on the coordinates.

Where the Gram matrix is nearly block diagonal, coordinates of one cluster are multiples of one vector, and those of two
clusters nearly orthogonal. A QR decomposition with column pivoting, ``Z' P = Q [R_11, R_12]``, picks the longest row of
Z, then the longest of what is left of the others, and so on: one representative for each cluster. All rows are then
written in the basis of the representatives, ``t = R_11^{-1} Q' z``, and the largest entry of ``|t|`` is the cluster.
With more coordinates than clusters the same formula is the least squares solution.

References
----------
Zha, He, Ding, Simon and Gu (2001), Spectral relaxation for k-means clustering, NIPS.
Damle, Minden and Ying (2019), Simple, direct and efficient multi-way spectral clustering, Information and Inference.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.cluster import KMeans

from pluri.validation import RandomState

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
RULES = ("pqr", "cluster_qr", "kmeans")
#: Representatives that are nearer to dependent than this do not tell clusters apart.
LARGEST_CONDITION = 1e10


class Assignment(NamedTuple):
    """A rule that gives each row of coordinates its cluster.

    Attributes
    ----------
    matrix : (n_clusters, n_coordinates)
        For "kmeans" the centres; else what takes coordinates to memberships.
    by_distance : whether the nearest row of `matrix` is the cluster
    pivots : (n_clusters,), rows that represent the clusters; none for "kmeans"
    """

    matrix: Array
    by_distance: bool
    pivots: Integers

    def membership(self, coordinates: Array) -> Array:
        """How much each row belongs to each cluster, (n_samples, n_clusters): the size of its coordinate."""
        return np.asarray(np.abs(coordinates @ self.matrix.T))

    def labels(self, coordinates: Array) -> Integers:
        """Cluster of each row."""
        if not self.by_distance:
            return np.asarray(self.membership(coordinates).argmax(axis=1), dtype=np.int64)
        score = coordinates @ self.matrix.T - 0.5 * (self.matrix**2).sum(axis=1)
        return np.asarray(score.argmax(axis=1), dtype=np.int64)


def assign_by_pivots(coordinates: Array, n_clusters: int, polar: bool = False) -> Assignment:
    """Assignment by QR with column pivoting.

    Parameters
    ----------
    coordinates : array of shape (n_samples, n_coordinates)
        At least as many coordinates as clusters.
    n_clusters : int
    polar : bool, default=False
        Whether the representatives are replaced by the nearest orthonormal vectors (cluster QR).

    Returns
    -------
    Assignment

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding.spectral.assignment import assign_by_pivots
    >>> rows = np.array([[0.5, 0.0], [0.9, 0.1], [0.0, -0.7], [0.1, -1.0]])
    >>> assign_by_pivots(rows, 2).labels(rows)
    array([1, 1, 0, 0])
    """
    orthogonal, triangular, order = linalg.qr(coordinates.T, mode="economic", pivoting=True, check_finite=False)
    pivots = np.asarray(order[:n_clusters], dtype=np.int64)
    corner = triangular[:n_clusters, :n_clusters]
    sizes = np.abs(np.diag(corner))
    if len(sizes) < n_clusters or sizes[-1] == 0.0:
        raise ValueError(
            f"n_clusters must be at most the number of independent rows of coordinates "
            f"({int((sizes > 0).sum())}), got {n_clusters}"
        )
    if sizes[0] > LARGEST_CONDITION * sizes[-1]:
        warnings.warn(
            "the rows that represent the clusters are nearly dependent: labels are unreliable; try fewer clusters or "
            "assign='kmeans'",
            UserWarning,
            stacklevel=4,
        )
    if polar:
        left, _, right = linalg.svd(coordinates[pivots].T, full_matrices=False, check_finite=False)
        return Assignment(np.asarray((left @ right).T), False, pivots)
    matrix = linalg.solve_triangular(corner, orthogonal[:, :n_clusters].T, check_finite=False)
    return Assignment(np.asarray(matrix), False, pivots)


def assign_by_k_means(
    coordinates: Array, weights: Array, n_clusters: int, n_init: int, random_state: RandomState
) -> Assignment:
    """Assignment by k-means on the coordinates, the best of `n_init` starts (k-means++)."""
    seed = random_state.integers(2**31 - 1) if isinstance(random_state, np.random.Generator) else random_state
    found = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(coordinates, sample_weight=weights)
    return Assignment(np.asarray(found.cluster_centers_, dtype=np.float64), True, np.zeros(0, dtype=np.int64))
