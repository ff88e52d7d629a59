"""Dynamic means: k-means for batches in which clusters move, appear, vanish and come back.

The limit of small variance of a dependent Dirichlet process mixture. In each batch it lowers

    sum_k [ lambda 1(k new) + Q age_k 1(k old) + g_k |m_k - c_k|^2 + sum_{i in k} |x_i - m_k|^2 ]

over labels and centres m, where c_k is the old centre of a cluster last seen age_k batches ago with weight w_k, and
``g_k = 1 / (1 / w_k + age_k tau)`` is how strongly it holds on to its place. Then ``w_k = g_k + n_k``, and clusters
that were not seen grow older until ``Q age_k > lambda``. One batch alone is DP-means, and like it may stop at a local
minimum: single points never merge if they are further apart than the root of lambda.

References
----------
.. [1] Campbell, T., Liu, M., Kulis, B., How, J. P. and Carin, L. (2013). Dynamic clustering via asymptotics of the
   dependent Dirichlet process mixture. Advances in Neural Information Processing Systems 26.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils.validation import check_is_fitted

from pluri.mixtures.batches import _dynamic_kernels
from pluri.mixtures.batches.batchwise_clusters import BatchwiseClusters
from pluri.mixtures.batches.cluster_tracks import (
    check_batch,
    is_list_of_batches,
)
from pluri.optimize.fixed_point import iterate
from pluri.validation import Allowed, Number, Only, RandomState, as_generator, check_parameters
from pluri.validation.interruption import Interrupted, holding

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class StoredClusters:
    """What is remembered between two batches.

    Attributes
    ----------
    identities : (k,)
    centers : (k, n_features)
    weights : (k,)
        How many points the memory of the centre is worth.
    ages : (k,)
        Batches since the cluster was last seen, plus one: 1 for those of the last batch.
    """

    identities: Integers
    centers: Array
    weights: Array
    ages: Integers

    @classmethod
    def none(cls, n_features: int) -> StoredClusters:
        """Nothing remembered."""
        return cls(np.empty(0, np.int64), np.empty((0, n_features)), np.empty(0), np.empty(0, np.int64))


@dataclass(frozen=True, eq=False)
class BatchClustering:
    """Clusters of one batch: labels are places, those of stored clusters first.

    Attributes
    ----------
    labels : (n,)
    centers : (n_places, n_features)
    counts : (n_places,)
    costs : list of float
        Cost after each pass.
    converged : bool
    """

    labels: Integers
    centers: Array
    counts: Integers
    costs: list[float]
    converged: bool


def cluster_batch(
    X: Array, stored: StoredClusters, penalty: float, aging: float, drift: float, rng: np.random.Generator,
    max_iter: int = 100,
) -> BatchClustering:  # fmt: skip
    """Lower the cost of one batch until it stops falling, points taken in random orders.

    Parameters
    ----------
    X : array of shape (n, n_features)
    stored : StoredClusters
    penalty, aging, drift : float
        lambda, Q and tau.
    rng : numpy.random.Generator
    max_iter : int, default=100
    """
    n_old, places = len(stored.identities), len(stored.identities) + len(X)
    pull, revival = 1.0 / (1.0 / stored.weights + stored.ages * drift), aging * stored.ages
    labels, counts = np.full(len(X), -1), np.zeros(places, dtype=np.int64)
    centers = np.zeros((places, X.shape[1]))

    def one_pass(costs: list[float]) -> tuple[list[float], float]:
        before = labels.copy()
        _dynamic_kernels.dynamic_means_pass(
            X, rng.permutation(len(X)), stored.centers, pull, revival, penalty, labels, centers, counts
        )
        active = counts > 0
        held = np.where(active[:n_old], pull, 0.0)
        sums = np.zeros_like(centers)
        np.add.at(sums, labels, X)
        sums[:n_old] += held[:, None] * stored.centers
        weights = counts.astype(np.float64)
        weights[:n_old] += held
        centers[active] = sums[active] / weights[active, None]
        cost = (
            penalty * float(active[n_old:].sum())
            + float(revival @ active[:n_old])
            + float(held @ ((centers[:n_old] - stored.centers) ** 2).sum(axis=1))
            + float(((X - centers[labels]) ** 2).sum())
        )
        settled = bool((labels == before).all()) or (bool(costs) and costs[-1] - cost <= 1e-12 * abs(costs[-1]))
        return [*costs, cost], float(not settled)

    start: list[float] = []
    end = iterate(one_pass, start, max_iter=max_iter)
    return BatchClustering(labels, centers, counts, end.state, end.converged)


def next_memory(
    stored: StoredClusters, found: BatchClustering, aging: float, drift: float, penalty: float, next_identity: int
) -> tuple[StoredClusters, Integers]:
    """What is remembered after a batch, and the identity of each place that had points (-1 for others)."""
    n_old = len(stored.identities)
    seen = found.counts > 0
    new = np.flatnonzero(seen[n_old:]) + n_old
    names = np.full(len(seen), -1)
    names[:n_old] = stored.identities
    names[new] = next_identity + np.arange(len(new))
    pull = 1.0 / (1.0 / stored.weights + stored.ages * drift)
    old = replace(
        stored,
        centers=np.where(seen[:n_old, None], found.centers[:n_old], stored.centers),
        weights=np.where(seen[:n_old], pull + found.counts[:n_old], stored.weights),
        ages=np.where(seen[:n_old], 1, stored.ages + 1),
    )
    kept = aging * old.ages <= penalty
    memory = StoredClusters(
        np.concatenate([stored.identities[kept], names[new]]),
        np.concatenate([old.centers[kept], found.centers[new]]),
        np.concatenate([old.weights[kept], found.counts[new].astype(np.float64)]),
        np.concatenate([old.ages[kept], np.ones(len(new), dtype=np.int64)]),
    )
    return memory, np.where(seen, names, -1)


class DynamicMeans(BatchwiseClusters):
    """Clustering of batches with clusters that keep their identity.

    Parameters
    ----------
    penalty : float, default=1.0
        Cost lambda of a new cluster, in squared units of the data: points further than its root from all clusters
        open their own.
    survival : float, default=5.0
        Batches that a cluster lives on unseen, ``lambda / Q``; infinite for ever.
    drift : float, default=0.1
        How far clusters move, tau: the squared step from batch to batch in units of the squared spread of points.
    n_init : int, default=5
        Random orders of the points that are tried for each batch; the one with the lowest cost counts.
    max_iter : int, default=100
        Most passes over a batch.
    random_state : int, Generator, RandomState or None

    Attributes
    ----------
    labels_ : array of shape (n_samples,), or list of such arrays
        Identity of the cluster of each point; a list if `fit` was given a list of batches (after an interruption, of
        the batches that were done).
    cluster_identities_ : array of shape (n_stored,)
    cluster_centers_ : array of shape (n_stored, n_features)
    cluster_weights_, cluster_ages_ : arrays of shape (n_stored,)
        Clusters that are remembered after the last batch.
    n_clusters_ : int
        Clusters seen in all batches together.
    cost_history_ : list of lists of float
        Cost after each pass, for each batch.
    n_batches_seen_, n_iter_, n_features_in_ : int

    Examples
    --------
    >>> from pluri.datasets.moving_clusters import make_moving_clusters
    >>> from pluri.mixtures.batches.dynamic_means import DynamicMeans
    >>> data = make_moving_clusters(n_batches=10, min_distance=2.0, random_state=0)
    >>> model = DynamicMeans(penalty=4.0, random_state=0).fit(data.batches)
    >>> model.n_clusters_, len(model.labels_)
    (5, 10)
    >>> model.tracks_[0].centers.shape
    (10, 2)
    """

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "penalty": Number(least=0),
        "survival": Number(above=0) | Only(float("inf")),
        "drift": Number(least=0),
    }

    def __init__(
        self,
        penalty: float = 1.0,
        *,
        survival: float = 5.0,
        drift: float = 0.1,
        n_init: int = 5,
        max_iter: int = 100,
        random_state: RandomState = None,
    ):
        self.penalty = penalty
        self.survival = survival
        self.drift = drift
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state

    def predict(self, X: Any) -> Any:
        """Identity of the nearest remembered cluster of each point.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or list of them

        Returns
        -------
        array of shape (n_samples,), or list of such arrays if X is a list of batches
        """
        check_is_fitted(self, "cluster_centers_")
        if is_list_of_batches(X):
            return [self._nearest(check_batch(self, batch, first=False, may_be_empty=True)) for batch in X]
        return self._nearest(check_batch(self, X, first=False, may_be_empty=False))

    def _nearest(self, rows: Array) -> Integers:
        if not len(self.cluster_centers_):
            raise ValueError("no cluster is remembered after the last batch, so that none can be predicted")
        if not len(rows):
            return np.empty(0, dtype=np.int64)
        middle = self.cluster_centers_.mean(axis=0)  # distances are found from squares, which should be small
        nearest = pairwise_distances_argmin(rows - middle, self.cluster_centers_ - middle)
        return np.asarray(self.cluster_identities_[nearest])

    def _begin(self) -> None:
        check_parameters(self)
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)
        self._history: list[dict[str, NDArray[Any]]] = []
        self.cost_history_: list[list[float]] = []
        self.n_batches_seen_ = self.n_clusters_ = 0

    def _stored(self, n_features: int) -> StoredClusters:
        if not hasattr(self, "cluster_centers_"):
            return StoredClusters.none(n_features)
        return StoredClusters(
            self.cluster_identities_, self.cluster_centers_, self.cluster_weights_, self.cluster_ages_
        )

    def _advance(self, X: Array) -> Integers:
        if self.n_batches_seen_ == 1 and np.isinf(self.survival):
            warnings.warn(
                "survival is infinite: clusters that are not seen any more are kept for ever", UserWarning, stacklevel=3
            )
        stored = self._stored(X.shape[1])
        aging = float(self.penalty) / float(self.survival)
        # Each batch has a stream of its own, so that one call of fit and many of partial_fit give the same.
        rng = as_generator(self.random_state)
        if isinstance(self.random_state, int | np.integer):
            rng = np.random.default_rng([int(self.random_state), self.n_batches_seen_])
        runs = (
            cluster_batch(X, stored, float(self.penalty), aging, float(self.drift), rng, self.max_iter)
            for _ in range(self.n_init if len(X) else 1)
        )
        found: list[BatchClustering] = []
        with holding("interrupted: the best of the orders tried so far is kept"):
            for run in runs:
                found.append(run)
        if not found:
            raise Interrupted
        best = min(found, key=lambda run: run.costs[-1])
        if not best.converged:
            warnings.warn(
                f"the cost still fell after max_iter={self.max_iter} passes; raise max_iter",
                ConvergenceWarning,
                stacklevel=3,
            )
        memory, names = next_memory(stored, best, aging, float(self.drift), float(self.penalty), self.n_clusters_)
        seen = names >= 0
        self._history.append({"identities": names[seen], "centers": best.centers[seen], "sizes": best.counts[seen]})
        self.cost_history_.append(best.costs)
        self.n_clusters_ = max(self.n_clusters_, int(names.max(initial=-1)) + 1)
        self.cluster_identities_, self.cluster_centers_ = memory.identities, memory.centers
        self.cluster_weights_, self.cluster_ages_ = memory.weights, memory.ages
        self.n_iter_ = len(best.costs)
        self.n_batches_seen_ += 1
        return names[best.labels] if len(X) else np.empty(0, dtype=np.int64)
