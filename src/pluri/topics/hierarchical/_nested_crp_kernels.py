# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep of the nested Chinese restaurant process; see `pluri.topics.hierarchical.nested_crp_gibbs`.

A node is a column of `counts` (words x columns); the columns of level l are ``first[l] : first[l + 1]``, of which those
below ``top[l]`` have been in use. The score of a node does not depend on the document's path, so that it is computed
once, and paths add scores up from the root down. Columns stand side by side for each word: the inner loops run over
nodes, and only look logarithms up, as all counts are whole numbers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import pick, place_of

#: Smaller terms than exp(-45) of the largest are lost in rounding anyway.
NEGLIGIBLE = -45.0


class Priors(NamedTuple):
    """Parameters: of new branches, of topics by level, of the sticks of levels; and logarithms of numbers of documents.

    `log_whole` is log n and `log_seats` ``log(n + concentration)``, by n.
    """

    log_concentration: float
    word_prior: Any
    before: Any
    after: Any
    log_whole: Any
    log_seats: Any


class Room(NamedTuple):
    """Room for what is computed of a document: `here`, `mass` and `fresh` by level, `score` and `weight` by column."""

    here: Any
    mass: Any
    fresh: Any
    score: Any
    weight: Any

    @classmethod
    def of(cls, n_levels: int, width: int) -> Room:
        """Room for so many levels and columns."""
        by_level = np.zeros(n_levels, dtype=np.int64), np.zeros(n_levels), np.zeros(n_levels)
        return cls(*by_level, np.zeros(width), np.zeros(width))


@compiled(inner=True, allocates=False)
def shift_document(words, levels, path, begin, end, step, counts, n_tokens):
    """Change `counts` and `n_tokens`: add the tokens of a document to its path (step 1) or take them out (step -1)."""
    for i in range(begin, end):
        node = path[levels[i]]
        counts[words[i], node] += step
        n_tokens[node] += step


@compiled(allocates=False)
def count_documents(words, offsets, levels, paths, parent, counts, n_tokens, n_documents):
    """Change the last four arguments: put every document that has a path into the tree."""
    n_levels = paths.shape[1]
    for d in range(offsets.size - 1):
        if paths[d, 0] >= 0:
            shift_document(words, levels, paths[d], offsets[d], offsets[d + 1], np.int64(1), counts, n_tokens)
            for level in range(n_levels):
                n_documents[paths[d, level]] += 1
                if level > 0:
                    parent[paths[d, level]] = paths[d, level - 1]


@compiled(inner=True, allocates=False)
def rising(table, prior, count):
    """Log of prior (prior + 1) ... (prior + count - 1): looked up, or computed where the table ends."""
    if count < table.size:
        return table[count]
    return math.lgamma(prior + count) - math.lgamma(prior)


@compiled(inner=True, allocates=False)
def score_nodes(words, begin, end, tree, tables, room):
    """Fill `score` and `fresh` of `room`: log probability of a document's tokens of a level in nodes, old and new.

    `here` is room for the number of copies of a word at each level, and becomes the number of tokens at each level.
    """
    levels, first, top, counts, n_tokens = tree.levels, tree.first, tree.top, tree.counts, tree.n_tokens
    here, score, fresh = room.here, room.score, room.fresh
    n_levels = here.size
    for level in range(1, n_levels):
        fresh[level] = 0.0
        for k in range(first[level], top[level]):
            score[k] = 0.0
    i = begin
    while i < end:
        word = words[i]
        for level in range(n_levels):
            here[level] = 0
        while i < end and words[i] == word:
            here[levels[i]] += 1
            i += 1
        row = counts[word]
        for level in range(1, n_levels):
            copies = here[level]
            if copies == 1:
                table = tables.log_word[level]
                fresh[level] += table[0]
                for k in range(first[level], top[level]):
                    score[k] += table[row[k]]
            elif copies > 1:
                table = tables.rising_word[level]
                fresh[level] += table[copies]
                for k in range(first[level], top[level]):
                    score[k] += table[row[k] + copies] - table[row[k]]
    for level in range(n_levels):
        here[level] = 0
    for i in range(begin, end):
        here[levels[i]] += 1
    for level in range(1, n_levels):
        length = here[level]
        if length > 0:
            table, prior = tables.rising_total[level], tables.total_prior[level]
            fresh[level] -= rising(table, prior, length)
            for k in range(first[level], top[level]):
                score[k] -= rising(table, prior, n_tokens[k] + length) - rising(table, prior, n_tokens[k])


