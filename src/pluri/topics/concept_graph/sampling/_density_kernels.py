# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled log densities of words and steps of a concept graph."""

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph.sampling._graph_kernels import count_of, log_stick


@compiled()
def count_histogram(graph, most):
    """How often each count of a word at a node occurs."""
    histogram = np.zeros(most + 1, dtype=np.int64)
    for v in range(graph.word_count.shape[0]):
        for x in range(graph.word_count.shape[1]):
            histogram[graph.word_count[v, x]] += 1
    return histogram


@compiled()
def log_words(graph, eta, histogram):
    """Log probability of all words given where they are; `histogram` counts how often each count occurs."""
    n_words = graph.word_count.shape[0]
    value = 0.0
    for x in range(len(graph.depth)):
        if graph.depth[x] > 0:
            value += math.lgamma(eta * n_words) - math.lgamma(eta * n_words + graph.total[x])
    none = math.lgamma(eta)
    for count in range(1, len(histogram)):
        if histogram[count] > 0:
            value += histogram[count] * (math.lgamma(eta + count) - none)
    return value


@compiled()
def log_steps(graph, sticks):
    """Log probability of all steps given the orders."""
    capacity = len(graph.depth)
    value, none = 0.0, log_stick(sticks, np.int64(0), np.int64(0))
    for x in range(capacity):
        if graph.depth[x] > 0:
            remaining = graph.visits[x]
            for r in range(graph.n_atoms[graph.depth[x]] - 1):
                count = count_of(graph, x, graph.order[x, r])
                remaining -= count
                value += log_stick(sticks, count, remaining) - none
    return value
