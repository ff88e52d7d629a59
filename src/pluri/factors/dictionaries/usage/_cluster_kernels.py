# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled sweep over clusters of rows, with the probabilities of the clusters integrated out.

A row with ones S goes to cluster l with probability proportional to

    w_l prod_{k in S} (f + m_lk) / (g + n_l - m_lk) prod_k (g + n_l - m_lk) / (f + g + n_l),

m_lk other rows of cluster l using atom k and n_l their number, w_l the weight of the cluster for this row, and
Beta(f, g) the prior of a probability. All logarithms are those of a whole number plus f, g or f + g, and come from
tables. For each cluster the logarithms of the first factors are kept, and the sum of those of the last: a row costs its
ones times the number of clusters, and a pass over the atoms of its own cluster, which must do without it.
"""

import math
from typing import Any, NamedTuple

from pluri.engine.compiled import compiled


class Logs(NamedTuple):
    """Logarithms of ``f + m``, ``g + m`` and ``f + g + m`` for m = 0, 1, ..., n_samples."""

    success: Any
    failure: Any
    total: Any


class Clusters(NamedTuple):
    """What is known of the clusters, and changes as rows move.

    `ones` (K, L) and `sizes` (L,) are counts of rows; `ratio` (K, L) and `rest` (L,) the logarithms of the first
    factors and the sums of those of the last; `work` (L,) is room for one row.
    """

    ones: Any
    sizes: Any
    ratio: Any
    rest: Any
    work: Any


@compiled(allocates=False)
def weigh(l, logs, ones, sizes, ratio, rest):
    """Change `ratio` and `rest` of cluster l to what its counts say."""
    success, failure, total = logs
    size = sizes[l]
    added = 0.0
    for k in range(len(ones)):
        m = ones[k, l]
        off = failure[size - m]
        ratio[k, l] = success[m] - off
        added += off
    rest[l] = added - len(ones) * total[size]


@compiled(allocates=False)
def reassign(used, log_prior, logs, clusters, uniforms, labels):
    """Change `labels` and `clusters`: draw the cluster of each row in turn, given those of all others.

    `used` (n, K) of int8; `log_prior` (n, L), or (1, L) if it is the same for all rows; `uniforms` (n,).
    """
    ones, sizes, ratio, rest, work = clusters
    success, failure, total = logs
    n_rows, n_atoms = used.shape
    n_clusters = len(sizes)
    shared = len(log_prior) == 1
    for l in range(n_clusters):
        weigh(l, logs, ones, sizes, ratio, rest)
    for i in range(n_rows):
        prior = 0 if shared else i
        old = labels[i]
        others = sizes[old] - 1
        for l in range(n_clusters):
            work[l] = log_prior[prior, l] + rest[l]
        own = log_prior[prior, old] - n_atoms * total[others]
        for k in range(n_atoms):
            m = ones[k, old]
            if used[i, k] == 1:
                own += success[m - 1]
                for l in range(n_clusters):
                    work[l] += ratio[k, l]
            else:
                own += failure[others - m]
        work[old] = own
        new = draw(work, uniforms[i])
        if new == old:
            continue
        labels[i] = new
        sizes[old] -= 1
        sizes[new] += 1
        for k in range(n_atoms):
            if used[i, k] == 1:
                ones[k, old] -= 1
                ones[k, new] += 1
        weigh(old, logs, ones, sizes, ratio, rest)
        weigh(new, logs, ones, sizes, ratio, rest)


@compiled(inner=True, allocates=False)
def draw(log_weights, uniform):
    """Index drawn in proportion to the exponentials; changes `log_weights` into them."""
    highest = -math.inf
    for l in range(len(log_weights)):
        highest = max(highest, log_weights[l])
    total = 0.0
    for l in range(len(log_weights)):
        log_weights[l] = math.exp(log_weights[l] - highest)
        total += log_weights[l]
    threshold = uniform * total
    passed = 0.0
    chosen = 0
    for l in range(len(log_weights)):
        if log_weights[l] > 0.0:
            chosen = l
            passed += log_weights[l]
            if passed > threshold:
                break
    return chosen
