# mypy: allow-untyped-defs, allow-untyped-calls
"""Shares of fixed topics in new documents, document after document."""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled


@compiled(reorder=True)
def expected_counts(offsets, words, counts, topic_of_word, prior, n_iterations, tolerance, share, gamma):
    """Zeroth-order collapsed updates until `gamma`, prior + expected counts of topics, comes to rest.

    `topic_of_word` is (n_words, n_topics); `share` is scratch of the size of the longest document.
    """
    n_topics = prior.size
    for document in range(offsets.size - 1):
        begin, end = offsets[document], offsets[document + 1]
        row = gamma[document]
        for k in range(n_topics):
            row[k] = prior[k]
        for i in range(begin, end):
            total = 0.0
            mine = share[i - begin]
            probabilities = topic_of_word[words[i]]
            for k in range(n_topics):
                mine[k] = probabilities[k] * prior[k]
                total += mine[k]
            if total > 0.0:
                scale = 1.0 / total
                for k in range(n_topics):
                    mine[k] *= scale
            else:  # no topic has this word: it says nothing
                for k in range(n_topics):
                    mine[k] = 0.0
            for k in range(n_topics):
                row[k] += counts[i] * mine[k]
        for _ in range(n_iterations):
            moved = 0.0
            for i in range(begin, end):
                mine = share[i - begin]
                probabilities = topic_of_word[words[i]]
                total = 0.0
                for k in range(n_topics):
                    total += probabilities[k] * max(row[k] - mine[k], prior[k])
                if total <= 0.0:
                    continue
                scale = 1.0 / total
                count = counts[i]
                for k in range(n_topics):
                    new = scale * probabilities[k] * max(row[k] - mine[k], prior[k])
                    change = count * (new - mine[k])
                    mine[k] = new
                    row[k] += change
                    moved += np.abs(change)
            if moved < tolerance * n_topics:
                break
