"""Rows in clusters, each with probabilities of its own for the atoms: what clustered priors of the usage share.

``z_ik ~ Bernoulli(pi_lk)`` for a row i of cluster l, ``pi_lk ~ Beta(a / K, b (K - 1) / K)``. How rows get into clusters
is said by `pluri.factors.dictionaries.usage.dirichlet_process` and `.probit_sticks`. The cluster of a row is drawn with
all probabilities integrated out: with them given, a cluster that is empty has probabilities that suit no row, and a row
hardly ever goes there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from pluri.components.k_means import k_means
from pluri.factors.dictionaries.usage._cluster_kernels import Clusters, Logs, reassign
from pluri.processes.beta_process import BetaProcess, LogProbabilities

Array = NDArray[np.float64]
Used = NDArray[np.int8]
Labels = NDArray[np.intp]

#: Iterations of k-means for labels to begin with, which sweeps then change.
START_ITERATIONS = 20
#: If all rows use the same atoms to begin with: updates before they are clustered, and how often that is done anew.
SETTLING, N_CLUSTERINGS = 15, 2


def count_by_cluster(used: Used, labels: Labels, n_clusters: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many rows of each cluster use each atom, (n_clusters, K), and how many rows it has."""
    K = used.shape[1]
    rows, atoms = np.nonzero(used)
    ones = np.bincount(labels[rows] * K + atoms, minlength=n_clusters * K).reshape(n_clusters, K)
    return ones, np.bincount(labels, minlength=n_clusters)


def draw_labels(rng: np.random.Generator, process: BetaProcess, used: Used, labels: Labels, log_prior: Array) -> Labels:
    """Draw the cluster of each row in turn, probabilities integrated out.

    Parameters
    ----------
    rng : Generator
    process : BetaProcess
        Prior of the probabilities of each cluster.
    used : array of int8 of shape (n_samples, K)
    labels : array of shape (n_samples,)
        Present clusters.
    log_prior : array of shape (n_samples, n_clusters) or (1, n_clusters)
        Logarithms of the weights of the clusters, for each row or for all.
    """
    n, n_clusters = len(used), log_prior.shape[1]
    whole = np.arange(n + 1.0)
    first, second = process.shapes
    logs = Logs(np.log(first + whole), np.log(second + whole), np.log(first + second + whole))
    ones, sizes = count_by_cluster(used, labels, n_clusters)
    ones = np.ascontiguousarray(ones.T)
    clusters = Clusters(ones, sizes, np.empty(ones.shape), np.empty(n_clusters), np.empty(n_clusters))
    moved = labels.copy()
    reassign(np.ascontiguousarray(used), np.ascontiguousarray(log_prior), logs, clusters, rng.random(n), moved)
    return moved


def draw_probabilities(
    rng: np.random.Generator, process: BetaProcess, used: Used, labels: Labels, n_clusters: int
) -> LogProbabilities:
    """Draw the probabilities of all clusters, (n_clusters, K), given who is in them."""
    ones, sizes = count_by_cluster(used, labels, n_clusters)
    return process.posterior(ones, sizes[:, None]).sample(rng)


def log_usage(process: BetaProcess, used: Used, labels: Labels, probabilities: LogProbabilities) -> float:
    """Log density of the matrix, and of the log odds of the probabilities, given the clusters.

    Of the log odds, not of the probabilities: where those round to zero, their density has no bound.
    """
    ones, sizes = count_by_cluster(used, labels, len(probabilities.on))
    after = process.posterior(ones, sizes[:, None])
    total = (after.first * probabilities.on + after.second * probabilities.off).sum()
    return float(total - probabilities.on.size * betaln(*process.shapes))


def log_memberships(used: Used, probabilities: LogProbabilities) -> Array:
    """Log probability of each row in each cluster, probabilities given: (n_samples, n_clusters)."""
    return np.asarray(used @ probabilities.log_odds.T + probabilities.off.sum(axis=1))


