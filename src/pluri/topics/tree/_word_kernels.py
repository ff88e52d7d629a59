# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of words, with all their tokens, from one scale to another; see `pluri.topics.tree.word_scales`.

The tokens of a word are put on nodes one after the other, token i on node t with probability proportional to
``reach_d(t) r_t``, ``r_t = (n_t(v) + g) / (n_t + g |A|)``. The product of the r's is what the tokens add to the
evidence of the topics, so that the target over the proposal leaves ``prod_i Z_i``, Z_i the sum of the weights.
"""

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.tree._draws import beta_draw, log_gamma_draw, stick_draw, uniform
from pluri.topics.tree._token_kernels import fill_reach


@compiled(reorder=True)
def dot(first, last, reach, ratio):
    """Sum of products over the nodes of a scale."""
    total = 0.0
    for k in range(first, last):
        total += reach[k] * ratio[k - first]
    return total


@compiled()
def resize_evidence(first, last, node_total, prior, before, after):
    """What the evidence of a scale's topics gains if it has `after` words instead of `before`, without new tokens."""
    if before == 0 or after == 0:
        return 0.0
    old, new = prior * before, prior * after
    start = math.lgamma(new) - math.lgamma(old)
    gain = 0.0
    for k in range(first, last):
        n = node_total[k]
        if n > 0:
            gain += start + math.lgamma(n + old) - math.lgamma(n + new)
    return gain


@compiled()
def seat_tokens(
    stream, v, tokens, documents, first, last, size, prior, reach, node_total, node, ratio, held, propose, seats
):
    """Log of the product of Z_i over the tokens of a word, at the nodes of one scale of `size` words.

    With `propose` the tokens are put on nodes, which go into `seats`; otherwise they follow the nodes they have.
    `node_total` must not count these tokens.
    """  # fmt: skip
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
def split_evidence(n, m, rho):
    """Log evidence of n tokens staying at a scale and m going deeper, under a Beta(1, rho) stick."""
    return math.lgamma(1.0 + n) + math.lgamma(rho + m) - math.lgamma(1.0 + n + rho + m) + math.log(rho)


@compiled()
def move_words(
    stream, order, word_offsets, word_tokens, documents, top, depth, least_depth, most_depth, widths, offsets,
    log_prior, prior, rho, zeta, zeta_prior, theta, usage, transition, scale, node, word_scale, sizes, node_word,
    node_total, doc_scale,
):  # fmt: skip
    """Offer every word of `order` another scale; returns the depth, accepted moves, births and deaths of scales.

    With ``least_depth < most_depth`` a word may also open a scale below the deepest, or close that one if it is alone
    there. A new scale has its stick pieces integrated out of the decision, transitions drawn from their prior, and a
    concentration drawn from Gamma(1, 1), for which the decision makes up.
    """
    n_documents, n_nodes = theta.shape[0], node_total.size
    reach = np.zeros((n_documents, n_nodes))
    for d in range(n_documents):
        fill_reach(top, depth, widths, offsets, theta[d], transition, reach[d])
    ratio, held = np.zeros(n_nodes), np.zeros(n_nodes, dtype=np.int64)
    seats = np.zeros(documents.size, dtype=np.int64)
    accepted, births, deaths = 0, 0, 0
    stale, all_split = True, 0.0
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
        for k in range(first, last):
            node_total[k] -= node_word[v, k]
        log_ratio = log_prior[new] - log_prior[old] + resize_evidence(
            first, last, node_total, prior, sizes[old], sizes[old] - 1
        )  # fmt: skip
        if closing or opening:
            # Tokens that stay at the scale above the new deepest one share its stick with those of the word.
            level = depth - 2 if closing else depth - 1
            if stale or closing:
                all_split = 0.0
                for d in range(n_documents):
                    if doc_scale[d, level] > 0:
                        all_split += split_evidence(doc_scale[d, level], 0, rho)
                stale = closing  # that sum is of another scale
            split = all_split
            j = 0
            while j < tokens.size:
                d, m = documents[tokens[j]], 0
                while j < tokens.size and documents[tokens[j]] == d:
                    m += 1
                    j += 1
                n = doc_scale[d, level]
                split -= split_evidence(n, 0, rho)
                split += split_evidence(n - m if opening and old == level else n, m, rho)
                if opening:
                    log_ratio += m * (math.log(usage[d, level]) - math.log(usage[d, old]))
                else:
                    whole = usage[d, level] + usage[d, level + 1]
                    there = whole if new == level else usage[d, new]
                    log_ratio += m * (math.log(there) - math.log(whole))
            log_ratio += split if opening else -split
        else:
            for j in range(tokens.size):
                d = documents[tokens[j]]
                log_ratio += math.log(usage[d, new]) - math.log(usage[d, old])
        fresh = 1.0
        if opening:
            fresh = math.exp(log_gamma_draw(stream, 1.0))
        elif closing:
            fresh = zeta[old]
        if closing or opening:
            density = zeta_prior[2] + (zeta_prior[0] - 1.0) * math.log(fresh) - zeta_prior[1] * fresh + fresh
            log_ratio += density if opening else -density
        if not closing:
            log_ratio -= seat_tokens(
                stream, v, tokens, documents, first, last, sizes[old], prior, reach, node_total, node, ratio, held,
                False, seats,
            )  # fmt: skip
        if not opening:
            start, end = offsets[new], offsets[new] + widths[new]
            log_ratio += resize_evidence(start, end, node_total, prior, sizes[new], sizes[new] + 1)
            log_ratio += seat_tokens(
                stream, v, tokens, documents, start, end, sizes[new] + 1, prior, reach, node_total, node, ratio, held,
                True, seats,
            )  # fmt: skip
        if not math.log(uniform(stream)) < log_ratio:
            for k in range(first, last):
                node_total[k] += node_word[v, k]
            continue
        accepted += 1
        stale = True
        for k in range(first, last):
            node_word[v, k] = 0
        sizes[old] -= 1
        sizes[new] += 1
        word_scale[v] = new
        for i in tokens:
            doc_scale[documents[i], old] -= 1
            doc_scale[documents[i], new] += 1
        if closing:
            for d in range(n_documents):
                usage[d, old - 1] += usage[d, old]
                usage[d, old] = 0.0
            depth -= 1
            deaths += 1
        if opening:
            zeta[new] = fresh
            for d in range(n_documents):
                stay, go = beta_draw(stream, 1.0 + doc_scale[d, new - 1], rho + doc_scale[d, new])
                usage[d, new] = usage[d, new - 1] * go
                usage[d, new - 1] *= stay
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
            seat_tokens(
                stream, v, tokens, documents, start, end, 1, prior, reach, node_total, node, ratio, held, True, seats
            )
        for j in range(tokens.size):
            i = tokens[j]
            scale[i], node[i] = new, seats[j]
            node_word[v, offsets[new] + seats[j]] += 1
            node_total[offsets[new] + seats[j]] += 1
    return depth, accepted, births, deaths
