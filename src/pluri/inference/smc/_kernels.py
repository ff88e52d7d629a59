# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled loops of resampling: from weights and random numbers to indices, in one or two passes.

A point p in [0, 1) takes particle i when C_{i-1} <= p < C_i, where C_i is the running sum of the weights divided by
the whole sum. Rounding may leave the last C_i a little under 1: whatever lies above it takes the last particle that
has any weight, and a particle without weight is never taken.
"""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled

MULTINOMIAL, RESIDUAL, STRATIFIED, SYSTEMATIC = range(4)
#: A share n w_i that falls short of a whole number by less is that number: rounding must not cost a copy.
ROUNDING = 1e-9


@compiled()
def last_positive(weights):
    """Index of the last particle that has any weight; -1 if none has."""
    last = weights.shape[0] - 1
    while last >= 0 and not weights[last] > 0.0:
        last -= 1
    return last


@compiled()
def invert(weights, points, n, out):
    """Indices taken by the first n ascending `points` in [0, 1), into `out`."""
    last = last_positive(weights)
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
    i = 0
    reached = weights[0]
    for j in range(n):
        point = points[j] * total
        while i < last and reached <= point:
            i += 1
            reached += weights[i]
        out[j] = i


@compiled()
def invert_strata(weights, offsets, out):
    """Indices taken by the points (j + offset_j) / n, into `out` (n,); a single offset holds for all j.

    With p = n C_i, the points below C_i are those of all strata before floor(p), and the one in that stratum if its
    offset is below the rest of p. Counting how many C_i lie below each point, instead of walking along points and
    weights together, leaves no branch to guess wrongly.
    """
    n = out.shape[0]
    last = last_positive(weights)
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
    scale = n / total
    for j in range(n):
        out[j] = 0
    reached = 0.0
    shared = offsets.shape[0] == 1
    offset = offsets[0]
    for i in range(last):
        reached += weights[i]
        position = reached * scale
        stratum = np.int64(position)
        if stratum < n:
            if not shared:
                offset = offsets[stratum]
            below = stratum + (1 if offset < position - stratum else 0)
            # Beyond the last point there is nothing to count, as nothing is counted for the last particle.
            if below < n:
                out[below] += 1
    index = 0
    for j in range(n):
        index += out[j]
        out[j] = index


@compiled()
def order(exponentials, n, points):
    """The first n `points` become ordered uniforms from n + 1 standard exponentials: S_j / S_{n+1}, without sorting."""
    total = 0.0
    for j in range(n + 1):
        total += exponentials[j]
    reached = 0.0
    for j in range(n):
        reached += exponentials[j]
        # S_n / S_{n+1} rounds to 1 if the last exponential is tiny; `invert` guards against it.
        points[j] = reached / total


@compiled()
def take_shares(weights, n, copies, remainders):
    """Whole parts of n w_i into `copies`, the rest into `remainders`; returns how many draws are left."""
    total = 0.0
    for i in range(weights.shape[0]):
        total += weights[i]
    scale = n / total
    left = n
    for i in range(weights.shape[0]):
        share = weights[i] * scale
        whole = np.floor(share + ROUNDING)
        copies[i] = np.int64(whole)
        remainders[i] = max(share - whole, 0.0)
        left -= copies[i]
    return left


@compiled()
def merge(copies, extra, left, out):
    """Write index i `copies[i]` times, and once more each time it is among the first `left` of ascending `extra`."""
    j = 0
    e = 0
    for i in range(copies.shape[0]):
        for _ in range(copies[i]):
            out[j] = i
            j += 1
        while e < left and extra[e] == i:
            out[j] = i
            j += 1
            e += 1
