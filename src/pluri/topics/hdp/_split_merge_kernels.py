# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled proposals to split a topic of an HDP in two, or to merge two; see `pluri.topics.hdp.split_merge`."""

import math

from pluri.engine.compiled import compiled
from pluri.topics.hdp._gibbs_kernels import SMALL, log_rising

#: Nobody, among the sides of tokens.
NEITHER = -1


@compiled(inner=True, allocates=False)
def scan(rng, members, tokens, first, second, prior, eta, wanted, sides):
    """Change `sides`: draw those of all members but the anchors.

    Documents are emptied and their tokens seated again one after another: the tokens of a document go together, and
    one alone would not change sides. With `wanted` of full length, the sides are those instead of drawn ones. Members
    whose side is not known yet count for neither. `prior` has the weights of a new table of both sides.

    Returns the log probability of the draws, and the number of documents on each side.
    """
    words, documents, _ = tokens
    side, counts, sizes = sides
    whole = counts.shape[0] * eta
    forced, n = len(wanted) > 0, len(members)
    log_probability, product = 0.0, 1.0
    n_a, n_b, begin = 0, 0, 0
    # Numbers that change with each token are variables: loops write to memory, and would read them from there anew.
    size_a, size_b = float(sizes[0]), float(sizes[1])
    while begin < n:
        d = documents[members[begin]]
        end = begin
        here_a, here_b, some_a, some_b = prior[0], prior[1], False, False
        while end < n and documents[members[end]] == d:
            t, old = members[end], side[end]
            if t == first:
                here_a, some_a = here_a + 1.0, True
            elif t == second:
                here_b, some_b = here_b + 1.0, True
            elif old >= 0:
                counts[words[t], old] -= 1
                size_a -= old == 0
                size_b -= old == 1
            end += 1
        for m in range(begin, end):
            t = members[m]
            if t in (first, second):
                continue
            w = words[t]
            a = here_a * (counts[w, 0] + eta) * (size_b + whole)
            b = here_b * (counts[w, 1] + eta) * (size_a + whole)
            to_a = wanted[m] == 0 if forced else rng.random() * (a + b) < a
            probability = (a if to_a else b) / (a + b)
            if product * probability < SMALL:
                log_probability += math.log(product)
                product = 1.0
            product *= probability
            new = 0 if to_a else 1
            side[m] = new
            counts[w, new] += 1
            size_a, here_a, some_a = size_a + to_a, here_a + to_a, some_a | to_a
            size_b, here_b, some_b = size_b + new, here_b + new, some_b | (not to_a)
        n_a += some_a
        n_b += some_b
        begin = end
    sizes[0], sizes[1] = int(size_a), int(size_b)
    return log_probability + math.log(product), n_a, n_b


@compiled(inner=True, allocates=False)
def seats(members, documents, side, weights):
    """Log seating weights: of the sides apart, and of both together."""
    apart, together = 0.0, 0.0
    begin = 0
    while begin < len(members):
        d = documents[members[begin]]
        end = begin
        here_a, here_b = 0, 0
        while end < len(members) and documents[members[end]] == d:
            here_a += side[end] == 0
            here_b += side[end] == 1
            end += 1
        apart += log_rising(weights[0], here_a) + log_rising(weights[1], here_b)
        together += log_rising(weights[0] + weights[1], here_a + here_b)
        begin = end
    return apart, together


@compiled(inner=True, allocates=False)
def log_words(counts, sizes, eta):
    """Log marginal probability of the words: of the sides apart, less that of both together."""
    n_words = counts.shape[0]
    total = 0.0
    for w in range(n_words):
        a, b = counts[w, 0], counts[w, 1]
        if a > 0 and b > 0:
            total += log_rising(eta, a) + log_rising(eta, b) - log_rising(eta, a + b)
    whole = n_words * eta
    return total - log_rising(whole, sizes[0]) - log_rising(whole, sizes[1]) + log_rising(whole, sizes[0] + sizes[1])


@compiled(allocates=False)
def count_sides(members, tokens, sides):
    """Fill the counts of words and the sizes of both sides; returns the number of documents on each."""
    words, documents, _ = tokens
    side, counts, sizes = sides
    n_a, n_b, last_a, last_b = 0, 0, -1, -1
    for m in range(len(members)):
        d = documents[members[m]]
        counts[words[members[m]], side[m]] += 1
        sizes[side[m]] += 1
        if side[m] == 0 and d != last_a:
            n_a += 1
            last_a = d
        elif side[m] == 1 and d != last_b:
            n_b += 1
            last_b = d
    return n_a, n_b


@compiled(allocates=False)
def propose(rng, members, tokens, first, second, current, hyper, weight, n_scans, sides, prior):
    """Fill `sides`, whose counts are zero at first, for all members; with those of `current`, if it is of full length.

    `weight` is the stick of both sides, `prior` memory for two numbers. Returns the log probability of the
    proposal and the number of documents on each side.
    """
    words, documents, _ = tokens
    side, counts, sizes = sides
    alpha = hyper.alpha
    for m in range(len(members)):
        # The documents of the anchors begin on their sides: a few words say more than one.
        d = documents[members[m]]
        side[m] = NEITHER
        if members[m] == first or (d == documents[first] and d != documents[second]):
            side[m] = 0
        elif members[m] == second or (d == documents[second] and d != documents[first]):
            side[m] = 1
        if side[m] >= 0:
            counts[words[members[m]], side[m]] += 1
            sizes[side[m]] += 1
    prior[0] = prior[1] = 0.5 * alpha * weight
    log_sides, n_a, n_b = 0.0, 1, 1
    for step in range(n_scans + 1):
        # The last scan is the proposal; those before it only find out what the sides may be.
        wanted = current[: len(current) if step == n_scans else 0]
        log_sides, n_a, n_b = scan(rng, members, tokens, first, second, prior, hyper.eta, wanted, sides)
        prior[0] = alpha * weight * n_a / (n_a + n_b)
        prior[1] = alpha * weight - prior[0]
    return log_sides, n_a, n_b


@compiled(allocates=False)
def log_gain(members, documents, sides, prior, eta):
    """Log density of tokens and words with two sides, less that with one, but for the sticks."""
    apart, together = seats(members, documents, sides.side, prior)
    return apart - together + log_words(sides.counts, sides.sizes, eta)
