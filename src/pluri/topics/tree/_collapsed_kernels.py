# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled draws of tokens with topics, proportions of documents and usage of scales integrated out.

With ``D_k(m)``, the probability of node k below node m of the top scale (a product of transitions), a token of word w
has node k of scale s, given all others, with probability proportional to

    E[usage_ds] sum_m (n_dm + eta alpha_m) D_k(m) / (n_d + eta) (n_k(w) + g) / (n_k + g |A_s|),

n_dm being the other tokens of its document below top node m; its own is then m in proportion to the terms of that sum.
The sums over m are kept up to date as tokens come and go.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.tree._document_kernels import fill_usage
from pluri.topics.tree._draws import uniform
from pluri.topics.tree._token_kernels import locate, sum_counts


class Below(NamedTuple):
    """What lies below the top nodes: D_k(m) with the nodes as rows (`ascent`), and with the top nodes (`descent`).

    `weights` is eta alpha, `ground` the sums over m if a document has no tokens.
    """

    ascent: Any
    descent: Any
    weights: Any
    ground: Any


class Document(NamedTuple):
    """Tokens of a document: the sums over m, tokens by scale and by top node, and the top node of each (-1: none)."""

    reach: Any
    at_scale: Any
    at_top: Any
    origin: Any


class Room(NamedTuple):
    """Memory of a sweep: a document; by node cumulated weights and 1 / (n_k + g |A_s|); and small arrays.

    Made here, not in the compiled loop: the making of arrays takes long to compile.
    """

    document: Document
    running: Any
    inverse: Any
    usage: Any
    nobody: Any
    nowhere: Any

    @classmethod
    def of(cls, n_nodes: int, n_top: int, depth: int, n_tokens: int) -> Room:
        """For so many nodes, of the top scale too, scales and tokens."""
        numbers = np.zeros(depth, dtype=np.int64), np.zeros(n_top), np.zeros(n_tokens, dtype=np.int64)
        document, nowhere = Document(np.zeros(n_nodes), *numbers), np.zeros(0, dtype=np.int32)
        return cls(document, np.zeros(n_nodes), np.zeros(n_nodes), np.ones(depth), np.zeros(n_top), nowhere)


@compiled(reorder=True, inner=True, allocates=False)
def add_row(reach, row, factor):
    """Count a token into the sums over top nodes."""
    for k in range(reach.size):
        reach[k] += factor * row[k]


@compiled(inner=True, allocates=False)
def take_row(reach, row, ground):
    """Count a token out of them; rounding must not take more than it brought."""
    for k in range(reach.size):
        reach[k] = max(reach[k] - row[k], ground[k])


@compiled(inner=True, allocates=False)
def choose_top(stream, weights, counts, row):
    """Top node of a token, in proportion to ``(weights + counts) * row``."""
    total = 0.0
    for m in range(row.size):
        total += (weights[m] + counts[m]) * row[m]
    target, passed, chosen = uniform(stream) * total, 0.0, 0
    for m in range(row.size):
        weight = (weights[m] + counts[m]) * row[m]
        if weight > 0.0:
            chosen = m
            passed += weight
            if passed > target:
                break
    return chosen


@compiled(inner=True, allocates=False)
def count_steps(stream, top, offsets, widths, s, t, m, transition, below, moves, path):
    """Draw the nodes between top node m and node t of scale s, and count the steps; `path` gets them if it has room."""
    keep = path.size > 0
    if keep:
        path[0] = 0
        path[top], path[s] = m, t
    while s > top + 1:
        k = offsets[s] + t
        above, n_above = offsets[s - 1], widths[s - 1]
        total = 0.0
        for candidate in range(n_above):
            total += transition[k, candidate] * below[above + candidate]
        target, passed, chosen = uniform(stream) * total, 0.0, 0
        for candidate in range(n_above):
            weight = transition[k, candidate] * below[above + candidate]
            if weight > 0.0:
                chosen = candidate
                passed += weight
                if passed > target:
                    break
        moves[k, chosen] += 1
        s, t = s - 1, chosen
        if keep:
            path[s] = t
    if s == top + 1:
        moves[offsets[s] + t, m] += 1


@compiled(inner=True, allocates=False)
def read_document(stream, start, end, nodes, shares, below, placed, document, nobody):
    """Change the document: count its tokens that have a node, with a top node drawn for each.

    `shares` says from which top nodes they came, `nobody` is zeros. Gives how many have one.
    """
    reach, at_scale, at_top, origin = document
    for k in range(reach.size):
        reach[k] = below.ground[k]
    for m in range(at_top.size):
        at_top[m] = 0.0
    for s in range(at_scale.size):
        at_scale[s] = 0
    n_deep = 0
    for i in range(start, end):
        t = placed.node[i]
        if t < 0:
            continue
        s, m = placed.scale[i], -1
        at_scale[s] += 1
        if s >= nodes.top:
            m = t
            if s > nodes.top:
                m = choose_top(stream, shares, nobody, below.ascent[nodes.offsets[s] + t])
            at_top[m] += 1.0
            n_deep += 1
            add_row(reach, below.descent[m], 1.0)
        origin[i] = m
    return n_deep


