# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled draws of tokens with topics, proportions of documents and usage of scales integrated out.

With ``D_k(m)``, the probability of node k below node m of the top scale (a product of transitions), a token of word w
has node k of scale s, given all others, with probability proportional to

    E[usage_ds] sum_m (n_dm + eta alpha_m) D_k(m) / (n_d + eta) (n_k(w) + g) / (n_k + g |A_s|),

n_dm being the other tokens of its document below top node m; its own is then m in proportion to the terms of that sum.
The sums over m are kept up to date as tokens come and go.
"""

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.tree._document_kernels import fill_usage
from pluri.topics.tree._draws import uniform
from pluri.topics.tree._token_kernels import locate, sum_counts


@compiled(reorder=True)
def add_row(reach, row, factor):
    """Count a token into the sums over top nodes."""
    for k in range(reach.size):
        reach[k] += factor * row[k]


@compiled()
def take_row(reach, row, ground):
    """Count a token out of them; rounding must not take more than it brought."""
    for k in range(reach.size):
        reach[k] = max(reach[k] - row[k], ground[k])


@compiled()
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


@compiled()
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


@compiled()
def draw_tokens_in_turn(
    stream, words, doc_offsets, nodes, prior, rho, weights, theta, ascent, descent, placed, counts
):  # fmt: skip
    """Change `placed` and `counts`: draw scale, node and path of every token given those of all others.

    `ascent` holds D_k(m) with the nodes as rows, `descent` with the top nodes as rows; `weights` is eta alpha.
    `node_word` and `node_total` hold the counts of tokens that have a node, and are kept up to date; tokens without one
    (-1) join in turn. `theta` says from which top nodes the tokens that have a node came. The other counts start at
    zero.
    """
    top, depth, widths, offsets, node_scale, word_scale, sizes, transition = nodes
    scale, node, paths, node_word, node_total = placed
    moves, doc_top, doc_scale = counts
    n_nodes, n_top = node_total.size, weights.size
    reach, running, inverse, usage = np.zeros(n_nodes), np.zeros(n_nodes), np.zeros(n_nodes), np.zeros(depth)
    ground, nobody, nowhere = np.zeros(n_nodes), np.zeros(n_top), np.zeros(0, dtype=np.int32)
    at_scale, at_top = np.zeros(depth, dtype=np.int64), np.zeros(n_top)
    longest = 0
    for d in range(doc_offsets.size - 1):
        longest = max(longest, doc_offsets[d + 1] - doc_offsets[d])
    origin = np.zeros(longest, dtype=np.int64)
    dependent = word_scale.size > 0
    eta = 0.0
    for m in range(n_top):
        eta += weights[m]
        add_row(ground, descent[m], weights[m])
    for s in range(depth):
        usage[s] = 1.0
        for k in range(offsets[s], offsets[s] + widths[s]):
            inverse[k] = 1.0 / (node_total[k] + prior * sizes[s])
    for d in range(doc_offsets.size - 1):
        start, end = doc_offsets[d], doc_offsets[d + 1]
        if end == start:
            continue
        for k in range(n_nodes):
            reach[k] = ground[k]
        for m in range(n_top):
            at_top[m] = 0.0
        for s in range(depth):
            at_scale[s] = 0
        n_deep = 0
        for i in range(start, end):
            if node[i] < 0:
                continue
            s, m = scale[i], -1
            at_scale[s] += 1
            if s >= top:
                m = node[i]
                if s > top:
                    m = choose_top(stream, theta[d], nobody, ascent[offsets[s] + node[i]])
                at_top[m] += 1.0
                n_deep += 1
                add_row(reach, descent[m], 1.0)
            origin[i - start] = m
        for i in range(start, end):
            w = words[i]
            first_scale, last_scale = 0, depth
            if dependent:
                first_scale, last_scale = word_scale[w], word_scale[w] + 1
            if node[i] >= 0:
                s, m = scale[i], origin[i - start]
                if dependent and s < top:  # there is only one place for it
                    doc_scale[d, s] += 1
                    if paths.size > 0:
                        paths[i, 0] = 0
                    continue
                k = offsets[s] + node[i]
                node_word[w, k] -= 1
                node_total[k] -= 1
                inverse[k] = 1.0 / (node_total[k] + prior * sizes[s])
                at_scale[s] -= 1
                if s >= top:
                    at_top[m] -= 1.0
                    n_deep -= 1
                    take_row(reach, descent[m], ground)
            if not dependent:
                fill_usage(depth, rho, at_scale, usage)
            total = 0.0
            for s in range(first_scale, last_scale):
                first, last = offsets[s], offsets[s] + widths[s]
                factor = usage[s]
                if s < top:
                    reach[first] = 1.0
                else:
                    factor /= n_deep + eta
                total = sum_counts(first, last, node_word[w], prior, inverse, reach, factor, running, total)
                for k in range(last, offsets[s + 1]):  # room that no node has taken
                    running[k] = total
            k = locate(running, offsets[first_scale], offsets[last_scale], uniform(stream) * total)
            s = node_scale[k]
            t = k - offsets[s]
            scale[i], node[i] = s, t
            node_word[w, k] += 1
            node_total[k] += 1
            inverse[k] = 1.0 / (node_total[k] + prior * sizes[s])
            at_scale[s] += 1
            doc_scale[d, s] += 1
            if s >= top:
                m = t if s == top else choose_top(stream, weights, at_top, ascent[k])
                at_top[m] += 1.0
                n_deep += 1
                add_row(reach, descent[m], 1.0)
                origin[i - start] = m
                doc_top[d, m] += 1
                path = paths[i] if paths.size > 0 else nowhere
                count_steps(stream, top, offsets, widths, s, t, m, transition, descent[m], moves, path)
            elif paths.size > 0:
                paths[i, 0] = 0