def first_labels(rng: np.random.Generator, process: BetaProcess, used: Used, n_clusters: int) -> tuple[Labels, int]:
    """Clusters to begin with, and the number of updates until rows are clustered anew.

    Where all rows use the same atoms, as most starts have it, they must first choose their own.
    """
    if (used == used[0]).all():
        return np.zeros(len(used), dtype=np.intp), SETTLING * N_CLUSTERINGS
    return start_labels(rng, process, used, n_clusters), 0


def settle_labels(
    rng: np.random.Generator, process: BetaProcess, used: Used, labels: Labels, n_clusters: int, settling: int
) -> Labels | None:
    """Clusters for one of the first updates; None if they are to be drawn as ever.

    Rows that have not yet been clustered stay together, even if the warm-up is so short that all is cut: drawn while no
    row uses anything, clusters mean nothing, and keep their rows from using anything.
    """
    if settling % SETTLING == 1:
        return start_labels(rng, process, used, n_clusters)
    return np.zeros(len(used), dtype=np.intp) if settling > SETTLING * (N_CLUSTERINGS - 1) or not labels.any() else None


def settled_within(state: Any, n_updates: int) -> Any:
    """The state of a prior that clusters rows from scratch for the last time after so many updates at most.

    Such an update is none of a Markov chain that has the posterior, and belongs into the warm-up.
    """
    return replace(state, settling=n_updates) if getattr(state, "settling", 0) > n_updates else state


def start_labels(rng: np.random.Generator, process: BetaProcess, used: Used, n_clusters: int) -> Labels:
    """Clusters of rows that use the same atoms, the largest first: by k-means, then merged.

    From random labels the rows soon are in one cluster, which sweeps hardly ever split again; and clusters that should
    be one rarely become it where each holds its place.
    """
    k = min(n_clusters, len(used))
    if k == 1:
        return np.zeros(len(used), dtype=np.intp)
    labels, _ = k_means(used.astype(np.float64), None, k, rng, n_init=1, max_iter=START_ITERATIONS)
    labels = merge_clusters(process, used, labels, k)
    ranks = np.argsort(np.argsort(-np.bincount(labels, minlength=k), kind="stable"), kind="stable")
    return np.asarray(ranks[labels], dtype=np.intp)


def merge_clusters(process: BetaProcess, used: Used, labels: Labels, n_clusters: int) -> Labels:
    """Merge the two clusters that raise the probability of clusters and matrix most, as long as it rises.

    Clusters have the prior of a Chinese restaurant of concentration one: k-means separates rows whether or not they
    differ by more than chance, and the evidence of the matrix alone would rarely join them again.
    """
    ones, sizes = count_by_cluster(used, labels, n_clusters)
    occupied = np.flatnonzero(sizes)
    place = np.arange(n_clusters)
    place[occupied] = np.arange(len(occupied))
    ones, sizes, labels = ones[occupied], sizes[occupied], place[labels]

    def log_probability(ones: NDArray[np.int64], sizes: NDArray[np.int64]) -> Array:
        return np.asarray(process.log_evidence(ones, sizes[:, None]).sum(axis=1) + gammaln(sizes))

    while len(sizes) > 1:
        first, second = np.triu_indices(len(sizes), 1)
        alone = log_probability(ones, sizes)
        gain = log_probability(ones[first] + ones[second], sizes[first] + sizes[second]) - alone[first] - alone[second]
        best = int(gain.argmax())
        if gain[best] <= 0.0:
            break
        kept, lost = int(first[best]), int(second[best])
        ones[kept] += ones[lost]
        sizes[kept] += sizes[lost]
        ones, sizes = np.delete(ones, lost, axis=0), np.delete(sizes, lost)
        labels = np.where(labels == lost, kept, labels)
        labels = labels - (labels > lost)
    return np.asarray(labels, dtype=np.intp)
