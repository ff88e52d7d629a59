# mypy: allow-untyped-defs, allow-untyped-calls
"""Where new documents stand in a tree of fixed topics; see `pluri.topics.hierarchical.fitted_tree`."""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled
from pluri.topics._special_functions import digamma


@compiled(no_cpython_wrapper=True)
def expect_shares(held, length, before, after, expected):
    """Exponentials of the expected log shares of the levels, given the expected tokens of each."""
    n_levels = expected.size
    below, log_left = length, 0.0
    for level in range(n_levels):
        log_share = log_left
        if level < n_levels - 1:
            here = before[level] + held[level]
            below = max(below - held[level], 0.0)
            further = after[level] + below
            both = digamma(here + further)
            log_share += digamma(here) - both
            log_left += digamma(further) - both
        expected[level] = math.exp(log_share)


@compiled(no_cpython_wrapper=True)
def divergence(held, length, before, after):
    """Kullback-Leibler divergence of the sticks from their prior."""
    total, below = 0.0, length
    for level in range(before.size):
        a, b = before[level], after[level]
        below = max(below - held[level], 0.0)
        here, further = a + held[level], b + below
        total += held[level] * digamma(here) + below * digamma(further)
        total -= (held[level] + below) * digamma(here + further)
        total += math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        total -= math.lgamma(here) + math.lgamma(further) - math.lgamma(here + further)
    return total


@compiled()
def spread(words, copies, begin, end, path, topics, before, after, start, max_iter, tolerance, mass, expected, held):
    """Mean-field shares of the levels of one path; gives the bound of the log likelihood.

    `expected` becomes the mean shares; `held`, expected tokens of each level, and `mass` are room.
    """
    n_levels = path.size
    length = 0.0
    for i in range(begin, end):
        length += copies[i]
    for level in range(n_levels):
        held[level] = length * start[level]
    for _ in range(max_iter):
        expect_shares(held, length, before, after, expected)
        for level in range(n_levels):
            mass[level] = 0.0
        for i in range(begin, end):
            row = topics[words[i]]
            total = 0.0
            for level in range(n_levels):
                total += expected[level] * row[path[level]]
            scale = copies[i] / total
            for level in range(n_levels):
                mass[level] += scale * expected[level] * row[path[level]]
        moved = 0.0
        for level in range(n_levels):
            moved += abs(mass[level] - held[level])
            held[level] = mass[level]
        if moved <= tolerance * length:
            break
    expect_shares(held, length, before, after, expected)
    bound = -divergence(held, length, before, after)
    for i in range(begin, end):
        row = topics[words[i]]
        total = 0.0
        for level in range(n_levels):
            total += expected[level] * row[path[level]]
        bound += copies[i] * math.log(total)
    left, below = 1.0, length
    for level in range(n_levels):
        expected[level] = left
        if level < n_levels - 1:
            whole = before[level] + after[level] + below
            expected[level] = left * (before[level] + held[level]) / whole
            below = max(below - held[level], 0.0)
            left *= (after[level] + below) / whole
    return bound


@compiled()
def fold_in(offsets, words, copies, topics, first, parent, log_leaf, before, after, start, most, max_iter, tolerance,
            value, score, chosen, bounds, kept, path, mass, expected, held, shares, leaves):  # fmt: skip
    """Shares of all nodes in each document, and its likeliest leaf.

    All leaves are weighed with the mean shares of the levels; the `most` best of them get shares of their own.
    """
    n_levels = first.size - 1
    lowest, n_nodes = first[n_levels - 1], first[n_levels]
    for d in range(offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        for k in range(lowest, n_nodes):
            score[k] = log_leaf[k]
        for i in range(begin, end):
            row = topics[words[i]]
            value[0] = start[0] * row[0]
            for level in range(1, n_levels):
                for k in range(first[level], first[level + 1]):
                    value[k] = value[parent[k]] + start[level] * row[k]
            for k in range(lowest, n_nodes):
                score[k] += copies[i] * math.log(value[k])
        n_chosen = min(most, n_nodes - lowest)
        largest = -math.inf
        for c in range(n_chosen):
            best = lowest
            for k in range(lowest, n_nodes):
                if score[k] > score[best]:
                    best = k
            score[best] = -math.inf
            chosen[c] = best
            node = best
            for level in range(n_levels - 1, -1, -1):
                path[level] = node
                node = parent[node]
            bound = spread(words, copies, begin, end, path, topics, before, after, start, max_iter, tolerance, mass,
                           expected, held)  # fmt: skip
            bounds[c] = log_leaf[best] + bound
            for level in range(n_levels):
                kept[c, level] = expected[level]
            if bounds[c] > largest:
                largest = bounds[c]
                leaves[d] = best
        total = 0.0
        for c in range(n_chosen):
            bounds[c] = math.exp(bounds[c] - largest)
            total += bounds[c]
        for k in range(n_nodes):
            shares[d, k] = 0.0
        for c in range(n_chosen):
            node = chosen[c]
            for level in range(n_levels - 1, -1, -1):
                shares[d, node] += bounds[c] / total * kept[c, level]
                node = parent[node]
