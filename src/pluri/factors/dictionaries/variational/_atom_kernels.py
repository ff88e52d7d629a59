# mypy: allow-untyped-defs, allow-untyped-calls
r"""Compiled sums over codes that the atoms need, and their update where values are missing.

    second_kl = sum_i g_i E[w_ik w_il],      cross_k = sum_i g_i E[w_ik] x_i

with ``E[w_ik w_il] = w_ik w_il`` for k != l and ``t (m^2 + v)`` for k = l. Entries that are zero cost nothing.
"""

from __future__ import annotations

from pluri.engine.compiled import compiled


@compiled(reorder=True, inner=True, allocates=False)
def add_scaled(target, amount, row):
    """Change `target` by ``amount * row``."""
    for j in range(len(target)):
        target[j] += amount * row[j]


@compiled(allocates=False)
def add_moments(values, noise, beliefs, second, cross, active):
    """Change `second` (K, K) and `cross` (K, P) by the sums over rows; `active` (K,) is room for indices."""
    used, means, variances = beliefs.used, beliefs.mean, beliefs.variance
    n, K = used.shape
    for i in range(n):
        t, m, v, g = used[i], means[i], variances[i], noise[i]
        count = 0
        for k in range(K):
            if t[k] != 0.0:
                active[count] = k
                count += 1
        for first in range(count):
            k = active[first]
            weighted = g * t[k] * m[k]
            add_scaled(cross[k], weighted, values[i])
            for other in range(count):
                j = active[other]
                second[k, j] += weighted * t[j] * m[j]
            second[k, k] += g * t[k] * (v[k] + (1.0 - t[k]) * m[k] * m[k])


@compiled(reorder=True, allocates=False)
def sweep_atoms(incomplete, noise, beliefs, components, variances, room):
    """Change `components`, `variances` (K, P) and `incomplete.residual`, atom by atom, if values are missing.

    The precision of the prior of an atom is P; `room` (2, P) is float64.
    """
    residual, seen = incomplete
    used, means, spreads = beliefs.used, beliefs.mean, beliefs.variance
    n, K = used.shape
    P = components.shape[1]
    precision, moment = room[0], room[1]
    for k in range(K):
        atom = components[k]
        for p in range(P):
            precision[p] = float(P)
            moment[p] = 0.0
        for i in range(n):
            t, m = used[i, k], means[i, k]
            if t != 0.0:
                once, square = noise[i] * t * m, noise[i] * t * (m * m + spreads[i, k])
                w = t * m
                for p in range(P):
                    precision[p] += square * seen[i, p]
                    moment[p] += once * (residual[i, p] + w * atom[p] * seen[i, p])
        for p in range(P):
            variances[k, p] = 1.0 / precision[p]
            moment[p] = moment[p] / precision[p] - atom[p]
            atom[p] += moment[p]
        for i in range(n):
            w = used[i, k] * means[i, k]
            if w != 0.0:
                for p in range(P):
                    residual[i, p] -= w * moment[p] * seen[i, p]
