# mypy: allow-untyped-defs, allow-untyped-calls
"""Random draws inside compiled loops: numbers from a stream of one word of state (SplitMix64), and places by weight.

Wrappers that Python would call these by are left out, as they are half the time to compile a small loop.

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


@compiled(inner=True, allocates=False)
def uniform(state):
    """Draw a number from [0, 1); `state` is an array of one unsigned 64-bit number."""
    state[0] += STEP
    z = state[0]
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    z = z ^ (z >> S31)
    return (z >> S11) * 1.1102230246251565e-16


@compiled(inner=True, allocates=False)
def place_of(target, weights, n):
    """Where a target falls among the first `n` weights, one after another; never at one of zero, however it rounds."""
    last = 0
    for k in range(n):
        if weights[k] > 0.0:
            last = k
            target -= weights[k]
            if target < 0.0:
                return k
    return last


@compiled(inner=True, allocates=False)
def pick(weights, n, number):
    """Place with probability proportional to the first `n` weights, given a number from [0, 1)."""
    total = 0.0
    for k in range(n):
        total += weights[k]
    return place_of(number * total, weights, n)


@compiled(inner=True, allocates=False)
def first_above(target, rising):
    """First place whose running sum is above the target; the last if none is."""
    low, high = 0, rising.size - 1
    while low < high:
        middle = (low + high) // 2
        if target < rising[middle]:
            high = middle
        else:
            low = middle + 1
    return low
