# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over counts of many neurons whose natural parameter is Gaussian.

theta_ti = c_i' x_t with x_t ~ N(m_t, V_t) is Gaussian with the mean c_i' m_t and the variance c_i' V_t c_i, so that
expectations of functions of theta are sums over the nodes of one-dimensional Gauss-Hermite quadrature.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

#: Powers of a probability ratio are formed by multiplication if none can be below exp(-REACH).
REACH = 600.0
#: Largest exponent of a Poisson rate: beyond it only the refusal of a step is left.
HIGHEST = 80.0


class Nodes(NamedTuple):
    """Quadrature of a standard normal: places (q,), rising and symmetric, and weights (q,); one node at 0 is no
    integration. `is_jensen` asks for the bound by Jensen's inequality, which needs the one node.
    """

    place: NDArray[np.float64]
    weight: NDArray[np.float64]
    is_jensen: bool


class Room(NamedTuple):
    """Arrays to work in: `terms` (K + 1, q), `direction` (p,), `shares` and `tilted` (K + 1,), the others (q,)."""

    terms: NDArray[np.float64]
    base: NDArray[np.float64]
    ratio: NDArray[np.float64]
    power: NDArray[np.float64]
    total: NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    direction: NDArray[np.float64]
    shares: NDArray[np.float64]
    tilted: NDArray[np.float64]


@compiled(inner=True, reorder=True)
def spread_terms(log_weight, center, spread, place, room):
    """Change ``room.terms`` (K + 1, q) to multiples of the probabilities of counts at theta = center + spread * place.

    ``room.base`` (q,) becomes the logarithm of what the terms were divided by. exp(k spread x) is u^k for u <= 1, or for
    positive x a multiple of u^(K - k): K exponentials serve all nodes.
    """
    terms, base, ratio, power, shares = room.terms, room.base, room.ratio, room.power, room.shares
    n_counts, n_nodes = terms.shape
    largest, n_left = n_counts - 1, n_nodes // 2
    if largest * spread * abs(place[0]) < REACH:
        top = -np.inf
        for k in range(n_counts):
            top = max(top, log_weight[k] + k * center)
        for k in range(n_counts):
            shares[k] = np.exp(log_weight[k] + k * center - top)
        for q in range(n_left):
            ratio[q] = np.exp(spread * place[q])
            ratio[n_nodes - 1 - q] = ratio[q]  # nodes are symmetric
        if n_nodes % 2 == 1:
            ratio[n_left] = 1.0
        for q in range(n_nodes):
            power[q] = 1.0
            base[q] = top + largest * spread * max(place[q], 0.0)
        for k in range(n_counts):
            share = shares[k]
            for q in range(n_left):
                terms[k, q] = share * power[q]
                power[q] *= ratio[q]
        for back in range(n_counts):
            k = largest - back
            share = shares[k]
            for q in range(n_left, n_nodes):
                terms[k, q] = share * power[q]
                power[q] *= ratio[q]
        return
    for q in range(n_nodes):
        theta = center + spread * place[q]
        top = -np.inf
        for k in range(n_counts):
            top = max(top, log_weight[k] + k * theta)
        for k in range(n_counts):
            terms[k, q] = np.exp(log_weight[k] + k * theta - top)
        base[q] = top


@compiled(inner=True, reorder=True)
def node_moments(log_weight, center, variance, nodes, room):
    """Change `room` to what the counts are at each node; returns the expected log normalizer.

    After it, ``room.terms`` holds multiples of probabilities (K + 1, q) with the sums ``room.total``, and ``room.mean``
    and ``room.variance`` hold their moments (q,). Jensen's bound is log sum_k exp(log_weight_k + k center + k^2
    variance / 2): its probabilities are in column 0.
    """
    terms, total, mean, second = room.terms, room.total, room.mean, room.variance
    n_counts, n_nodes = terms.shape
    if nodes.is_jensen:
        for k in range(n_counts):
            room.tilted[k] = log_weight[k] + 0.5 * k * k * variance
        spread_terms(room.tilted, center, 0.0, nodes.place, room)
    else:
        spread_terms(log_weight, center, np.sqrt(variance), nodes.place, room)
    for q in range(n_nodes):
        total[q] = 0.0
        mean[q] = 0.0
        second[q] = 0.0
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
        value += nodes.weight[q] * (np.log(total[q]) + room.base[q])
    return value