@compiled(inner=True, allocates=False)
def weigh_paths(tree, priors, room):
    """Fill `weight` of `room`: log weight of the path to each leaf, and of a new branch at each inner node.

    On the way `weight` of an inner node is that of the path down to it. Gives the largest.
    """
    first, top, parent, n_documents = tree.first, tree.top, tree.parent, tree.n_documents
    log_whole, log_seats = priors.log_whole, priors.log_seats
    score, fresh, weight = room.score, room.fresh, room.weight
    n_levels = fresh.size
    weight[0] = 0.0
    for level in range(1, n_levels):
        for k in range(first[level], top[level]):
            if n_documents[k] > 0:
                above = parent[k]
                weight[k] = weight[above] + log_whole[n_documents[k]] - log_seats[n_documents[above]] + score[k]
            else:
                weight[k] = -math.inf
    largest = -math.inf
    for k in range(first[n_levels - 1], top[n_levels - 1]):
        largest = max(largest, weight[k])
    rest, log_new = 0.0, priors.log_concentration
    for level in range(n_levels - 2, -1, -1):
        rest += fresh[level + 1]
        for k in range(first[level], top[level]):
            if weight[k] > -math.inf:
                weight[k] += log_new - log_seats[n_documents[k]] + rest
                largest = max(largest, weight[k])
    return largest


@compiled(inner=True, allocates=False)
def pick_node(n_levels, first, top, weight, largest, number):
    """Node with probability proportional to exp(weight); `weight` becomes these probabilities, not normalised."""
    total = 0.0
    for level in range(n_levels):
        for k in range(first[level], top[level]):
            difference = weight[k] - largest
            weight[k] = math.exp(difference) if difference > NEGLIGIBLE else 0.0
            total += weight[k]
    return place_of(number * total, weight, first[n_levels])  # room between levels has no weight


@compiled(inner=True, allocates=False)
def new_path(node, tree, path):
    """Change `path` and the tree: a path through a node; below an inner node, new ones take free columns."""
    first, top, parent, free, n_free = tree.first, tree.top, tree.parent, tree.free, tree.n_free
    n_levels, level = path.size, 0
    while node >= first[level + 1]:
        level += 1
    for lower in range(level + 1, n_levels):
        if n_free[lower] > 0:
            n_free[lower] -= 1
            path[lower] = free[first[lower] + n_free[lower]]
        else:
            path[lower] = top[lower]
            top[lower] += 1
    for upper in range(level, -1, -1):
        path[upper] = node
        node = parent[node]
    for lower in range(level + 1, n_levels):
        parent[path[lower]] = path[lower - 1]


@compiled(inner=True, allocates=False)
def draw_levels(words, path, begin, end, numbers, tree, priors, room):
    """Change the levels of a document's tokens, each drawn given the others; `here` is the number of tokens at each."""
    levels, counts, n_tokens, here, mass = tree.levels, tree.counts, tree.n_tokens, room.here, room.mass
    before, after, word_prior = priors.before, priors.after, priors.word_prior
    n_levels, n_words = path.size, counts.shape[0]
    for i in range(begin, end):
        word, old = words[i], levels[i]
        node = path[old]
        counts[word, node] -= 1
        n_tokens[node] -= 1
        here[old] -= 1
        below = end - begin - 1
        left = 1.0
        for level in range(n_levels):
            node = path[level]
            share = left
            if level < n_levels - 1:
                scale = left / (before[level] + after[level] + below)
                share = scale * (before[level] + here[level])
                below -= here[level]
                left = scale * (after[level] + below)
            prior = word_prior[level]
            mass[level] = share * (counts[word, node] + prior) / (n_tokens[node] + n_words * prior)
        new = pick(mass, n_levels, numbers[i])
        levels[i] = new
        node = path[new]
        counts[word, node] += 1
        n_tokens[node] += 1
        here[new] += 1


@compiled(allocates=False)
def sweep(words, offsets, order, start, path_numbers, level_numbers, tree, priors, tables, room):
    """Change the tree: draw path and levels of each document in turn.

    Gives the place in `order` where columns ran out, or its end.
    """
    first, top, free, n_free, n_documents = tree.first, tree.top, tree.free, tree.n_free, tree.n_documents
    n_levels = tree.paths.shape[1]
    for place in range(start, order.size):
        for level in range(1, n_levels):
            if n_free[level] == 0 and top[level] == first[level + 1]:
                return place
        d = order[place]
        begin, end = offsets[d], offsets[d + 1]
        path = tree.paths[d]
        if path[0] >= 0:
            shift_document(words, tree.levels, path, begin, end, np.int64(-1), tree.counts, tree.n_tokens)
            for level in range(n_levels):
                node = path[level]
                n_documents[node] -= 1
                if n_documents[node] == 0 and level > 0:
                    free[first[level] + n_free[level]] = node
                    n_free[level] += 1
        score_nodes(words, begin, end, tree, tables, room)
        largest = weigh_paths(tree, priors, room)
        node = pick_node(n_levels, first, top, room.weight, largest, path_numbers[place])
        new_path(node, tree, path)
        for level in range(n_levels):
            n_documents[path[level]] += 1
        shift_document(words, tree.levels, path, begin, end, np.int64(1), tree.counts, tree.n_tokens)
        draw_levels(words, path, begin, end, level_numbers, tree, priors, room)
    return order.size


@compiled(allocates=False)
def count_of_counts(counts, first, top, histogram):
    """How many cells of each level hold each positive count."""
    for word in range(counts.shape[0]):
        row = counts[word]
        for level in range(first.size - 1):
            cells = histogram[level]
            for k in range(first[level], top[level]):
                if row[k] > 0:
                    cells[row[k]] += 1
