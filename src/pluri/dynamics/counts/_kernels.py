# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over generalized counts whose natural parameters are Gaussian: sums over the nodes of a quadrature.

What is linear in the states (means, variances and sums over them) is left to matrix products in `observations`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

#: Powers of a probability ratio are formed by multiplication if none can be below exp(-REACH).
REACH = 600.0
#: Probabilities that second derivatives can do without.
NEGLIGIBLE = 1e-13
#: Counts beyond those whose log probability is this far below that of the likeliest, at all nodes, are left out.
FAR = 45.0


class Nodes(NamedTuple):
    """Quadrature of a standard normal: places (q,), rising and symmetric, and weights (q,); one node at 0 is no
    integration.
    """

    place: NDArray[np.float64]
    weight: NDArray[np.float64]


class Room(NamedTuple):
    """Arrays to work in: `terms` (K + 1, q), `shares` and `tilted` (K + 1,), the others (q,)."""

    terms: NDArray[np.float64]
    base: NDArray[np.float64]
    ratio: NDArray[np.float64]
    power: NDArray[np.float64]
    total: NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    shares: NDArray[np.float64]
    tilted: NDArray[np.float64]


@compiled(inner=True, reorder=True)
def node_moments(log_weight, center, variance, nodes, room):
    """Change `room` to what the counts are at each node; returns the expected log normalizer and how many counts.

    After it, ``room.terms`` holds multiples of probabilities (so many, q) with the sums ``room.total``, and
    ``room.mean`` and ``room.variance`` hold their moments (q,). At theta = center + s x a term is p_k exp(k s x), with
    p_k that of the center: u^k p_k for u = exp(s x) <= 1, and for positive x a multiple of u^(K - k) p_k with
    u = exp(-s x), so that K exponentials serve all nodes.
    """
    terms, base, ratio, power, shares = room.terms, room.base, room.ratio, room.power, room.shares
    total, mean, second, tilted = room.total, room.mean, room.variance, room.tilted
    place, weight = nodes.place, nodes.weight
    n_nodes, n_counts = len(place), 1
    n_left = n_nodes // 2
    spread = np.sqrt(variance)
    steepest = spread * place[n_nodes - 1]
    top, highest = -np.inf, -np.inf
    for k in range(len(log_weight)):
        tilted[k] = log_weight[k] + k * center
        top = max(top, tilted[k])
        highest = max(highest, tilted[k] + k * steepest)
    for k in range(len(log_weight)):  # at the last node large counts are likeliest
        if tilted[k] + k * steepest > highest - FAR:
            n_counts = k + 1
    largest = n_counts - 1
    for q in range(n_nodes):
        total[q] = 0.0
        mean[q] = 0.0
        second[q] = 0.0
        power[q] = 1.0
        ratio[q] = 1.0
        base[q] = top + largest * spread * max(place[q], 0.0)
    for q in range(n_left):  # the nodes are symmetric
        ratio[q] = np.exp(spread * place[q])
        ratio[n_nodes - 1 - q] = ratio[q]
    if largest * spread * abs(place[0]) < REACH:
        for k in range(n_counts):
            shares[k] = np.exp(tilted[k] - top)
        for k in range(n_counts):
            for q in range(n_left):
                terms[k, q] = shares[k] * power[q]
                power[q] *= ratio[q]
        for back in range(n_counts):
            for q in range(n_left, n_nodes):
                terms[largest - back, q] = shares[largest - back] * power[q]
                power[q] *= ratio[q]
    else:
        for q in range(n_nodes):
            base[q] = -np.inf
            for k in range(n_counts):
                base[q] = max(base[q], tilted[k] + k * spread * place[q])
            for k in range(n_counts):
                terms[k, q] = np.exp(tilted[k] + k * spread * place[q] - base[q])
    for k in range(n_counts):
        order = float(k)
        for q in range(n_nodes):
            term = terms[k, q]
            total[q] += term
            mean[q] += order * term
            second[q] += order * order * term
    value = 0.0
    for q in range(n_nodes):
        mean[q] /= total[q]
        second[q] = second[q] / total[q] - mean[q] * mean[q]
        value += weight[q] * (np.log(total[q]) + base[q])
    return value, n_counts


