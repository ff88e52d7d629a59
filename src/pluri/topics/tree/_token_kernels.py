# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over tokens of a tree with a fixed number of nodes; see `pluri.topics.tree.gibbs`.

Nodes of all scales stand in one row: node t of scale s is ``offsets[s] + t``, and ``transition[offsets[s] + t, m]`` is
the probability of that node below node m of scale s - 1. With the distribution of a document over the nodes of a scale,

    reach_s = P^(s-1) ... P^(top) theta_d,

a token of word w has scale s and node t with probability proportional to ``usage_ds reach_s(t) phi_st(w)``; the nodes
above are then drawn backwards, ``z^(s-1) = m`` with probability ``P[z^(s), m] reach_{s-1}(m) / reach_s(z^(s))``.
"""

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.tree._draws import uniform


@compiled(reorder=True, allocates=False)
def fill_reach(top, depth, widths, offsets, shares, transition, reach):
    """Distribution of a document over the nodes of each scale, given its distribution over those of the top one."""
    if top == 1:
        reach[0] = 1.0
    if depth > top:
        for t in range(widths[top]):
            reach[offsets[top] + t] = shares[t]
    for s in range(top + 1, depth):
        above, n_above = offsets[s - 1], widths[s - 1]
        for k in range(offsets[s], offsets[s] + widths[s]):
            total = 0.0
            for m in range(n_above):
                total += transition[k, m] * reach[above + m]
            reach[k] = total


@compiled(inner=True, allocates=False)
def draw_above(stream, top, offsets, widths, s, t, transition, reach, moves, path):
    """Draw the nodes above node t of scale s, count the steps between them, and return the one at the top scale.

    `path` gets the nodes if it has room for them.
    """
    keep = path.size > 0
    if keep:
        path[s] = t
        if top == 1:
            path[0] = 0
    while s > top:
        k = offsets[s] + t
        above, n_above = offsets[s - 1], widths[s - 1]
        target = uniform(stream) * reach[k]
        passed, m = 0.0, -1
        for candidate in range(n_above):
            weight = transition[k, candidate] * reach[above + candidate]
            if weight > 0.0:
                m = candidate
                passed += weight
                if passed > target:
                    break
        m = max(m, 0)
        moves[k, m] += 1
        s, t = s - 1, m
        if keep:
            path[s] = t
    return t


@compiled(reorder=True, inner=True, allocates=False)
def sum_scores(first, last, row, reach, factor, running, total):
    """Running sums of `factor` times word probability times reach."""
    for k in range(first, last):
        total += factor * row[k] * reach[k]
        running[k] = total
    return total


@compiled(reorder=True, inner=True, allocates=False)
def sum_counts(first, last, row, prior, inverse, reach, factor, running, total):
    """Running sums with the word probability ``(count + prior) / (total + prior)`` of topics integrated out."""
    for k in range(first, last):
        total += factor * (row[k] + prior) * inverse[k] * reach[k]
        running[k] = total
    return total


@compiled(inner=True, allocates=False)
def locate(running, first, last, target):
    """First place from `first` where the running sum passes the target."""
    last -= 1
    while first < last:
        middle = (first + last) // 2
        if running[middle] > target:
            last = middle
        else:
            first = middle + 1
    return first


@compiled()
def draw_tokens(stream, words, doc_offsets, nodes, theta, usage, phi, placed, counts):
    """Change `placed` and `counts`: draw scale, node and path of every token given topics; all counts start at zero.

    Tokens are independent of each other, and copies of a word in a document share one table of probabilities.
    """
    top, depth, widths, offsets, transition = nodes.top, nodes.depth, nodes.widths, nodes.offsets, nodes.transition
    word_scale = nodes.word_scale
    scale, node, paths, node_word, node_total = placed
    n_nodes = node_total.size
    reach, running = np.zeros(n_nodes), np.zeros(n_nodes)
    nowhere = np.zeros(0, dtype=np.int32)
    dependent = word_scale.size > 0
    for d in range(doc_offsets.size - 1):
        if doc_offsets[d + 1] == doc_offsets[d]:
            continue
        fill_reach(top, depth, widths, offsets, theta[d], transition, reach)
        known, total, first_scale, last_scale = -1, 0.0, 0, depth
        for i in range(doc_offsets[d], doc_offsets[d + 1]):
            w = words[i]
            if w != known:
                known, total = w, 0.0
                if dependent:
                    first_scale, last_scale = word_scale[w], word_scale[w] + 1
                for s in range(first_scale, last_scale):
                    first, last = offsets[s], offsets[s] + widths[s]
                    total = sum_scores(first, last, phi[w], reach, 1.0 if dependent else usage[d, s], running, total)
                    for k in range(last, offsets[s + 1]):  # room that no node has taken
                        running[k] = total
            if total > 0.0:
                k = locate(running, offsets[first_scale], offsets[last_scale], uniform(stream) * total)
            else:  # probabilities below the smallest number: stay
                k = offsets[scale[i]] + node[i]
            s = nodes.node_scale[k]
            t = k - offsets[s]
            scale[i], node[i] = s, t
            node_word[w, k] += 1
            node_total[k] += 1
            counts.doc_scale[d, s] += 1
            if s >= top:
                path = paths[i] if paths.size > 0 else nowhere
                m = draw_above(stream, top, offsets, widths, s, t, transition, reach, counts.moves, path)
                counts.doc_top[d, m] += 1
            elif paths.size > 0:
                paths[i, 0] = 0


@compiled()
def draw_paths(stream, doc_offsets, nodes, theta, placed, counts):
    """Change the paths of `placed`, and `counts`: draw the nodes above the node of every token."""
    top, depth, widths, offsets, transition = nodes.top, nodes.depth, nodes.widths, nodes.offsets, nodes.transition
    scale, node, paths = placed.scale, placed.node, placed.paths
    reach = np.zeros(offsets[-1])
    for d in range(doc_offsets.size - 1):
        fill_reach(top, depth, widths, offsets, theta[d], transition, reach)
        for i in range(doc_offsets[d], doc_offsets[d + 1]):
            s = scale[i]
            counts.doc_scale[d, s] += 1
            if s >= top:
                t = draw_above(stream, top, offsets, widths, s, node[i], transition, reach, counts.moves, paths[i])
                counts.doc_top[d, t] += 1
            else:
                paths[i, 0] = 0


@compiled(allocates=False)
def count_paths(documents, top, offsets, scale, paths, moves, doc_top, doc_scale):
    """Steps between nodes, nodes of the top scale and scales of each document, for paths that are known."""
    for i in range(scale.size):
        d, s = documents[i], scale[i]
        doc_scale[d, s] += 1
        if s >= top:
            doc_top[d, paths[i, top]] += 1
        for below in range(top + 1, s + 1):
            moves[offsets[below] + paths[i, below], paths[i, below - 1]] += 1


@compiled(allocates=False)
def count_tables(stream, doc_top, weights, concentration, tables):
    """Tables at which the tokens of each document and node sit, summed over documents."""
    for d in range(doc_top.shape[0]):
        for t in range(doc_top.shape[1]):
            if doc_top[d, t] > 0:
                tables[t] += 1
                new = concentration * weights[t]
                for i in range(1, doc_top[d, t]):
                    if uniform(stream) * (new + i) < new:
                        tables[t] += 1
