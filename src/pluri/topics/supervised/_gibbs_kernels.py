# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Sweeps over tokens whose topics must also explain what was said of the document.

A token of word w, without itself, has topic k with weight ``(n_wk + eta) c_k push_k``, where
``c_k = (n_dk + a_k) / (n_k + E)`` and `push` is p(y | topics with the token in k), up to a factor. Topics are looked at
sixteen at a time, and the token's present topic first, as in `pluri.topics.lda.sampling._gibbs_kernels`.

*Ratings*: with q_k = w_k sqrt(tau) / N and r = (y - w' zbar) sqrt(tau) without the token, push_k is proportional to
exp{-(r - q_k)^2 / 2}. Relative to that of a topic b it is exp{s_k (r - q_b - s_k / 2)}, s_k = q_k - q_b: no large
numbers are subtracted from each other. At first b is the topic whose q_b is next to r, and no exponent is positive; it
is chosen anew where r has moved so far that one could be large.

*Classes*: push_k is proportional to e_yk / sum_c u_c e_ck, with e_ck = exp(w_ck / N) and u_c = exp(w_c' zbar), without
the token. If coefficients of a document are so large that this leaves the range of numbers, logarithms are taken.
"""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.lda._lanes import add, load, multiply, prefetch, replaced, spread, store, subtract, total
from pluri.topics.lda._token_draws import AHEAD, ZERO, next_bits, search
from pluri.topics.supervised._lane_functions import divide, exponential

_f, _u = np.float32, np.uint64
TINY_UNIT = _f(2.0**-24)
HALF = _f(0.5)
#: Exponents of ratings may become so large before others are subtracted.
LARGEST_EXPONENT = 40.0
#: Lanes of classes that do not exist.
NO_CLASS = _f(-1e30)


@compiled(inline="always", allocates=False)
def drawn(counts, row, n_blocks, k, stay, eta, share, push, work, bits):
    """A topic for a token of topic `k`, which has weight `stay` without the token; changes `work`."""
    sums, smoothing = spread(ZERO), spread(eta)
    for block in range(n_blocks):
        at = _u(16) * _u(block)
        weight = multiply(multiply(add(load(counts, row + at), smoothing), load(share, at)), load(push, at))
        sums = add(sums, replaced(weight, k - at, ZERO))
        store(work, at, sums)
    target = _f(bits >> _u(40)) * TINY_UNIT * (total(sums) + stay) - stay
    if target >= ZERO:
        return search(sums, work, n_blocks, target)
    return k


@compiled(inline="always", allocates=False)
def move(counts, row, mine, in_document, totals, share, alpha, prior_total, old, new):
    """Change counts and shares: count a token to topic `new` instead of `old`."""
    counts[row + old] -= 1
    counts[row + new] += 1
    in_document[mine + old] -= 1
    in_document[mine + new] += 1
    totals[old] -= 1
    totals[new] += 1
    for k in (old, new):
        # Whole blocks are written, as whole blocks are read next.
        value = (_f(in_document[mine + k]) + alpha[k]) / (_f(totals[k]) + prior_total)
        block = k & ~_u(15)
        store(share, block, replaced(load(share, block), k - block, value))


@compiled(inner=True, allocates=False)
def refer(pull, residual, n_topics, step):
    """Fill `step` with differences from the pull next to the residual; that pull, and how far the residual may move."""
    base = pull[0]
    for k in range(1, n_topics):
        if abs(residual - pull[k]) < abs(residual - base):
            base = pull[k]
    widest = 0.0
    for k in range(n_topics):
        step[k] = pull[k] - base
        widest = max(widest, abs(pull[k] - base))
    return base, LARGEST_EXPONENT / max(widest, 1e-30)


@compiled(allocates=False)
def sweep_ratings(tokens, seated, priors, ratings, seeds, room, pull, step):
    """Change `seated`: draw the topic of every token given all others and the ratings.

    `pull` and `step` have room for a number of every topic, `step` in whole blocks.
    """
    words, _, offsets = tokens
    topics, word_topic, totals, in_documents = seated
    alpha, eta, prior_total = priors
    share, push, work = room
    n_topics, width = _u(len(alpha)), _u(word_topic.shape[1])
    n_blocks = width >> _u(4)
    counts, in_document = word_topic.reshape(-1), in_documents.reshape(-1)
    state = (seeds[0], seeds[1])
    root = np.sqrt(ratings.precision)
    for d in range(len(offsets) - 1):
        begin, end = offsets[d], offsets[d + 1]
        mine = _u(d) * width
        matters = ratings.rated[d]
        residual = ratings.rating[d] * root
        for k in range(n_topics):
            share[k] = (_f(in_document[mine + k]) + alpha[k]) / (_f(totals[k]) + prior_total)
            push[k] = _f(1.0)
            if matters and end > begin:
                pull[k] = ratings.coefficients[k] * root / (end - begin)
                residual -= pull[k] * in_document[mine + k]
        origin, reach, base = 0.0, -1.0, 0.0
        for i in range(begin, end):
            if i + AHEAD < end:
                for block in range(n_blocks):
                    prefetch(counts, _u(words[i + AHEAD]) * width + _u(16) * _u(block))
            k = _u(topics[i])
            row = _u(words[i]) * width
            if matters:
                without = residual + pull[k]
                if not abs(without - origin) <= reach:
                    origin = without
                    base, reach = refer(pull, without, n_topics, step)
                gap = spread(_f(without - base))
                for block in range(n_blocks):
                    at = _u(16) * _u(block)
                    steps = load(step, at)
                    half = multiply(steps, spread(HALF))
                    store(push, at, exponential(multiply(steps, subtract(gap, half))))
            bits, state = next_bits(state)
            low = (_f(in_document[mine + k] - 1) + alpha[k]) / (_f(totals[k] - 1) + prior_total)
            stay = (_f(counts[row + k] - 1) + eta) * low * push[k]
            new = drawn(counts, row, n_blocks, k, stay, eta, share, push, work, bits)
            if new != k and new < n_topics:
                topics[i] = new
                move(counts, row, mine, in_document, totals, share, alpha, prior_total, k, new)
                if matters:
                    residual += pull[k] - pull[new]


@compiled(inner=True, allocates=False)
def push_by_logarithms(scores, pull, given, old, n_classes, n_topics, push):
    """Fill `push`: probability of the class with the token in each topic, relative to the largest."""
    largest = -np.inf
    for turn in range(2):
        for k in range(n_topics):
            highest = -np.inf
            for c in range(n_classes):
                highest = max(highest, scores[c] - pull[old, c] + pull[k, c])
            mass = 0.0
            for c in range(n_classes):
                mass += np.exp(scores[c] - pull[old, c] + pull[k, c] - highest)
            value = scores[given] - pull[old, given] + pull[k, given] - highest - np.log(mass)
            if turn == 0:
                largest = max(largest, value)
            else:
                push[k] = np.exp(value - largest)


@compiled(inline="always", allocates=False)
def push_by_products(level, flat_pull, tables, given, old, n_class_blocks, n_classes, n_blocks, width, odds, push):
    """The same up to a factor, where products stay in the range of numbers."""
    for block in range(n_class_blocks):
        at = _u(16) * _u(block)
        fall = load(flat_pull, old * n_class_blocks * _u(16) + at)
        store(odds, at, exponential(subtract(load(level, at), fall)))
    for block in range(n_blocks):
        at = _u(16) * _u(block)
        mass = spread(ZERO)
        for c in range(n_classes):
            mass = add(mass, multiply(spread(odds[c]), load(tables, _u(c) * width + at)))
        store(push, at, divide(load(tables, _u(given) * width + at), mass))


@compiled(inner=True, allocates=False)
def enter(coefficients, mine, in_document, length, products, class_room):
    """Fill `class_room`: scores of the classes of a document, and what a token of each topic adds to them."""
    scores, pull, single_pull, tables, _, _ = class_room
    n_classes, n_topics = coefficients.shape
    scores[:n_classes] = 0.0
    for c in range(n_classes):
        for k in range(n_topics):
            pull[k, c] = coefficients[c, k] / length
            scores[c] += pull[k, c] * in_document[mine + _u(k)]
            single_pull[k, c] = pull[k, c]
            tables[c, k] = pull[k, c]
        tables[c, n_topics:] = ZERO
    if products:
        flat = tables.reshape(-1)
        for block in range(flat.size // 16):
            store(flat, _u(16) * _u(block), exponential(load(flat, _u(16) * _u(block))))


@compiled(inner=True, allocates=False)
def settle(scores, n_classes, level):
    """Put the scores, relative to the highest, into `level`."""
    highest = scores[0]
    for c in range(1, n_classes):
        highest = max(highest, scores[c])
    for c in range(n_classes):
        level[c] = scores[c] - highest


@compiled()
def sweep_classes(tokens, seated, priors, classes, seeds, room, class_room):
    """Change `seated`, as `sweep_ratings` does, for classes with probabilities softmax(coefficients @ shares)."""
    words, _, offsets = tokens
    topics, word_topic, totals, in_documents = seated
    alpha, eta, prior_total = priors
    label, coefficients, largest_product = classes
    share, push, work = room
    scores, pull, single_pull, tables, level, odds = class_room
    n_topics, width = _u(len(alpha)), _u(word_topic.shape[1])
    n_blocks, n_classes = width >> _u(4), coefficients.shape[0]
    n_class_blocks = _u(len(level)) >> _u(4)
    counts, in_document = word_topic.reshape(-1), in_documents.reshape(-1)
    flat_pull, flat_tables = single_pull.reshape(-1), tables.reshape(-1)
    state = (seeds[0], seeds[1])
    largest = 0.0
    for c in range(n_classes):
        for k in range(n_topics):
            largest = max(largest, abs(coefficients[c, k]))
    for c in range(n_classes, len(level)):
        level[c] = NO_CLASS
    for d in range(len(offsets) - 1):
        begin, end = offsets[d], offsets[d + 1]
        if end == begin:
            continue
        mine, given = _u(d) * width, label[d]
        products = largest <= largest_product * (end - begin)
        for k in range(n_topics):
            share[k] = (_f(in_document[mine + k]) + alpha[k]) / (_f(totals[k]) + prior_total)
            push[k] = _f(1.0)
        if given >= 0:
            enter(coefficients, mine, in_document, end - begin, products, class_room)
            settle(scores, n_classes, level)
        for i in range(begin, end):
            if i + AHEAD < end:
                for block in range(n_blocks):
                    prefetch(counts, _u(words[i + AHEAD]) * width + _u(16) * _u(block))
            k = _u(topics[i])
            row = _u(words[i]) * width
            if given >= 0 and products:
                push_by_products(
                    level, flat_pull, flat_tables, given, k, n_class_blocks, n_classes, n_blocks, width, odds, push
                )
            elif given >= 0:
                push_by_logarithms(scores, pull, given, k, n_classes, n_topics, push)
            bits, state = next_bits(state)
            low = (_f(in_document[mine + k] - 1) + alpha[k]) / (_f(totals[k] - 1) + prior_total)
            stay = (_f(counts[row + k] - 1) + eta) * low * push[k]
            new = drawn(counts, row, n_blocks, k, stay, eta, share, push, work, bits)
            if new != k and new < n_topics:
                topics[i] = new
                move(counts, row, mine, in_document, totals, share, alpha, prior_total, k, new)
                if given >= 0:
                    for c in range(n_classes):
                        scores[c] += pull[new, c] - pull[k, c]
                    settle(scores, n_classes, level)
