# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops with expected counts: each word's topics given what the others are expected to be."""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled


@compiled(reorder=True)
def pseudo_counts(entries, occurrences, phi, alpha, max_iter, tol, share, expected):
    """Fill in shares of the topics in each distinct word of a document, and their sums; return the last change.

    ``share_ek`` is proportional to ``(alpha_k + sum_{other words} share_k) phi_kw``: each word in turn is seen with the
    expected counts of the others, until they agree. A word that no topic has says nothing.
    """
    n_entries, n_topics = entries.size, alpha.size
    for k in range(n_topics):
        expected[k] = 0.0
    for e in range(n_entries):
        mine, probabilities = share[e], phi[entries[e]]
        total = 0.0
        for k in range(n_topics):
            mine[k] = alpha[k] * probabilities[k]
            total += mine[k]
        scale = 1.0 / total if total > 0.0 else 0.0
        for k in range(n_topics):
            mine[k] *= scale
            expected[k] += occurrences[e] * mine[k]
    change = math.inf
    for _ in range(max_iter):
        change = 0.0
        for e in range(n_entries):
            mine, probabilities = share[e], phi[entries[e]]
            total = 0.0
            for k in range(n_topics):
                total += probabilities[k] * (alpha[k] + max(expected[k] - mine[k], 0.0))
            if total <= 0.0:
                continue
            scale, count = 1.0 / total, occurrences[e]
            for k in range(n_topics):
                new = scale * probabilities[k] * (alpha[k] + max(expected[k] - mine[k], 0.0))
                step = count * (new - mine[k])
                mine[k] = new
                expected[k] += step
                change += abs(step)
        if change < tol * n_topics:
            break
    return change


@compiled()
def pseudo_count_rows(first, last, entries, occurrences, indptr, phi, alpha, max_iter, tol, expected):
    """Expected counts of the documents from `first` to `last` by pseudo-counts."""
    longest = 0
    for d in range(first, last):
        longest = max(longest, indptr[d + 1] - indptr[d])
    share = np.empty((longest, alpha.size))
    for d in range(first, last):
        a, b = indptr[d], indptr[d + 1]
        pseudo_counts(entries[a:b], occurrences[a:b], phi, alpha, max_iter, tol, share, expected[d - first])


@compiled()
def importance(rng, first, last, entries, occurrences, indptr, phi, alpha, max_iter, tol, n_samples, scores):
    """Importance sampling of the assignments, each word by itself from its pseudo-counts."""
    n_topics = alpha.size
    prior_total = alpha.sum()
    longest = 0
    for d in range(first, last):
        longest = max(longest, indptr[d + 1] - indptr[d])
    share = np.empty((longest, n_topics))
    rising = np.empty((longest, n_topics))
    ratio = np.empty((longest, n_topics))
    expected = np.empty(n_topics)
    count = np.empty(n_topics)
    for d in range(first, last):
        a, b = indptr[d], indptr[d + 1]
        if a == b:
            scores[d] = 0.0
            continue
        pseudo_counts(entries[a:b], occurrences[a:b], phi, alpha, max_iter, tol, share, expected)
        for e in range(b - a):
            reached = 0.0
            for k in range(n_topics):
                reached += share[e, k]
                rising[e, k] = reached
                ratio[e, k] = phi[entries[a + e], k] / share[e, k] if share[e, k] > 0.0 else 0.0
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
                    low, high = 0, n_topics - 1
                    while low < high:
                        middle = (low + high) // 2
                        if point < rising[e, middle]:
                            high = middle
                        else:
                            low = middle + 1
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
