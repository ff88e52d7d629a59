# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled draws of structures: down the tree for one direction of the features, and sets of them by rejection."""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled
from pluri.processes.dpp.samplers._spectral_kernels import NOTHING_LEFT, extend, reaches


@compiled(inner=True)
def pick(rng, weights, n_states, total):
    """A state with probability in proportion to its weight."""
    target = rng.random() * total
    chosen = n_states - 1
    for s in range(n_states):
        target -= weights[s]
        if target < 0.0:
            chosen = s
            break
    # Rounding may run past the end: the last state that is possible.
    while chosen > 0 and weights[chosen] == 0.0:
        chosen -= 1
    return chosen


@compiled(inner=True)
def draw_structure(rng, n, tables, directions, weights, states):
    """Fill `states` with probability ``q(y)^2 (direction_n . phi(y))^2``, from the root down.

    Given the states above, the sum of the features has a mean and a variance; fixing one more state replaces the
    message of its node by what the node knows.
    """
    parent, n_states, mean, variance = tables.parent, tables.n_states, tables.mean, tables.variance
    total = 0.0
    for s in range(n_states[0]):
        weights[s] = tables.root[s] * (variance[n, 0, s] + mean[n, 0, s] ** 2)
        total += weights[s]
    state = pick(rng, weights, n_states[0], total)
    states[0] = state
    centre, spread = mean[n, 0, state], variance[n, 0, state]
    for c in range(1, n_states.size):
        above = states[parent[c]]
        centre -= tables.message_mean[n, c, above]
        spread = max(spread - tables.message_variance[n, c, above], 0.0)
        total = 0.0
        for s in range(n_states[c]):
            value = centre + mean[n, c, s]
            if tables.has_edge[c]:
                for d in range(directions.shape[0]):
                    value += tables.edge_features[c, above, s, d] * directions[d, n]
            weights[s] = tables.conditional[c, above, s] * (value * value + variance[n, c, s] + spread)
            total += weights[s]
        state = pick(rng, weights, n_states[c], total)
        states[c] = state
        centre += mean[n, c, state]
        if tables.has_edge[c]:
            for d in range(directions.shape[0]):
                centre += tables.edge_features[c, above, state, d] * directions[d, n]
        spread += variance[n, c, state]


@compiled(inner=True)
def add_features(tables, states, features):
    """Fill `features` with those of a structure."""
    features[:] = 0.0
    for c in range(tables.n_states.size):
        for d in range(features.size):
            features[d] += tables.node_features[c, states[c], d]
        if tables.has_edge[c]:
            above = states[tables.parent[c]]
            for d in range(features.size):
                features[d] += tables.edge_features[c, above, states[c], d]


@compiled()
def draw_sets(rng, taken, counts, tables, directions, patience, structures, found):
    """Fill `structures` and `found`: the projection process on the directions ``taken``, by rejection as for items."""
    n_features = directions.shape[0]
    largest = 0
    for count in counts:
        largest = max(largest, count)
    basis = np.empty((largest, largest))
    row, coefficients = np.empty(largest), np.empty(largest)
    weights, features = np.empty(tables.root.size), np.empty(n_features)
    begin = 0
    for draw in range(counts.size):
        size = counts[draw]
        found[draw] = size
        for drawn in range(size):
            accepted = False
            for _ in range(patience * size):
                states = structures[begin + drawn]
                n = taken[begin + int(rng.random() * size)]
                draw_structure(rng, n, tables, directions, weights, states)
                add_features(tables, states, features)
                full = 0.0
                for a in range(size):
                    row[a] = 0.0
                    for d in range(n_features):
                        row[a] += features[d] * directions[d, taken[begin + a]]
                    full += row[a] * row[a]
                if not reaches(basis[:, :size], row[:size], full * (1.0 - max(rng.random(), NOTHING_LEFT)), drawn):
                    accepted = True
                    break
            if not accepted:
                found[draw] = drawn
                break
            extend(basis[:, :size], row[:size], coefficients, drawn)
        begin += size
