# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Compiled loops with expected counts: each word's topics given what the others are expected to be."""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import first_above
from pluri.topics.held_out._vector_words import move_word, weigh_word
from pluri.topics.lda.aligned_arrays import LANES


@compiled(inner=True)
def room_for(first, last, indptr, alpha):
    """Memory of :func:`pseudo_counts` for the longest of the documents; the prior, padded to whole vectors."""
    longest = 0
    for d in range(first, last):
        longest = max(longest, indptr[d + 1] - indptr[d])
    width = (alpha.size + LANES - 1) // LANES * LANES
    prior = np.zeros(width)
    for k in range(alpha.size):
        prior[k] = alpha[k]
    return prior, np.zeros(longest * width), np.empty(longest * width), np.empty(width), np.empty(width)


@compiled(reorder=True, inner=True)
def pseudo_counts(entries, occurrences, phi, prior, max_iter, tol, rows, share, gamma, weight):
    """Fill in shares of the topics in each distinct word of a document, and prior plus their sums (`gamma`).

    ``share_ek`` is proportional to ``(alpha_k + sum_{other words} share_k) phi_kw``: each word in turn is seen with the
    expected counts of the others, until they agree. A word that no topic has says nothing. Rows of `share`, and those
    of `phi` that `rows` holds meanwhile, are padded with zeros.
    """
    n_entries, n_topics, width = entries.size, phi.shape[1], prior.size
    for e in range(n_entries):
        for k in range(n_topics):
            rows[e * width + k] = phi[entries[e], k]
        for k in range(width):
            share[e * width + k] = 0.0
    for k in range(width):
        gamma[k] = prior[k]
    for turn in range(max_iter + 1):
        change = 0.0
        for e in range(n_entries):
            # The first turn sees the prior alone, so that no word is the first.
            total = weigh_word(rows, share, e * width, gamma if turn > 0 else prior, prior, weight, width)
            if total > 0.0:
                change += move_word(share, e * width, gamma, weight, 1.0 / total, occurrences[e], width)
        if turn > 0 and change < tol * n_topics:
            break


@compiled()
def pseudo_count_rows(first, last, entries, occurrences, indptr, phi, alpha, max_iter, tol, expected):
    """Expected counts of the documents from `first` to `last` by pseudo-counts."""
    prior, rows, share, gamma, weight = room_for(first, last, indptr, alpha)
    for d in range(first, last):
        a, b = indptr[d], indptr[d + 1]
        pseudo_counts(entries[a:b], occurrences[a:b], phi, prior, max_iter, tol, rows, share, gamma, weight)
        for k in range(alpha.size):
            expected[d - first, k] = max(gamma[k] - alpha[k], 0.0)


@compiled()
def importance(rng, first, last, entries, occurrences, indptr, phi, alpha, max_iter, tol, n_samples, scores):
    """Importance sampling of the assignments, each word by itself from its pseudo-counts."""
    n_topics = alpha.size
    prior_total = alpha.sum()
    prior, rows, share, gamma, weight = room_for(first, last, indptr, alpha)
    width = prior.size
    rising = np.empty((share.size // width, n_topics))
    ratio = np.empty((share.size // width, n_topics))
    count = np.empty(n_topics)
    for d in range(first, last):
        a, b = indptr[d], indptr[d + 1]
        if a == b:
            scores[d] = 0.0
            continue
        pseudo_counts(entries[a:b], occurrences[a:b], phi, prior, max_iter, tol, rows, share, gamma, weight)
        for e in range(b - a):
            reached = 0.0
            for k in range(n_topics):
                part = share[e * width + k]
                reached += part
                rising[e, k] = reached
                ratio[e, k] = phi[entries[a + e], k] / part if part > 0.0 else 0.0
        largest = -math.inf
        total = 0.0
        for _ in range(n_samples):
            count[:] = 0.0
            product = 1.0
            log_weight = 0.0
            position = 0.0
            for e in range(b - a):
                for _ in range(int(occurrences[a + e])):
                    point = rng.random() * rising[e, n_topics - 1]
                    low = first_above(point, rising[e])
                    product *= ratio[e, low] * (alpha[low] + count[low]) / (prior_total + position)
                    count[low] += 1.0
                    position += 1.0
                    if product < 1e-150 or product > 1e150:
                        log_weight += math.log(product)
                        product = 1.0
            log_weight += math.log(product)
            if log_weight > largest:
                total = total * math.exp(largest - log_weight) + 1.0
                largest = log_weight
            else:
                total += math.exp(log_weight - largest)
        scores[d] = largest + math.log(total / n_samples)
