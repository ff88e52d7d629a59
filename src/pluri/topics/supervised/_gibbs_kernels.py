# mypy: allow-untyped-defs, allow-untyped-calls
"""Sweeps over tokens whose topics must also explain what was said of the document."""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled

#: Products of exponentials of larger coefficients are too large, or too small, for a number.
LARGEST_COEFFICIENT = 150.0


@compiled()
def choose(weights, total, uniform):
    """Index drawn in proportion to weights."""
    target = uniform * total
    for k in range(weights.size - 1):
        target -= weights[k]
        if target < 0.0:
            return k
    return weights.size - 1


@compiled(reorder=True)
def sweep_ratings(
    words, offsets, topics, in_document, of_word, totals, doc_prior, word_prior, rating, rated, coefficients, precision,
    uniforms, weights, pull,
):  # fmt: skip
    """Draw the topic of every token given all others and the ratings; counts and `topics` are changed in place."""
    n_topics = totals.size
    prior_total = word_prior * of_word.shape[0]
    for document in range(offsets.size - 1):
        begin, end = offsets[document], offsets[document + 1]
        mine = in_document[document]
        length = end - begin
        matters = rated[document] and length > 0
        residual = rating[document]
        if matters:
            for k in range(n_topics):
                pull[k] = coefficients[k] / length
                residual -= pull[k] * mine[k]
        for i in range(begin, end):
            word, old = words[i], topics[i]
            mine[old] -= 1
            of_word[word, old] -= 1
            totals[old] -= 1
            counts = of_word[word]
            total = 0.0
            if matters:
                residual += pull[old]
                highest = -np.inf
                for k in range(n_topics):
                    weights[k] = precision * pull[k] * (residual - 0.5 * pull[k])
                    highest = max(highest, weights[k])
                for k in range(n_topics):
                    weights[k] = (
                        np.exp(weights[k] - highest)
                        * (mine[k] + doc_prior[k])
                        * (counts[k] + word_prior)
                        / (totals[k] + prior_total)
                    )
                    total += weights[k]
            else:
                for k in range(n_topics):
                    weights[k] = (mine[k] + doc_prior[k]) * (counts[k] + word_prior) / (totals[k] + prior_total)
                    total += weights[k]
            new = choose(weights, total, uniforms[i])
            topics[i] = new
            mine[new] += 1
            of_word[word, new] += 1
            totals[new] += 1
            if matters:
                residual -= pull[new]


@compiled()
def class_weights(level, step, given, out):
    """Probability of the class for a further token of each topic, relative to the largest, from logarithms."""
    largest = -np.inf
    for k in range(out.size):
        highest = -np.inf
        for c in range(level.size):
            highest = max(highest, level[c] + step[k, c])
        mass = 0.0
        for c in range(level.size):
            mass += np.exp(level[c] + step[k, c] - highest)
        out[k] = level[given] + step[k, given] - highest - np.log(mass)
        largest = max(largest, out[k])
    for k in range(out.size):
        out[k] = np.exp(out[k] - largest)


@compiled(reorder=True)
def sweep_classes(
    words, offsets, topics, in_document, of_word, totals, doc_prior, word_prior, label, coefficients, uniforms, weights,
    step, level, push,
):  # fmt: skip
    """As `sweep_ratings`, for classes with probabilities softmax(coefficients @ shares); label -1 says nothing.

    `level` holds exp(coefficients @ shares) up to a factor, and `step` what a token of each topic multiplies it by; or
    the logarithms of both, if coefficients are large.
    """
    n_topics, n_classes = totals.size, coefficients.shape[0]
    large = np.abs(coefficients).max() > LARGEST_COEFFICIENT
    prior_total = word_prior * of_word.shape[0]
    for document in range(offsets.size - 1):
        begin, end = offsets[document], offsets[document + 1]
        mine = in_document[document]
        length = end - begin
        given = label[document]
        if given >= 0 and length > 0:
            for c in range(n_classes):
                level[c] = 0.0
                for k in range(n_topics):
                    step[k, c] = coefficients[c, k] / length
                    level[c] += step[k, c] * mine[k]
            highest = level.max()
            if not large:
                for c in range(n_classes):
                    level[c] = np.exp(level[c] - highest)
                    for k in range(n_topics):
                        step[k, c] = np.exp(step[k, c])
        for i in range(begin, end):
            word, old = words[i], topics[i]
            mine[old] -= 1
            of_word[word, old] -= 1
            totals[old] -= 1
            counts = of_word[word]
            if given >= 0:
                for c in range(n_classes):
                    level[c] = level[c] - step[old, c] if large else level[c] / step[old, c]
                if large:
                    class_weights(level, step, given, push)
            total = 0.0
            for k in range(n_topics):
                weights[k] = (mine[k] + doc_prior[k]) * (counts[k] + word_prior) / (totals[k] + prior_total)
                if given >= 0 and large:
                    weights[k] *= push[k]
                elif given >= 0:
                    mass = 0.0
                    for c in range(n_classes):
                        mass += level[c] * step[k, c]
                    weights[k] *= level[given] * step[k, given] / mass
                total += weights[k]
            new = choose(weights, total, uniforms[i])
            topics[i] = new
            mine[new] += 1
            of_word[word, new] += 1
            totals[new] += 1
            if given >= 0:
                for c in range(n_classes):
                    level[c] = level[c] + step[new, c] if large else level[c] * step[new, c]
