# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Compiled loops of collapsed Gibbs sampling for latent Dirichlet allocation: counts, their probability, and sweeps.

A token of word w in document d, without itself, has topic k with weight ``(n_wk + e_wk) c_k`` where
``c_k = (n_dk + a_k) / (n_k + E_k)``. Topics are looked at sixteen at a time, in any order that suits: lane by lane.

The token's present topic comes first. If the draw falls on it nothing changes, and as that happens often, the
processor guesses so and begins with the next token: more than half of the speed. Counts are whole numbers and `c` is
computed from them anew whenever it changes, so that nothing drifts. The records are those of `topic_assignments`.
"""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import first_above
from pluri.topics.lda._lanes import add, load, multiply, prefetch, replaced, spread, store, total
from pluri.topics.lda._token_draws import AHEAD, ZERO, next_bits, search

_f, _u = np.float32, np.uint64
TINY_UNIT = _f(2.0**-24)
#: Blocks of a row that are asked for; the processor guesses that it needs those behind them.
FEW_BLOCKS = _u(8)


@compiled(allocates=False)
def count_tokens(words, topics, word_topic, totals):
    """Change `word_topic` and `totals`: count the tokens that have a topic."""
    for i in range(len(words)):
        if topics[i] >= 0:
            word_topic[words[i], topics[i]] += 1
            totals[topics[i]] += 1


@compiled()
def count_documents(offsets, topics, n_topics, indptr, indices, counts):
    """Fill the last three: topics of each document and their counts, as a sparse matrix; how many entries."""
    in_document = np.zeros(n_topics, dtype=np.int32)
    n = 0
    for d in range(len(offsets) - 1):
        start = n
        for i in range(offsets[d], offsets[d + 1]):
            k = topics[i]
            if in_document[k] == 0:
                indices[n] = k
                n += 1
            in_document[k] += 1
        for entry in range(start, n):
            counts[entry] = in_document[indices[entry]]
            in_document[indices[entry]] = 0
        indptr[d + 1] = n
    return n


@compiled(allocates=False)
def draw_topics(offsets, alpha_ends, seeds, topics):
    """Fill `topics` under the prior, by an urn: a token repeats an earlier one of its document, or is new."""
    state = (seeds[0], seeds[1])
    alpha_total = alpha_ends[-1]
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            n = i - offsets[d]
            bits, state = next_bits(state)
            place = np.float64(bits >> _u(11)) * 2.0**-53 * (alpha_total + n)
            if place < n:
                topics[i] = topics[offsets[d] + int(place)]
            else:
                topics[i] = first_above(place - n, alpha_ends)


@compiled(allocates=False)
def log_words(word_topic, totals, prior, prior_by_topic, prior_totals, n_topics):
    """Log p(w | z): sums of log rising factorials, few logarithms as factors are multiplied while there is room."""
    value, product = 0.0, 1.0
    for w in range(word_topic.shape[0]):
        for k in range(n_topics):
            n = word_topic[w, k]
            if n == 0:
                continue
            eta = prior[w, k] if prior_by_topic else prior[w, 0]
            if n > 16:
                value += math.lgamma(n + eta) - math.lgamma(eta)
                continue
            for j in range(n):
                product *= eta + j
                if not 1e-250 < product < 1e250:
                    value += math.log(product)
                    product = 1.0
    for k in range(n_topics):
        value -= math.lgamma(totals[k] + prior_totals[k]) - math.lgamma(prior_totals[k])
    return value + math.log(product)


@compiled(allocates=False)
def log_topics(offsets, topics, alpha, alpha_total, in_document):
    """Log p(z) of the topics of all tokens; `in_document` is memory, all zero before and after."""
    value, product = 0.0, 1.0
    for d in range(len(offsets) - 1):
        for i in range(offsets[d], offsets[d + 1]):
            k = topics[i]
            product *= (alpha[k] + in_document[k]) / (alpha_total + (i - offsets[d]))
            in_document[k] += 1
            if not 1e-250 < product < 1e250:
                value += math.log(product)
                product = 1.0
        for i in range(offsets[d], offsets[d + 1]):
            in_document[topics[i]] = 0
    return value + math.log(product)


@compiled(allocates=False)
def dense_sweep(tokens, part, counts, priors, seeds, room):
    """Change `tokens` and `counts`: redraw the topics of a part of the tokens by going through all; how many moved."""
    words, offsets, topics = tokens.words, tokens.offsets, tokens.topics
    begins, ends, totals = part.begins, part.ends, counts.totals
    alpha, prior, prior_by_topic, prior_totals = priors.alpha, priors.word, priors.by_topic, priors.word_totals
    in_document, share, work = room.in_document, room.share, room.work
    n_topics, width = _u(len(alpha)), _u(counts.word_topic.shape[1])
    n_blocks = width >> _u(4)
    table = counts.word_topic.reshape(-1)
    state = (seeds[0], seeds[1])
    n_moved = 0
    for d in range(part.first, part.stop):
        for k in range(width):
            in_document[k] = 0
        for i in range(offsets[d], offsets[d + 1]):
            in_document[_u(topics[i])] += 1
        for k in range(n_topics):
            share[k] = (_f(in_document[k]) + alpha[k]) / (_f(totals[k]) + prior_totals[k])
        for i in range(begins[d], ends[d]):
            if i + AHEAD < ends[d]:
                for block in range(min(n_blocks, FEW_BLOCKS)):
                    prefetch(table, _u(words[i + AHEAD]) * width + _u(16) * _u(block))
            w, k = _u(words[i]), _u(topics[i])
            row = w * width
            n = table[row + k]
            eta = prior[row + k] if prior_by_topic else prior[w]
            low = (_f(in_document[k] - 1) + alpha[k]) / (_f(totals[k] - 1) + prior_totals[k])
            stay = (_f(n - 1) + eta) * low
            bits, state = next_bits(state)
            sums, smoothing = spread(ZERO), spread(eta)
            for block in range(n_blocks):
                at = _u(16) * _u(block)
                if prior_by_topic:
                    smoothing = load(prior, row + at)
                weight = multiply(add(load(table, row + at), smoothing), load(share, at))
                sums = add(sums, replaced(weight, k - at, ZERO))
                store(work, at, sums)
            target = _f(bits >> _u(40)) * TINY_UNIT * (total(sums) + stay) - stay
            if target >= ZERO:
                new = search(sums, work, n_blocks, target)
                if new < n_topics:
                    n_moved += 1
                    topics[i] = new
                    table[row + k] = n - 1
                    table[row + new] += 1
                    in_document[k] -= 1
                    in_document[new] += 1
                    totals[k] -= 1
                    totals[new] += 1
                    high = (_f(in_document[new]) + alpha[new]) / (_f(totals[new]) + prior_totals[new])
                    # Whole blocks are written, as whole blocks are read next: a processor cannot join a short store
                    # and a long load, and would wait.
                    block = k & ~_u(15)
                    store(share, block, replaced(load(share, block), k - block, low))
                    block = new & ~_u(15)
                    store(share, block, replaced(load(share, block), new - block, high))
    return n_moved


@compiled(allocates=False)
def seat(tokens, first, counts, priors, seeds, room):
    """Change `tokens` and `counts`: give tokens without a topic (-1) one in turn, from document `first` on."""
    words, offsets, topics, totals = tokens.words, tokens.offsets, tokens.topics, counts.totals
    alpha, prior, prior_by_topic, prior_totals = priors.alpha, priors.word, priors.by_topic, priors.word_totals
    in_document, share, work = room.in_document, room.share, room.work
    n_topics, width = _u(len(alpha)), _u(counts.word_topic.shape[1])
    table = counts.word_topic.reshape(-1)
    state = (seeds[0], seeds[1])
    for d in range(first, len(offsets) - 1):
        for k in range(width):
            in_document[k] = 0
        for i in range(offsets[d], offsets[d + 1]):
            if topics[i] >= 0:
                in_document[_u(topics[i])] += 1
        for k in range(n_topics):
            share[k] = (_f(in_document[k]) + alpha[k]) / (_f(totals[k]) + prior_totals[k])
        for i in range(offsets[d], offsets[d + 1]):
            if topics[i] >= 0:
                continue
            w = _u(words[i])
            row = w * width
            bits, state = next_bits(state)
            sums, smoothing = spread(ZERO), spread(prior[w])
            for block in range(width >> _u(4)):
                at = _u(16) * _u(block)
                if prior_by_topic:
                    smoothing = load(prior, row + at)
                sums = add(sums, multiply(add(load(table, row + at), smoothing), load(share, at)))
                store(work, at, sums)
            new = search(sums, work, width >> _u(4), _f(bits >> _u(40)) * TINY_UNIT * total(sums))
            new = min(new, n_topics - _u(1))
            topics[i] = new
            table[row + new] += 1
            in_document[new] += 1
            totals[new] += 1
            share[new] = (_f(in_document[new]) + alpha[new]) / (_f(totals[new]) + prior_totals[new])
