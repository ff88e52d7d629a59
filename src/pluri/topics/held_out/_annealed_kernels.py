# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loop of annealed importance sampling of a document's topic assignments."""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import place_of


@compiled(reorder=True)
def anneal(rng, entries, occurrences, phi, alpha, temperatures, n_chains, log_weight):
    """Log weights of the chains for one document; see :func:`pluri.topics.held_out.annealed_importance`.

    Where topics lack words, a chain starts from the prior among the topics that have the word; drawn word after word,
    it weighs as much as the prior gives to those topics.
    """
    n_entries, n_topics = entries.size, alpha.size
    prior_total = alpha.sum()
    n = 0
    for e in range(n_entries):
        n += int(occurrences[e])
    z = np.empty((n_chains, n), dtype=np.int64)
    owner = np.empty(n, dtype=np.int64)
    count = np.zeros((n_chains, n_topics))
    log_phi = np.empty((n_entries, n_topics))
    tempered = np.empty((n_entries, n_topics))
    weights = np.empty(n_topics)
    i = 0
    for e in range(n_entries):
        for _ in range(int(occurrences[e])):
            owner[i] = e
            i += 1
        for k in range(n_topics):
            p = phi[entries[e], k]
            log_phi[e, k] = math.log(p) if p > 0.0 else -math.inf
            tempered[e, k] = 1.0 if p > 0.0 else 0.0
    for c in range(n_chains):
        log_weight[c] = 0.0
        for i in range(n):
            total = 0.0
            for k in range(n_topics):
                weights[k] = (alpha[k] + count[c, k]) * tempered[owner[i], k]
                total += weights[k]
            log_weight[c] += math.log(total / (prior_total + i))
            z[c, i] = place_of(rng.random() * total, weights, n_topics)
            count[c, z[c, i]] += 1.0
    for t in range(1, temperatures.size):
        step = temperatures[t] - temperatures[t - 1]
        for e in range(n_entries):
            for k in range(n_topics):
                if tempered[e, k] > 0.0:
                    tempered[e, k] = math.exp(temperatures[t] * log_phi[e, k])
        for c in range(n_chains):
            gained = 0.0
            for i in range(n):
                gained += log_phi[owner[i], z[c, i]]
            log_weight[c] += step * gained
            if t + 1 == temperatures.size:
                continue
            for i in range(n):
                count[c, z[c, i]] -= 1.0
                total = 0.0
                for k in range(n_topics):
                    weights[k] = (alpha[k] + count[c, k]) * tempered[owner[i], k]
                    total += weights[k]
                z[c, i] = place_of(rng.random() * total, weights, n_topics)
                count[c, z[c, i]] += 1.0
