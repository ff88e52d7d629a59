# mypy: allow-untyped-defs, allow-untyped-calls
r"""Compiled updates of the codes when the dictionary is learned: usage and weight of an entry jointly, row by row.

With q(z_ik = 1) = t, q(s_ik | z_ik = 1) = N(m, v), w = t m, atoms of mean d_k and ``h_ik = E |d_k|^2`` (over what row i
has of it), and b the product of d_k with what the other atoms leave of the row,

    v = 1 / (E h + g h_ik),    m = g v b,    logit t = E logit pi_k + (E log h + log v) / 2 + m^2 / (2 v).

Where nothing is missing the products come from the Gram matrix: ``b = d_k' x - sum_{l != k} d_k' d_l w_l``, and only
entries that change cost more than a few operations. An entry whose log odds are below `cut` may be zero for good:
q(z_ik = 1) = 0 is a distribution like any other, only not quite the best one. A zero is left at zero, and another entry
becomes zero only if that raises the bound, so that the ascent stays one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled

#: Log odds are kept within this.
LARGEST_LOGIT = 40.0


class EntryPrior(NamedTuple):
    """What is expected of an entry before its row is seen.

    `log_odds` (n_samples or 1, K); `noise` (n_samples,) expected precisions; `weight`, `log_weight`: expected precision
    of the weights, and its logarithm; `cut`: log odds below which an entry may be zero.
    """

    log_odds: Any
    noise: Any
    weight: float
    log_weight: float
    cut: float


class EntryBeliefs(NamedTuple):
    """What a sweep changes: `used`, `mean`, `variance`, each (n_samples, K): t, m and v."""

    used: Any
    mean: Any
    variance: Any

    @classmethod
    def zeros(cls, n: int, K: int, dtype: Any) -> EntryBeliefs:
        """Nothing is used."""
        return cls(np.zeros((n, K), dtype), np.zeros((n, K), dtype), np.ones((n, K), dtype))


class Incomplete(NamedTuple):
    """Rows with missing values: `residual` (n_samples, P), what is left of them, zero where a value is missing; and
    `seen` (n_samples, P), one where a value is there, else zero.
    """

    residual: Any
    seen: Any


@compiled(inner=True, allocates=False)
def probability(logit, old, cut):
    """Probability of an entry: the best one, or zero if that is allowed."""
    if logit < cut:
        if old == 0.0:
            return 0.0
        new = math.exp(max(logit, -LARGEST_LOGIT))
        new /= 1.0 + new
        gain = old * math.log(old / new)
        if old < 1.0:
            gain += (1.0 - old) * (math.log1p(-old) - math.log1p(-new))
        return 0.0 if gain > -2.0 * math.log1p(-new) else new
    return 1.0 / (1.0 + math.exp(-min(logit, LARGEST_LOGIT)))


@compiled(reorder=True, inner=True, allocates=False)
def move(target, amount, direction):
    """Change `target` by ``-amount[0] * direction``, in the precision of the arrays."""
    a = amount[0]
    for j in range(len(target)):
        target[j] -= a * direction[j]


@compiled(allocates=False)
def sweep_with_gram(products, gram, norms, prior, beliefs, n_sweeps, room):
    """Change `beliefs` and `products` by `n_sweeps` sweeps.

    `products` (n_samples, K): d_k' x, left as what d_k' leaves of it; `gram` (K, K): d_k' d_l; `norms` (K,): E |d_k|^2;
    `room` (2, K) and (1,).
    """
    used, means, variances = beliefs.used, beliefs.mean, beliefs.variance
    spread, amount = room
    n, K = used.shape
    own = 1 if prior.log_odds.shape[0] > 1 else 0
    last = -1.0
    for i in range(n):
        left, t, m, v, g, odds = products[i], used[i], means[i], variances[i], prior.noise[i], prior.log_odds[i * own]
        if g != last:
            for k in range(K):
                spread[0, k] = 1.0 / (prior.weight + g * norms[k])
                spread[1, k] = 0.5 * (prior.log_weight + math.log(spread[0, k]))
            last = g
        for k in range(K):
            if t[k] != 0.0:
                amount[0] = t[k] * m[k]
                move(left, amount, gram[k])
        for _ in range(n_sweeps):
            for k in range(K):
                old = t[k] * m[k]
                b = left[k] + gram[k, k] * old
                new = g * spread[0, k] * b
                logit = odds[k] + spread[1, k] + 0.5 * new * g * b
                if logit < prior.cut and t[k] == 0.0:
                    continue
                t[k] = probability(logit, t[k], prior.cut)
                m[k] = new
                v[k] = spread[0, k]
                amount[0] = t[k] * m[k] - old
                move(left, amount, gram[k])


@compiled(reorder=True, inner=True, allocates=False)
def inner_product(x, y):
    """Sum of the products."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@compiled(reorder=True, inner=True, allocates=False)
def move_seen(target, amount, direction, seen):
    """Change `target` by ``-amount[0] * direction``, where values are there."""
    a = amount[0]
    for j in range(len(target)):
        target[j] -= a * direction[j] * seen[j]


@compiled(allocates=False)
def sweep_with_residuals(incomplete, components, lengths, norms, prior, beliefs, n_sweeps, amount):
    """Change `beliefs` and `incomplete.residual` by `n_sweeps` sweeps, if some values are missing.

    `lengths`, `norms` (n_samples, K): |d_k|^2 and E |d_k|^2 over the values that a row has; `amount` (1,) room.
    """
    residual, seen = incomplete
    used, means, variances = beliefs.used, beliefs.mean, beliefs.variance
    n, K = used.shape
    own = 1 if prior.log_odds.shape[0] > 1 else 0
    for i in range(n):
        left, t, m, v, g, odds = residual[i], used[i], means[i], variances[i], prior.noise[i], prior.log_odds[i * own]
        for _ in range(n_sweeps):
            for k in range(K):
                old = t[k] * m[k]
                b = inner_product(left, components[k]) + lengths[i, k] * old
                spread = 1.0 / (prior.weight + g * norms[i, k])
                new = g * spread * b
                logit = odds[k] + 0.5 * (prior.log_weight + math.log(spread) + new * g * b)
                if logit < prior.cut and t[k] == 0.0:
                    continue
                t[k] = probability(logit, t[k], prior.cut)
                m[k] = new
                v[k] = spread
                amount[0] = t[k] * m[k] - old
                move_seen(left, amount, components[k], seen[i])


@compiled(allocates=False)
def add_totals(beliefs, totals):
    """Change `totals` (4,) by the sums over entries of t, t (m^2 + v), t log v, and by the entropy of the z."""
    used, means, variances = beliefs.used, beliefs.mean, beliefs.variance
    n, K = used.shape
    for i in range(n):
        number, square, spread, entropy = 0.0, 0.0, 0.0, 0.0
        for k in range(K):
            t = float(used[i, k])
            if t != 0.0:
                m, v = float(means[i, k]), float(variances[i, k])
                number += t
                square += t * (m * m + v)
                spread += t * math.log(v)
                entropy -= t * math.log(t)
                if t < 1.0:
                    entropy -= (1.0 - t) * math.log1p(-t)
        totals[0] += number
        totals[1] += square
        totals[2] += spread
        totals[3] += entropy
