# mypy: allow-untyped-defs, allow-untyped-calls
"""New documents in a tree of fixed topics; see `pluri.topics.hierarchical.fitted_tree`."""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled
from pluri.topics.hierarchical._uniforms import pick, systematic, uniform

NEGLIGIBLE = -45.0


@compiled()
def digamma(x):
    """Derivative of the logarithm of the gamma function, x > 0."""
    value = 0.0
    while x < 8.0:
        value -= 1.0 / x
        x += 1.0
    inverse = 1.0 / (x * x)
    series = inverse * (1 / 12 - inverse * (1 / 120 - inverse * (1 / 252 - inverse * (1 / 240 - inverse / 132))))
    return value + math.log(x) - 0.5 / x - series


@compiled()
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


@compiled()
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


@compiled()
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


@compiled()
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


@compiled()
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


@compiled()
def level_masses(row, path, share, copies, word, here, word_prior, n_words, mass):
    """Probability of a word at each level of a path, times that of the level."""
    for level in range(path.size):
        if path[level] >= 0:
            mass[level] = share[level] * row[path[level]]
        else:
            prior = word_prior[level]
            mass[level] = share[level] * (prior + copies[word, level]) / (n_words * prior + here[level])


@compiled()
def weigh_candidates(row, first, parent, log_candidate, share, copies, word, here, fresh, score, word_prior, n_words,
                     value, total, weight):  # fmt: skip
    """Probability of a word given the levels of those before it, with the path summed out.

    `weight` becomes that of each candidate (leaf, or new branch at an inner node) times the word's probability there.
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
        weight[k] = p * value[k]
        whole += p
        seen += weight[k]
    return seen / whole


@compiled()
def left_to_right(offsets, words, places, topics, log_topics, first, parent, log_candidate, before, after, word_prior,
                  n_particles, state, levels, copies, here, fresh, score, at, probability, ancestors, weight, share,
                  mass, path, value, total, scores):  # fmt: skip
    """Log probability of each document, token after token, by particles that are moved, weighed and drawn again."""
    n_levels, n_words = first.size - 1, topics.shape[0]
    n_nodes = first[n_levels]
    for d in range(offsets.size - 1):
        begin, length = offsets[d], offsets[d + 1] - offsets[d]
        now, other = 0, 1
        copies[:, :, :length] = 0
        here[:] = 0
        fresh[:] = 0.0
        score[:] = 0.0
        scores[d] = 0.0
        for n in range(length):
            word = places[begin + n]
            row = topics[words[begin + n]]
            mean = 0.0
            for r in range(n_particles):
                if n > 0:
                    find_path(at[r], first, parent, path)
                for j in range(n):
                    token, earlier = words[begin + j], places[begin + j]
                    old = levels[now, r, j]
                    # The level is drawn first and moved only if it changed: most stay.
                    copies[now, r, earlier, old] -= 1
                    here[now, r, old] -= 1
                    level_shares(here[now, r], n - 1, before, after, share)
                    level_masses(topics[token], path, share, copies[now, r], earlier, here[now, r], word_prior,
                                 n_words, mass)  # fmt: skip
                    new = pick(mass, n_levels, uniform(state))
                    copies[now, r, earlier, old] += 1
                    here[now, r, old] += 1
                    if new != old:
                        put_token(log_topics[token], old, -1, copies[now, r], earlier, here[now, r], fresh[now, r],
                                  score[now, r], first, word_prior, n_words)  # fmt: skip
                        put_token(log_topics[token], new, 1, copies[now, r], earlier, here[now, r], fresh[now, r],
                                  score[now, r], first, word_prior, n_words)  # fmt: skip
                        levels[now, r, j] = new
                level_shares(here[now, r], n, before, after, share)
                probability[r] = weigh_candidates(row, first, parent, log_candidate, share, copies[now, r], word,
                                                  here[now, r], fresh[now, r], score[now, r], word_prior, n_words,
                                                  value, total, weight[r])  # fmt: skip
                mean += probability[r] / n_particles
            scores[d] += math.log(mean)
            systematic(probability, uniform(state), ancestors)
            for r in range(n_particles):
                a = ancestors[r]
                for j in range(n):
                    levels[other, r, j] = levels[now, a, j]
                for j in range(length):
                    for level in range(n_levels):
                        copies[other, r, j, level] = copies[now, a, j, level]
                for level in range(n_levels):
                    here[other, r, level] = here[now, a, level]
                    fresh[other, r, level] = fresh[now, a, level]
                for k in range(n_nodes):
                    score[other, r, k] = score[now, a, k]
                at[r] = pick(weight[a], n_nodes, uniform(state))
                find_path(at[r], first, parent, path)
                level_shares(here[other, r], n, before, after, share)
                level_masses(row, path, share, copies[other, r], word, here[other, r], word_prior, n_words, mass)
                new = pick(mass, n_levels, uniform(state))
                levels[other, r, n] = new
                put_token(log_topics[words[begin + n]], new, 1, copies[other, r], word, here[other, r],
                          fresh[other, r], score[other, r], first, word_prior, n_words)  # fmt: skip
            now, other = other, now
