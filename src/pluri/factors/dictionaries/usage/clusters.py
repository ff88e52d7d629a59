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
#: Clusters to begin with where fewer would seem enough; see `settle`. Of 3, 5, 8 and 20 the number with which six
#: photographs were recovered best (benchmarks/reproduce/compressive_sensing.py --only starts).
FEWEST = 3
#: If all rows use the same atoms to begin with: updates in which they choose their own, then updates whose average rows
#: are clustered by, then updates before clusters that should be one are merged.
CHOOSING, AVERAGED, SETTLED = 45, 15, 15


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
    """Clusters to begin with, and the number of updates until they are left to the sampler.

    Where all rows use the same atoms, as most starts have it, they must first choose their own.
    """
    if (used == used[0]).all():
        return np.zeros(len(used), dtype=np.intp), CHOOSING + AVERAGED + SETTLED
    return start_labels(rng, process, used, n_clusters), 0


def settle(
    rng: np.random.Generator, process: BetaProcess, used: Used, state: Any, n_clusters: int
) -> tuple[Labels | None, Any]:
    """Clusters for one of the first updates, or None if they are to be drawn as ever; and the new `seen` of the state.

    Rows are clustered by how often each atom was used in several updates: one draw says little of the probabilities of
    a row that could use many atoms. And into three clusters at least: while all rows are in one, its probabilities make
    them use atoms alike, so that one cluster seems enough. In clusters of their own they have some updates to choose
    anew; those that do not differ then are merged.

    Rows that have not yet been clustered stay together, even if the warm-up is so short that all is cut: drawn while no
    row uses anything, clusters mean nothing, and keep their rows from using anything.
    """
    together = np.zeros(len(used), dtype=np.intp)
    if state.settling > SETTLED + AVERAGED:
        return together, None
    if state.settling > SETTLED:
        seen = used.astype(np.float32) if state.seen is None else state.seen + used
        if state.settling > SETTLED + 1:
            return together, seen
        labels = merge_clusters(process, used, cluster_rows(rng, seen, n_clusters), n_clusters)
        if labels.max() + 1 < FEWEST:
            labels = cluster_rows(rng, seen, min(FEWEST, n_clusters))
        return by_size(labels, n_clusters), None
    clustered = bool(state.labels.any())
    if state.settling > 1:
        return None if clustered else together, None
    if not clustered:
        return start_labels(rng, process, used, n_clusters), None
    return by_size(merge_clusters(process, used, state.labels, n_clusters), n_clusters), None


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
    return by_size(merge_clusters(process, used, cluster_rows(rng, used, n_clusters), n_clusters), n_clusters)


def cluster_rows(rng: np.random.Generator, usage: Any, n_clusters: int) -> Labels:
    """Clusters of rows with similar usage (n_samples, K), by k-means."""
    k = min(n_clusters, len(usage))
    if k == 1:
        return np.zeros(len(usage), dtype=np.intp)
    return np.asarray(k_means(usage.astype(np.float64), None, k, rng, n_init=1, max_iter=START_ITERATIONS)[0], np.intp)


def by_size(labels: Labels, n_clusters: int) -> Labels:
    """The same clusters, the largest first."""
    ranks = np.argsort(np.argsort(-np.bincount(labels, minlength=n_clusters), kind="stable"), kind="stable")
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
