# mypy: allow-untyped-defs, allow-untyped-calls
"""Passes over the tokens of rated and labelled documents: each token's distribution over topics, in turn."""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled


@compiled(reorder=True)
def to_probabilities(logits, out):
    """Softmax."""
    highest = logits[0]
    for k in range(1, logits.size):
        highest = max(highest, logits[k])
    total = 0.0
    for k in range(logits.size):
        out[k] = np.exp(logits[k] - highest)
        total += out[k]
    scale = 1.0 / total
    for k in range(logits.size):
        out[k] *= scale


@compiled(reorder=True)
def pass_ratings(words, offsets, phi, log_theta, log_topic, rating, rated, coefficients, precision, sums, logits):
    """Update `phi` (n_tokens, n_topics) token by token; `sums` (n_documents, n_topics) follows it."""
    n_topics = coefficients.size
    for document in range(offsets.size - 1):
        begin, end = offsets[document], offsets[document + 1]
        if end == begin:
            continue
        scale = 1.0 / (end - begin)
        strength = precision if rated[document] else 0.0
        total, shares = sums[document], log_theta[document]
        fitted = 0.0
        for k in range(n_topics):
            fitted += coefficients[k] * total[k]
        for i in range(begin, end):
            mine, word = phi[i], log_topic[words[i]]
            for k in range(n_topics):
                fitted -= coefficients[k] * mine[k]
                total[k] -= mine[k]
            gap = rating[document] - fitted * scale
            for k in range(n_topics):
                pull = coefficients[k] * scale
                logits[k] = shares[k] + word[k] + strength * pull * (gap - 0.5 * pull)
            to_probabilities(logits, mine)
            for k in range(n_topics):
                fitted += coefficients[k] * mine[k]
                total[k] += mine[k]


@compiled(reorder=True)
def class_levels(begin, end, phi, step, level):
    """Put log prod_n sum_k phi_nk step_ck into `level`."""
    for c in range(level.size):
        level[c] = 0.0
        for i in range(begin, end):
            inner = 0.0
            for k in range(step.shape[1]):
                inner += phi[i, k] * step[c, k]
            level[c] += np.log(inner)


@compiled(reorder=True)
def pass_classes(words, offsets, phi, log_theta, log_topic, label, coefficients, sums, logits, step, level, rest, push):
    """As `pass_ratings`; the normaliser of the class probabilities is bounded where the token's phi was before."""
    n_classes, n_topics = coefficients.shape
    for document in range(offsets.size - 1):
        begin, end = offsets[document], offsets[document + 1]
        if end == begin:
            continue
        given = label[document]
        total, shares = sums[document], log_theta[document]
        if given >= 0:
            for c in range(n_classes):
                for k in range(n_topics):
                    step[c, k] = np.exp(coefficients[c, k] / (end - begin))
            class_levels(begin, end, phi, step, level)
        for i in range(begin, end):
            mine, word = phi[i], log_topic[words[i]]
            for k in range(n_topics):
                logits[k] = shares[k] + word[k]
                total[k] -= mine[k]
            if given >= 0:
                highest = -np.inf
                for c in range(n_classes):
                    inner = 0.0
                    for k in range(n_topics):
                        inner += mine[k] * step[c, k]
                    rest[c] = level[c] - np.log(inner)
                    highest = max(highest, rest[c])
                expected = 0.0
                for k in range(n_topics):
                    push[k] = 0.0
                for c in range(n_classes):
                    weight = np.exp(rest[c] - highest)
                    for k in range(n_topics):
                        push[k] += weight * step[c, k]
                for k in range(n_topics):
                    expected += push[k] * mine[k]
                for k in range(n_topics):
                    logits[k] += coefficients[given, k] / (end - begin) - push[k] / expected
            to_probabilities(logits, mine)
            for k in range(n_topics):
                total[k] += mine[k]
            if given >= 0:
                for c in range(n_classes):
                    inner = 0.0
                    for k in range(n_topics):
                        inner += mine[k] * step[c, k]
                    level[c] = rest[c] + np.log(inner)


@compiled(reorder=True)
def class_normalizers(offsets, phi, label, coefficients, step, level, gradient):
    """Sum over labelled documents of log sum_c prod_n sum_k phi_nk exp(w_ck / N), and its gradient in w."""
    n_classes, n_topics = coefficients.shape
    value = 0.0
    for document in range(offsets.size - 1):
        begin, end = offsets[document], offsets[document + 1]
        if label[document] < 0 or end == begin:
            continue
        for c in range(n_classes):
            for k in range(n_topics):
                step[c, k] = np.exp(coefficients[c, k] / (end - begin))
        class_levels(begin, end, phi, step, level)
        highest = level.max()
        mass = 0.0
        for c in range(n_classes):
            mass += np.exp(level[c] - highest)
        value += highest + np.log(mass)
        for c in range(n_classes):
            share = np.exp(level[c] - highest) / mass / (end - begin)
            for i in range(begin, end):
                inner = 0.0
                for k in range(n_topics):
                    inner += phi[i, k] * step[c, k]
                for k in range(n_topics):
                    gradient[c, k] += share * phi[i, k] * step[c, k] / inner
    return value


@compiled(reorder=True)
def token_bound(words, offsets, phi, log_theta, log_topic):
    """Sum over tokens of E[log p(z, w | theta, topics)] plus the entropy of phi."""
    value = 0.0
    for document in range(offsets.size - 1):
        for i in range(offsets[document], offsets[document + 1]):
            for k in range(phi.shape[1]):
                p = phi[i, k]
                if p > 0.0:
                    value += p * (log_theta[document, k] + log_topic[words[i], k] - np.log(p))
    return value


@compiled()
def word_sums(words, phi, sums):
    """Expected counts (n_words, n_topics) of words in topics."""
    for i in range(words.size):
        for k in range(phi.shape[1]):
            sums[words[i], k] += phi[i, k]
