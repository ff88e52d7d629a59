# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled loops of the blocked samplers: all states of a sequence drawn at once.

Beam: with slices ``u_t`` below the probability of each transition, ``F_t(k) ~ p(x_t | k) sum_{j: pi_jk > u_t}
F_{t-1}(j)`` and backwards ``z_t ~ F_t(k) 1[pi_{k, z_{t+1}} > u_{t+1}]``. The columns of each row are sorted by
probability, so that only pairs above the slice are ever looked at.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

#: What underflows is kept above zero: the path that made the slices must stay possible.
TINY = 1e-290

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class Trellis(NamedTuple):
    """Rows of transition probabilities, that of first steps last, and slices.

    `sorted` and `order` (K + 1, K): rows from the largest probability down, and their columns; `transposed`
    (K, K + 1): the probability of each state after each; `slices` (n_steps,).
    """

    sorted: Array
    order: Integers
    transposed: Array
    slices: Array


@compiled(allocates=False)
def filter_above_slices(trellis, log_density, offsets, reached, filtered):
    """Write F_t into `filtered` (n_steps, K); `reached` (K,) is scratch. Returns the number of pairs looked at."""
    chances = trellis.sorted
    order = trellis.order
    slices = trellis.slices
    width = reached.shape[0]
    n_pairs = 0
    for n in range(offsets.shape[0] - 1):
        for t in range(offsets[n], offsets[n + 1]):
            for k in range(width):
                reached[k] = 0.0
            level = slices[t]
            if t == offsets[n]:
                for i in range(width):
                    if not chances[width, i] > level:
                        break
                    reached[order[width, i]] = 1.0
            else:
                for j in range(width):
                    mass = filtered[t - 1, j]
                    if mass == 0.0:
                        continue
                    for i in range(width):
                        if not chances[j, i] > level:
                            break
                        reached[order[j, i]] += mass
                        n_pairs += 1
            largest = -math.inf
            for k in range(width):
                if reached[k] > 0.0:
                    largest = max(largest, log_density[t, k])
            total = 0.0
            for k in range(width):
                value = 0.0
                if reached[k] > 0.0:
                    value = max(reached[k] * math.exp(log_density[t, k] - largest), TINY)
                filtered[t, k] = value
                total += value
            for k in range(width):
                filtered[t, k] /= total
    return n_pairs


@compiled(allocates=False)
def draw_above_slices(trellis, filtered, offsets, uniforms, states):
    """Change `states`: the path of each sequence, backwards, given `filtered`."""
    transposed = trellis.transposed
    slices = trellis.slices
    width = filtered.shape[1]
    for n in range(offsets.shape[0] - 1):
        state = -1
        for t in range(offsets[n + 1] - 1, offsets[n] - 1, -1):
            total = 0.0
            for k in range(width):
                if state < 0 or transposed[state, k] > slices[t + 1]:
                    total += filtered[t, k]
            threshold = uniforms[t] * total
            running = 0.0
            chosen = 0
            for k in range(width):
                if filtered[t, k] > 0.0 and (state < 0 or transposed[state, k] > slices[t + 1]):
                    chosen = k
                    running += filtered[t, k]
                    if running > threshold:
                        break
            state = chosen
            states[t] = state


@compiled(reorder=True, allocates=False)
def draw_backwards(filtered, transposed, begin, end, uniforms, states):
    """Change `states`: the path of rows begin:end, backwards, given filtered distributions (n_steps, width)."""
    width = transposed.shape[0]
    state = -1
    for t in range(end - 1, begin - 1, -1):
        total = 0.0
        if state < 0:
            for k in range(width):
                total += filtered[t, k]
        else:
            for k in range(width):
                total += filtered[t, k] * transposed[state, k]
        threshold = uniforms[t] * total
        running = 0.0
        chosen = 0
        for k in range(width):
            mass = filtered[t, k] if state < 0 else filtered[t, k] * transposed[state, k]
            if mass > 0.0:
                chosen = k
                running += mass
                if running > threshold:
                    break
        state = chosen
        states[t] = state
