# mypy: allow-untyped-defs, allow-untyped-calls
"""Probability of new documents in a tree of fixed topics, by particles; see `pluri.topics.hierarchical.fitted_tree`."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import pick, uniform
from pluri.topics.held_out._particle_kernels import copy_whom, few_effective, normalise

#: Paths whose weight is this much smaller than the largest, on the logarithmic scale, are left out.
NEGLIGIBLE = -45.0


class Tree(NamedTuple):
    """What is known: topics and their logarithms (n_words, n_nodes), the nodes of `TreeOfTopics`, and its priors."""

    topics: Any
    log_topics: Any
    first: Any
    parent: Any
    log_candidate: Any
    before: Any
    after: Any
    word_prior: Any


class Particle(NamedTuple):
    """Levels of the tokens so far, and what follows from them; of all particles, with one more axis.

    That is how often each distinct word of the document is at each level (`copies`), the number of tokens there
    (`here`), their log probability if node k is on the path (``score[k]``), or if the node of a level is a new one
    (``fresh[level]``).
    """

    levels: Any
    copies: Any
    here: Any
    fresh: Any
    score: Any


class Particles(NamedTuple):
    """All particles, the lowest known node `at` the end of the path of each, and weights; the rest is room."""

    own: Particle
    at: Any
    weight: Any
    offspring: Any
    source: Any

    @classmethod
    def of(cls, size: int, longest: int, n_levels: int, n_nodes: int) -> Particles:
        """So many particles for documents of at most so many tokens."""
        own = Particle(
            np.zeros((size, longest), dtype=np.int8),
            np.zeros((size, longest, n_levels), dtype=np.int32),
            np.zeros((size, n_levels), dtype=np.int64),
            np.zeros((size, n_levels)),
            np.zeros((size, n_nodes)),
        )
        at, offspring, source = np.zeros((3, size), dtype=np.int64)
        return cls(own, at, np.zeros(size), offspring, source)


class Room(NamedTuple):
    """Room for what is computed of a token: `path`, `share` and `mass` by level, the others by node."""

    path: Any
    share: Any
    mass: Any
    value: Any
    total: Any
    candidate: Any

    @classmethod
    def of(cls, n_levels: int, n_nodes: int) -> Room:
        """Room for so many levels and nodes."""
        share, mass = np.zeros((2, n_levels))
        value, total, candidate = np.zeros((3, n_nodes))
        return cls(np.zeros(n_levels, dtype=np.int64), share, mass, value, total, candidate)


@compiled(inner=True)
def find_path(node, tree, path):
    """Fill `path`: nodes from the root down to `node`; -1 for those of a new branch below it."""
    level = 0
    while node >= tree.first[level + 1]:
        level += 1
    for lower in range(level + 1, path.size):
        path[lower] = -1
    for upper in range(level, -1, -1):
        path[upper] = node
        node = tree.parent[node]


@compiled(inner=True)
def put_token(token, word, level, step, particle, tree):
    """Change the particle: add a token, its distinct word `word`, to a level (step 1), or take it out (step -1)."""
    copies, here, first, log_row = particle.copies, particle.here, tree.first, tree.log_topics[token]
    if step < 0:
        copies[word, level] -= 1
        here[level] -= 1
    prior, n_words = tree.word_prior[level], tree.topics.shape[0]
    particle.fresh[level] += step * math.log((prior + copies[word, level]) / (n_words * prior + here[level]))
    if step > 0:
        copies[word, level] += 1
        here[level] += 1
    if level > 0:
        for k in range(first[level], first[level + 1]):
            particle.score[k] += step * log_row[k]


@compiled(inner=True)
def level_shares(here, n_before, tree, share):
    """Fill `share`: probability of each level of a further token, given the number of tokens at each."""
    before, after = tree.before, tree.after
    left, below = 1.0, n_before
    n_levels = share.size
    for level in range(n_levels):
        share[level] = left
        if level < n_levels - 1:
            scale = left / (before[level] + after[level] + below)
            share[level] = scale * (before[level] + here[level])
            below -= here[level]
            left = scale * (after[level] + below)


@compiled(inner=True)
def level_masses(row, word, particle, tree, room):
    """Fill `mass` of `room`: probability of a word at each level of the path, times that of the level."""
    path, share, mass, n_words = room.path, room.share, room.mass, tree.topics.shape[0]
    for level in range(path.size):
        if path[level] >= 0:
            mass[level] = share[level] * row[path[level]]
        else:
            prior = tree.word_prior[level]
            chance = (prior + particle.copies[word, level]) / (n_words * prior + particle.here[level])
            mass[level] = share[level] * chance


@compiled(inner=True)
def weigh_candidates(row, word, particle, tree, room):
    """Fill `candidate` of `room` and give the probability of a word given the levels of those before it.

    `candidate` becomes the weight of each leaf, and of a new branch at each inner node, times the word's probability
    there. The path is summed out.
    """
    first, parent, score, share = tree.first, tree.parent, particle.score, room.share
    total, value, candidate = room.total, room.value, room.candidate
    n_levels, n_words = share.size, tree.topics.shape[0]
    total[0], value[0] = 0.0, share[0] * row[0]
    for level in range(1, n_levels):
        for k in range(first[level], first[level + 1]):
            total[k] = total[parent[k]] + score[k]
            value[k] = value[parent[k]] + share[level] * row[k]
    largest, rest, new = -math.inf, 0.0, 0.0
    for level in range(n_levels - 1, -1, -1):
        for k in range(first[level], first[level + 1]):
            total[k] += tree.log_candidate[k] + rest
            value[k] += new
            largest = max(largest, total[k])
        prior = tree.word_prior[level]
        rest += particle.fresh[level]
        new += share[level] * (prior + particle.copies[word, level]) / (n_words * prior + particle.here[level])
    whole, seen = 0.0, 0.0
    for k in range(first[n_levels]):
        difference = total[k] - largest
        p = math.exp(difference) if difference > NEGLIGIBLE else 0.0
        candidate[k] = p * value[k]
        whole += p
        seen += candidate[k]
    return seen / whole


@compiled()
def redraw_levels(n, words, places, particle, tree, room, random):
    """Change the levels of the first n tokens of a particle, drawn in turn given its path."""
    levels, copies, here, mass = particle.levels, particle.copies, particle.here, room.mass
    for j in range(n):
        token, word, old = words[j], places[j], levels[j]
        # The level is drawn first and moved only if it changed: most stay.
        copies[word, old] -= 1
        here[old] -= 1
        level_shares(here, n - 1, tree, room.share)
        level_masses(tree.topics[token], word, particle, tree, room)
        new = pick(mass, mass.size, uniform(random))
        copies[word, old] += 1
        here[old] += 1
        if new != old:
            put_token(token, word, old, -1, particle, tree)
            put_token(token, word, new, 1, particle, tree)
            levels[j] = new


@compiled()
def left_to_right(offsets, words, places, tree, particles, room, random, scores):
    """Fill `scores`: log probability of each document, token after token, by weighted particles."""
    (levels, copies, here, fresh, score), at, weight, offspring, source = particles
    n_particles, n_levels, n_nodes = weight.size, here.shape[1], score.shape[1]
    for d in range(offsets.size - 1):
        begin, length = offsets[d], offsets[d + 1] - offsets[d]
        own_words, own_places = words[begin : begin + length], places[begin : begin + length]
        copies[:, :length] = 0
        here[:] = 0
        fresh[:] = 0.0
        score[:] = 0.0
        weight[:] = 1.0 / n_particles
        scores[d] = 0.0
        for n in range(length):
            word, token = own_places[n], own_words[n]
            row = tree.topics[token]
            for r in range(n_particles):
                particle = Particle(levels[r], copies[r], here[r], fresh[r], score[r])
                if n > 0:
                    find_path(at[r], tree, room.path)
                    redraw_levels(n, own_words, own_places, particle, tree, room, random)
                level_shares(here[r], n, tree, room.share)
                weight[r] *= weigh_candidates(row, word, particle, tree, room)
                at[r] = pick(room.candidate, n_nodes, uniform(random))
                find_path(at[r], tree, room.path)
                level_masses(row, word, particle, tree, room)
                levels[r, n] = pick(room.mass, n_levels, uniform(random))
                put_token(token, word, levels[r, n], 1, particle, tree)
            scores[d] += math.log(normalise(weight))
            if n + 1 < length and few_effective(weight):
                copy_whom(uniform(random), weight, offspring, source)
                for r in range(n_particles):
                    a = source[r]
                    if a != r:
                        at[r] = at[a]
                        levels[r, : n + 1] = levels[a, : n + 1]
                        copies[r, :length] = copies[a, :length]
                        here[r], fresh[r], score[r] = here[a], fresh[a], score[a]
