"""The two forms that data of spectral k-means have: rows, and the Gram matrix of a kernel.

Both are weighted: a row of weight w counts as w rows. With ``B`` the rows scaled by ``sqrt(w)``, eigenvectors x of
``B B'`` are ``sqrt(w) u``, where u is the eigenvector of the Gram matrix of the rows written out: coordinates are u.
Both give coordinates of new rows in one form, ``F(x) D - offset``: F(x) is the row itself, or its similarities to the
rows of the fit (Nystrom's extension).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans

from pluri.embedding.spectral.bounds import weighted_mean_row, zero_row
from pluri.embedding.spectral.eigen import Spectrum, WeightedRows, leading_eigenpairs, right_singular
from pluri.optimize.fixed_point import iterate

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class SpectralMap(NamedTuple):
    """Features to coordinates.

    Attributes
    ----------
    directions : (n_features, n_values)
    offset : (n_values,)
    """

    directions: Array
    offset: Array

    def coordinates(self, features: Any) -> Array:
        """Coordinates of rows given by their features, (n_samples, n_values)."""
        return np.asarray(features @ self.directions - self.offset)


class Partition(NamedTuple):
    """Clusters, and where their centres are.

    Attributes
    ----------
    labels : (n_samples,)
    places : (n_features, n_clusters); the centres of rows, or the shares that rows have in the centres of a kernel
    inertia : weighted sum of squared distances to the centres
    n_iter, converged : of Lloyd's algorithm
    """

    labels: Integers
    places: Array
    inertia: float
    n_iter: int = 0
    converged: bool = True


class Decomposition(NamedTuple):
    """Eigenvalues, and the coordinates that belong to them."""

    spectrum: Spectrum
    map: SpectralMap


def shares(labels: Integers, weights: Array, n_clusters: int) -> Array:
    """Share of each row in the centre of its cluster, (n_samples, n_clusters); columns of empty clusters are zero."""
    indicator = np.zeros((len(labels), n_clusters))
    indicator[np.arange(len(labels)), labels] = weights
    total = indicator.sum(axis=0)
    return np.divide(indicator, total, out=indicator, where=total > 0)


class LinearData(NamedTuple):
    """Rows with weights above zero; `X` is an array or a CSR matrix."""

    X: Any
    weights: Array

    @property
    def features(self) -> Any:
        """What coordinates are made of."""
        return self.X

    def decompose(self, n_values: int, center: bool, solver: str, rng: np.random.Generator) -> Decomposition:
        """Leading eigenvalues of the Gram matrix of the (centred) rows."""
        mean = weighted_mean_row(self.X, self.weights) if center else zero_row(self.X)
        spectrum = right_singular(WeightedRows(self.X, np.sqrt(self.weights), mean), n_values, solver, rng)
        directions = _divided(spectrum.vectors, np.sqrt(spectrum.values))
        return Decomposition(spectrum, SpectralMap(directions, mean @ directions))

    def partition(self, labels: Integers, n_clusters: int, spare: Integers) -> Partition:
        """Centres and cost of given labels; the centre of an empty cluster is its `spare` row."""
        product = sparse.csr_matrix(shares(labels, self.weights, n_clusters)).T @ self.X
        centers = product.toarray() if sparse.issparse(product) else np.asarray(product)
        for empty in np.setdiff1d(np.arange(n_clusters), labels):
            centers[empty] = _dense_row(self.X, spare[empty]) if len(spare) else centers[labels[0]]
        return Partition(labels, centers.T, float(self.weights @ self.distances(centers.T, labels)))

    def distances(self, places: Array, labels: Integers) -> Array:
        """Squared distance of each row to the centre of its cluster."""
        return squared_distances(self.X, places, labels)

    def lloyd(self, start: Partition, max_iter: int, tol: float) -> Partition:
        """Lloyd's algorithm from the centres of a partition, by scikit-learn."""
        n_clusters = start.places.shape[1]
        run = KMeans(n_clusters, init=start.places.T, n_init=1, max_iter=max_iter, tol=tol)
        found = run.fit(self.X, sample_weight=self.weights)
        return Partition(
            np.asarray(found.labels_, dtype=np.int64),
            np.asarray(found.cluster_centers_.T, dtype=np.float64),
            float(found.inertia_),
            int(found.n_iter_),
            found.n_iter_ < max_iter,
        )


