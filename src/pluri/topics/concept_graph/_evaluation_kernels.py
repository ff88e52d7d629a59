# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled likelihoods of documents on the paths of a fitted concept graph."""

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph._path_kernels import draw_log, draw_tau

#: Paths this far below the best in a first look are not looked at again.
HOPELESS = 40.0


@compiled(reorder=True)
def path_likelihood(words, counts, topic_word, path, length, share):
    """Log probability of a document on a path, given a distribution of levels."""
    total, product = 0.0, 1.0
    for r in range(len(words)):
        q = 0.0
        for l in range(length):
            q += share[l] * topic_word[words[r], path[length - 1 - l]]
        if counts[r] < 8.0:
            for _ in range(int(counts[r])):
                product *= q
        else:
            total += counts[r] * math.log(q)
        if product < 1e-100:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@compiled()
def document_posterior(words, counts, topic_word, paths, lengths, log_prior, share, log_weight, look, score):
    """Log p(document, path, point of the grid) in `score`; the log likelihood of the document.

    Paths that a coarse look finds hopeless get -inf.
    """
    n_paths, n_points = score.shape
    coarse = np.empty(n_paths)
    best = -np.inf
    for p in range(n_paths):
        peak = -np.inf
        for q in look:
            value = path_likelihood(words, counts, topic_word, paths[p], lengths[p], share[lengths[p] - 1, q])
            peak = max(peak, value)
        coarse[p] = peak + log_prior[p]
        best = max(best, coarse[p])
    top = -np.inf
    for p in range(n_paths):
        for q in range(n_points):
            score[p, q] = -np.inf
        if coarse[p] >= best - HOPELESS:
            if lengths[p] == 1:
                value = path_likelihood(words, counts, topic_word, paths[p], 1, share[0, 0])
                for q in range(n_points):
                    score[p, q] = value + log_prior[p] + log_weight[q]
                    top = max(top, score[p, q])
                continue
            for q in range(n_points):
                score[p, q] = (
                    log_prior[p]
                    + log_weight[q]
                    + path_likelihood(words, counts, topic_word, paths[p], lengths[p], share[lengths[p] - 1, q])
                )
                top = max(top, score[p, q])
    if top == -np.inf:
        return top
    total = 0.0
    for p in range(n_paths):
        for q in range(n_points):
            total += math.exp(score[p, q] - top)
    return top + math.log(total)


@compiled()
def documents_posterior(indptr, indices, counts, topic_word, paths, lengths, log_prior, share, log_weight, look,
                        log_likelihood, path_share, node_share, wanted, next_word):  # fmt: skip
    """For each document: log likelihood; if `wanted`, posterior of the paths and expected shares of the nodes.

    Shares are those of the words of the document, or, if `next_word`, those that a further word would have.
    """
    n_paths, n_points = len(lengths), len(log_weight)
    score = np.empty((n_paths, n_points))
    part = np.empty(paths.shape[1])
    for d in range(len(indptr) - 1):
        words, times = indices[indptr[d] : indptr[d + 1]], counts[indptr[d] : indptr[d + 1]]
        value = document_posterior(words, times, topic_word, paths, lengths, log_prior, share, log_weight, look, score)
        log_likelihood[d] = value
        if not wanted:
            continue
        n_words = times.sum()
        for p in range(n_paths):
            length = lengths[p]
            for q in range(n_points):
                weight = math.exp(score[p, q] - value)
                path_share[d, p] += weight
                if weight < 1e-5:
                    continue
                levels = share[length - 1, q]
                if next_word or n_words == 0:
                    for l in range(length):
                        node_share[d, paths[p, length - 1 - l]] += weight * levels[l]
                    continue
                for r in range(len(words)):
                    total = 0.0
                    for l in range(length):
                        part[l] = levels[l] * topic_word[words[r], paths[p, length - 1 - l]]
                        total += part[l]
                    for l in range(length):
                        node_share[d, paths[p, length - 1 - l]] += weight * times[r] / n_words * part[l] / total


@compiled()
def left_to_right(rng, words, topic_word, log_topic_word, paths, lengths, log_prior, a, b, dirichlet, n_particles):
    """Log likelihood of one document, word after word; see `pluri.topics.concept_graph.evaluation`."""
    n, n_levels, n_nodes = len(words), paths.shape[1], topic_word.shape[1]
    n_paths = len(lengths)
    level, chosen = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.float64)
    group = np.zeros((n_levels, n_nodes))
    logits, sizes, weights = np.empty(n_paths), np.zeros(n_levels, dtype=np.int64), np.empty(n_levels)
    for _ in range(n_particles):
        p = draw_log(rng, log_prior, n_paths)
        tau = draw_tau(rng, 0.5, a, b, 0, 0, 1)
        sizes[:] = 0
        for i in range(n):
            length = lengths[p]
            # Levels of the words before this one, given the path and tau.
            for before in range(i):
                sizes[level[before]] -= 1
                total = 0.0
                for l in range(length):
                    prior = (a if l == 0 else b) + sizes[l] if dirichlet else (1.0 - tau) ** l
                    total += prior * topic_word[words[before], paths[p, length - 1 - l]]
                    weights[l] = total
                goal, l = rng.random() * total, 0
                while l < length - 1 and weights[l] <= goal:
                    l += 1
                level[before] = l
                sizes[l] += 1
            # Path given the levels, then tau.
            if i > 0:
                group[:] = 0.0
                top, summed = 0, 0
                for before in range(i):
                    l = level[before]
                    top = max(top, l)
                    summed += l
                    for x in range(n_nodes):
                        group[l, x] += log_topic_word[words[before], x]
                for c in range(n_paths):
                    length = lengths[c]
                    logits[c] = -np.inf
                    if length > top:
                        logits[c] = log_prior[c]
                        if dirichlet:
                            whole = a + (length - 1) * b
                            logits[c] += math.lgamma(whole) - math.lgamma(whole + i)
                        else:
                            series = 0.0
                            for _ in range(length):
                                series = series * (1.0 - tau) + 1.0
                            logits[c] -= i * math.log(series)
                        for l in range(min(length, top + 1)):
                            logits[c] += group[l, paths[c, length - 1 - l]]
                p = draw_log(rng, logits, n_paths)
                length = lengths[p]
                if not dirichlet:
                    tau = draw_tau(rng, tau, a, b, summed, i, length)
            total, whole = 0.0, 0.0
            for l in range(length):
                prior = (a if l == 0 else b) + sizes[l] if dirichlet else (1.0 - tau) ** l
                whole += prior
                total += prior * topic_word[words[i], paths[p, length - 1 - l]]
                weights[l] = total
            chosen[i] += total / whole / n_particles
            goal, l = rng.random() * total, 0
            while l < length - 1 and weights[l] <= goal:
                l += 1
            level[i] = l
            sizes[l] += 1
    value = 0.0
    for i in range(n):
        value += math.log(chosen[i])
    return value