@compiled(inner=True, allocates=False)
def shift_token(w, k, s, step, prior, placed, inverse, at_scale):
    """Change the counts of `placed`, `inverse` and `at_scale`: put a token on a node (step 1), or take it off (-1)."""
    placed.node_word[w, k] += step
    placed.node_total[k] += step
    inverse[k] = 1.0 / (placed.node_total[k] + prior)
    at_scale[s] += step


@compiled(inner=True, allocates=False)
def weigh_nodes(row, first_scale, last_scale, nodes, prior, inverse, usage, weight, reach, running):
    """Fill `running` with the running sums of the weights of the nodes of some scales for a word; gives the total.

    `weight` is that of all tokens of the document below the top, and of their prior.
    """
    total = 0.0
    for s in range(first_scale, last_scale):
        first, last = nodes.offsets[s], nodes.offsets[s] + nodes.widths[s]
        factor = usage[s]
        if s < nodes.top:
            reach[first] = 1.0
        else:
            factor /= weight
        total = sum_counts(first, last, row, prior, inverse, reach, factor, running, total)
        for k in range(last, nodes.offsets[s + 1]):  # room that no node has taken
            running[k] = total
    return total


@compiled(allocates=False)
def draw_tokens_in_turn(stream, words, doc_offsets, nodes, prior, rho, theta, below, placed, counts, room):
    """Change `placed` and `counts`: draw scale, node and path of every token given those of all others.

    `below.ground` is zeros, and is filled. `node_word` and `node_total` hold the counts of tokens that have a node, and
    are kept up to date; tokens without one (-1) join in turn. `theta` says from which top nodes the tokens that have a
    node came. The other counts start at zero.
    """
    top, depth, widths, offsets, node_scale, word_scale, sizes, transition = nodes
    scale, node, paths, node_word, node_total = placed
    moves, doc_top, doc_scale = counts
    ascent, descent, weights, ground = below
    document, running, inverse, usage, nobody, nowhere = room
    reach, at_scale, at_top, origin = document
    n_nodes, n_top = node_total.size, weights.size
    dependent = word_scale.size > 0
    eta = 0.0
    for m in range(n_top):
        eta += weights[m]
        add_row(ground, descent[m], weights[m])
    for k in range(n_nodes):
        inverse[k] = 1.0 / (node_total[k] + prior * sizes[node_scale[k]])
    for d in range(doc_offsets.size - 1):
        start, end = doc_offsets[d], doc_offsets[d + 1]
        n_deep = read_document(stream, start, end, nodes, theta[d], below, placed, document, nobody)
        for i in range(start, end):
            w = words[i]
            first, last = 0, depth
            if dependent:
                first, last = word_scale[w], word_scale[w] + 1
            if node[i] >= 0:
                s, m = np.int64(scale[i]), origin[i]
                if dependent and s < top:  # there is only one place for it
                    doc_scale[d, s] += 1
                    if paths.size > 0:
                        paths[i, 0] = 0
                    continue
                k = offsets[s] + node[i]
                shift_token(w, k, s, np.int64(-1), prior * sizes[s], placed, inverse, at_scale)
                if s >= top:
                    at_top[m] -= 1.0
                    n_deep -= 1
                    take_row(reach, descent[m], ground)
            if not dependent:
                fill_usage(depth, rho, at_scale, usage)
            total = weigh_nodes(node_word[w], first, last, nodes, prior, inverse, usage, n_deep + eta, reach, running)
            k = locate(running, offsets[first], offsets[last], uniform(stream) * total)
            s = node_scale[k]
            t = k - offsets[s]
            scale[i], node[i] = s, t
            shift_token(w, k, s, np.int64(1), prior * sizes[s], placed, inverse, at_scale)
            doc_scale[d, s] += 1
            if s >= top:
                m = t if s == top else choose_top(stream, weights, at_top, ascent[k])
                at_top[m] += 1.0
                n_deep += 1
                add_row(reach, descent[m], 1.0)
                doc_top[d, m] += 1
                path = paths[i] if paths.size > 0 else nowhere
                count_steps(stream, top, offsets, widths, s, t, m, transition, descent[m], moves, path)
            elif paths.size > 0:
                paths[i, 0] = 0