class KernelData(NamedTuple):
    """Gram matrix of rows with weights above zero."""

    gram: Array
    weights: Array

    @property
    def features(self) -> Array:
        """What coordinates are made of: the similarities."""
        return self.gram

    def decompose(self, n_values: int, center: bool, solver: str, rng: np.random.Generator) -> Decomposition:
        """Leading eigenvalues of the (centred) Gram matrix."""
        share, roots = self.weights / self.weights.sum(), np.sqrt(self.weights)
        mean = share @ self.gram if center else np.zeros(len(self.gram))
        middle = float(mean @ share)
        scaled = roots[:, None] * (self.gram - mean[:, None] - mean + middle) * roots
        spectrum = leading_eigenpairs(0.5 * (scaled + scaled.T), n_values, solver, rng)
        directions = _divided(roots[:, None] * spectrum.vectors, spectrum.values)
        return Decomposition(spectrum, SpectralMap(directions, mean @ directions))

    def partition(self, labels: Integers, n_clusters: int, spare: Integers) -> Partition:
        """Centres, as shares of rows, and cost of given labels; the centre of an empty cluster is its `spare` row."""
        places = shares(labels, self.weights, n_clusters)
        for empty in np.setdiff1d(np.arange(n_clusters), labels):
            if len(spare):
                places[spare[empty], empty] = 1.0
            else:
                places[:, empty] = places[:, labels[0]]
        return Partition(labels, places, float(self.weights @ self.distances(places, labels)))

    def distances(self, places: Array, labels: Integers) -> Array:
        """Squared distance of each row to the centre of its cluster."""
        return kernel_distances(self.gram, np.diag(self.gram), places, half_norms(self.gram, places), labels)

    def lloyd(self, start: Partition, max_iter: int, tol: float) -> Partition:
        """Lloyd's algorithm in the space of the kernel; stops if the cost falls by less than `tol` times itself."""
        n_clusters = start.places.shape[1]
        diagonal = np.diag(self.gram)

        def step(now: Partition) -> tuple[Partition, float]:
            closeness = self.gram @ now.places - half_norms(self.gram, now.places)
            labels = closeness.argmax(axis=1)
            distance = diagonal - 2 * closeness[np.arange(len(labels)), labels]
            for empty in np.setdiff1d(np.arange(n_clusters), labels):
                farthest = int(distance.argmax())
                labels[farthest], distance[farthest] = empty, -np.inf
            new = self.partition(labels, n_clusters, np.zeros(0, dtype=np.int64))
            settled = bool((labels == now.labels).all()) or now.inertia - new.inertia <= tol * new.inertia
            # Rounding can raise a cost that is as low as it gets.
            return (new if new.inertia <= now.inertia else now), float(not settled)

        found = iterate(step, start, max_iter=max_iter)
        return found.state._replace(n_iter=found.n_iter, converged=found.converged)


def squared_distances(X: Any, places: Array, labels: Integers) -> Array:
    """Squared distance of each row to the centre of its cluster."""
    if not sparse.issparse(X):
        gaps = X - places.T[labels]
        return np.asarray(np.einsum("ij,ij->i", gaps, gaps))
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    along = np.asarray((X @ places)[np.arange(len(labels)), labels])
    return np.maximum(norms - 2 * along + (places**2).sum(axis=0)[labels], 0.0)


def kernel_distances(features: Array, own: Array, places: Array, halves: Array, labels: Integers) -> Array:
    """The same with similarities to the rows of the fit, and of each row with itself."""
    along = (features @ places - halves)[np.arange(len(labels)), labels]
    return np.maximum(own - 2 * along, 0.0)


def half_norms(gram: Array, places: Array) -> Array:
    """Half the squared lengths of the centres of a kernel, (n_clusters,)."""
    return np.asarray(0.5 * np.einsum("ik,ik->k", places, gram @ places))


def _divided(vectors: Array, scale: Array) -> Array:
    """Columns divided by their scale; zero where that is not positive."""
    return np.divide(vectors, scale, out=np.zeros_like(vectors), where=scale > 0)


def _dense_row(X: Any, row: int) -> Array:
    return np.asarray(X[[row]].toarray() if sparse.issparse(X) else X[row]).ravel()
