# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of whole tables of an HDP topic model; see `pluri.topics.hdp.slots`.

The tokens of a topic in a document sit at tables; a table of words w_1, ..., w_n goes to topic k with probability
proportional to

    beta_k prod_j (n_{w_j k} + eta + e_j) / (n_k + V eta + j),    a new topic:  beta_u prod_j (eta + e_j) / (V eta + j),

where j counts the words before and e_j those of them that are the same word.
"""

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.hdp._gibbs_kernels import BLOCK, break_off, find_slot, slots_in_use

#: Words after which scores are scaled, so that their products stay above the smallest number.
SCALED_EVERY = 8
#: Tables of fewer tokens are left to the pass over tokens.
SMALLEST = 2


@compiled(allocates=False)
def seat(rng, begin, end, labels, new_table, room):
    """Change `room`: seat the tokens of a document at tables given their topics; returns the number of tables."""
    here, place, order, table, ends = room.here, room.place, room.order, room.table, room.ends
    for t in range(begin, end):
        here[labels[t]] += 1
    filled = 0
    for t in range(begin, end):
        k = labels[t]
        if place[k] == 0:
            place[k] = filled + 1
            filled += here[k]
        order[place[k] - 1] = t
        place[k] += 1
    n_tables, s = 0, 0
    while s < end - begin:
        k = labels[order[s]]
        n, first = here[k], s
        for r in range(n):
            if r == 0 or rng.random() * (new_table[k] + r) < new_table[k]:
                table[s] = n_tables
                ends[n_tables] = 0
                n_tables += 1
            else:
                table[s] = table[first + int(rng.random() * r)]
            ends[table[s]] += 1
            s += 1
        here[k] = 0
        place[k] = 0
    total = 0
    for i in range(n_tables):
        total += ends[i]
        ends[i] = total - ends[i]
    for s in range(end - begin):
        room.members[ends[table[s]]] = order[s]
        ends[table[s]] += 1
    return n_tables


@compiled(reorder=True, inner=True, allocates=False)
def multiply(row, base, plus, before, high, above, below):
    """Multiply the scores by the probability of one more word, kept as fractions: products cost less."""
    for k in range(high):
        above[k] *= row[k] + plus
        below[k] *= base[k] + before


@compiled(reorder=True, inner=True, allocates=False)
def divide(high, above, below):
    """Scores from fractions; returns their sum."""
    total = 0.0
    for k in range(high):
        above[k] /= below[k]
        below[k] = 1.0
        total += above[k]
    return total


@compiled(allocates=False)
def score_table(words, members, eta, state, high, room, same):
    """Put the scores of the slots for a table whose tokens are counted nowhere into `room`.

    Returns their sum and the score of a new topic.
    """
    counts, weights, base, scores, below = state.counts, state.weights, room.base, room.scores, room.below
    whole = counts.shape[0] * eta
    fresh, total = state.rest[0], 0.0
    for k in range(high):
        scores[k] = weights[k]
        below[k] = 1.0
    for m in range(len(members)):
        w, before = words[members[m]], float(m)
        plus = eta + same[w]
        same[w] += 1
        multiply(counts[w], base, plus, before, high, scores, below)
        fresh *= plus / (whole + before)
        if m % SCALED_EVERY == SCALED_EVERY - 1 or m == len(members) - 1:
            total = divide(high, scores, below)
            factor = 1.0 / (total + fresh)
            for k in range(high):
                scores[k] *= factor
            fresh *= factor
            total *= factor
    for m in range(len(members)):
        same[words[members[m]]] = 0
    return total, fresh


@compiled(inner=True, allocates=False)
def take_out(words, members, old, counts, sizes, weights, rest):
    """Change the last four: remove the tokens of a table from their topic."""
    for m in range(len(members)):
        counts[words[members[m]], old] -= 1
    sizes[old] -= len(members)
    if sizes[old] == 0:
        rest[0] += weights[old]
        weights[old] = 0.0


@compiled(allocates=False)
def move_tables(rng, chosen, tokens, hyper, state, room, tables, cursor):
    """Change `state`: draw the topics of all tables of the chosen documents.

    `cursor` holds the next document of `chosen`, its next table and the number of its tables (-1 before they are
    drawn). The function returns early, and goes on from there, if there is no free slot left.
    """
    words, _, offsets = tokens
    alpha, gamma, eta = hyper
    labels, counts, sizes, weights, rest = state
    base, scores, ends = room.base, room.scores, tables.ends
    capacity = len(sizes)
    high, fresh = slots_in_use(sizes)
    for k in range(capacity):
        base[k] = sizes[k] + counts.shape[0] * eta
    while cursor[0] < len(chosen):
        d = chosen[cursor[0]]
        if cursor[2] < 0:
            for k in range(high):
                scores[k] = alpha * weights[k]
            cursor[1] = 0
            cursor[2] = seat(rng, offsets[d], offsets[d + 1], labels, scores, tables)
        while cursor[1] < cursor[2]:
            if fresh >= capacity:
                return
            i = cursor[1]
            cursor[1] += 1
            members = tables.members[ends[i - 1] if i > 0 else 0 : ends[i]]
            n = len(members)
            if n < SMALLEST:
                continue
            old = np.int64(labels[members[0]])
            take_out(words, members, old, counts, sizes, weights, rest)
            base[old] -= n
            if sizes[old] == 0:
                fresh = min(fresh, old)
            total, opened = score_table(words, members, eta, state, high, room, tables.same)
            target = rng.random() * (total + opened)
            if target < total:
                new = find_slot(target, high, scores)
            else:
                new = fresh
                break_off(rng, gamma, weights, rest, new)
                if new >= high:
                    high += BLOCK
            for m in range(n):
                counts[words[members[m]], new] += 1
                labels[members[m]] = new
            sizes[new] += n
            base[new] += n
            while fresh < capacity and sizes[fresh] > 0:
                fresh += 1
        cursor[0] += 1
        cursor[2] = -1
    return
