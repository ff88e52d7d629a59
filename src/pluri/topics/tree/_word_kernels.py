# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of words, with all their tokens, from one scale to another; see `pluri.topics.tree.word_scales`.

The tokens of a word are put on nodes one after the other, token i on node t with probability proportional to
``reach_d(t) r_t``, ``r_t = (n_t(v) + g) / (n_t + g |A|)``. The product of the r's is what the tokens add to the
evidence of the topics, so that the target over the proposal leaves ``prod_i Z_i``, Z_i the sum of the weights.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.tree._draws import log_gamma_draw, stick_draw, uniform
from pluri.topics.tree._token_kernels import fill_reach


class ScalePriors(NamedTuple):
    """Priors of the scales of words, and of topics.

    `log_stop` is the log probability that a word has each scale, `prior` that of topics, `rho` and `zeta` are the
    concentrations of usages and transitions; `zeta_prior` is shape, rate and log constant of the prior of
    concentrations, or 0 and the number that they all are.
    """

    log_stop: Any
    prior: float
    rho: float
    zeta: Any
    zeta_prior: Any
    least_depth: int
    most_depth: int


class Seating(NamedTuple):
    """Room for one word: ratios and tokens by node of a scale, and the seat of each of its tokens."""

    ratio: Any
    held: Any
    seats: Any


@compiled(reorder=True)
def dot(first, last, reach, ratio):
    """Sum of products over the nodes of a scale."""
    total = 0.0
    for k in range(first, last):
        total += reach[k] * ratio[k - first]
    return total


@compiled()
def resized(n, old, new):
    """What the evidence of a topic of n tokens gains if its prior weighs `new` instead of `old`."""
    if n == 0:
        return 0.0
    return math.lgamma(new) - math.lgamma(old) + math.lgamma(n + old) - math.lgamma(n + new)


@compiled()
def fill_resized(first, last, node_total, old, new, gains):
    """The same for all topics of a scale, and their sum."""
    start = math.lgamma(new) - math.lgamma(old)
    total = 0.0
    for k in range(first, last):
        n, gains[k] = node_total[k], 0.0
        if n > 0:
            gains[k] = start + math.lgamma(n + old) - math.lgamma(n + new)
        total += gains[k]
    return total


@compiled()
def seat_tokens(stream, tokens, documents, first, last, size, prior, reach, node_total, node, propose, room):
    """Log of the product of Z_i over the tokens of a word, at the nodes of one scale of `size` words.

    With `propose` the tokens are put on nodes, which go into `seats`; otherwise they follow the nodes they have.
    `node_total` must not count these tokens.
    """
    ratio, held, seats = room
    for k in range(first, last):
        held[k - first] = 0
        ratio[k - first] = prior / (node_total[k] + prior * size)
    log_z, product = 0.0, 1.0
    for j in range(tokens.size):
        i = tokens[j]
        row = reach[documents[i]]
        z = dot(first, last, row, ratio)
        if propose:
            target, passed, t = uniform(stream) * z, 0.0, 0
            for k in range(first, last):
                weight = row[k] * ratio[k - first]
                if weight > 0.0:
                    t = k - first
                    passed += weight
                    if passed > target:
                        break
            seats[j] = t
        else:
            t = node[i]
        held[t] += 1
        ratio[t] = (held[t] + prior) / (node_total[first + t] + held[t] + prior * size)
        product *= z
        if product < 1e-150:
            if not product > 0.0:
                return -np.inf
            log_z += math.log(product)
            product = 1.0
    return log_z + math.log(product)


@compiled()
def usage_ratio(counts, depth, rho, old, new):
    """Expected usage of one scale over that of another, given the scales of the other tokens of a document.

    ``E[pi_s] = (1 + n_s) / (1 + rho + n_{>=s}) prod_{h<s} (rho + n_{>h}) / (1 + rho + n_{>=h})``, the first factor
    being one at the deepest scale.
    """
    low, high = min(old, new), max(old, new)
    later = 0
    for s in range(low + 1, depth):
        later += counts[s]
    ratio = (rho + later) / (1.0 + counts[low])
    for s in range(low + 1, high):
        ratio *= (rho + later - counts[s]) / (1.0 + rho + later)
        later -= counts[s]
    if high < depth - 1:
        ratio *= (1.0 + counts[high]) / (1.0 + rho + later)
    return ratio if new == high else 1.0 / ratio


@compiled()
def shift_usage(tokens, documents, doc_scale, depth, rho, old, new, counts):
    """What the evidence of the scales of tokens gains if those of a word move, usages of documents integrated out."""
    gain, product, j = 0.0, 1.0, 0
    while j < tokens.size:
        d = documents[tokens[j]]
        for s in range(depth):
            counts[s] = doc_scale[d, s]
        while j < tokens.size and documents[tokens[j]] == d:
            counts[old] -= 1
            product *= usage_ratio(counts, depth, rho, old, new)
            counts[new] += 1
            j += 1
            if not 1e-100 < product < 1e100:
                gain += math.log(product)
                product = 1.0
    return gain + math.log(product)


@compiled()
def split_usage(tokens, documents, doc_scale, rho, level, more):
    """Log evidence of all tokens of a scale staying there if there is a scale below, under Beta(1, rho) sticks.

    With `more`, as if the tokens of a word were there too.
    """
    start = math.lgamma(rho) + math.log(rho)
    gain, j = 0.0, 0
    for d in range(doc_scale.shape[0]):
        n = doc_scale[d, level]
        while more and j < tokens.size and documents[tokens[j]] == d:
            n += 1
            j += 1
        if n > 0:
            gain += start + math.lgamma(1.0 + n) - math.lgamma(1.0 + n + rho)
    return gain


