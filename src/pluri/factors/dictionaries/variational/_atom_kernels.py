# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled update of the atoms where values are missing, one atom after the other.

Each value p of an atom has its own sums, over the rows that have it: with r what all other atoms leave of a row,

    precision = P + sum_i g_i E[w_ik^2],     mean = sum_i g_i E[w_ik] r_ip / precision.
"""

from __future__ import annotations

from pluri.engine.compiled import compiled


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
