"""Clusters that move, appear and vanish: batches of points around centres that walk at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.validation import Number, RandomState, as_generator, check_count, check_value

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class MovingClusters:
    """Batches of points and where they come from.

    Attributes
    ----------
    batches : list of arrays of shape (n_t, n_features)
    labels : list of arrays of shape (n_t,)
        Number of the cluster of each point, the same at all times.
    centers : list of arrays of shape (k_t, n_features)
        Centres of the clusters that are alive at each time.
    alive : list of arrays of shape (k_t,)
        Their numbers.
    """

    batches: list[Array]
    labels: list[Integers]
    centers: list[Array]
    alive: list[Integers]

    @property
    def n_clusters(self) -> int:
        """Number of clusters over all times."""
        return int(max(names.max(initial=-1) for names in self.alive)) + 1

    def __len__(self) -> int:
        """Number of batches."""
        return len(self.batches)

    def __repr__(self) -> str:
        """Batches, points and clusters."""
        n_points = sum(map(len, self.batches))
        return f"MovingClusters({len(self)} batches, {n_points} points, {self.n_clusters} clusters)"


def make_moving_clusters(
    n_batches: int = 30,
    n_clusters: int = 5,
    points_per_cluster: int = 15,
    *,
    n_features: int = 2,
    box: float = 10.0,
    min_distance: float = 0.0,
    drift: float = 0.1,
    noise_scale: float = 0.3,
    birth_rate: float = 0.0,
    death_rate: float = 0.0,
    random_state: RandomState = None,
) -> MovingClusters:
    """Draw batches of points around centres that walk at random.

    Parameters
    ----------
    n_batches : int, default=30
    n_clusters : int, default=5
        Clusters in the first batch.
    points_per_cluster : int, default=15
        Points of each living cluster in each batch.
    n_features : int, default=2
    box : float, default=10.0
        New centres are uniform in ``[0, box]^n_features``.
    min_distance : float, default=0.0
        New centres keep this distance from those that are there (if that can be had in 1000 trials).
    drift : float, default=0.1
        Standard deviation of the step of a centre from one batch to the next.
    noise_scale : float, default=0.3
        Standard deviation of points around their centre.
    birth_rate : float, default=0.0
        Mean number of clusters (Poisson) that appear in each batch after the first.
    death_rate : float, default=0.0
        Probability that a cluster is gone in the next batch; one that is gone does not come back.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    MovingClusters

    Examples
    --------
    >>> from pluri.datasets import make_moving_clusters
    >>> make_moving_clusters(random_state=0)
    MovingClusters(30 batches, 2250 points, 5 clusters)
    """
    for name, count in (
        ("n_batches", n_batches), ("n_clusters", n_clusters), ("points_per_cluster", points_per_cluster),
        ("n_features", n_features),
    ):  # fmt: skip
        check_count(count, name)
    for name, value in (
        ("box", box), ("min_distance", min_distance), ("drift", drift), ("noise_scale", noise_scale),
        ("birth_rate", birth_rate),
    ):  # fmt: skip
        check_value(value, name, Number(least=0))
    check_value(death_rate, "death_rate", Number(least=0, most=1))
    rng = as_generator(random_state)
    centers, names = np.empty((0, n_features)), np.empty(0, dtype=np.int64)
    next_name = 0
    result = MovingClusters([], [], [], [])
    for batch in range(n_batches):
        survives = rng.random(len(names)) >= death_rate
        centers, names = centers[survives] + drift * rng.standard_normal((survives.sum(), n_features)), names[survives]
        for _ in range(n_clusters if batch == 0 else rng.poisson(birth_rate)):
            centers = np.vstack([centers, _far_from(centers, box, min_distance, rng)])
            names = np.append(names, next_name)
            next_name += 1
        owners = rng.permutation(np.repeat(np.arange(len(names)), points_per_cluster))
        result.batches.append(centers[owners] + noise_scale * rng.standard_normal((len(owners), n_features)))
        result.labels.append(names[owners])
        result.centers.append(centers)
        result.alive.append(names)
    return result


def _far_from(centers: Array, box: float, min_distance: float, rng: np.random.Generator) -> Array:
    for _ in range(1000):
        center: Array = np.asarray(rng.uniform(0.0, box, size=centers.shape[1]))
        if not len(centers) or ((centers - center) ** 2).sum(axis=1).min() >= min_distance**2:
            break
    return center
