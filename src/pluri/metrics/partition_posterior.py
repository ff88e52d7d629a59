"""What draws of a partition say together: who is with whom, one partition that stands for all, and how sure it is.

The expected loss of a partition c under draws z_1, ..., z_S has the same form for both losses here,

    ``E L(c, z) = sum_k f(n_k) + mean_s [ sum_l f(n_l) - 2 sum_kl f(n_kl) ]``,

with n_k the sizes of the clusters of c, n_l those of a draw and n_kl those of their meets: ``f(n) = n log(n) / N`` is
the variation of information, ``f(n) = n^2 / (N (N - 1))`` Binder's loss, the share of pairs on which c and z disagree.
Both are computed over the draws exactly, not by a bound that needs the co-clustering matrix only, so that memory is
that of the draws. The search starts from draws and from cuts of a tree, and then moves one item at a time to the
cluster that lowers the expected loss most until no move does.

References
----------
Wade and Ghahramani (2018), Bayesian cluster analysis: point estimation and credible balls, Bayesian Analysis 13.
Dahl, Johnson and Mueller (2022), Search algorithms and loss functions for Bayesian clustering, JCGS 31.
Binder (1978), Bayesian cluster analysis, Biometrika 65.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.metrics.partition_losses import (
    Array,
    Integers,
    as_draws,
    as_partition,
    co_clustering_matrix,
    partition_distances,
    size_terms,
)
from pluri.optimize.fixed_point import iterate
from pluri.validation import Number, Only, RandomState, Whole, as_generator, check_value
from pluri.validation.interruption import holding, interruptible

LOSSES = ("vi", "binder")
#: A tree of the items is cut into candidates only up to this number of items, for it needs all pairs.
LARGEST_TREE = 2000
#: Largest number of clusters that a tree is cut into.
MOST_CUTS = 64
MOST_SWEEPS = 100


@dataclass(frozen=True)
class PointPartition:
    """A partition of small expected loss.

    Attributes
    ----------
    labels : array of shape (n_samples,)
        Clusters are numbered by size, the largest first.
    expected_loss : float
    n_sweeps : int
        Passes over all items of the best search.
    interrupted : bool
        Whether Ctrl-C ended the search early.
    """

    labels: Integers
    expected_loss: float
    n_sweeps: int
    interrupted: bool = False


@dataclass(frozen=True)
class CredibleBall:
    """Draws around a partition that hold a given share of the posterior.

    Attributes
    ----------
    radius : float
        Smallest distance within which at least `mass` of the draws lie.
    mass : float
    distances : array of shape (n_draws,)
    farthest, coarsest, finest : arrays of shape (n_samples,)
        Draws in the ball: the most distant one; the most distant one of those with fewest clusters; of those with most.
    """

    radius: float
    mass: float
    distances: Array
    farthest: Integers
    coarsest: Integers
    finest: Integers


@interruptible(finishing=True)
def minimize_expected_vi(
    draws: ArrayLike, *, max_clusters: int | None = None, n_starts: int = 8, random_state: RandomState = None
) -> PointPartition:
    """Find a partition of small expected variation of information.

    Parameters
    ----------
    draws : array-like of ints, shape (n_draws, n_samples) or (n_chains, n_draws, n_samples)
    max_clusters : int, optional
        Largest number of clusters; one more than the largest of the draws by default.
    n_starts : int, default=8
        Searches, from the best of the draws and of the cuts of a tree.
    random_state : int, Generator or None

    Returns
    -------
    PointPartition

    Examples
    --------
    >>> from pluri.metrics.partition_posterior import minimize_expected_vi
    >>> minimize_expected_vi([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 2]], random_state=0).labels
    array([0, 0, 1, 1])
    """
    return minimize_expected_loss(
        draws, loss="vi", max_clusters=max_clusters, n_starts=n_starts, random_state=random_state
    )


@interruptible(finishing=True)
def minimize_expected_loss(
    draws: ArrayLike,
    *,
    loss: str = "vi",
    max_clusters: int | None = None,
    n_starts: int = 8,
    random_state: RandomState = None,
) -> PointPartition:
    """Find a partition of small expected loss: `loss` is "vi" or "binder"; see `minimize_expected_vi`."""
    check_value(loss, "loss", Only(*LOSSES))
    check_value(n_starts, "n_starts", Whole(1))
    check_value(max_clusters, "max_clusters", Whole(1) | Only(None))
    values = as_draws(draws)
    # Equal draws count once, with their number.
    unique, counts = np.unique(values, axis=0, return_counts=True)
    most = int(values.max()) + 2 if max_clusters is None else int(max_clusters)
    rng = as_generator(random_state)
    starts = _candidates(unique, most, rng)
    scored = sorted(
        (
            (float(np.average(partition_distances(start, unique, loss), weights=counts)), index)
            for index, start in starts
        ),
    )
    chosen = dict(starts)
    best = PointPartition(chosen[scored[0][1]], scored[0][0], 0)
    with holding("interrupted; the best partition so far is kept") as block:
        for before, index in scored[:n_starts]:
            labels, gained, n_sweeps = _descend(chosen[index], unique, counts / counts.sum(), most, loss, rng)
            if before - gained < best.expected_loss - 1e-12:
                best = PointPartition(labels, before - gained, n_sweeps)
    order = np.argsort(-np.bincount(best.labels), kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    exact = float(np.average(partition_distances(best.labels, unique, loss), weights=counts))
    return PointPartition(rank[best.labels], exact, best.n_sweeps, block.interrupted)


def _candidates(draws: Integers, most: int, rng: np.random.Generator) -> list[tuple[int, Integers]]:
    """Partitions to start from, each with a number: draws, cuts of a tree, and one cluster."""
    n = draws.shape[1]
    fit = np.flatnonzero(draws.max(axis=1) < most)
    kept = rng.choice(fit, size=min(len(fit), 64), replace=False) if len(fit) else fit
    found = [np.zeros(n, dtype=np.int64), *draws[np.sort(kept)], *_cuts(draws, most)]
    return list(enumerate(found))


def _cuts(draws: Integers, most: int) -> Iterator[Integers]:
    n = draws.shape[1]
    if not 2 < n <= LARGEST_TREE:
        return
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    apart = 1.0 - co_clustering_matrix(draws)
    np.fill_diagonal(apart, 0.0)
    tree = linkage(squareform(apart, checks=False), method="average")
    for number in range(2, min(most, n, MOST_CUTS) + 1):
        yield as_partition(fcluster(tree, number, criterion="maxclust"), n)


def _descend(
    labels: Integers, draws: Integers, weights: Array, most: int, loss: str, rng: np.random.Generator
) -> tuple[Integers, float, int]:
    """Move items one at a time, in random order, while that lowers the loss: labels, how much, and in how many sweeps.

    The gain of a move is in the counts of the meets of each cluster with those of each draw that hold the item, so that
    an item costs O(n_clusters n_draws).
    """
    n_draws, n = draws.shape
    width = int(draws.max()) + 1
    labels = labels.copy()
    steps = np.diff(size_terms(np.arange(n + 2), n, loss))
    n_slots = min(most, n)
    sizes = np.bincount(labels, minlength=n_slots)
    if len(sizes) > n_slots:
        return labels, 0.0, 0
    meets = np.zeros((n_draws * width, n_slots), dtype=np.int32)
    where = draws + width * np.arange(n_draws)[:, None]
    for places in where:
        np.add.at(meets, (places, labels), 1)
    columns = np.ascontiguousarray(where.T)

    def sweep(gained: float) -> tuple[float, int]:
        n_moved = 0
        for i in rng.permutation(n):
            own, at = labels[i], columns[i]
            counts = meets[at]
            counts[:, own] -= 1
            there = sizes.copy()
            there[own] -= 1
            cost = steps[there] - 2 * (weights @ steps[counts])
            # One empty cluster is as good as another.
            target = int(np.argmin(cost))
            if cost[target] < cost[own] - 1e-12:
                gained += float(cost[own] - cost[target])
                meets[at, own] -= 1
                meets[at, target] += 1
                sizes[own] -= 1
                sizes[target] += 1
                labels[i] = target
                n_moved += 1
        return gained, n_moved

    found = iterate(sweep, 0.0, max_iter=MOST_SWEEPS)
    return np.unique(labels, return_inverse=True)[1].astype(np.int64), found.state, found.n_iter


def credible_ball(labels: ArrayLike, draws: ArrayLike, *, mass: float = 0.95, loss: str = "vi") -> CredibleBall:
    """Smallest ball around a partition that holds `mass` of the draws.

    Parameters
    ----------
    labels : array-like of shape (n_samples,)
        Its centre, such as the labels of `minimize_expected_vi`.
    draws : array-like of ints, shape (n_draws, n_samples) or (n_chains, n_draws, n_samples)
    mass : float, default=0.95
    loss : {"vi", "binder"}, default="vi"
        The distance.

    Returns
    -------
    CredibleBall

    Examples
    --------
    >>> from pluri.metrics.partition_posterior import credible_ball
    >>> ball = credible_ball([0, 0, 1, 1], [[0, 0, 1, 1], [0, 0, 0, 0]], mass=0.5)
    >>> ball.radius, credible_ball([0, 0, 1, 1], [[0, 0, 1, 1], [0, 0, 0, 0]]).coarsest
    (0.0, array([0, 0, 0, 0]))
    """
    check_value(loss, "loss", Only(*LOSSES))
    check_value(mass, "mass", Number(above=0, most=1))
    values = as_draws(draws)
    distances = partition_distances(as_partition(labels, values.shape[1]), values, loss)
    radius = float(np.sort(distances)[int(np.ceil(mass * len(distances))) - 1])
    inside = np.flatnonzero(distances <= radius)
    n_clusters = values[inside].max(axis=1)

    def most_distant(chosen: NDArray[np.bool_]) -> Integers:
        candidates = inside[chosen]
        return values[candidates[np.argmax(distances[candidates])]]

    return CredibleBall(
        radius, float(mass), distances, most_distant(n_clusters >= 0), most_distant(n_clusters == n_clusters.min()),
        most_distant(n_clusters == n_clusters.max()),
    )  # fmt: skip
