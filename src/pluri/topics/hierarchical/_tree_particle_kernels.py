# mypy: allow-untyped-defs, allow-untyped-calls
"""Probability of new documents in a tree of fixed topics, by particles; see `pluri.topics.hierarchical.fitted_tree`.

A particle has the levels of the tokens so far, and what follows from them: how often each distinct word of the document
is at each level (`copies`), the number of tokens there (`here`), their log probability if node k is on the path
(``score[k]``), or if the node of a level is a new one (``fresh[level]``).
"""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled
from pluri.topics._draws import pick, uniform
from pluri.topics.held_out._particle_kernels import copy_whom, few_effective, normalise

#: Paths whose weight is this much smaller than the largest, on the logarithmic scale, are left out.
NEGLIGIBLE = -45.0


@compiled(no_cpython_wrapper=True)
def find_path(node, first, parent, path):
    """Nodes from the root down to `node`; -1 for those of a new branch below it."""
    n_levels = path.size
    level = 0
    while node >= first[level + 1]:
        level += 1
    for lower in range(level + 1, n_levels):
        path[lower] = -1
    for upper in range(level, -1, -1):
        path[upper] = node
        node = parent[node]


@compiled(no_cpython_wrapper=True)
def put_token(log_row, level, step, copies, word, here, fresh, score, first, word_prior, n_words):
    """Add a token to a level of a particle (step 1), or take it out (step -1)."""
    if step < 0:
        copies[word, level] -= 1
        here[level] -= 1
    prior = word_prior[level]
    fresh[level] += step * math.log((prior + copies[word, level]) / (n_words * prior + here[level]))
    if step > 0:
        copies[word, level] += 1
        here[level] += 1
    if level > 0:
        for k in range(first[level], first[level + 1]):
            score[k] += step * log_row[k]


@compiled(no_cpython_wrapper=True)
def level_shares(here, n_before, before, after, share):
    """Probability of each level of a further token, given the number of tokens at each."""
    left, below = 1.0, n_before
    n_levels = share.size
    for level in range(n_levels):
        share[level] = left
        if level < n_levels - 1:
            scale = left / (before[level] + after[level] + below)
            share[level] = scale * (before[level] + here[level])
            below -= here[level]
            left = scale * (after[level] + below)


@compiled(no_cpython_wrapper=True)
def level_masses(row, path, share, copies, word, here, word_prior, n_words, mass):
    """Probability of a word at each level of a path, times that of the level."""
    for level in range(path.size):
        if path[level] >= 0:
            mass[level] = share[level] * row[path[level]]
        else:
            prior = word_prior[level]
            mass[level] = share[level] * (prior + copies[word, level]) / (n_words * prior + here[level])


@compiled(no_cpython_wrapper=True)
def weigh_candidates(row, first, parent, log_candidate, share, copies, word, here, fresh, score, word_prior, n_words,
                     value, total, candidate):  # fmt: skip
    """Probability of a word given the levels of those before it, with the path summed out.

    `candidate` becomes the weight of each leaf, and of a new branch at each inner node, times the word's probability
    there.
    """
    n_levels = share.size
    total[0], value[0] = 0.0, share[0] * row[0]
    for level in range(1, n_levels):
        for k in range(first[level], first[level + 1]):
            total[k] = total[parent[k]] + score[k]
            value[k] = value[parent[k]] + share[level] * row[k]
    largest, rest, new = -math.inf, 0.0, 0.0
    for level in range(n_levels - 1, -1, -1):
        for k in range(first[level], first[level + 1]):
            total[k] += log_candidate[k] + rest
            value[k] += new
            largest = max(largest, total[k])
        prior = word_prior[level]
        rest += fresh[level]
        new += share[level] * (prior + copies[word, level]) / (n_words * prior + here[level])
    whole, seen = 0.0, 0.0
    for k in range(first[n_levels]):
        difference = total[k] - largest
        p = math.exp(difference) if difference > NEGLIGIBLE else 0.0
        candidate[k] = p * value[k]
        whole += p
        seen += candidate[k]
    return seen / whole


@compiled()
def redraw_levels(n, words, places, topics, log_topics, first, path, before, after, word_prior, state, levels, copies,
                  here, fresh, score, share, mass):  # fmt: skip
    """Draw the levels of the first n tokens of a particle in turn, given its path."""
    n_words = topics.shape[0]
    for j in range(n):
        token, word, old = words[j], places[j], levels[j]
        # The level is drawn first and moved only if it changed: most stay.
        copies[word, old] -= 1
        here[old] -= 1
        level_shares(here, n - 1, before, after, share)
        level_masses(topics[token], path, share, copies, word, here, word_prior, n_words, mass)
        new = pick(mass, mass.size, uniform(state))
        copies[word, old] += 1
        here[old] += 1
        if new != old:
            put_token(log_topics[token], old, -1, copies, word, here, fresh, score, first, word_prior, n_words)
            put_token(log_topics[token], new, 1, copies, word, here, fresh, score, first, word_prior, n_words)
            levels[j] = new


@compiled()
def left_to_right(offsets, words, places, topics, log_topics, first, parent, log_candidate, before, after, word_prior,
                  n_particles, state, levels, copies, here, fresh, score, at, weight, offspring, source, share, mass,
                  path, value, total, candidate, scores):  # fmt: skip
    """Log probability of each document, token after token, by weighted particles."""
    n_levels, n_words = first.size - 1, topics.shape[0]
    n_nodes = first[n_levels]
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
            row = topics[token]
            for r in range(n_particles):
                if n > 0:
                    find_path(at[r], first, parent, path)
                    redraw_levels(n, own_words, own_places, topics, log_topics, first, path, before, after, word_prior,
                                  state, levels[r], copies[r], here[r], fresh[r], score[r], share, mass)  # fmt: skip
                level_shares(here[r], n, before, after, share)
                weight[r] *= weigh_candidates(row, first, parent, log_candidate, share, copies[r], word, here[r],
                                              fresh[r], score[r], word_prior, n_words, value, total,
                                              candidate)  # fmt: skip
                at[r] = pick(candidate, n_nodes, uniform(state))
                find_path(at[r], first, parent, path)
                level_masses(row, path, share, copies[r], word, here[r], word_prior, n_words, mass)
                levels[r, n] = pick(mass, n_levels, uniform(state))
                put_token(log_topics[token], levels[r, n], 1, copies[r], word, here[r], fresh[r], score[r], first,
                          word_prior, n_words)  # fmt: skip
            scores[d] += math.log(normalise(weight))
            if n + 1 < length and few_effective(weight):
                copy_whom(uniform(state), weight, offspring, source)
                for r in range(n_particles):
                    a = source[r]
                    if a != r:
                        at[r] = at[a]
                        levels[r, : n + 1] = levels[a, : n + 1]
                        copies[r, :length] = copies[a, :length]
                        here[r] = here[a]
                        fresh[r] = fresh[a]
                        score[r] = score[a]
