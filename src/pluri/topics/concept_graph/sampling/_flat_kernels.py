# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep of plain topics, from which chains over concept graphs start."""

from pluri.engine.compiled import compiled


@compiled(allocates=False)
def flat_sweep(rng, words, offsets, topic, word_count, total, doc_prior, eta, own, weights):
    """Collapsed Gibbs sweep of plain topics without a graph: (n_dk + a) (eta + N_kw) / (V eta + N_k).

    `own` and `weights` are memory for whole numbers and numbers, (n_topics,).
    """
    n_topics, prior = len(total), eta * word_count.shape[0]
    for d in range(len(offsets) - 1):
        for k in range(n_topics):
            own[k] = 0
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
