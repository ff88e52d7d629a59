# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over Poisson counts whose log rate is Gaussian: E exp(theta) = exp(mean + variance / 2)."""

import numpy as np

from pluri.dynamics.counts._kernels import HIGHEST
from pluri.engine.compiled import compiled


@compiled(reorder=True, allocates=False)
def poisson_sites(counts, loadings, intercept, state, integrates, out):
    """Change `out` to expected log-likelihoods without log k! (n,), gradients in the mean (n, p), precisions (n, p, p).

    As `count_sites`; without `integrates` the covariances count as 0, which is the log-likelihood at the means.
    """
    means, covariances = state
    value, gradient, precision = out
    n, n_neurons = counts.shape
    p = loadings.shape[1]
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
            theta, variance = intercept[i], 0.0
            for a in range(p):
                theta += loadings[i, a] * means[t, a]
                if integrates:
                    along = 0.0
                    for b in range(p):
                        along += covariances[t, a, b] * loadings[i, b]
                    variance += loadings[i, a] * along
            rate = np.exp(min(theta + 0.5 * variance, HIGHEST))
            value[t] += y * theta - rate
            for a in range(p):
                gradient[t, a] += (y - rate) * loadings[i, a]
                for b in range(a + 1):
                    precision[t, a, b] += rate * loadings[i, a] * loadings[i, b]
        for a in range(p):
            for b in range(a):
                precision[t, b, a] = precision[t, a, b]


@compiled(reorder=True, allocates=False)
def poisson_learning(data, loadings, intercept, state, room, out):
    """Add to `out`, for each neuron: expected log-likelihood (N,), gradient (N, p + 1) and Hessian of its negative.

    With v = V c the rate is exp(c'm + d + c'v / 2), and its derivatives are the rate times (m + v, 1) and
    ((m + v, 1)(m + v, 1)' + V); `room` (p,) is to work in.
    """
    counts, row_weight = data
    means, covariances = state
    value, gradient, hessian = out
    n, n_neurons = counts.shape
    p = loadings.shape[1]
    for i in range(n_neurons):
        for t in range(n):
            y, w = counts[t, i], row_weight[t]
            if np.isnan(y) or w == 0.0:
                continue
            theta, variance = intercept[i], 0.0
            for a in range(p):
                theta += loadings[i, a] * means[t, a]
                room[a] = 0.0
                for b in range(p):
                    room[a] += covariances[t, a, b] * loadings[i, b]
                variance += loadings[i, a] * room[a]
                room[a] += means[t, a]
            rate = w * np.exp(min(theta + 0.5 * variance, HIGHEST))
            value[i] += w * y * theta - rate
            gradient[i, p] += w * y - rate
            hessian[i, p, p] += rate
            for a in range(p):
                gradient[i, a] += w * y * means[t, a] - rate * room[a]
                hessian[i, p, a] += rate * room[a]
                for b in range(a + 1):
                    hessian[i, a, b] += rate * (room[a] * room[b] + covariances[t, a, b])
