# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled loops of clustering in batches: one pass of dynamic means, one Gibbs sweep of its Bayesian parent."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Array = NDArray[np.float64]


class Before(NamedTuple):
    """What is known before a batch of K stored clusters, and of a new one, which comes last.

    Attributes
    ----------
    log_weight : (K,) log weights of stored clusters while they have no point
    past : (K,) how many points they had
    mean, precision : (K + 1, d) and (K + 1,), of the centres
    log_new : log weight of a new cluster
    noise_precision : of points about their centre
    """

    log_weight: Array
    past: Array
    mean: Array
    precision: Array
    log_new: float
    noise_precision: float


@compiled()
def dynamic_means_pass(X, order, stored, pull, revival, penalty, labels, centers, counts):
    """Let every point, in the given order, choose the cheapest cluster, as long as clusters stand still.

    The first ``len(stored)`` places are those of stored clusters: while they have no point, one may be had for
    ``revival[k] + pull[k] / (1 + pull[k]) |x - stored_k|^2``. The others are new. `labels`, `centers` and `counts` are
    changed in place; `labels` of -1 are points that have no cluster yet.
    """
    n_old, d = stored.shape
    top = n_old
    for k in range(n_old, len(counts)):
        if counts[k] > 0:
            top = k + 1
    for i in order:
        if labels[i] >= 0:
            counts[labels[i]] -= 1
        best, least, free = -1, penalty, -1
        for k in range(top):
            active = counts[k] > 0
            if k >= n_old and not active:
                free = k if free < 0 else free
                continue
            total = 0.0
            for j in range(d):
                away = X[i, j] - (centers[k, j] if active else stored[k, j])
                total += away * away
            if not active:
                total = revival[k] + pull[k] / (1.0 + pull[k]) * total
            if total < least or (best < 0 and total <= least):
                best, least = k, total
        if best < 0:
            best = free if free >= 0 else top
            top = max(top, best + 1)
        if counts[best] == 0:
            for j in range(d):
                if best < n_old:
                    centers[best, j] = (pull[best] * stored[best, j] + X[i, j]) / (1.0 + pull[best])
                else:
                    centers[best, j] = X[i, j]
        labels[i] = best
        counts[best] += 1


@compiled()
def sweep_labels(X, order, uniforms, before, labels, counts, sums, work):
    """Draw the cluster of every point given all others, means of the clusters integrated out; in place.

    The first places are those of stored clusters: their weight is ``exp(before.log_weight[k])`` while they have no
    point, ``before.past[k] + n`` afterwards. All other places are new clusters. `counts` (m,), `sums` (m, d), `work`
    (m + 1,) with room for a cluster for each point.
    """
    prior_log_weight, past, prior_mean, prior_precision = before.log_weight, before.past, before.mean, before.precision
    log_new, noise_precision = before.log_new, before.noise_precision
    n_old, d = len(prior_log_weight), X.shape[1]
    top = n_old
    for k in range(n_old, len(counts)):
        if counts[k] > 0:
            top = k + 1
    for step in range(len(order)):
        i = order[step]
        own = labels[i]
        counts[own] -= 1
        for j in range(d):
            sums[own, j] = sums[own, j] - X[i, j] if counts[own] > 0 else 0.0
        free = -1
        for k in range(n_old, top):
            if counts[k] == 0 and free < 0:
                free = k
        if free < 0:
            free = top
        highest = -math.inf
        for k in range(max(top, free + 1)):
            n = counts[k]
            if k >= n_old and n == 0 and k != free:
                work[k] = -math.inf
                continue
            source = min(k, n_old)
            if n == 0:
                work[k] = prior_log_weight[k] if k < n_old else log_new
            else:
                work[k] = math.log(past[k] + n) if k < n_old else math.log(n)
            precision = prior_precision[source] + n * noise_precision
            predictive = 1.0 / (1.0 / precision + 1.0 / noise_precision)
            distance = 0.0
            for j in range(d):
                mean = (prior_precision[source] * prior_mean[source, j] + noise_precision * sums[k, j]) / precision
                distance += (X[i, j] - mean) ** 2
            work[k] += 0.5 * d * math.log(predictive) - 0.5 * predictive * distance
            highest = max(highest, work[k])
        total = 0.0
        limit = max(top, free + 1)
        for k in range(limit):
            work[k] = math.exp(work[k] - highest)
            total += work[k]
        threshold = uniforms[step] * total
        chosen = 0
        cumulative = work[0]
        while (cumulative <= threshold or work[chosen] == 0.0) and chosen < limit - 1:
            chosen += 1
            cumulative += work[chosen]
        while work[chosen] == 0.0:
            chosen -= 1
        labels[i] = chosen
        counts[chosen] += 1
        for j in range(d):
            sums[chosen, j] += X[i, j]
        top = max(top, chosen + 1)
