"""Where coordinates come from: spectral embeddings of the rows, by name or by an estimator, and random walks.

The random walk between rows has the kernel ``exp(-||y_i - y_j||^2 / (s_i s_j))``, s_i being the distance of row i to
its n-th neighbour, so that it is symmetric and knows no unit. Its steps are ``W = Dg^-1 Kern``, Dg sums of the kernel;
``W psi = lam psi`` has real eigenvalues, those of ``Dg^-1/2 Kern Dg^-1/2``.

References
----------
Coifman and Lafon (2006), Diffusion maps, Applied and Computational Harmonic Analysis 21.
Zelnik-Manor and Perona (2004), Self-tuning spectral clustering, NIPS 17.
Tenenbaum, de Silva and Langford (2000), A global geometric framework for nonlinear dimensionality reduction, Science
290.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone

Array = NDArray[np.float64]

#: Ways of finding coordinates that have a name.
NAMES = ("isomap", "diffusion", "lle", "kernel_pca")
#: Shares of a step below this do not connect rows.
LEAST_STEP = 1e-12


class Coordinates(NamedTuple):
    """Coordinates (n, K) of the rows, and the fixed scale (K,) of each: eigenvalues of a random walk, or ones."""

    values: Array
    scales: Array


class RandomWalk(NamedTuple):
    """Steps between rows.

    Attributes
    ----------
    steps : (n, n): probability of a step from row i to row j; rows sum to one
    stationary : (n,): share of time that a long walk spends at each row
    """

    steps: Array
    stationary: Array


def random_walk(rows: Array, n_neighbors: int) -> RandomWalk:
    """Random walk between rows with a symmetric kernel whose width is the distance to the n-th neighbour.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.embedding.regression.providers import random_walk
    >>> walk = random_walk(np.random.default_rng(0).normal(size=(20, 2)), n_neighbors=5)
    >>> bool(np.allclose(walk.steps.sum(axis=1), 1)), bool(np.allclose(walk.stationary @ walk.steps, walk.stationary))
    (True, True)
    """
    squared = squareform(pdist(np.asarray(rows, dtype=np.float64), "sqeuclidean"))
    nearest = min(int(n_neighbors), len(squared) - 1)
    width = np.sqrt(np.partition(squared, nearest, axis=1)[:, nearest])
    width[width == 0] = max(float(width.max()), 1.0)  # copies of a row: they are neighbours whatever the width
    kernel = np.exp(-squared / np.outer(width, width))
    total = kernel.sum(axis=1)
    steps = kernel / total[:, None]
    n_parts, _ = connected_components(csr_array(steps > LEAST_STEP), directed=False)
    if n_parts > 1:
        raise ValueError(
            f"X must be connected for a random walk of n_neighbors={n_neighbors}, got {n_parts} parts between which "
            "there are no steps; raise n_neighbors, or embed the parts one by one"
        )
    return RandomWalk(steps, total / total.sum())


def diffusion_coordinates(walk: RandomWalk, n_coordinates: int) -> Coordinates:
    """Eigenvectors of a random walk after the constant one, of mean square one under its stationary distribution."""
    n = len(walk.stationary)
    root = np.sqrt(walk.stationary)
    symmetric = root[:, None] * walk.steps / root[None, :]
    symmetric = (symmetric + symmetric.T) / 2
    values, vectors = eigh(symmetric, subset_by_index=(n - 1 - n_coordinates, n - 1))
    psi = (vectors / root[:, None])[:, -2::-1]
    psi = psi * np.where((psi**3).sum(axis=0) < 0, -1.0, 1.0)
    return Coordinates(np.ascontiguousarray(psi), np.ascontiguousarray(np.maximum(values[-2::-1], 0.0)))


def spectral_coordinates(spectral: Any, rows: Array, n_coordinates: int, n_neighbors: int) -> Coordinates:
    """Coordinates of rows.

    Parameters
    ----------
    spectral : {"isomap", "diffusion", "lle", "kernel_pca"}, estimator with `fit_transform`, or array
    rows : array of shape (n_samples, n_features)
    n_coordinates : int
        How many of them at most.
    n_neighbors : int
        Neighbours in the graph or the kernel of those that have a name.
    """
    n = len(rows)
    if not isinstance(spectral, str):
        values = clone(spectral).fit_transform(rows) if hasattr(spectral, "fit_transform") else spectral
        values = np.asarray(values, dtype=np.float64)
        if values.ndim != 2 or len(values) != n or not values.shape[1] or not np.isfinite(values).all():
            raise ValueError(
                f"spectral must give finite coordinates of shape ({n}, any), a row for each row of X, "
                f"got shape {values.shape}"
            )
        values = values[:, :n_coordinates]
        return Coordinates(np.ascontiguousarray(values), np.ones(values.shape[1]))
    if n < 3:
        raise ValueError(f"X must have at least 3 rows for spectral={spectral!r}, got n_samples = {n}")
    count, neighbors = min(n_coordinates, n - 2), min(n_neighbors, n - 1)
    if spectral == "diffusion":
        return diffusion_coordinates(random_walk(rows, neighbors), count)
    values = _by_scikit_learn(spectral, rows, count, neighbors)
    return Coordinates(np.ascontiguousarray(values), np.ones(values.shape[1]))


def _by_scikit_learn(spectral: str, rows: Array, n_coordinates: int, n_neighbors: int) -> Array:
    # Dense solvers: the others begin with random numbers that no argument governs.
    from sklearn.decomposition import KernelPCA
    from sklearn.manifold import Isomap, LocallyLinearEmbedding

    if spectral == "isomap":
        model = Isomap(n_neighbors=n_neighbors, n_components=n_coordinates, eigen_solver="dense")
    elif spectral == "lle":
        model = LocallyLinearEmbedding(n_neighbors=n_neighbors, n_components=n_coordinates, eigen_solver="dense")
    else:
        middle = float(np.median(pdist(rows, "sqeuclidean")))
        model = KernelPCA(n_coordinates, kernel="rbf", gamma=1 / middle if middle > 0 else 1.0, eigen_solver="dense")
    return np.asarray(model.fit_transform(rows), dtype=np.float64)
