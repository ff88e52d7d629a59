# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweeps of the direct-assignment sampler of an HDP topic model; see `pluri.topics.hdp.gibbs`.

A token of word w in document d goes to topic k with probability proportional to

    (n_dk + alpha beta_k) (n_wk + eta) / (n_k + V eta),    a new topic:  alpha beta_u / V.

Topics have slots; a slot without tokens is free. The parts of the scores that do not depend on the word stay the same
but for the slots that a token leaves and enters, so that a score costs one product.
"""

import math

from pluri.engine.compiled import compiled

#: Slots that are looked through at a time. Numbers of slots are multiples of it.
BLOCK = 8
#: Products whose logarithm is wanted are begun anew before they would leave the range from this to its inverse.
SMALL = 1e-200


@compiled(allocates=False)
def count_words(words, labels, counts, sizes):
    """Tokens of each word (row) and topic (column); tokens without a topic are left out."""
    for t in range(len(words)):
        k = labels[t]
        if k >= 0:
            counts[words[t], k] += 1
            sizes[k] += 1


@compiled(reorder=True, inner=True, allocates=False)
def score_slots(row, base, eta, high, scores):
    """Scores of the slots; returns their sum."""
    total = 0.0
    for k in range(high):
        score = base[k] * (row[k] + eta)
        scores[k] = score
        total += score
    return total


@compiled(inner=True, allocates=False)
def slots_in_use(sizes):
    """End of the slots to read, in whole blocks, and the first free slot; both are numbers that a variable can hold.

    A loop that began with constants instead would have the functions that it calls compiled for them, too.
    """
    high, fresh = BLOCK, len(sizes)
    for k in range(len(sizes)):
        if sizes[k] > 0:
            high = max(high, (k // BLOCK + 1) * BLOCK)
        elif fresh == len(sizes):
            fresh = k
    return high, fresh


@compiled(inner=True, allocates=False)
def largest(high, scores):
    """Slot of the largest score."""
    best = 0
    for k in range(1, high):
        if scores[k] > scores[best]:
            best = k
    return best


@compiled(reorder=True, inner=True, allocates=False)
def find_slot(target, high, scores):
    """Slot in which the running sum passes `target`; the last one, or the largest, if rounding keeps it from that."""
    passed, begin = 0.0, 0
    while begin < high:
        part = 0.0
        for k in range(begin, begin + BLOCK):
            part += scores[k]
        if passed + part > target:
            break
        passed += part
        begin += BLOCK
    chosen = -1
    for k in range(begin, min(begin + BLOCK, high)):
        if scores[k] > 0.0:
            chosen = k
            passed += scores[k]
            if passed > target:
                return k
    return chosen if chosen >= 0 else largest(high, scores)


@compiled(inner=True, allocates=False)
def draw_slot(rng, row, old, stay, opened, eta, high, base, scores):
    """Slot of a token whose slot so far, `old`, has the score `stay`; -1 for a new topic, whose score is `opened`.

    The slot so far comes first: draws mostly fall on it, and then nothing changes. Scores of the others count the token
    still, which makes no difference to them.
    """
    total = score_slots(row, base, eta, high, scores)
    if old >= 0:
        total = max(total - scores[old], 0.0)
    target = rng.random() * (stay + total + opened) - stay
    if target < 0.0:
        return old
    if opened > 0.0 and target >= total:
        return -1
    if old >= 0:
        scores[old] = 0.0
    new = find_slot(target, high, scores)
    return new if old < 0 or scores[new] > 0.0 else old  # what a difference left of the total may be rounding


@compiled(allocates=False)
def break_off(rng, gamma, weights, rest, slot):
    """Give a new topic its piece of the stick without topics: Beta(1, gamma), by the inverse of its distribution."""
    log_left = math.log1p(-rng.random()) / gamma
    weights[slot] = -math.expm1(log_left) * rest[0]
    rest[0] *= math.exp(log_left)  # what little may be left is lost in a difference


@compiled(allocates=False)
def sweep(rng, tokens, start, hyper, state, room):
    """Change `state`: draw the topic of each token in turn, from token `start`.

    Returns the next token: if it is not the end, there is no free slot left, and the sweep goes on with more of them.
    """
    words, documents, offsets = tokens
    alpha, gamma, eta = hyper
    labels, counts, sizes, weights, rest = state
    here, base, scores, _ = room
    n_words, capacity = counts.shape
    total_prior = n_words * eta
    high, fresh = slots_in_use(sizes)
    t = start
    while t < len(words) and fresh < capacity:
        d = documents[t]
        begin, end = offsets[d], offsets[d + 1]
        here[:] = 0.0
        for s in range(begin, end):
            if labels[s] >= 0:
                here[labels[s]] += 1.0
        for k in range(high):
            base[k] = (here[k] + alpha * weights[k]) / (sizes[k] + total_prior)
        while t < end and fresh < capacity:
            w, old = words[t], labels[t]
            if old >= 0 and sizes[old] == 1:
                # The last token of a topic: its stick goes to the rest.
                counts[w, old] -= 1
                sizes[old] = 0
                here[old] = 0.0
                rest[0] += weights[old]
                weights[old] = 0.0
                base[old] = 0.0
                fresh = min(fresh, old)
                old = -1
            low, stay = 0.0, 0.0
            if old >= 0:
                low = (here[old] - 1.0 + alpha * weights[old]) / (sizes[old] - 1 + total_prior)
                stay = (counts[w, old] - 1 + eta) * low
            new = draw_slot(rng, counts[w], old, stay, alpha * rest[0] / n_words, eta, high, base, scores)
            if new >= 0 and new == old:
                t += 1
                continue
            if new < 0:
                new = fresh
                break_off(rng, gamma, weights, rest, new)
                if new >= high:
                    for k in range(high, high + BLOCK):
                        base[k] = 0.0
                    high += BLOCK
            if old >= 0:
                counts[w, old] -= 1
                sizes[old] -= 1
                here[old] -= 1.0
                base[old] = low
            labels[t] = new
            counts[w, new] += 1
            sizes[new] += 1
            here[new] += 1.0
            base[new] = (here[new] + alpha * weights[new]) / (sizes[new] + total_prior)
            t += 1
            while fresh < capacity and sizes[fresh] > 0:
                fresh += 1
    return t


@compiled(allocates=False)
def count_tables(rng, offsets, labels, new_table, here, tables):
    """Add up, over documents, at how many tables the tokens of each topic sit: sums of coins w / (w + r)."""
    for d in range(len(offsets) - 1):
        for t in range(offsets[d], offsets[d + 1]):
            # Token r + 1 of its topic in this document opens a table with probability w / (w + r).
            k = labels[t]
            weight, r = new_table[k], here[k]
            if r == 0 or rng.random() * (weight + r) < weight:
                tables[k] += 1
            here[k] += 1
        for t in range(offsets[d], offsets[d + 1]):
            here[labels[t]] = 0


@compiled(inner=True, allocates=False)
def log_rising(x, n):
    """Logarithm of x (x + 1) ... (x + n - 1)."""
    if n > 24:
        return math.lgamma(x + n) - math.lgamma(x)
    total, product = 0.0, 1.0
    for r in range(n):
        product *= x + r
        if r % 6 == 5:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@compiled(allocates=False)
def log_seats(offsets, labels, new_table, here):
    """sum_dk log Gamma(w_k + n_dk) / Gamma(w_k)."""
    total = 0.0
    for d in range(len(offsets) - 1):
        for t in range(offsets[d], offsets[d + 1]):
            here[labels[t]] += 1
        for t in range(offsets[d], offsets[d + 1]):
            k = labels[t]
            if here[k] > 0:
                total += log_rising(new_table[k], here[k])
                here[k] = 0
    return total


@compiled(allocates=False)
def histogram_of(order, ends, labels, here, histogram):
    """How many pairs of a word and a topic have each count of tokens, zero left out; `here` is zero before and after.

    The tokens of word w are ``order[ends[w - 1]], ..., order[ends[w] - 1]``.
    """
    begin = 0
    for w in range(len(ends)):
        for s in range(begin, ends[w]):
            here[labels[order[s]]] += 1
        for s in range(begin, ends[w]):
            k = labels[order[s]]
            if here[k] > 0:
                histogram[here[k]] += 1
                here[k] = 0
        begin = ends[w]
