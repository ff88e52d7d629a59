# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of document completion without randomness, and the score of a document under given proportions."""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._special_functions import exp_psi_parts


@compiled()
def variational_rows(first, last, entries, occurrences, indptr, phi, alpha, max_iter, tol, expected):
    """Expected counts of the documents from `first` to `last` by mean-field variational Bayes, topics held fixed."""
    n_topics = alpha.size
    weight = np.empty(n_topics)
    fresh = np.empty(n_topics)
    for d in range(first, last):
        counts = expected[d - first]
        n = 0.0
        for e in range(indptr[d], indptr[d + 1]):
            n += occurrences[e]
        for k in range(n_topics):
            counts[k] = n / n_topics
        if n == 0.0:
            continue
        for _ in range(max_iter):
            for k in range(n_topics):
                growth, decay = exp_psi_parts(alpha[k] + counts[k])
                weight[k] = growth * math.exp(-decay)
                fresh[k] = 0.0
            for e in range(indptr[d], indptr[d + 1]):
                w = entries[e]
                total = 1e-300
                for k in range(n_topics):
                    total += weight[k] * phi[w, k]
                scale = occurrences[e] / total
                for k in range(n_topics):
                    fresh[k] += scale * phi[w, k]
            change = 0.0
            for k in range(n_topics):
                fresh[k] *= weight[k]
                change += abs(fresh[k] - counts[k])
                counts[k] = fresh[k]
            if change < tol * n_topics:
                break


@compiled()
def log_mixture(first, last, words, offsets, phi, theta, scores):
    """Log probability of the words of each document under its own proportions."""
    for d in range(first, last):
        total = 0.0
        seen = -1
        log_seen = 0.0
        for i in range(offsets[d], offsets[d + 1]):
            w = words[i]
            if w != seen:
                probability = 0.0
                for k in range(phi.shape[1]):
                    probability += theta[d - first, k] * phi[w, k]
                seen = w
                log_seen = math.log(probability) if probability > 0.0 else -math.inf
            total += log_seen
        scores[d] = total
