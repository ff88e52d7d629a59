# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled loops of a hidden semi-Markov model: messages between segments, and segments drawn or chosen.

A segment of state k lasts d steps with probability ``p_k(d)``; the next one is of another state. With ``e_k(t, d)`` the
log density of the d steps after t, backwards through one sequence of T steps:

* ``begins_k(t) = log (sum_{d < T - t} exp(log p_k(d) + e_k(t, d) + ends_k(t + d)) + exp(log P_k(T - t) + e_k(t, T -
  t)))``: what follows if a segment of k begins after t steps; the last one may go on, ``P_k(d)`` is the probability of
  d steps or more;
* ``ends_k(t) = log sum_j exp(log pi_kj + begins_j(t))``: what follows if one ends there.

Forwards alike. All arrays have the states first, so that loops run over neighbouring numbers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Array = NDArray[np.float64]

#: Terms of a sum so far below the largest, in nats, are left out.
NEGLIGIBLE = -45.0


class SegmentLaw(NamedTuple):
    """Logarithms of the probabilities of first states (K,), of next ones (K, K), of durations and of at least them.

    `log_pmf` and `log_survival` (K, longest): entry d - 1 is that of d steps.
    """

    log_start: Array
    log_rows: Array
    log_pmf: Array
    log_survival: Array


@compiled(inner=True, allocates=False)
def _added(total, largest, value):
    """Sum and largest term of ``exp(value)`` and what was added before: the sum is in units of the largest."""
    if value > largest:
        return total * math.exp(largest - value) + 1.0, value
    if value - largest > NEGLIGIBLE:
        return total + math.exp(value - largest), largest
    return total, largest


@compiled(allocates=False)
def pass_backwards(law, log_density, ends, begins):
    """Write the messages `ends` (K, T + 1) and `begins` (K, T) of a sequence with log densities (K, T)."""
    log_rows = law.log_rows
    log_pmf = law.log_pmf
    log_survival = law.log_survival
    K, T = log_density.shape
    for k in range(K):
        ends[k, T] = 0.0
    for t in range(T - 1, -1, -1):
        for k in range(K):
            total, largest, emitted = 0.0, -math.inf, 0.0
            for d in range(1, T - t):
                emitted += log_density[k, t + d - 1]
                total, largest = _added(total, largest, log_pmf[k, d - 1] + emitted + ends[k, t + d])
            emitted += log_density[k, T - 1]
            total, largest = _added(total, largest, log_survival[k, T - t - 1] + emitted)
            begins[k, t] = largest + math.log(total) if total > 0.0 else -math.inf
        for k in range(K):
            total, largest = 0.0, -math.inf
            for j in range(K):
                if j != k:
                    total, largest = _added(total, largest, log_rows[k, j] + begins[j, t])
            ends[k, t] = largest + math.log(total) if total > 0.0 else -math.inf


@compiled(allocates=False)
def draw_forwards(law, log_density, ends, begins, uniforms, states):
    """Change `states` (T,): segments drawn given the messages; `uniforms` (T, 2) choose states and durations."""
    log_rows = law.log_rows
    log_pmf = law.log_pmf
    log_start = law.log_start
    K, T = log_density.shape
    t, state = 0, -1
    while t < T:
        total, largest = 0.0, -math.inf
        for j in range(K):
            if j != state:
                before = log_start[j] if state < 0 else log_rows[state, j]
                total, largest = _added(total, largest, before + begins[j, t])
        threshold, running, chosen = uniforms[t, 0] * total, 0.0, -1
        for j in range(K):
            if j != state:
                before = log_start[j] if state < 0 else log_rows[state, j]
                value = before + begins[j, t]
                if value - largest > NEGLIGIBLE:
                    chosen = j
                    running += math.exp(value - largest)
                    if running > threshold:
                        break
        state = chosen
        running, emitted, end = 0.0, 0.0, T
        for d in range(1, T - t):
            emitted += log_density[state, t + d - 1]
            running += math.exp(log_pmf[state, d - 1] + emitted + ends[state, t + d] - begins[state, t])
            if running > uniforms[t, 1]:
                end = t + d
                break
        for s in range(t, end):
            states[s] = state
        t = end


@compiled(allocates=False)
def choose_best(law, log_density, ends, begins, lasting, states):
    """Change `states` (T,) to the most probable segments and return their log probability, that of the data included.

    Scratch: `ends` (K, T + 1), `begins` (K, T) and `lasting` (K, T), which holds the best durations.
    """
    log_rows = law.log_rows
    log_pmf = law.log_pmf
    log_survival = law.log_survival
    log_start = law.log_start
    K, T = log_density.shape
    for k in range(K):
        ends[k, T] = 0.0
    for t in range(T - 1, -1, -1):
        for k in range(K):
            best, longest, emitted = -math.inf, T - t, 0.0
            for d in range(1, T - t):
                emitted += log_density[k, t + d - 1]
                value = log_pmf[k, d - 1] + emitted + ends[k, t + d]
                if value > best:
                    best, longest = value, d
            emitted += log_density[k, T - 1]
            if log_survival[k, T - t - 1] + emitted >= best:
                best, longest = log_survival[k, T - t - 1] + emitted, T - t
            begins[k, t] = best
            lasting[k, t] = longest
        for k in range(K):
            best = -math.inf
            for j in range(K):
                if j != k:
                    best = max(best, log_rows[k, j] + begins[j, t])
            ends[k, t] = best
    t, state, score = 0, -1, 0.0
    while t < T:
        best, chosen = -math.inf, -1
        for j in range(K):
            if j != state:
                value = (log_start[j] if state < 0 else log_rows[state, j]) + begins[j, t]
                if value > best or chosen < 0:
                    best, chosen = value, j
        if state < 0:
            score = best
        state = chosen
        end = t + lasting[state, t]
        for s in range(t, end):
            states[s] = state
        t = end
    return score


@compiled(allocates=False)
def pass_forwards(law, log_density, ended, began, lasts):
    """Write forward messages of a sequence: log probability of the data so far, and that after t steps

    a segment of k has ended (`ended`, (K, T + 1)), begins (`began`, (K, T + 1)) or is under way (`lasts`, (K, T + 1)).
    """
    log_rows = law.log_rows
    log_pmf = law.log_pmf
    log_survival = law.log_survival
    K, T = log_density.shape
    for k in range(K):
        began[k, 0] = law.log_start[k]
        ended[k, 0] = -math.inf
        lasts[k, 0] = -math.inf
    for t in range(1, T + 1):
        for k in range(K):
            total, largest, emitted = 0.0, -math.inf, 0.0
            still, most = 0.0, -math.inf
            for d in range(1, t + 1):
                emitted += log_density[k, t - d]
                before = began[k, t - d] + emitted
                total, largest = _added(total, largest, log_pmf[k, d - 1] + before)
                still, most = _added(still, most, log_survival[k, d - 1] + before)
            ended[k, t] = largest + math.log(total) if total > 0.0 else -math.inf
            lasts[k, t] = most + math.log(still) if still > 0.0 else -math.inf
        for k in range(K):
            total, largest = 0.0, -math.inf
            for j in range(K):
                if j != k:
                    total, largest = _added(total, largest, ended[j, t] + log_rows[j, k])
            began[k, t] = largest + math.log(total) if total > 0.0 else -math.inf
