# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled likelihood of a document of a fitted concept graph, word after word, by weighted particles.

A particle has a path, tau and the levels of the words read so far; the path is summed out of what it predicts of the
next word. The weight of level l before any word, ``share[l]``, is ``(1 - tau)**l``, or the parameter of the Dirichlet
distribution, to which its words are then added.
"""

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph._level_kernels import draw_tau
from pluri.topics.held_out._particle_kernels import copy_whom, few_effective, normalise

#: Paths whose log weight is this far below the best one have none.
NEGLIGIBLE = -45.0


@compiled()
def fill_shares(tau, a, b, dirichlet, share):
    """Weights of the levels before any word."""
    for l in range(share.size):
        if dirichlet:
            share[l] = a if l == 0 else b
        else:
            share[l] = 1.0 if l == 0 else share[l - 1] * (1.0 - tau)


@compiled()
def weigh_levels(row, path, length, share, sizes, dirichlet, running):
    """Sums, up to each level of a path, of its weight times the probability of a word."""
    total = 0.0
    for l in range(length):
        weight = share[l] + sizes[l] if dirichlet else share[l]
        total += weight * row[path[length - 1 - l]]
        running[l] = total


@compiled()
def choose(u, running, n):
    """Place in which the running sum passes its share u."""
    goal, k = u * running[n - 1], 0
    while k < n - 1 and running[k] <= goal:
        k += 1
    return k


@compiled()
def weigh_paths(words, n, level, log_topic_word, paths, lengths, log_prior, share, dirichlet, group, factor, logits):
    """Log weights of the paths given the levels of the first n words; `group` and `factor` are room."""
    top = -1
    group[:] = 0.0
    for i in range(n):
        row, part = log_topic_word[words[i]], group[level[i]]
        top = max(top, level[i])
        for x in range(row.size):
            part[x] += row[x]
    whole = 0.0
    for l in range(share.size):
        whole += share[l]
        factor[l] = math.lgamma(whole) - math.lgamma(whole + n) if dirichlet else -n * math.log(whole)
    for p in range(len(lengths)):
        length = lengths[p]
        logits[p] = -np.inf
        if length > top:
            logits[p] = log_prior[p] + factor[length - 1]
            for l in range(top + 1):
                logits[p] += group[l, paths[p, length - 1 - l]]


@compiled()
def predict_word(row, logits, paths, lengths, share, sizes, dirichlet, level_sum, running):
    """Probability of a word, summed over paths and levels; `running` becomes the sums up to each path.

    `level_sum` is room for the sums of the weights of levels.
    """
    whole, peak = 0.0, -np.inf
    for l in range(share.size):
        whole += share[l] + sizes[l] if dirichlet else share[l]
        level_sum[l] = whole
    for p in range(len(lengths)):
        peak = max(peak, logits[p])
    before, after = 0.0, 0.0
    for p in range(len(lengths)):
        difference, length = logits[p] - peak, lengths[p]
        if difference > NEGLIGIBLE:
            weight, total = math.exp(difference), 0.0
            before += weight
            for l in range(length):
                total += (share[l] + sizes[l] if dirichlet else share[l]) * row[paths[p, length - 1 - l]]
            after += weight * total / level_sum[length - 1]
        running[p] = after
    return after / before


@compiled()
def left_to_right(rng, words, topic_word, log_topic_word, paths, lengths, log_prior, a, b, dirichlet, n_particles):
    """Log likelihood of one document; see `pluri.topics.concept_graph.evaluation.held_out`."""
    n, n_levels, n_paths = len(words), paths.shape[1], len(lengths)
    path, tau = np.zeros(n_particles, dtype=np.int64), np.zeros(n_particles)
    level, sizes = np.zeros((n_particles, n), dtype=np.int64), np.zeros((n_particles, n_levels), dtype=np.int64)
    offspring, source = np.zeros(n_particles, dtype=np.int64), np.zeros(n_particles, dtype=np.int64)
    weight, share, running, factor = np.ones(n_particles), np.empty(n_levels), np.empty(n_levels), np.empty(n_levels)
    group, logits, running_paths = np.empty((n_levels, topic_word.shape[1])), np.empty(n_paths), np.empty(n_paths)
    value = 0.0
    normalise(weight)
    for i in range(n):
        for r in range(n_particles):
            own, count = level[r], sizes[r]
            # Levels, then tau: each leaves the posterior given the words so far as it is.
            if i > 0:
                fill_shares(tau[r], a, b, dirichlet, share)
                route, length = paths[path[r]], lengths[path[r]]
                for before in range(i):
                    count[own[before]] -= 1
                    weigh_levels(topic_word[words[before]], route, length, share, count, dirichlet, running)
                    own[before] = choose(rng.random(), running, length)
                    count[own[before]] += 1
            if not dirichlet:
                summed = 0
                for l in range(1, n_levels):
                    summed += l * count[l]
                tau[r] = draw_tau(rng, tau[r], a, b, summed, i, lengths[path[r]])
            fill_shares(tau[r], a, b, dirichlet, share)
            weigh_paths(
                words, i, own, log_topic_word, paths, lengths, log_prior, share, dirichlet, group, factor, logits
            )
            row = topic_word[words[i]]
            weight[r] *= predict_word(row, logits, paths, lengths, share, count, dirichlet, factor, running_paths)
            path[r] = choose(rng.random(), running_paths, n_paths)
            length = lengths[path[r]]
            weigh_levels(row, paths[path[r]], length, share, count, dirichlet, running)
            own[i] = choose(rng.random(), running, length)
            count[own[i]] += 1
        value += math.log(normalise(weight))
        if i + 1 < n and few_effective(weight):
            copy_whom(rng.random(), weight, offspring, source)
            for r in range(n_particles):
                if source[r] != r:
                    path[r], tau[r] = path[source[r]], tau[source[r]]
                    level[r, : i + 1] = level[source[r], : i + 1]
                    sizes[r] = sizes[source[r]]
    return value
