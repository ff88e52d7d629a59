# mypy: allow-untyped-defs, allow-untyped-calls
"""Where new documents stand in a tree of fixed topics; see `pluri.topics.hierarchical.fitted_tree`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._special_functions import digamma


class Tree(NamedTuple):
    """What is known: topics (n_words, n_nodes), the nodes of `TreeOfTopics` and its sticks, with the mean shares."""

    topics: Any
    first: Any
    parent: Any
    log_leaf: Any
    before: Any
    after: Any
    mean_share: Any


class Room(NamedTuple):
    """Room for a document: `value`, `score` by node; `path`, `mass`, `expected`, `held` by level; the others by path.

    `chosen`, `bounds` and `kept` (by path and level) have as many places as paths are looked at.
    """

    value: Any
    score: Any
    path: Any
    mass: Any
    expected: Any
    held: Any
    chosen: Any
    bounds: Any
    kept: Any

    @classmethod
    def of(cls, n_nodes: int, n_levels: int, most: int) -> Room:
        """Room for so many nodes, levels, and paths that are looked at."""
        value, score = np.zeros((2, n_nodes))
        mass, expected, held = np.zeros((3, n_levels))
        path, chosen = np.zeros(n_levels, dtype=np.int64), np.zeros(most, dtype=np.int64)
        return cls(value, score, path, mass, expected, held, chosen, np.zeros(most), np.zeros((most, n_levels)))


@compiled(inner=True)
def expect_shares(held, length, tree, expected):
    """Fill `expected`: exponentials of the expected log shares of the levels, given the expected tokens of each."""
    before, after = tree.before, tree.after
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


@compiled(inner=True)
def divergence(held, length, tree):
    """Kullback-Leibler divergence of the sticks from their prior."""
    total, below = 0.0, length
    for level in range(tree.before.size):
        a, b = tree.before[level], tree.after[level]
        below = max(below - held[level], 0.0)
        here, further = a + held[level], b + below
        total += held[level] * digamma(here) + below * digamma(further)
        total -= (held[level] + below) * digamma(here + further)
        total += math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
        total -= math.lgamma(here) + math.lgamma(further) - math.lgamma(here + further)
    return total


@compiled()
def spread(words, copies, tree, max_iter, tolerance, room):
    """Fill `expected` and `held` of `room`: mean shares of the levels of its path, and expected tokens of each.

    The shares are of mean field; gives the bound of the log likelihood.
    """
    before, after, topics = tree.before, tree.after, tree.topics
    path, mass, expected, held = room.path, room.mass, room.expected, room.held
    n_levels = path.size
    length = 0.0
    for i in range(words.size):
        length += copies[i]
    for level in range(n_levels):
        held[level] = length * tree.mean_share[level]
    for _ in range(max_iter):
        expect_shares(held, length, tree, expected)
        for level in range(n_levels):
            mass[level] = 0.0
        for i in range(words.size):
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
    expect_shares(held, length, tree, expected)
    bound = -divergence(held, length, tree)
    for i in range(words.size):
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


@compiled(inner=True)
def score_leaves(words, copies, tree, room):
    """Fill `score` of `room`: log weight of each leaf, with the mean shares of the levels."""
    first, parent, mean_share, value, score = tree.first, tree.parent, tree.mean_share, room.value, room.score
    n_levels = first.size - 1
    lowest, n_nodes = first[n_levels - 1], first[n_levels]
    for k in range(lowest, n_nodes):
        score[k] = tree.log_leaf[k]
    for i in range(words.size):
        row = tree.topics[words[i]]
        value[0] = mean_share[0] * row[0]
        for level in range(1, n_levels):
            for k in range(first[level], first[level + 1]):
                value[k] = value[parent[k]] + mean_share[level] * row[k]
        for k in range(lowest, n_nodes):
            score[k] += copies[i] * math.log(value[k])


@compiled()
def fold_in(offsets, words, copies, tree, max_iter, tolerance, room, shares, leaves):
    """Fill `shares` of all nodes in each document, and `leaves`, the likeliest of each.

    All leaves are weighed with the mean shares of the levels; the best of them get shares of their own.
    """
    parent, score, chosen, bounds, kept = tree.parent, room.score, room.chosen, room.bounds, room.kept
    n_levels = room.path.size
    lowest, n_nodes = tree.first[n_levels - 1], tree.first[n_levels]
    for d in range(offsets.size - 1):
        begin, end = offsets[d], offsets[d + 1]
        own_words, own_copies = words[begin:end], copies[begin:end]
        score_leaves(own_words, own_copies, tree, room)
        largest = -math.inf
        for c in range(chosen.size):
            best = lowest
            for k in range(lowest, n_nodes):
                if score[k] > score[best]:
                    best = k
            score[best] = -math.inf
            chosen[c] = best
            node = best
            for level in range(n_levels - 1, -1, -1):
                room.path[level] = node
                node = parent[node]
            bounds[c] = tree.log_leaf[best] + spread(
                words[begin:end], copies[begin:end], tree, max_iter, tolerance, room
            )
            for level in range(n_levels):
                kept[c, level] = room.expected[level]
            if bounds[c] > largest:
                largest = bounds[c]
                leaves[d] = best
        total = 0.0
        for c in range(chosen.size):
            bounds[c] = math.exp(bounds[c] - largest)
            total += bounds[c]
        shares[d, :n_nodes] = 0.0
        for c in range(chosen.size):
            node = chosen[c]
            for level in range(n_levels - 1, -1, -1):
                shares[d, node] += bounds[c] / total * kept[c, level]
                node = parent[node]
