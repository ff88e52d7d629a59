# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled local step of the variational HDP topic model; see `pluri.topics.hdp.variational`.

A document has T sticks; stick i points to topic k with probability zeta_ik, and a token of word n belongs to stick i
with probability phi_ni. Given E[log beta_kw] (`log_topic`, words by topics) and E[log sigma_k] (`log_weight`), in turn

    zeta_ik ~ exp(E[log sigma_k] + sum_n c_n phi_ni E[log beta_kn]),
    phi_ni ~ exp(E[log sigma_i(pi_d)] + sum_k zeta_ik E[log beta_kn]),

and pi_i ~ Beta(1 + sum_n c_n phi_ni, alpha + sum_n c_n sum_{j>i} phi_nj).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._special_functions import digamma


class Documents(NamedTuple):
    """Rows of a sparse matrix: where they end, the words in them, and how often each occurs."""

    indptr: Any
    words: Any
    occurrences: Any


class Given(NamedTuple):
    """What documents need of the rest: E[log beta] (words by topics), E[log sigma(v)], E[alpha] and E[log alpha]."""

    log_topic: Any
    log_weight: Any
    alpha: float
    log_alpha: float


class Factors(NamedTuple):
    """Local factors of a document, and E[log sigma(pi_d)]."""

    phi: Any
    zeta: Any
    sticks: Any
    log_stick: Any


class LocalRoom(NamedTuple):
    """Memory of a pass: the best factors of a document and new ones, and what topics are ranked by.

    Made here, not in the compiled loop: to compile the making of arrays of so many kinds takes longer than the loop.
    """

    best: Factors
    new: Factors
    score: Any
    share: Any
    chosen: Any

    @classmethod
    def of(cls, longest: int, n_sticks: int, n_topics: int) -> LocalRoom:
        """For documents of at most so many words."""
        log_stick = np.zeros(n_sticks)
        best, new = (
            Factors(np.empty((longest, n_sticks)), np.zeros((n_sticks, n_topics)), np.ones((n_sticks, 2)), log_stick)
            for _ in range(2)
        )
        return cls(best, new, np.zeros(n_topics), np.empty(n_topics), np.zeros(n_sticks, dtype=np.int64))


class LocalSums(NamedTuple):
    """Statistics over documents; totals of the bound, of documents with words, and of -E[log(1 - pi_di)]."""

    topic_word: Any
    usage: Any
    totals: Any


@compiled(inner=True, allocates=False)
def update_sticks(first, last, occurrences, phi, alpha, sticks, log_stick):
    """Beta parameters of the document's sticks given phi; returns the largest change of a stick's tokens."""
    n_sticks = len(log_stick)
    change, tail = 0.0, 0.0
    for i in range(n_sticks - 1, -1, -1):
        total = 0.0
        for n in range(last - first):
            total += occurrences[first + n] * phi[n, i]
        change = max(change, abs(1.0 + total - sticks[i, 0]))
        sticks[i, 0] = 1.0 + total
        sticks[i, 1] = alpha + tail
        tail += total
    expect_sticks(sticks, log_stick)
    return change


@compiled(inner=True, allocates=False)
def expect_sticks(sticks, log_stick):
    """E[log sigma_i(pi_d)]; the last stick takes all that is left."""
    passed = 0.0
    for i in range(len(log_stick) - 1):
        both = digamma(sticks[i, 0] + sticks[i, 1])
        log_stick[i] = passed + digamma(sticks[i, 0]) - both
        passed += digamma(sticks[i, 1]) - both
    log_stick[len(log_stick) - 1] = passed


@compiled(reorder=True, inner=True, allocates=False)
def update_pointers(first, last, words, occurrences, log_topic, log_weight, phi, zeta):
    """Topics of the sticks given phi; returns sum_ik zeta_ik (E[log sigma_k] - log zeta_ik)."""
    n_sticks, n_topics = zeta.shape
    bound = 0.0
    for i in range(n_sticks):
        for k in range(n_topics):
            zeta[i, k] = log_weight[k]
        for n in range(last - first):
            weight = occurrences[first + n] * phi[n, i]
            if weight > 1e-12:
                w = words[first + n]
                for k in range(n_topics):
                    zeta[i, k] += weight * log_topic[w, k]
        largest = zeta[i, 0]
        for k in range(1, n_topics):
            largest = max(largest, zeta[i, k])
        total = 0.0
        for k in range(n_topics):
            gap = zeta[i, k] - largest
            zeta[i, k] = gap
            total += math.exp(gap) if gap > -700.0 else 0.0
        log_total = math.log(total)
        for k in range(n_topics):
            log_share = zeta[i, k] - log_total
            share = math.exp(log_share) if log_share > -700.0 else 0.0
            zeta[i, k] = share
            bound += share * (log_weight[k] - log_share)
    return bound


@compiled(reorder=True, inner=True, allocates=False)
def update_tokens(first, last, words, occurrences, log_topic, zeta, log_stick, phi):
    """Sticks of the tokens given the rest; returns sum_n c_n log sum_i exp(...), which is their part of the bound."""
    n_sticks, n_topics = zeta.shape
    bound = 0.0
    for n in range(last - first):
        w = words[first + n]
        largest = -np.inf
        for i in range(n_sticks):
            value = 0.0
            for k in range(n_topics):
                value += zeta[i, k] * log_topic[w, k]
            value += log_stick[i]
            phi[n, i] = value
            largest = max(largest, value)
        total = 0.0
        for i in range(n_sticks):
            phi[n, i] = math.exp(phi[n, i] - largest)
            total += phi[n, i]
        for i in range(n_sticks):
            phi[n, i] /= total
        bound += occurrences[first + n] * (largest + math.log(total))
    return bound


