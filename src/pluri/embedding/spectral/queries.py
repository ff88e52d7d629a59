"""What a fitted spectral k-means is asked: clusters, coordinates and costs of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.embedding.spectral.assignment import Assignment
from pluri.embedding.spectral.bounds import check_size
from pluri.embedding.spectral.fitting import coordinates
from pluri.embedding.spectral.kernels import check_gram, kernel_matrix, self_similarity
from pluri.embedding.spectral.relaxation import SpectralMap, kernel_distances, squared_distances
from pluri.validation import weighted_total
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


def _knows_own_similarity(model: Any) -> bool:
    if model.kernel == "precomputed":
        raise AttributeError("a precomputed kernel does not tell the similarity of new rows with themselves")
    return True


class SpectralQueries(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """Methods of :class:`pluri.embedding.SpectralKMeans` that do not learn."""

    kernel: Any
    kernel_params: Any
    n_clusters: int
    labels_: Integers
    embedding_: Array
    membership_: Array | None
    lower_bound_: float
    inertia_: float
    gap_: float
    eigengap_: float
    eigenvalues_: Array
    center_: bool
    assign_: str
    n_components_: int
    _X: Any
    _kept: Integers
    _directions: Array
    _offset: Array
    _constant: float | None
    _assignment: Array
    _by_distance: bool
    _refined: bool
    _places: Array
    _half_norms: Array

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def predict(self, X: Any) -> Integers:
        """Cluster of each row: that of the nearest centre, or by the rule of assignment if `refine` is False.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Similarities to the rows of the fit, (n_samples, n_samples_fit), if the kernel is "precomputed".

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        data = self._checked(X)
        features = self._features(data)
        labels = self._labels(features, None)
        labels[self._zero_rows(data, new=True)] = -1
        return labels

    def transform(self, X: Any) -> Array:
        """Spectral coordinates of rows, (n_samples, n_components_), by Nystrom's extension.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        coordinates : array of shape (n_samples, n_components_)
        """
        return self._coordinates(self._features(self._checked(X)))

    @available_if(_knows_own_similarity)
    def similarity(self, X: Any) -> Array:
        """Similarities of rows with each other under the kernel, (n_samples, n_samples)."""
        data = self._checked(X)
        return kernel_matrix(self.kernel, self.kernel_params, data, data)

    @available_if(_knows_own_similarity)
    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the sum of squared distances to the centres of the predicted clusters, as that of KMeans.

        Rows that have no cluster (label -1) do not count.
        """
        data = self._checked(X)
        features = self._features(data)
        labels = self._labels(features, None)
        if self.kernel == "linear":
            distance = squared_distances(data, self._places, labels)
        else:
            own = self_similarity(self.kernel, self.kernel_params, data)
            distance = kernel_distances(features, own, self._places, self._half_norms, labels)
        distance[self._zero_rows(data, new=True)] = 0.0
        return -weighted_total(distance, sample_weight)[0]

    def summary(self) -> str:
        """The certificate in words, and the sizes of the clusters."""
        check_is_fitted(self, "labels_")
        kernel = self.kernel if isinstance(self.kernel, str) else "own"
        percent = f"at most {100 * self.gap_:.2f} %" if np.isfinite(self.gap_) else "an unknown share, the bound is 0,"
        sizes = np.bincount(self.labels_[self.labels_ >= 0], minlength=int(self.n_clusters))
        lines = [
            f"{type(self).__name__}: {self.n_clusters} clusters of {len(self.labels_)} rows, {kernel} kernel, "
            f"{'centred' if self.center_ else 'not centred'}, by {self.assign_}"
            f"{' and refined' if self._refined else ''}",
            f"inertia {self.inertia_:.6g}, no partition below {self.lower_bound_:.6g}: {percent} above the optimum",
            f"eigengap {self.eigengap_:.3g} after {len(self.eigenvalues_)} eigenvalues",
            f"sizes {', '.join(map(str, np.sort(sizes)[::-1]))}",
        ]
        unlabelled = int((self.labels_ < 0).sum())
        return "\n".join(lines + ([f"{unlabelled} rows are zero and have no cluster"] if unlabelled else []))

    def _checked(self, X: Any, reset: bool = False) -> Any:
        if not reset:
            check_is_fitted(self, "labels_")
        pairwise = self.kernel == "precomputed"
        data = validate_data(self, X, dtype=np.float64, accept_sparse=False if pairwise else "csr", reset=reset)
        check_size(data)
        if pairwise and reset:
            check_gram(data)
        return data

    def _features(self, data: Any) -> Any:
        """What coordinates are made of: the rows, or their similarities to the rows of the fit."""
        if self.kernel == "linear":
            return data
        if self.kernel == "precomputed":
            return data if len(self._kept) == data.shape[1] else data[:, self._kept]
        return kernel_matrix(self.kernel, self.kernel_params, data, self._X)

    def _zero_rows(self, data: Any, new: bool = False) -> NDArray[np.bool_]:
        """Rows without a direction: zero, where zero is not moved by centring."""
        if self.center_ or (self.kernel == "precomputed" and new):
            return np.zeros(data.shape[0], dtype=bool)
        if self.kernel == "linear":
            sizes = abs(data).max(axis=1)
            return np.asarray((sizes.toarray() if sparse.issparse(sizes) else sizes).ravel() == 0.0)
        if self.kernel == "precomputed":
            return np.asarray(np.diag(data) == 0.0)
        return np.asarray(self_similarity(self.kernel, self.kernel_params, data) == 0.0)

    def _coordinates(self, features: Any) -> Array:
        return coordinates(SpectralMap(self._directions, self._offset), self._constant, features)

    def _labels(self, features: Any, embedding: Array | None) -> Integers:
        if not self._refined:
            rule = Assignment(self._assignment, self._by_distance, np.zeros(0, dtype=np.int64))
            return rule.labels(self._coordinates(features) if embedding is None else embedding)
        if self.kernel != "linear":
            closeness = features @ self._places - self._half_norms
        else:
            # From the middle of the centres, where rows are dense: far from zero, squares lose the distances.
            middle = np.zeros(1) if sparse.issparse(features) else self._places.mean(axis=1)
            places = self._places - middle[:, None]
            closeness = (features if sparse.issparse(features) else features - middle) @ places
            closeness = closeness - 0.5 * (places**2).sum(axis=0)
        return np.asarray(closeness.argmax(axis=1), dtype=np.int64)
