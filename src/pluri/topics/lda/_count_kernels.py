# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Compiled loops over the topics of tokens: counts, their log probability, and a draw from the prior."""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import first_above
from pluri.topics.lda._lanes import load, total
from pluri.topics.lda._token_draws import ZERO, next_bits

_u = np.uint64


@compiled()
def count_tokens(words, topics, word_topic, totals):
    """Counts of the tokens that have a topic."""
    for i in range(len(words)):
        if topics[i] >= 0:
            word_topic[words[i], topics[i]] += 1
            totals[topics[i]] += 1


@compiled()
def count_documents(offsets, topics, n_topics, indptr, indices, counts):
    """Topics of each document and their counts, as rows of a sparse matrix; how many entries."""
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


@compiled()
def mark_active(word_topic, active):
    """Bits of blocks of topics in which each word has tokens."""
    counts, width = word_topic.reshape(-1), word_topic.shape[1]
    active[:] = _u(0)
    for w in range(word_topic.shape[0]):
        for block in range(width // 16):
            if total(load(counts, w * width + 16 * block)) > ZERO:
                active[w, block // 64] |= _u(1) << _u(block % 64)


@compiled()
def draw_topics(offsets, alpha_ends, seeds, topics):
    """Topics of all tokens under the prior, by an urn: a token repeats an earlier one of its document, or is new."""
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


@compiled()
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


@compiled()
def log_topics(offsets, topics, alpha, alpha_total):
    """Log p(z) of the topics of all tokens."""
    value, product = 0.0, 1.0
    in_document = np.zeros(len(alpha), dtype=np.int32)
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
