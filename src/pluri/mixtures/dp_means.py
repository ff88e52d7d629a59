"""K-means that opens clusters where they pay: the small-variance limit of a Dirichlet process mixture.

It lowers ``sum_i w_i ||x_i - mu_{z_i}||^2 + penalty K``: a row whose (weighted) squared distance to the nearest center
is above the penalty becomes a center; all go to their nearest center; centers move to their means; until labels stand
still. Neither step raises the cost. Results depend on the order in which rows are asked, hence `n_init`.

References
----------
Kulis and Jordan (2012), Revisiting k-means: new algorithms via Bayesian nonparametrics, ICML.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.validation import check_is_fitted, validate_data

from pluri.mixtures.dirichlet_process.weighted_rows import check_row_weights, merged, refuse_missing
from pluri.optimize.fixed_point import iterate
from pluri.progress import Step, open_progress
from pluri.validation import (
    Allowed,
    Number,
    Only,
    RandomState,
    Stored,
    Whole,
    as_generator,
    check_count,
    check_parameters,
    restored_on_failure,
)
from pluri.validation.estimator import Estimator
from pluri.validation.interruption import Interrupted, holding

Array = NDArray[np.float64]
Integers = NDArray[np.int64]
#: Larger data could not be squared and summed.
LARGEST = 1e100


@dataclass(frozen=True, eq=False)
class Clustering:
    """One run of the algorithm."""

    centers: Array
    labels: Integers
    costs: list[float]
    converged: bool


def farthest_first_penalty(X: ArrayLike, n_clusters: int) -> float:
    """Penalty for which about so many clusters are opened.

    Beginning with the mean, add the row that is farthest from all that were added, `n_clusters` times; the answer is
    the squared distance of the last one.

    Examples
    --------
    >>> from pluri.mixtures.dp_means import farthest_first_penalty
    >>> farthest_first_penalty([[0.0], [1.0], [10.0], [11.0]], 2)
    30.25
    """
    rows = np.asarray(X, dtype=np.float64)
    distance = ((rows - rows.mean(axis=0)) ** 2).sum(axis=1)
    largest = float(distance.max())
    for _ in range(check_count(n_clusters, "n_clusters")):
        largest = float(distance.max())
        distance = np.minimum(distance, ((rows - rows[np.argmax(distance)]) ** 2).sum(axis=1))
    return largest


def cluster(
    X: Array, weights: Array, penalty: float, rng: np.random.Generator, max_iter: int, on_pass: Any = None
) -> Clustering:
    """Run the algorithm from one cluster, rows asked in one random order.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    weights : array of shape (n_samples,)
    penalty : float
    rng : numpy.random.Generator
    max_iter : int
        Largest number of passes.
    on_pass : callable, optional
        Called with what there is after each pass.

    Returns
    -------
    Clustering
    """
    from pluri.mixtures._dp_means_kernels import add_up, move_closer, next_dear

    order = rng.permutation(len(X))

    def one_pass(now: Clustering) -> tuple[Clustering, float]:
        centers = now.centers
        distance, nearest = np.full(len(X), np.inf), np.zeros(len(X), dtype=np.int64)
        move_closer(X, centers, 0, distance, nearest)
        n_centers, place = len(centers), 0
        # Distances only fall, so that a row that was not far when it was asked is not far later.
        while (place := next_dear(order, weights, distance, penalty, place)) < len(order):
            row = order[place]
            move_closer(X, X[row : row + 1], n_centers, distance, nearest)
            n_centers += 1
        used = np.bincount(nearest, minlength=n_centers) > 0
        n_clusters = int(used.sum())
        new_labels = (np.cumsum(used) - 1)[nearest]
        total, size = np.zeros((n_clusters, X.shape[1])), np.zeros(n_clusters)
        add_up(X, weights, new_labels, total, size)
        centers = total / size[:, None]
        gaps = X - centers[new_labels]
        cost = float(weights @ np.einsum("ij,ij->i", gaps, gaps)) + penalty * n_clusters
        settled = bool((new_labels == now.labels).all())
        found = Clustering(centers, new_labels, [*now.costs, cost], settled)
        if on_pass is not None:
            on_pass(found)
        return found, float(not settled)

    start = Clustering(np.average(X, axis=0, weights=weights)[None], np.full(len(X), -1), [], False)
    return iterate(one_pass, start, max_iter=max_iter).state


class DPMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, Estimator):
    """K-means with a penalty for each cluster instead of their number.

    Parameters
    ----------
    penalty : float, optional
        Price of a cluster, in squared distance: a row farther than its root from all centers becomes one. By default
        chosen by :func:`farthest_first_penalty`.
    n_clusters : int, default=8
        How many clusters that choice has in mind; not used if `penalty` is given.
    n_init : int, default=10
        Runs, in different orders of the rows; the one of lowest cost is kept.
    max_iter : int, default=300
        Largest number of passes of a run.
    random_state : int, Generator, RandomState or None
    verbose : int, default=0
        1 prints a line for each run.

    Attributes
    ----------
    cluster_centers_ : array of shape (n_clusters_, n_features_in_)
    labels_ : array of shape (n_samples,)
        The largest cluster first.
    n_clusters_ : int
    penalty_ : float
    inertia_ : float
        Weighted sum of squared distances to the centers.
    cost_history_ : list of float
        ``inertia + penalty * n_clusters`` after each pass of the best run.
    n_iter_ : int
        Its number of passes.
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.mixtures.dp_means import DPMeans
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0]])
    >>> model = DPMeans(penalty=9.0, random_state=0).fit(X)
    >>> model.n_clusters_, model.cost_history_[-1]
    (2, 19.0)
    """

    _fitted_layout: ClassVar[Mapping[str, Stored]] = {
        "cluster_centers_": Stored("n_clusters_", "n_features_in_"),
        "labels_": Stored("n_rows", whole=True, least=0, below="n_clusters_"),
    }

    _parameters: ClassVar[Mapping[str, Allowed]] = {
        "n_clusters": Whole(1),
        "penalty": Number(least=0) | Only(None),
    }

    def __init__(
        self,
        penalty: float | None = None,
        *,
        n_clusters: int = 8,
        n_init: int = 10,
        max_iter: int = 300,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.penalty = penalty
        self.n_clusters = n_clusters
        self.n_init = n_init
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the clusters.

        After Ctrl-C the best clustering so far is kept, with a warning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), optional
            A row of weight 2 counts as two rows.

        Returns
        -------
        self : object
        """
        check_parameters(self)
        with restored_on_failure(self):
            data = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
            refuse_missing(data)
            if np.abs(data).max() > LARGEST:
                raise ValueError(f"X must not exceed {LARGEST:g} in size; rescale it")
            rows, weights = merged(data, check_row_weights(sample_weight, len(data)))
            self.penalty_ = float(
                farthest_first_penalty(rows, int(self.n_clusters)) if self.penalty is None else self.penalty
            )
            best = self._best(rows, weights)
            order = np.argsort(-np.bincount(best.labels, weights=weights), kind="stable")
            self.cluster_centers_ = best.centers[order]
            self.n_clusters_ = len(order)
            self.cost_history_ = list(best.costs)
            self.inertia_ = best.costs[-1] - self.penalty_ * self.n_clusters_
            self.n_iter_ = len(best.costs)
            self.labels_ = self._assign(data)
        return self

    def _best(self, rows: Array, weights: Array) -> Clustering:
        found: list[Clustering] = []
        latest: list[Clustering] = []
        with (
            holding("interrupted; the best clustering so far is kept") as block,
            open_progress(int(self.verbose)) as report,
        ):
            for run, rng in enumerate(as_generator(self.random_state).spawn(int(self.n_init))):
                found.append(cluster(rows, weights, self.penalty_, rng, int(self.max_iter), latest.append))
                latest.clear()
                report(Step(run + 1, int(self.n_init), -found[-1].costs[-1]))
        if not found + latest:
            raise Interrupted
        best = min(found + latest[-1:], key=lambda run: run.costs[-1])
        if not best.converged and not block.interrupted:
            warnings.warn(
                f"labels still change after max_iter={self.max_iter} passes; raise max_iter",
                ConvergenceWarning,
                stacklevel=4,
            )
        return best

    def _assign(self, data: Array) -> Integers:
        return np.asarray(pairwise_distances_argmin(*self._centred(data)), dtype=np.int64)

    def _centred(self, data: Array) -> tuple[Array, Array]:
        """Rows and centers from the middle of the centers: distances far from zero would be lost in their squares."""
        middle = self.cluster_centers_.mean(axis=0)
        return data - middle, self.cluster_centers_ - middle

    def _checked(self, X: Any) -> Array:
        check_is_fitted(self, "cluster_centers_")
        data = np.asarray(validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False))
        refuse_missing(data)
        return data

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def predict(self, X: Any) -> Integers:
        """Nearest center of each row; no clusters are opened."""
        return self._assign(self._checked(X))

    def transform(self, X: Any) -> Array:
        """Distances to the centers: (n_samples, n_clusters_)."""
        return np.asarray(euclidean_distances(*self._centred(self._checked(X))))

    def score(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> float:
        """Minus the sum of squared distances to the nearest centers, as that of scikit-learn's KMeans."""
        data = self._checked(X)
        distance = ((data - self.cluster_centers_[self._assign(data)]) ** 2).sum(axis=1)
        return -float(check_row_weights(sample_weight, len(data)) @ distance)