@compiled(reorder=True, allocates=False)
def count_sites(counts, loadings, shape, state, nodes, room, out):
    """Change `out` to expected y theta - log M (n,), their gradients in the mean (n, p) and precisions (n, p, p).

    `counts` (n, N) with NaN where a bin is missing, `loadings` (N, p), `shape` (N, K + 1) holds g(k) - log k!, `state`
    the means (n, p) and covariances (n, p, p). The precision is the sum of E[Var(k | theta)] c c' (of second moments
    for Jensen's bound).
    """
    means, covariances = state
    value, gradient, precision = out
    n, n_neurons = counts.shape
    p = loadings.shape[1]
    weight = nodes.weight
    n_nodes = len(weight)
    is_jensen = nodes.is_jensen
    for t in range(n):
        value[t] = 0.0
        for a in range(p):
            gradient[t, a] = 0.0
            for b in range(p):
                precision[t, a, b] = 0.0
        for i in range(n_neurons):
            y = counts[t, i]
            if np.isnan(y):
                continue
            center, variance = 0.0, 0.0
            for a in range(p):
                center += loadings[i, a] * means[t, a]
                along = 0.0
                for b in range(p):
                    along += covariances[t, a, b] * loadings[i, b]
                variance += loadings[i, a] * along
            expected = node_moments(shape[i], center, max(variance, 0.0), nodes, room)
            first, second = 0.0, 0.0
            for q in range(n_nodes):
                first += weight[q] * room.mean[q]
                second += weight[q] * room.variance[q]
            if is_jensen:
                second += first * first
            value[t] += y * center - expected
            for a in range(p):
                gradient[t, a] += (y - first) * loadings[i, a]
                for b in range(a + 1):
                    precision[t, a, b] += second * loadings[i, a] * loadings[i, b]
        for a in range(p):
            for b in range(a):
                precision[t, b, a] = precision[t, a, b]


@compiled(reorder=True, allocates=False)
def count_learning(data, loadings, shape, state, nodes, room, out):
    """Add to `out`, for each neuron: expected log-likelihood (N,), gradient (N, p + K + 1) and Hessian of its negative.

    The parameters of a neuron are c (p,) and g (K + 1,). `data` is the counts (n, N) and the weights of rows (n,). With
    v = V c, s^2 = c' V c and places x of the nodes, E log M has in c the gradient  G m + H v  and the second derivative
    a m m' + b (m v' + v m') + d v v' + H V,  and with g_k mixed  A_k m + B_k v.
    """
    counts, row_weight = data
    means, covariances = state
    value, gradient, hessian = out
    place, weight = nodes.place, nodes.weight
    is_jensen = nodes.is_jensen
    terms, mean, second, total = room.terms, room.mean, room.variance, room.total
    along = room.direction
    n, n_neurons = counts.shape
    p = loadings.shape[1]
    n_counts, n_nodes = terms.shape
    for i in range(n_neurons):
        for t in range(n):
            y, w = counts[t, i], row_weight[t]
            if np.isnan(y) or w == 0.0:
                continue
            center, variance = 0.0, 0.0
            for a in range(p):
                center += loadings[i, a] * means[t, a]
                along[a] = 0.0
                for b in range(p):
                    along[a] += covariances[t, a, b] * loadings[i, b]
                variance += loadings[i, a] * along[a]
            spread = np.sqrt(max(variance, 0.0))
            expected = node_moments(shape[i], center, max(variance, 0.0), nodes, room)
            k = int(y)
            value[i] += w * (y * center - expected + (shape[i, k] if k < n_counts else -np.inf))
            # Moments over the nodes: of the mean, and of the variance with x^0, x^1 and x^2.
            first, tilt, curve0, curve1, curve2 = 0.0, 0.0, 0.0, 0.0, 0.0
            for q in range(n_nodes):
                x, share = place[q], weight[q]
                first += share * mean[q]
                tilt += share * mean[q] * x
                curve0 += share * second[q]
                curve1 += share * second[q] * x
                curve2 += share * second[q] * x * x
            if is_jensen:
                third, fourth = 0.0, 0.0
                for j in range(n_counts):
                    third += terms[j, 0] / total[0] * j**3
                    fourth += terms[j, 0] / total[0] * j**4
                square = curve0 + first * first
                slope, mixed, both = square, third - first * square, fourth - square * square
            elif spread > 1e-5:
                slope = tilt / spread
                mixed, both = curve1 / spread, (curve2 - slope) / (spread * spread)
            else:
                slope, mixed, both, square = curve0, 0.0, 0.0, 0.0
            for a in range(p):
                gradient[i, a] += w * ((y - first) * means[t, a] - slope * along[a])
                for b in range(a + 1):
                    hessian[i, a, b] += w * (
                        curve0 * means[t, a] * means[t, b]
                        + mixed * (means[t, a] * along[b] + along[a] * means[t, b])
                        + both * along[a] * along[b]
                        + slope * covariances[t, a, b]
                    )
            if k < n_counts:
                gradient[i, p + k] += w
            for j in range(n_counts):
                at_mean, at_spread, share = 0.0, 0.0, 0.0
                for q in range(n_nodes):
                    terms[j, q] /= total[q]
                    part = weight[q] * terms[j, q]
                    share += part
                    at_mean += part * (j - mean[q])
                    at_spread += part * (j - mean[q]) * place[q]
                if is_jensen:
                    at_spread = share * (j * j - curve0 - first * first)
                elif spread > 1e-5:
                    at_spread /= spread
                else:
                    at_spread = 0.0
                gradient[i, p + j] -= w * share
                hessian[i, p + j, p + j] += w * share
                for a in range(p):
                    hessian[i, p + j, a] += w * (at_mean * means[t, a] + at_spread * along[a])
                for l in range(j + 1):
                    product = 0.0
                    for q in range(n_nodes):
                        product += weight[q] * terms[j, q] * terms[l, q]
                    hessian[i, p + j, p + l] -= w * product
