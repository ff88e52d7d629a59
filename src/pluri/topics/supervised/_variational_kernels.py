# mypy: allow-untyped-defs, allow-untyped-calls
"""Passes over the words of rated and labelled documents: the distribution over topics of each, in turn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled

#: How closely the mean pull of a word is found, as a share of the range of pulls: the bound errs by its square.
CLOSE = 1e-7
#: By how much rounding may spoil the test of a step.
SLACK = 1e-13


class ClassFactorRoom(NamedTuple):
    """Room for exp(w / N) by class and topic, `step`, and for a number of every topic or of every class."""

    logits: Any
    step: Any
    level: Any
    share: Any
    inner: Any
    fresh: Any
    candidate: Any
    mixed: Any


@compiled(reorder=True, inner=True)
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


@compiled(reorder=True, inner=True)
def settle(base, pull, strength, mean, low, high, logits, out):
    """Probabilities exp(base - strength pull m) / constant with m their mean pull, by Newton's method within limits.

    The more is taken for m, the less the mean is: there is one solution.
    """
    close = CLOSE * (high - low)
    for _ in range(60):
        for k in range(pull.size):
            logits[k] = base[k] - strength * mean * pull[k]
        to_probabilities(logits, out)
        first, second = 0.0, 0.0
        for k in range(pull.size):
            first += out[k] * pull[k]
            second += out[k] * pull[k] * pull[k]
        wrong = mean - first
        if abs(wrong) <= close:
            break
        if wrong > 0.0:
            high = mean
        else:
            low = mean
        mean -= wrong / (1.0 + strength * max(second - first * first, 0.0))
        if not low < mean < high:
            mean = 0.5 * (low + high)


@compiled(reorder=True)
def pass_ratings(pairs, phi, log_theta, log_topic, ratings, sums, room):
    """Change `phi` (n_pairs, n_topics) word by word; `sums` (n_documents, n_topics) are those before."""
    words, counts, offsets, lengths, _ = pairs
    rating, rated, coefficients, precision = ratings
    pull, base, logits = room
    n_topics = coefficients.size
    for document in range(offsets.size - 1):
        begin, end = offsets[document], offsets[document + 1]
        strength = precision if rated[document] else 0.0
        fitted, low, high = 0.0, np.inf, -np.inf
        for k in range(n_topics):
            pull[k] = coefficients[k] / max(lengths[document], 1.0)
            fitted += pull[k] * sums[document, k]
            low, high = min(low, pull[k]), max(high, pull[k])
        for i in range(begin, end):
            mine, count = phi[i], counts[i]
            mean = 0.0
            for k in range(n_topics):
                mean += pull[k] * mine[k]
            fitted -= count * mean
            gap = rating[document] - fitted
            for k in range(n_topics):
                base[k] = log_theta[document, k] + log_topic[words[i], k] + strength * pull[k] * (gap - 0.5 * pull[k])
            if strength * (count - 1.0) * (high - low) > 0.0:
                settle(base, pull, strength * (count - 1.0), mean, low, high, logits, mine)
            else:
                to_probabilities(base, mine)
            for k in range(n_topics):
                fitted += count * pull[k] * mine[k]


@compiled(reorder=True, inner=True)
def products(step, mine, out):
    """Put sum_k phi_k step_ck into `out`."""
    for c in range(out.size):
        out[c] = 0.0
        for k in range(mine.size):
            out[c] += step[c, k] * mine[k]


@compiled(reorder=True, inner=True)
def class_levels(begin, end, counts, phi, step, level, inner):
    """Put log prod_n sum_k phi_nk step_ck, over the tokens of a document, into `level`."""
    level[:] = 0.0
    for i in range(begin, end):
        products(step, phi[i], inner)
        for c in range(level.size):
            level[c] += counts[i] * np.log(inner[c])


@compiled(reorder=True, inner=True)
def probabilities_of(level, share):
    """Softmax, and the logarithm of its normaliser."""
    highest = level.max()
    total = 0.0
    for c in range(level.size):
        share[c] = np.exp(level[c] - highest)
        total += share[c]
    for c in range(level.size):
        share[c] /= total
    return highest + np.log(total)


@compiled(reorder=True, inner=True)
def excess(inner, fresh, share, count):
    """By how much the normaliser of the classes lies above its tangent."""
    mass, slope = 0.0, 0.0
    for c in range(inner.size):
        ratio = fresh[c] / inner[c]
        mass += share[c] * ratio**count
        slope += share[c] * (ratio - 1.0)
    return np.log(mass) - count * slope


@compiled(reorder=True, inner=True)
def distance(left, right):
    """Sum of absolute differences."""
    value = 0.0
    for k in range(left.size):
        value += abs(left[k] - right[k])
    return value


@compiled(reorder=True)
def pass_classes(pairs, phi, log_theta, log_topic, label, coefficients, room):
    """Change `phi` word by word; the normaliser of the class probabilities is replaced by its tangent where phi was.

    For a word that occurs once the normaliser lies below. For others the step is tested, and shortened if need be: it
    gains as much as the divergence from old to new phi, which is at least half the squared distance, for each token.
    """
    words, counts, offsets, lengths, _ = pairs
    logits, step, level, share, inner, fresh, candidate, mixed = room
    n_classes, n_topics = coefficients.shape
    for document in range(offsets.size - 1):
        begin, end, given = offsets[document], offsets[document + 1], label[document]
        length = max(lengths[document], 1.0)
        if given >= 0 and end > begin:
            for c in range(n_classes):
                for k in range(n_topics):
                    step[c, k] = np.exp(coefficients[c, k] / length)
            class_levels(begin, end, counts, phi, step, level, inner)
        for i in range(begin, end):
            mine, count = phi[i], counts[i]
            for k in range(n_topics):
                logits[k] = log_theta[document, k] + log_topic[words[i], k]
            if given < 0:
                to_probabilities(logits, mine)
                continue
            products(step, mine, inner)
            probabilities_of(level, share)
            for k in range(n_topics):
                logits[k] += coefficients[given, k] / length
            for c in range(n_classes):
                weight = share[c] / inner[c]
                for k in range(n_topics):
                    logits[k] -= weight * step[c, k]
            to_probabilities(logits, candidate)
            products(step, candidate, fresh)
            hold = 0.0
            while count > 1.0 and hold < 1e9 * count:
                gain = 0.5 * (count + hold) * distance(mine, candidate) ** 2
                if excess(inner, fresh, share, count) <= gain + SLACK:
                    break
                hold = count if hold == 0.0 else 4.0 * hold
                for k in range(n_topics):
                    mixed[k] = (count * logits[k] + hold * np.log(mine[k])) / (count + hold)
                to_probabilities(mixed, candidate)
                products(step, candidate, fresh)
            for k in range(n_topics):
                mine[k] = candidate[k]
            for c in range(n_classes):
                level[c] += count * np.log(fresh[c] / inner[c])


@compiled(reorder=True)
def class_normalizers(pairs, phi, label, coefficients, room, gradient):
    """Sum over labelled documents of log sum_c prod_n sum_k phi_nk exp(w_ck / N); adds its gradient in w."""
    _, counts, offsets, lengths, _ = pairs
    step, level, share, inner = room.step, room.level, room.share, room.inner
    n_classes, n_topics = coefficients.shape
    value = 0.0
    for document in range(offsets.size - 1):
        begin, end = offsets[document], offsets[document + 1]
        if label[document] < 0 or end == begin:
            continue
        for c in range(n_classes):
            for k in range(n_topics):
                step[c, k] = np.exp(coefficients[c, k] / lengths[document])
        class_levels(begin, end, counts, phi, step, level, inner)
        value += probabilities_of(level, share)
        for i in range(begin, end):
            products(step, phi[i], inner)
            for c in range(n_classes):
                weight = counts[i] * share[c] / lengths[document] / inner[c]
                for k in range(n_topics):
                    gradient[c, k] += weight * phi[i, k] * step[c, k]
    return value


@compiled(reorder=True)
def token_bound(pairs, phi, log_theta, log_topic):
    """Sum over tokens of E[log p(z, w | theta, topics)] plus the entropy of phi."""
    words, counts, offsets, _, _ = pairs
    value = 0.0
    for document in range(offsets.size - 1):
        for i in range(offsets[document], offsets[document + 1]):
            inner = 0.0
            for k in range(phi.shape[1]):
                p = phi[i, k]
                if p > 0.0:
                    inner += p * (log_theta[document, k] + log_topic[words[i], k] - np.log(p))
            value += counts[i] * inner
    return value


@compiled()
def word_sums(pairs, phi, sums):
    """Add the expected counts of words in topics to `sums` (n_words, n_topics)."""
    for i in range(pairs.words.size):
        for k in range(phi.shape[1]):
            sums[pairs.words[i], k] += pairs.counts[i] * phi[i, k]
