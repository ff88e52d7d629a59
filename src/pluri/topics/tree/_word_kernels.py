# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled moves of words, with all their tokens, from one scale to another; see `pluri.topics.tree.word_scales`.

The tokens of a word are put on nodes one after the other, token i on node t with probability proportional to
``reach_d(t) r_t``, ``r_t = (n_t(v) + g) / (n_t + g |A|)``. The product of the r's is what the tokens add to the
evidence of the topics, so that the target over the proposal leaves ``prod_i Z_i``, Z_i the sum of the weights.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.tree._draws import log_gamma_draw, stick_draw, uniform
from pluri.topics.tree._token_kernels import fill_reach
from pluri.topics.tree._usage_kernels import shift_usage, split_usage


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


class OfWords(NamedTuple):
    """Tokens in the order of their words, where those of each word begin, and the document of each token."""

    offsets: Any
    tokens: Any
    documents: Any


class Seating(NamedTuple):
    """Room for one word: ratios and tokens by node of a scale, and the seat of each of its tokens."""

    ratio: Any
    held: Any
    seats: Any


class WordRoom(NamedTuple):
    """Memory of a sweep: shares of documents in nodes, seats of a word; numbers by scale, and by node the last two.

    Made here, not in the compiled loop: the making of arrays takes long to compile.
    """

    reach: Any
    seating: Seating
    counts: Any
    grown: Any
    shrunk: Any
    gains: Any
    unused: Any

    @classmethod
    def of(cls, n_documents: int, n_tokens: int, n_nodes: int, n_scales: int) -> WordRoom:
        """For so many documents, tokens, nodes and scales."""
        seats, counts = np.zeros(n_tokens, dtype=np.int64), np.zeros(n_scales, dtype=np.int64)
        seating = Seating(np.zeros(n_nodes), np.zeros(n_nodes, dtype=np.int64), seats)
        unknown = np.full(n_scales, np.nan), np.full(n_scales, np.nan)
        return cls(np.zeros((n_documents, n_nodes)), seating, counts, *unknown, np.zeros(n_nodes), np.zeros(n_nodes))


@compiled(reorder=True, inner=True, allocates=False)
def dot(first, last, reach, ratio):
    """Sum of products over the nodes of a scale."""
    total = 0.0
    for k in range(first, last):
        total += reach[k] * ratio[k - first]
    return total


@compiled(inner=True, allocates=False)
def resized(n, old, new):
    """What the evidence of a topic of n tokens gains if its prior weighs `new` instead of `old`."""
    if n == 0:
        return 0.0
    return math.lgamma(new) - math.lgamma(old) + math.lgamma(n + old) - math.lgamma(n + new)


@compiled(inner=True, allocates=False)
def fill_resized(first, last, node_total, old, new, gains):
    """Fill `gains` with the same for all topics of a scale; gives their sum."""
    start = math.lgamma(new) - math.lgamma(old)
    total = 0.0
    for k in range(first, last):
        n, gains[k] = node_total[k], 0.0
        if n > 0:
            gains[k] = start + math.lgamma(n + old) - math.lgamma(n + new)
        total += gains[k]
    return total


