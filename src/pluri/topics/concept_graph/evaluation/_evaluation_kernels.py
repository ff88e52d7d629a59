# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled likelihoods of documents on the paths of a fitted concept graph."""

import math

import numpy as np

from pluri.engine.compiled import compiled

#: Paths this far below the best in a first look are not looked at again.
HOPELESS = 25.0


@compiled(reorder=True, inner=True)
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


@compiled(inner=True)
def document_posterior(words, counts, topic_word, known, grid, score):
    """Fill `score`, log p(document, path, point of the grid); the log likelihood of the document.

    Paths that a coarse look finds hopeless get -inf.
    """
    paths, lengths, log_prior = known
    share, log_weight, look = grid
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
                value = path_likelihood(words, counts, topic_word, paths[p], lengths[p], share[0, 0])
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
def documents_posterior(indptr, indices, counts, topic_word, known, grid, found, wanted, next_word):
    """Fill `found`: log likelihoods of documents; if `wanted`, posterior of the paths and expected shares of the nodes.

    Shares are those of the words of the document, or, if `next_word`, those that a further word would have.
    """
    paths, lengths, share = known.paths, known.lengths, grid.share
    log_likelihood, path_share, node_share = found
    n_paths, n_points = len(lengths), len(grid.log_weight)
    score = np.empty((n_paths, n_points))
    part = np.empty(paths.shape[1])
    for d in range(len(indptr) - 1):
        words, times = indices[indptr[d] : indptr[d + 1]], counts[indptr[d] : indptr[d + 1]]
        value = document_posterior(words, times, topic_word, known, grid, score)
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
