"""What the estimators share: reading X, threads, placing new objects, and the summary."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from pluri.embedding.neighbors.distributions import Neighbors, dissimilarities, probabilities_of_rows, warn_of_ties
from pluri.embedding.neighbors.input_data import Objects, read_objects
from pluri.embedding.neighbors.optimizers import Descended
from pluri.embedding.neighbors.threads import Threads
from pluri.inference import History
from pluri.validation import Stored, check_parameters, restored_on_failure
from pluri.validation.estimator import Estimator

Array = NDArray[np.float64]

#: Entries of a block of rows that are placed at a time.
BLOCK = 1_000_000
#: A row this near to one of the fit, as a part of the mean distance, is that object.
SAME = 1e-5
#: Squares of such numbers may overflow.
OVERFLOWS = 1e100
#: What places of new rows are divided by.
POSITIVE = Stored(least=float(np.finfo(np.float64).tiny))


class NeighborEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Base of the estimators: a subclass has `_find`, which finds the points and stores them."""

    perplexity: float | None
    metric: Any
    n_jobs: int | None
    max_iter: int
    embedding_: Array
    kl_per_sample_: Array
    _unit: float
    _shift: Any
    _training: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.pairwise = tags.input_tags.sparse = tags.input_tags.positive_only = given
        return tags

    def _fit(self, X: Any) -> Self:
        check_parameters(self)
        with restored_on_failure(self), threadpool_limits(limits=1, user_api="blas"):
            objects = read_objects(self, X, self.metric, scaled=self.perplexity is not None)
            with Threads(self.n_jobs) as threads:
                self._find(objects, threads)
        return self

    @abstractmethod
    def _find(self, objects: Objects, threads: Threads) -> None:
        """Find the points, and store them."""

    def _store(self, found: Descended, neighbors: Neighbors, objects: Objects, *, endless: bool) -> None:
        """Store what a fit leaves beside the points; an endless one is one that `max_iter` is meant to end."""
        self.kl_divergence_ = float(self.kl_per_sample_.sum())
        self.sigmas_ = objects.unit / np.sqrt(2.0 * np.maximum(neighbors.scales, 1e-300))
        self.history_ = History(found.rows)
        self.n_iter_ = len(found.rows)
        self.converged_ = found.converged
        self._unit, self._shift = objects.unit, objects.shift
        self._training = None if objects.metric == "precomputed" else objects.rows
        if not (found.converged or found.interrupted or endless):
            warnings.warn(
                f"the cost still falls after max_iter={self.max_iter} iterations; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=5,
            )

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Array:
        """Find the map and return the points; see :meth:`fit`."""
        return self.fit(X, y, **params).embedding_

    def transform(self, X: Any) -> Array:
        """Places of objects on the map, which stays as it is: each where its own divergence is least.

        The divergence of a new object is a convex function of its place, so that there is one place for each. An object
        of the fit, known by its row, has the place that it has on the map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With ``metric="precomputed"``, dissimilarities from new objects to those of the fit.

        Returns
        -------
        points : array of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        given = isinstance(self.metric, str) and self.metric == "precomputed"
        X = validate_data(self, X, dtype=np.float64, reset=False, ensure_non_negative=given)
        points = np.empty((len(X), self.embedding_.shape[1]))
        step = max(1, BLOCK // len(self.embedding_))
        failed = -1
        with threadpool_limits(limits=1, user_api="blas"):
            for first in range(0, len(X), step):
                d = self._distances(X[first : first + step])
                P, _, tied = probabilities_of_rows(d, self.perplexity, np.full(len(d), -1, dtype=np.int64))
                failed = first + tied if tied >= 0 > failed else failed
                nearest = d.argmin(axis=1)
                same = d[np.arange(len(d)), nearest] <= SAME**2 * d.mean(axis=1)
                points[first : first + step][same] = self.embedding_[nearest[same]]
                points[first : first + step][~same] = self._placed(P[~same])
        warn_of_ties(failed, self.perplexity)
        return points

    @abstractmethod
    def _placed(self, P: Array) -> Array:
        """Places (m, L) of new objects with neighbours P (m, n)."""

    def _distances(self, X: Array) -> Array:
        """Dissimilarities (m, n) of new objects and those of the fit."""
        if self._training is None:
            return np.array(X)
        if not (isinstance(self.metric, str) and self.metric == "euclidean"):
            return dissimilarities(X, self._training, self.metric)
        X = X / self._unit - self._shift
        # A new row may be so far away that its squares overflow; the others are then all equally far.
        far = float(np.abs(X).max())
        far = far if far > OVERFLOWS else 1.0
        return dissimilarities(X / far, self._training / far, self.metric)

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def summary(self) -> str:
        """The map in a few lines of plain text: its cost, beside that of no map, and the objects that fit worst."""
        check_is_fitted(self)
        n = len(self.embedding_)
        state = "converged" if self.converged_ else "not converged"
        worst = np.argsort(-self.kl_per_sample_, kind="stable")[:5]
        extent = " x ".join(f"{size:.1f}" for size in np.ptp(self.embedding_, axis=0))
        objects = ", ".join(f"{i} ({self.kl_per_sample_[i]:.2f})" for i in worst)
        return "\n".join(
            [
                f"{type(self).__name__}: {n} objects in {self.embedding_.shape[1]} dimensions, {extent}",
                f"{state} after {self.n_iter_} iterations",
                f"cost {self.kl_divergence_:.2f} nats, {self.kl_divergence_ / n:.3f} per object",
                f"objects that fit worst (nats): {objects}",
            ]
        )
