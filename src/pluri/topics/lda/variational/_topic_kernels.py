# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of variational Bayes over topics: what documents ask of them, and their divergence from the prior."""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._special_functions import digamma, exp_psi_parts, exponentials, log_gamma


@compiled(reorder=True, allocates=False)
def topic_table(word_topic, scale, log_scale, scratch, bits, powers, table, top):
    """table[w, k] = exp(E[log beta_kw] - top[w]), top[w] the largest of E[log beta_kw] over k; padding becomes zero.

    exp(-psi(sum_w lambda_kw)) = scale[k] exp(log_scale), the largest of `scale` being one. `scratch` is (2, n_topics),
    `powers` is `bits` (n_topics,) as floating-point numbers.
    """
    n_words, n_topics = word_topic.shape
    values, exponents = scratch[0], scratch[1]
    for w in range(n_words):
        for k in range(n_topics):
            value, s = exp_psi_parts(word_topic[w, k])
            values[k] = value * scale[k]
            exponents[k] = -s
        largest = -np.inf
        for k in range(n_topics):
            largest = max(largest, exponents[k])
        for k in range(n_topics):
            exponents[k] -= largest
        exponentials(n_topics, exponents, powers, bits, values)
        most = 0.0
        for k in range(n_topics):
            most = max(most, values[k])
        top[w] = math.log(most) + largest + log_scale
        for k in range(table.shape[1]):
            table[w, k] = values[k] / most if k < n_topics else 0.0


@compiled(reorder=True, allocates=False)
def topic_divergence(word_topic, prior, psi_totals):
    """sum_kw (eta_kw - lambda_kw) E[log beta_kw] + lgamma(lambda_kw) - lgamma(eta_kw).

    `prior` is (n_words, n_topics), or has a single row or column that stands for all.
    """
    n_words, n_topics = word_topic.shape
    words_differ, topics_differ = prior.shape[0] > 1, prior.shape[1] > 1
    total = 0.0
    for w in range(n_words):
        row = prior[w if words_differ else 0]
        part = 0.0
        for k in range(n_topics):
            x, eta = word_topic[w, k], row[k if topics_differ else 0]
            part += (eta - x) * (digamma(x) - psi_totals[k]) + log_gamma(x)
        if words_differ and topics_differ:
            for k in range(n_topics):
                part -= log_gamma(row[k])
        elif not topics_differ:
            part -= n_topics * log_gamma(row[0])
        else:
            for k in range(n_topics):
                part -= log_gamma(row[k])
        total += part
    return total
