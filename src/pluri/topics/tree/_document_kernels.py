# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sampling of documents under a tree that is known; see `pluri.topics.tree.evaluation`.

Below a known tree the paths can be summed out: ``table[w, column]`` is the probability of word w at a scale, given the
node of the top scale from which the token comes down. Column ``first[s] + m`` is scale s from top node m; a scale above
the top one has a single column. The proportions of the document are integrated out.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import first_above
from pluri.topics.held_out._particle_kernels import copy_whom, few_effective, normalise
from pluri.topics.tree._draws import uniform


class Known(NamedTuple):
    """What documents of a known tree have in common: its size, concentrations, and the mean of their proportions."""

    depth: int
    top: int
    n_top: int
    eta: float
    rho: float
    base: Any


@compiled(inner=True, allocates=False)
def fill_usage(depth, rho, at_scale, usage):
    """Expected usage of the scales given counts: a product of expected stick pieces."""
    later, rest = 0, 1.0
    for s in range(depth):
        later += at_scale[s]
    for s in range(depth - 1):
        share = (1.0 + at_scale[s]) / (1.0 + rho + later)
        usage[s] = rest * share
        rest *= 1.0 - share
        later -= at_scale[s]
    usage[depth - 1] = rest


@compiled(reorder=True, inner=True, allocates=False)
def fill_columns(known, at_scale, at_top, usage, columns):
    """Fill `usage` and `columns`: expected weight of each scale, and of each column, given counts."""
    depth, top, n_top, eta, rho, base = known
    fill_usage(depth, rho, at_scale, usage)
    n, k = 0, 0
    for m in range(n_top):
        n += at_top[m]
    for s in range(depth):
        if s < top:
            columns[k] = usage[s]
            k += 1
            continue
        factor = usage[s] / (eta + n)
        for m in range(n_top):
            columns[k + m] = factor * (eta * base[m] + at_top[m])
        k += n_top


@compiled(reorder=True, inner=True, allocates=False)
def weigh(row, columns, running):
    """Running sums of the products of a word's row and the weights of columns."""
    total = 0.0
    for k in range(columns.size):
        total += row[k] * columns[k]
        running[k] = total
    return total


@compiled(inner=True, allocates=False)
def take(column, top, n_top, step, at_scale, at_top):
    """Count a token of a column in or out."""
    if column < top:
        at_scale[column] += step
        return
    at_scale[top + (column - top) // n_top] += step
    at_top[(column - top) % n_top] += step


@compiled()
def sample_documents(start, words, doc_offsets, known, table, n_warmup, n_draws, mean_columns, per_token):
    """Fill `mean_columns`, weights of the columns of each document, and `per_token`, what tokens score at their scale.

    Every document has the same random numbers, so that its result does not depend on the others. `per_token` gets the
    probability of each token at the scale where it is, if it has room.
    """
    depth, top, n_top, n_columns = known.depth, known.top, known.n_top, table.shape[1]
    columns, running, usage = np.zeros(n_columns), np.zeros(n_columns), np.zeros(depth)
    at_scale, at_top = np.zeros(depth, dtype=np.int64), np.zeros(n_top, dtype=np.int64)
    stream = start.copy()
    longest = 0
    for d in range(doc_offsets.size - 1):
        longest = max(longest, doc_offsets[d + 1] - doc_offsets[d])
    place = np.zeros(longest, dtype=np.int64)
    for d in range(doc_offsets.size - 1):
        stream[0] = start[0]
        first, n = doc_offsets[d], doc_offsets[d + 1] - doc_offsets[d]
        at_scale[:], at_top[:] = 0, 0
        if n == 0:
            fill_columns(known, at_scale, at_top, usage, mean_columns[d])
            continue
        for sweep in range(-1, n_warmup + n_draws):  # the first one puts tokens in their places in turn
            for i in range(n):
                if sweep >= 0:
                    take(place[i], top, n_top, -1, at_scale, at_top)
                fill_columns(known, at_scale, at_top, usage, columns)
                total = weigh(table[words[first + i]], columns, running)
                place[i] = first_above(uniform(stream) * total, running)
                take(place[i], top, n_top, 1, at_scale, at_top)
            if sweep < n_warmup:
                continue
            fill_columns(known, at_scale, at_top, usage, columns)
            for k in range(n_columns):
                mean_columns[d, k] += columns[k] / n_draws
            if per_token.size > 0:
                for i in range(n):
                    row = table[words[first + i]]
                    s = place[i] if place[i] < top else top + (place[i] - top) // n_top
                    low = s if s < top else top + (s - top) * n_top
                    high = low + (1 if s < top else n_top)
                    value = 0.0
                    for k in range(low, high):
                        value += row[k] * columns[k]
                    per_token[first + i] += value / usage[s] / n_draws


@compiled()
def score_in_turn(stream, words, doc_offsets, known, table, n_particles, log_likelihood):
    """Fill `log_likelihood`, that of each document, token after token, by weighted particles.

    Each particle draws the places of the tokens before a token anew before it predicts that one.
    """
    depth, top, n_top, n_columns = known.depth, known.top, known.n_top, table.shape[1]
    columns, running, usage = np.zeros(n_columns), np.zeros(n_columns), np.zeros(depth)
    at_scale, at_top = np.zeros((n_particles, depth), dtype=np.int64), np.zeros((n_particles, n_top), dtype=np.int64)
    offspring, source = np.zeros(n_particles, dtype=np.int64), np.zeros(n_particles, dtype=np.int64)
    weight = np.zeros(n_particles)
    for d in range(doc_offsets.size - 1):
        first, n = doc_offsets[d], doc_offsets[d + 1] - doc_offsets[d]
        place = np.zeros((n_particles, n), dtype=np.int64)
        at_scale[:], at_top[:], weight[:] = 0, 0, 1.0 / n_particles
        for i in range(n):
            for r in range(n_particles):
                scales, tops, own = at_scale[r], at_top[r], place[r]
                for j in range(i):
                    take(own[j], top, n_top, -1, scales, tops)
                    fill_columns(known, scales, tops, usage, columns)
                    total = weigh(table[words[first + j]], columns, running)
                    own[j] = first_above(uniform(stream) * total, running)
                    take(own[j], top, n_top, 1, scales, tops)
                fill_columns(known, scales, tops, usage, columns)
                total = weigh(table[words[first + i]], columns, running)
                weight[r] *= total
                own[i] = first_above(uniform(stream) * total, running)
                take(own[i], top, n_top, 1, scales, tops)
            log_likelihood[d] += math.log(normalise(weight))
            if i + 1 < n and few_effective(weight):
                copy_whom(uniform(stream), weight, offspring, source)
                for r in range(n_particles):
                    if source[r] != r:
                        at_scale[r], at_top[r] = at_scale[source[r]], at_top[source[r]]
                        place[r, : i + 1] = place[source[r], : i + 1]
