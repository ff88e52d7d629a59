# mypy: allow-untyped-defs, allow-untyped-calls
"""Random numbers inside compiled loops that need an unknown number of them: SplitMix64 on one word of state.

References
----------
Steele, G., Lea, D. and Flood, C. (2014). Fast splittable pseudorandom number generators. OOPSLA.
"""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S11, S27, S30, S31 = np.uint64(11), np.uint64(27), np.uint64(30), np.uint64(31)


@compiled()
def uniform(state):
    """Draw a number from [0, 1); `state` is an array of one unsigned 64-bit number."""
    state[0] += STEP
    z = state[0]
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    z = z ^ (z >> S31)
    return (z >> S11) * 1.1102230246251565e-16


@compiled()
def pick(weights, n, uniform_number):
    """Index with probability proportional to the first `n` weights, given a number from [0, 1)."""
    total = 0.0
    for k in range(n):
        total += weights[k]
    left = uniform_number * total
    last = 0
    for k in range(n):
        if weights[k] > 0.0:
            last = k
            left -= weights[k]
            if left < 0.0:
                return k
    return last


@compiled()
def systematic(weights, uniform_number, ancestors):
    """Ancestor of each of the particles: each weight gets its share of them, rounded up or down."""
    n = weights.size
    total = 0.0
    for r in range(n):
        total += weights[r]
    r, reached = 0, weights[0]
    for j in range(n):
        target = (j + uniform_number) / n * total
        while reached <= target and r < n - 1:
            r += 1
            reached += weights[r]
        ancestors[j] = r
