# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep of plain topics, from which chains over concept graphs start."""

import numpy as np

from pluri.engine.compiled import compiled


@compiled()
def flat_sweep(rng, words, offsets, topic, word_count, total, doc_prior, eta):
    """Collapsed Gibbs sweep of plain topics without a graph: (n_dk + a) (eta + N_kw) / (V eta + N_k)."""
    n_topics, prior = len(total), eta * word_count.shape[0]
    own, weights = np.zeros(n_topics, dtype=np.int64), np.empty(n_topics)
    for d in range(len(offsets) - 1):
        own[:] = 0
        for i in range(offsets[d], offsets[d + 1]):
            own[topic[i]] += 1
        for i in range(offsets[d], offsets[d + 1]):
            k, counts = topic[i], word_count[words[i]]
            own[k] -= 1
            counts[k] -= 1
            total[k] -= 1
            mass = 0.0
            for k in range(n_topics):
                mass += (own[k] + doc_prior) * (eta + counts[k]) / (prior + total[k])
                weights[k] = mass
            goal, k = rng.random() * mass, 0
            while k < n_topics - 1 and weights[k] <= goal:
                k += 1
            topic[i] = k
            own[k] += 1
            counts[k] += 1
            total[k] += 1
