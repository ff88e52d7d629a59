"""Where coordinates come from: spectral embeddings of the rows, by name or by an estimator.

References
----------
Tenenbaum, de Silva and Langford (2000), A global geometric framework for nonlinear dimensionality reduction, Science
290.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from sklearn.base import clone

from pluri.embedding.spectral.diffusion import DiffusionMap

Array = NDArray[np.float64]

#: Ways of finding coordinates that have a name.
NAMES = ("isomap", "diffusion", "lle", "kernel_pca")


class Coordinates(NamedTuple):
    """Coordinates (n, K) of the rows, and the fixed scale (K,) of each: eigenvalues of a random walk, or ones."""

    values: Array
    scales: Array


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
        # Eigenvectors as they are: the model multiplies them by their eigenvalues.
        walk = DiffusionMap(count, scale_neighbor=neighbors, time=0, random_state=0).fit(rows)
        return Coordinates(walk.embedding_, np.maximum(walk.eigenvalues_, 0.0))
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