@compiled(inner=True, allocates=False)
def rank_topics(first, last, words, occurrences, log_topic, log_weight, phi, score, share, chosen):
    """Start of a document: stick i gets the i-th of the topics that explain most of its tokens; phi goes by them."""
    n_topics = len(log_weight)
    n_sticks = len(chosen)
    for k in range(n_topics):
        score[k] = 0.0
    for n in range(last - first):
        w = words[first + n]
        largest = -np.inf
        for k in range(n_topics):
            share[k] = log_weight[k] + log_topic[w, k]
            largest = max(largest, share[k])
        total = 0.0
        for k in range(n_topics):
            gap = share[k] - largest
            share[k] = math.exp(gap) if gap > -40.0 else 0.0
            total += share[k]
        for k in range(n_topics):
            score[k] += occurrences[first + n] * share[k] / total
    for i in range(n_sticks):
        best = 0
        for k in range(1, n_topics):
            if score[k] > score[best]:
                best = k
        chosen[i] = best
        score[best] = -1.0 - i  # taken; with more sticks than topics the first ones come again
    for n in range(last - first):
        w = words[first + n]
        largest = -np.inf
        for i in range(n_sticks):
            phi[n, i] = log_weight[chosen[i]] + log_topic[w, chosen[i]]
            largest = max(largest, phi[n, i])
        total = 0.0
        for i in range(n_sticks):
            phi[n, i] = math.exp(phi[n, i] - largest)
            total += phi[n, i]
        for i in range(n_sticks):
            phi[n, i] /= total


@compiled(inner=True, allocates=False)
def copy_rows(source, target, n):
    """Copy the first rows; an assignment of slices takes seconds to compile."""
    for i in range(n):
        for k in range(source.shape[1]):
            target[i, k] = source[i, k]


@compiled(inner=True, allocates=False)
def fit_document(first, last, documents, given, max_iter, tol, own):
    """Change `own`: raise the document's part of the bound, beginning with phi; returns that part."""
    _, words, occurrences = documents
    log_topic, log_weight, alpha, log_alpha = given
    phi, zeta, sticks, log_stick = own
    pointers = tokens = 0.0
    for _ in range(max_iter):
        change = update_sticks(first, last, occurrences, phi, alpha, sticks, log_stick)
        pointers = update_pointers(first, last, words, occurrences, log_topic, log_weight, phi, zeta)
        tokens = update_tokens(first, last, words, occurrences, log_topic, zeta, log_stick, phi)
        if change < tol:
            break
    bound = pointers + tokens
    for i in range(len(log_stick) - 1):
        a, b = sticks[i, 0], sticks[i, 1]
        both = digamma(a + b)
        log_in, log_out = digamma(a) - both, digamma(b) - both
        bound += log_alpha + (alpha - 1.0) * log_out
        bound += math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b) - (a - 1.0) * log_in - (b - 1.0) * log_out
    return bound


@compiled(inner=True, allocates=False)
def add_document(first, last, documents, own, sums):
    """Add the statistics of a document to `sums`, but for its bound."""
    _, words, occurrences = documents
    phi, zeta, sticks, _ = own
    n_sticks, n_topics = zeta.shape
    sums.totals[1] += 1.0
    for i in range(n_sticks - 1):
        sums.totals[2] -= digamma(sticks[i, 1]) - digamma(sticks[i, 0] + sticks[i, 1])
    for i in range(n_sticks):
        for k in range(n_topics):
            sums.usage[k] += zeta[i, k]
    for n in range(last - first):
        w = words[first + n]
        for i in range(n_sticks):
            weight = occurrences[first + n] * phi[n, i]
            if weight > 1e-300:
                for k in range(n_topics):
                    sums.topic_word[w, k] += weight * zeta[i, k]


@compiled(allocates=False)
def local_pass(begin, end, documents, given, max_iter, tol, kept_zeta, kept_sticks, warm, fresh, room, sums):
    """Change `kept_zeta`, `kept_sticks` and `sums`: local factors of documents `begin` to `end` and their statistics.

    `kept_zeta` and `kept_sticks` hold the factors of all documents, or none. With `warm` a document goes on from there,
    with `fresh` it makes a new start; of both, the better one is kept.
    """
    indptr, words, occurrences = documents
    log_topic, log_weight, _, _ = given
    best, new, score, share, chosen = room
    phi, zeta, sticks, log_stick = best
    new_phi, new_zeta, new_sticks, _ = new
    n_sticks = len(chosen)
    for d in range(begin, end):
        first, last = indptr[d], indptr[d + 1]
        if last == first:
            continue
        bound = -np.inf
        for attempt in range(2):
            if attempt == 0 and warm:
                copy_rows(kept_zeta[d], new_zeta, n_sticks)
                copy_rows(kept_sticks[d], new_sticks, n_sticks)
                expect_sticks(new_sticks, log_stick)
                update_tokens(first, last, words, occurrences, log_topic, new_zeta, log_stick, new_phi)
            elif attempt == 1 and fresh:
                rank_topics(first, last, words, occurrences, log_topic, log_weight, new_phi, score, share, chosen)
                for i in range(n_sticks):
                    new_sticks[i, 0], new_sticks[i, 1] = 1.0, 1.0
            else:
                continue
            value = fit_document(first, last, documents, given, max_iter, tol, new)
            if value > bound:
                bound = value
                copy_rows(new_phi, phi, last - first)
                copy_rows(new_zeta, zeta, n_sticks)
                copy_rows(new_sticks, sticks, n_sticks)
        if len(kept_zeta) > 0:
            copy_rows(zeta, kept_zeta[d], n_sticks)
            copy_rows(sticks, kept_sticks[d], n_sticks)
        sums.totals[0] += bound
        add_document(first, last, documents, best, sums)
