# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled log densities of words and steps of a concept graph."""

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph.sampling._graph_kernels import count_of, log_stick


@compiled(allocates=False)
def log_words(depth, total, n_words, eta, histogram):
    """Log probability of all words given where they are; `histogram` counts how often each count occurs."""
    value = 0.0
    for x in range(len(depth)):
        if depth[x] > 0:
            value += math.lgamma(eta * n_words) - math.lgamma(eta * n_words + total[x])
    none = math.lgamma(eta)
    for count in range(1, len(histogram)):
        if histogram[count] > 0:
            value += histogram[count] * (math.lgamma(eta + count) - none)
    return value


@compiled(allocates=False)
def log_steps(depth, visits, edge, order, n_atoms, first, second, both):
    """Log probability of all steps given the orders; the fields of `Graph` and of `StickTables`."""
    value, none = 0.0, log_stick(first, second, both, np.int64(0), np.int64(0))
    for x in range(len(depth)):
        if depth[x] > 0:
            remaining = visits[x]
            for r in range(n_atoms[depth[x]] - 1):
                count = np.int64(count_of(edge, x, order[x, r]))
                remaining -= count
                value += log_stick(first, second, both, count, remaining) - none
    return value