@compiled(reorder=True, allocates=False)
def expect_counts(counts, center, variance, table, nodes, room, out):
    """Change the three arrays of `out` (n, N) to E log M, E[E(k | theta)] and E[Var(k | theta)].

    theta ~ N(center, variance) (n, N) each, `table` (N, K + 1) holds g(k) - log k!. All are 0 where a count is missing
    (NaN).
    """
    normalizer, first, second = out
    weight = nodes.weight
    means, variances = room.mean, room.variance
    for t in range(counts.shape[0]):
        for i in range(counts.shape[1]):
            normalizer[t, i], first[t, i], second[t, i] = 0.0, 0.0, 0.0
            if np.isnan(counts[t, i]):
                continue
            normalizer[t, i], _ = node_moments(table[i], center[t, i], variance[t, i], nodes, room)
            for q in range(len(weight)):
                first[t, i] += weight[q] * means[q]
                second[t, i] += weight[q] * variances[q]


@compiled(reorder=True, allocates=False)
def learn_counts(row_weight, center, variance, log_weight, nodes, room, out):
    """Change `out` to what the derivatives of one neuron are made of.

    With F(mu, s^2) the expected log M of theta ~ N(mu, s^2) (n,) each, the columns of ``out[0]`` (n, 6) become F, F_mu,
    2 F_s2, F_mu_mu, 2 F_mu_s2 and 4 F_s2_s2; ``out[1]`` (n, K + 1) and ``out[2]`` (n, K + 1) the derivatives of F_mu
    and 2 F_s2 in g(k); and ``out[3]`` (K + 1, K + 2) sums over rows, with weights, of the derivatives of F in g: second
    ones, below the diagonal, and in the last column first ones. Rows of weight 0 are left at 0.
    """
    local, by_mean, by_spread, by_shape = out
    place, weight = nodes.place, nodes.weight
    terms, mean, second, total = room.terms, room.mean, room.variance, room.total
    n_counts, n_nodes = terms.shape
    for t in range(len(row_weight)):
        for c in range(6):
            local[t, c] = 0.0
        for j in range(n_counts):
            by_mean[t, j], by_spread[t, j] = 0.0, 0.0
        w = row_weight[t]
        if w == 0.0:
            continue
        spread = np.sqrt(variance[t])
        scale = 1.0 / spread if spread > 1e-5 else 0.0
        local[t, 0], n_reached = node_moments(log_weight, center[t], variance[t], nodes, room)
        for q in range(n_nodes):
            x, share = place[q] * scale, weight[q]
            local[t, 1] += share * mean[q]
            local[t, 2] += share * mean[q] * x
            local[t, 3] += share * second[q]
            local[t, 4] += share * second[q] * x
            local[t, 5] += share * second[q] * x * x
        if scale == 0.0:
            local[t, 2] = local[t, 3]
        local[t, 5] -= local[t, 2] * scale * scale
        # Most of many counts are as good as impossible: only those between `low` and `high` are looked at.
        low, high = n_reached, 0
        for j in range(n_reached):
            likeliest = 0.0
            for q in range(n_nodes):
                terms[j, q] /= total[q]
                likeliest = max(likeliest, terms[j, q])
            if likeliest > NEGLIGIBLE:
                low = min(low, j)
                high = j + 1
        for j in range(low, high):
            share_of_count = 0.0
            for q in range(n_nodes):
                part = weight[q] * terms[j, q]
                share_of_count += part
                by_mean[t, j] += part * (j - mean[q])
                by_spread[t, j] += part * (j - mean[q]) * place[q] * scale
            by_shape[j, n_counts] += w * share_of_count
            by_shape[j, j] += w * share_of_count
            for other in range(low, j + 1):
                product = 0.0
                for q in range(n_nodes):
                    product += weight[q] * terms[j, q] * terms[other, q]
                by_shape[j, other] -= w * product