@compiled(inner=True, allocates=False)
def seat_tokens(stream, tokens, documents, first, last, size, prior, reach, node_total, node, propose, room):
    """Log of the product of Z_i over the tokens of a word, at the nodes of one scale of `size` words; changes `room`.

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


@compiled(inner=True, allocates=False)
def choose_scale(stream, old, size, depth, priors):
    """Draw another scale to offer a word, or -1 if there is none; `depth` is a new one below the deepest.

    A word that is alone at its scale can leave it only if that is the deepest, which is then closed.
    """
    if size == 1 and not (old == depth - 1 and depth > priors.least_depth):
        return -1
    n_others = depth - 1
    if size > 1 and depth < priors.most_depth:  # one more place to go: a scale of its own
        n_others += 1
    if n_others == 0:
        return -1
    new = min(int(uniform(stream) * n_others), n_others - 1)
    return new + (new >= old)


@compiled(inner=True, allocates=False)
def concentration_of_scale(stream, old, opening, priors):
    """Concentration of a scale that is opened, which is drawn, or closed, and what it adds to the log ratio."""
    shape, rate, constant = priors.zeta_prior[0], priors.zeta_prior[1], priors.zeta_prior[2]
    if not shape > 0.0:
        return rate, 0.0
    zeta = math.exp(log_gamma_draw(stream, 1.0)) if opening else priors.zeta[old]
    density = constant + (shape - 1.0) * math.log(zeta) - rate * zeta + zeta
    return zeta, density if opening else -density


@compiled(inner=True, allocates=False)
def draw_transitions(stream, zeta, s, nodes):
    """Change the transitions into scale s: draw them from their prior."""
    width = nodes.widths[s]
    for m in range(nodes.widths[s - 1]):
        rest = 1.0
        for t in range(width):
            left = 0.0 if t == width - 1 else rest * stick_draw(stream, zeta)
            nodes.transition[nodes.offsets[s] + t, m] = rest - left
            rest = left


@compiled(inner=True, allocates=False)
def fill_reaches(depth, theta, nodes, reach):
    """Fill `reach`: distribution of every document over the nodes of each scale."""
    for d in range(theta.shape[0]):
        fill_reach(nodes.top, depth, nodes.widths, nodes.offsets, theta[d], nodes.transition, reach[d])


@compiled(inner=True, allocates=False)
def add_shrunk(log_ratio, v, s, nodes, placed, prior, shrunk, gains):
    """Add to a sum what the evidence of scale s gains if word v leaves; changes `shrunk` and `gains`, if not known."""
    node_word, node_total = placed.node_word, placed.node_total
    first, last = nodes.offsets[s], nodes.offsets[s] + nodes.widths[s]
    before, after = prior * nodes.sizes[s], prior * (nodes.sizes[s] - 1)
    if math.isnan(shrunk[s]):
        shrunk[s] = fill_resized(first, last, node_total, before, after, gains)
    log_ratio += shrunk[s]
    for k in range(first, last):
        if node_word[v, k] > 0:
            log_ratio += resized(node_total[k] - node_word[v, k], before, after) - gains[k]
    return log_ratio


@compiled(inner=True, allocates=False)
def take_seats(v, tokens, old, new, documents, nodes, seats, placed, doc_scale):
    """Change `nodes`, `placed` and `doc_scale`: a word is at another scale, and its tokens at the seats they got there.

    `node_total` does not count them at the old one any more.
    """
    offsets, node_word = nodes.offsets, placed.node_word
    nodes.sizes[old] -= 1
    nodes.sizes[new] += 1
    nodes.word_scale[v] = new
    for k in range(offsets[old], offsets[old] + nodes.widths[old]):
        node_word[v, k] = 0
    for j in range(tokens.size):
        i, k = tokens[j], offsets[new] + seats[j]
        doc_scale[documents[i], old] -= 1
        doc_scale[documents[i], new] += 1
        placed.scale[i], placed.node[i] = new, seats[j]
        node_word[v, k] += 1
        placed.node_total[k] += 1


@compiled(allocates=False)
def move_words(stream, order, of_words, nodes, priors, theta, placed, doc_scale, memory):
    """Change `nodes`, `placed` and `doc_scale`: offer every word of `order` another scale.

    Returns the depth, accepted moves, births and deaths of scales. With ``least_depth < most_depth`` a word may also
    open a scale below the deepest, or close that one if it is alone there. A new scale has transitions drawn from their
    prior, and a concentration drawn from Gamma(1, 1), for which the decision makes up. Usages of scales are integrated
    out, and must be drawn anew.
    """
    depth, widths, offsets, sizes, documents = nodes.depth, nodes.widths, nodes.offsets, nodes.sizes, of_words.documents
    node, node_word, node_total, prior, rho = placed.node, placed.node_word, placed.node_total, priors.prior, priors.rho
    # `grown` and `shrunk` are what the evidence of a scale gains by one word more or less, without its tokens; known
    # until a word comes or goes.
    reach, room, counts, grown, shrunk, gains, unused = memory
    seats = room.seats
    fill_reaches(depth, theta, nodes, reach)
    accepted, births, deaths, all_split = 0, 0, 0, np.nan
    no, yes = np.bool_(False), np.bool_(True)  # not constants, for which numba compiles a function once more
    for v in order:
        old = nodes.word_scale[v]
        new = choose_scale(stream, old, sizes[old], depth, priors)
        if new < 0:
            continue
        tokens = of_words.tokens[of_words.offsets[v] : of_words.offsets[v + 1]]
        opening, closing = new == depth, sizes[old] == 1
        first, last = offsets[old], offsets[old] + widths[old]
        start, end = offsets[new], offsets[new] + widths[new]
        log_ratio = priors.log_stop[new] - priors.log_stop[old]
        log_ratio += shift_usage(tokens, documents, doc_scale, depth + opening, rho, old, new, counts)
        if opening:
            if math.isnan(all_split):
                all_split = split_usage(tokens, documents, doc_scale, rho, depth - 1, no)
            log_ratio += all_split
        elif closing:
            log_ratio -= split_usage(tokens, documents, doc_scale, rho, depth - 2, new == depth - 2)
        zeta, density = concentration_of_scale(stream, old, opening, priors) if opening or closing else (0.0, 0.0)
        log_ratio += density
        if not closing:
            log_ratio = add_shrunk(log_ratio, v, old, nodes, placed, prior, shrunk, gains)
        for k in range(first, last):
            node_total[k] -= node_word[v, k]
        if not closing:
            log_ratio -= seat_tokens(
                stream, tokens, documents, first, last, sizes[old], prior, reach, node_total, node, no, room
            )
        if not opening:
            if math.isnan(grown[new]):
                grown[new] = fill_resized(start, end, node_total, prior * sizes[new], prior * (sizes[new] + 1), unused)
            log_ratio += grown[new] + seat_tokens(
                stream, tokens, documents, start, end, sizes[new] + 1, prior, reach, node_total, node, yes, room
            )
        if not math.log(uniform(stream)) < log_ratio:
            for k in range(first, last):
                node_total[k] += node_word[v, k]
            continue
        accepted, births, deaths, depth = accepted + 1, births + opening, deaths + closing, depth + opening - closing
        all_split, grown[old], grown[new], shrunk[old], shrunk[new] = np.nan, np.nan, np.nan, np.nan, np.nan
        if opening:
            priors.zeta[new] = zeta
            draw_transitions(stream, zeta, new, nodes)
            fill_reaches(depth, theta, nodes, reach)
            size = np.int64(1)
            seat_tokens(stream, tokens, documents, start, end, size, prior, reach, node_total, node, yes, room)
        take_seats(v, tokens, old, new, documents, nodes, seats, placed, doc_scale)
    return depth, accepted, births, deaths