@compiled()
def move_words(stream, order, word_offsets, word_tokens, documents, nodes, priors, theta, placed, doc_scale):
    """Change `nodes`, `placed` and `doc_scale`: offer every word of `order` another scale.

    Returns the depth, accepted moves, births and deaths of scales. With ``least_depth < most_depth`` a word may also
    open a scale below the deepest, or close that one if it is alone there. A new scale has transitions drawn from their
    prior, and a concentration drawn from Gamma(1, 1), for which the decision makes up. Usages of scales are integrated
    out, and must be drawn anew.
    """
    top, depth, widths, offsets, _, word_scale, sizes, transition = nodes
    scale, node, _, node_word, node_total = placed
    log_prior, prior, rho, zeta, zeta_prior, least_depth, most_depth = priors
    n_documents, n_nodes, n_scales = theta.shape[0], node_total.size, sizes.size
    reach = np.zeros((n_documents, n_nodes))
    for d in range(n_documents):
        fill_reach(top, depth, widths, offsets, theta[d], transition, reach[d])
    seats, counts = np.zeros(documents.size, dtype=np.int64), np.zeros(n_scales, dtype=np.int64)
    room = Seating(np.zeros(n_nodes), np.zeros(n_nodes, dtype=np.int64), seats)
    # What the evidence of a scale gains by one word more or less, without its tokens; known until a word comes or goes.
    grown, shrunk = np.zeros(n_scales), np.zeros(n_scales)
    for s in range(n_scales):
        grown[s], shrunk[s] = np.nan, np.nan
    gains, unused = np.zeros(n_nodes), np.zeros(n_nodes)
    accepted, births, deaths = 0, 0, 0
    all_split = np.nan
    for v in order:
        old = word_scale[v]
        tokens = word_tokens[word_offsets[v] : word_offsets[v + 1]]
        alone = sizes[old] == 1
        closing = alone and old == depth - 1 and depth > least_depth
        if alone and not closing:
            continue
        n_others = depth - 1
        if not closing and depth < most_depth:  # one more place to go: a scale of its own
            n_others += 1
        if n_others == 0:
            continue
        new = min(int(uniform(stream) * n_others), n_others - 1)
        new += new >= old
        opening = new == depth
        first, last = offsets[old], offsets[old] + widths[old]
        log_ratio = log_prior[new] - log_prior[old]
        log_ratio += shift_usage(tokens, documents, doc_scale, depth + opening, rho, old, new, counts)
        if opening:
            if math.isnan(all_split):
                all_split = split_usage(tokens, documents, doc_scale, rho, depth - 1, False)
            log_ratio += all_split
        elif closing:
            log_ratio -= split_usage(tokens, documents, doc_scale, rho, depth - 2, new == depth - 2)
        fresh = zeta_prior[1]  # if concentrations are fixed
        learned = zeta_prior[0] > 0.0
        if learned and opening:
            fresh = math.exp(log_gamma_draw(stream, 1.0))
        elif learned and closing:
            fresh = zeta[old]
        if learned and (closing or opening):
            density = zeta_prior[2] + (zeta_prior[0] - 1.0) * math.log(fresh) - zeta_prior[1] * fresh + fresh
            log_ratio += density if opening else -density
        if not closing:
            before, after = prior * sizes[old], prior * (sizes[old] - 1)
            if math.isnan(shrunk[old]):
                shrunk[old] = fill_resized(first, last, node_total, before, after, gains)
            log_ratio += shrunk[old]
            for k in range(first, last):
                if node_word[v, k] > 0:
                    log_ratio += resized(node_total[k] - node_word[v, k], before, after) - gains[k]
        for k in range(first, last):
            node_total[k] -= node_word[v, k]
        if not closing:
            log_ratio -= seat_tokens(
                stream, tokens, documents, first, last, sizes[old], prior, reach, node_total, node, False, room
            )
        if not opening:
            start, end = offsets[new], offsets[new] + widths[new]
            if math.isnan(grown[new]):
                grown[new] = fill_resized(start, end, node_total, prior * sizes[new], prior * (sizes[new] + 1), unused)
            log_ratio += grown[new] + seat_tokens(
                stream, tokens, documents, start, end, sizes[new] + 1, prior, reach, node_total, node, True, room
            )
        if not math.log(uniform(stream)) < log_ratio:
            for k in range(first, last):
                node_total[k] += node_word[v, k]
            continue
        accepted += 1
        all_split = np.nan
        grown[old], grown[new], shrunk[old], shrunk[new] = np.nan, np.nan, np.nan, np.nan
        for k in range(first, last):
            node_word[v, k] = 0
        sizes[old] -= 1
        sizes[new] += 1
        word_scale[v] = new
        for i in tokens:
            doc_scale[documents[i], old] -= 1
            doc_scale[documents[i], new] += 1
        if closing:
            depth -= 1
            deaths += 1
        if opening:
            zeta[new] = fresh
            for m in range(widths[new - 1]):
                rest = 1.0
                for t in range(widths[new]):
                    left = 0.0 if t == widths[new] - 1 else rest * stick_draw(stream, fresh)
                    transition[offsets[new] + t, m] = rest - left
                    rest = left
            depth += 1
            births += 1
            for d in range(n_documents):
                fill_reach(top, depth, widths, offsets, theta[d], transition, reach[d])
            start, end = offsets[new], offsets[new] + widths[new]
            seat_tokens(stream, tokens, documents, start, end, 1, prior, reach, node_total, node, True, room)
        for j in range(tokens.size):
            i = tokens[j]
            scale[i], node[i] = new, seats[j]
            node_word[v, offsets[new] + seats[j]] += 1
            node_total[offsets[new] + seats[j]] += 1
    return depth, accepted, births, deaths
