# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops of the held-out scores: draws of a document's topic assignments with the topics held fixed.

The probability of topic k for a word w, given the other assignments of the document, is proportional to
``(alpha_k + n_k) phi_kw``. The part with alpha does not change: its sums over k are tabulated for each word
(`ladder`, whose last column is the total), and only the topics that the document has now are summed for each draw.
They are kept as a list: ``present[p]`` is the topic at place p, ``count[p]`` its number of words, ``where[k]`` the
place of topic k, or -1.
"""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics._draws import first_above
from pluri.topics.held_out._particle_kernels import copy_whom, few_effective, normalise


@compiled()
def rise(row, count, present, n_present, rising):
    """Fill in sums of ``n_k phi_kw`` up to each place of the list; return the whole sum."""
    total = 0.0
    for place in range(n_present):
        total += count[place] * row[present[place]]
        rising[place] = total
    return total


@compiled()
def draw_topic(u, mass, steps, present, n_present, rising):
    """Topic of a word by the random number u, where :func:`rise` returned `mass` and `steps` is the word's ladder."""
    left = u * (mass + steps[steps.size - 1])
    if left < mass:
        place = 0
        while place < n_present - 1 and left >= rising[place]:
            place += 1
        return present[place]
    return first_above(left - mass, steps)


@compiled()
def put(k, count, present, where, n_present):
    """Count one more word of topic k; return how many topics the document has."""
    place = where[k]
    if place < 0:
        present[n_present] = k
        where[k] = n_present
        count[n_present] = 1.0
        return n_present + 1
    count[place] += 1.0
    return n_present


@compiled()
def take(k, count, present, where, n_present):
    """Count one word of topic k less; return how many topics the document has."""
    place = where[k]
    count[place] -= 1.0
    if count[place] == 0.0:
        n_present -= 1
        last = present[n_present]
        present[place] = last
        count[place] = count[n_present]
        where[last] = place
        where[k] = -1
    return n_present


@compiled()
def longest_of(first, last, offsets):
    """Length of the longest of the documents."""
    longest = 0
    for d in range(first, last):
        longest = max(longest, offsets[d + 1] - offsets[d])
    return longest


@compiled()
def gibbs_counts(rng, first, last, words, offsets, phi, alpha, ladder, n_warmup, n_sweeps, expected):
    """Posterior mean of the number of words of each topic, for the documents from `first` to `last`.

    Each draw adds its whole conditional distribution instead of the drawn topic: the part with alpha by one number
    for each word of the document, the rest topic by topic.
    """
    n_topics = alpha.size
    longest = longest_of(first, last, offsets)
    z = np.empty(longest, dtype=np.int64)
    own = np.empty((longest, n_topics))
    shared = np.empty(longest)
    count = np.empty(n_topics)
    rising = np.empty(n_topics)
    present = np.empty(n_topics, dtype=np.int64)
    where = np.empty(n_topics, dtype=np.int64)
    for d in range(first, last):
        start, n = offsets[d], offsets[d + 1] - offsets[d]
        mean = expected[d - first]
        for k in range(n_topics):
            mean[k] = 0.0
            where[k] = -1
        n_present = 0
        for i in range(n):
            w = words[start + i]
            for k in range(n_topics):  # a copy as a whole takes seconds to compile
                own[i, k] = phi[w, k]
            mass = rise(own[i], count, present, n_present, rising)
            z[i] = draw_topic(rng.random(), mass, ladder[w], present, n_present, rising)
            n_present = put(z[i], count, present, where, n_present)
            shared[i] = 0.0
        for sweep in range(n_warmup + n_sweeps):
            for i in range(n):
                w = words[start + i]
                n_present = take(z[i], count, present, where, n_present)
                mass = rise(own[i], count, present, n_present, rising)
                if sweep >= n_warmup:
                    scale = 1.0 / (mass + ladder[w, n_topics - 1])
                    shared[i] += scale
                    for place in range(n_present):
                        k = present[place]
                        mean[k] += scale * count[place] * own[i, k]
                z[i] = draw_topic(rng.random(), mass, ladder[w], present, n_present, rising)
                n_present = put(z[i], count, present, where, n_present)
        for i in range(n):
            for k in range(n_topics):
                mean[k] += shared[i] * alpha[k] * own[i, k]
        for k in range(n_topics):
            mean[k] /= n_sweeps


@compiled()
def left_to_right(rng, first, last, words, offsets, phi, alpha, ladder, n_particles, resample, scores):
    """Weighted particles that read each document from left to right; see the module of that name."""
    n_topics = alpha.size
    prior_total = alpha.sum()
    longest = longest_of(first, last, offsets)
    z = np.empty((n_particles, longest), dtype=np.int64)
    own = np.empty((longest, n_topics))
    count = np.empty((n_particles, n_topics))
    rising = np.empty(n_topics)
    present = np.empty((n_particles, n_topics), dtype=np.int64)
    where = np.empty((n_particles, n_topics), dtype=np.int64)
    n_present = np.zeros(n_particles, dtype=np.int64)
    weight = np.empty(n_particles)
    offspring, source = np.empty(n_particles, dtype=np.int64), np.empty(n_particles, dtype=np.int64)
    for d in range(first, last):
        start, n = offsets[d], offsets[d + 1] - offsets[d]
        where[:] = -1
        n_present[:] = 0
        weight[:] = 1.0 / n_particles
        total = 0.0
        for i in range(n):
            w = words[start + i]
            for k in range(n_topics):
                own[i, k] = phi[w, k]
            for r in range(n_particles):
                m = n_present[r]
                z_r, count_r, present_r, where_r = z[r], count[r], present[r], where[r]
                if resample:
                    for j in range(i):
                        m = take(z_r[j], count_r, present_r, where_r, m)
                        mass = rise(own[j], count_r, present_r, m, rising)
                        z_r[j] = draw_topic(rng.random(), mass, ladder[words[start + j]], present_r, m, rising)
                        m = put(z_r[j], count_r, present_r, where_r, m)
                mass = rise(own[i], count_r, present_r, m, rising)
                weight[r] *= (mass + ladder[w, n_topics - 1]) / (prior_total + i)
                z_r[i] = draw_topic(rng.random(), mass, ladder[w], present_r, m, rising)
                n_present[r] = put(z_r[i], count_r, present_r, where_r, m)
            total += math.log(normalise(weight))
            if i + 1 < n and few_effective(weight):
                copy_whom(rng.random(), weight, offspring, source)
                for r in range(n_particles):
                    s = source[r]
                    if s != r:
                        n_present[r] = n_present[s]
                        for j in range(i + 1):
                            z[r, j] = z[s, j]
                        for k in range(n_topics):
                            count[r, k], present[r, k], where[r, k] = count[s, k], present[s, k], where[s, k]
        scores[d] = total
