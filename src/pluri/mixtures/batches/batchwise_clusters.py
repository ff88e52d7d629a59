"""What models of clusters that live through several batches share: learning batch by batch, tracks, a page of text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClusterMixin
from sklearn.utils.validation import check_is_fitted

from pluri.mixtures.batches.cluster_tracks import (
    Array,
    ClusterTrack,
    Integers,
    as_batches,
    check_batch,
    collect_tracks,
    is_list_of_batches,
)
from pluri.validation import Stored, restored_on_failure
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import Interrupted, held, holding


class BatchwiseClusters(ClusterMixin, Estimator):
    """Base of the models whose clusters keep their identity from batch to batch; not to be used by itself."""

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "cluster_identities_": Stored("n_known", whole=True, least=0),
        "cluster_centers_": Stored("n_known", "n_features_in_"),
        "cluster_weights_": Stored("n_known", finite=False),
        "cluster_counts_": Stored("n_known", whole=True, least=0),
        "cluster_variances_": Stored("n_known", least=0),
        "cluster_ages_": Stored("n_known", whole=True, least=0),
        "known_identities_": Stored(None, whole=True, least=0),
        "_base_mean": Stored("n_features_in_"),
    }

    labels_: Any
    n_clusters_: int
    n_batches_seen_: int
    _history: Any

    @abstractmethod
    def _begin(self) -> None:
        """Check the settings and forget all batches."""

    @abstractmethod
    def _advance(self, X: Array) -> Integers:
        """Take in one batch; the identities of the clusters of its points."""

    def fit(self, X: Any, y: Any = None, lengths: ArrayLike | None = None) -> Self:
        """Learn from batches, one after the other.

        Parameters
        ----------
        X : list of array-likes of shape (n_t, n_features), or one array-like of shape (n_samples, n_features)
            Batches in the order of time; a single matrix is one batch, unless `lengths` are given. Batches after the
            first may be empty. An array of shape (n_batches, n_rows, n_features) is a list of batches.
        y : ignored
            But a list of integers here that has not one for each row of X is taken as `lengths`.
        lengths : array-like of int, optional
            Number of rows of each batch, where X is one matrix with all batches end to end.

        Returns
        -------
        self
        """
        batches = as_batches(X, y, lengths)
        with restored_on_failure(self):
            self._begin()
            labels: list[Integers] = []
            with holding(lambda: f"interrupted after {len(labels)} batches; these are kept"):
                for batch in batches:
                    labels.append(self._advance(check_batch(self, batch, first=not labels, may_be_empty=True)))
                    if held():
                        raise Interrupted
            if not labels:
                raise Interrupted
            self.labels_ = labels if is_list_of_batches(X) else np.concatenate(labels)
        return self

    def fit_predict(self, X: Any, y: Any = None, lengths: ArrayLike | None = None) -> Any:
        """`labels_` after `fit`: an array, or a list of them if X is a list of batches."""
        return self.fit(X, y, lengths).labels_

    def partial_fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn from one more batch; `labels_` are those of its points.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        with restored_on_failure(self):
            first = not hasattr(self, "cluster_centers_")
            if first:
                self._begin()
            self.labels_ = self._advance(check_batch(self, X, first=first, may_be_empty=True))
        return self

    @property
    def tracks_(self) -> dict[int, ClusterTrack]:
        """Track of each cluster by its identity."""
        check_is_fitted(self, "cluster_centers_")
        return collect_tracks(self._history)

    def summary(self) -> str:
        """Births, last sights and sizes of the clusters in plain text."""
        lines = [
            f"{type(self).__name__}: {self.n_clusters_} clusters in {self.n_batches_seen_} batches",
            f"{'cluster':>8s} {'birth':>6s} {'last':>6s} {'seen':>6s} {'points':>8s}",
        ]
        for track in self.tracks_.values():
            points = track.sizes.sum()
            lines.append(f"{track.identity:8d} {track.birth:6d} {track.last_seen:6d} {len(track.steps):6d} {points:8d}")
        return "\n".join(lines)
