# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled draw of the path of a document given its levels; see `pluri.topics.concept_graph.sampling.path_sampler`."""

import math

import numpy as np

from pluri.engine.compiled import compiled

inner = compiled(inner=True, allocates=False)


@compiled(reorder=True, allocates=False)
def word_terms(graph, eta, words, level, first, last, high, step, log_term, product, seen, sizes):
    """Log probability of the words of each level of a document at each node, the document being taken out.

    ``log_term[l, x] = log Gamma(V eta + N_x) / Gamma(V eta + N_x + n_l)
    + sum_v log Gamma(eta + N_xv + n_lv) / Gamma(eta + N_xv)``; in the last column, for a new node. The products need
    no logarithm within `step` factors. Returns the highest level.
    """
    n_levels, new = log_term.shape[0], log_term.shape[1] - 1
    prior = eta * graph.word_count.shape[0]
    top = 0
    for l in range(n_levels):
        sizes[l] = 0
        for x in range(new + 1):
            log_term[l, x], product[l, x] = 0.0, 1.0
    before = -1
    for i in range(first, last):
        word = words[i]
        if word != before:
            for l in range(n_levels):
                seen[l] = 0
            before = word
        l = level[i]
        base = eta + seen[l]
        counts = graph.word_count[word]
        for x in range(high):
            product[l, x] *= base + counts[x]
        product[l, new] *= base
        seen[l] += 1
        sizes[l] += 1
        top = max(top, l)
        if sizes[l] % step == 0:
            for x in range(high):
                log_term[l, x] += math.log(product[l, x])
                product[l, x] = 1.0
            log_term[l, new] += math.log(product[l, new])
            product[l, new] = 1.0
    for l in range(top + 1):
        if sizes[l] == 0:
            continue
        for x in range(high):
            if graph.depth[x] > 0:
                total = prior + graph.total[x]
                log_term[l, x] += math.log(product[l, x]) + math.lgamma(total) - math.lgamma(total + sizes[l])
        log_term[l, new] += math.log(product[l, new]) + math.lgamma(prior) - math.lgamma(prior + sizes[l])
    return top


@compiled(allocates=False)
def log_length_factor(numbers, length, n_words, tau):
    """What the length of a path does to the probability of given levels."""
    if not numbers.length_factor:
        return 0.0
    if numbers.dirichlet:
        total = numbers.a + (length - 1) * numbers.b
        return math.lgamma(total) - math.lgamma(total + n_words)
    series = 0.0
    for _ in range(length):
        series = series * (1.0 - tau) + 1.0
    return -n_words * math.log(series)


@compiled(allocates=False)
def backward(graph, numbers, label, top, log_term, back, weight, highest):
    """Log weights of the rest of the path: ``back[S, i, x]`` for node x at place i of a path of S nodes.

    ``back[S, i, x] = log_term[S - i, x] + log sum_y p(x -> y) exp(back[S, i + 1, y])``; a new node of depth k has the
    column c + k. `highest` is memory, (L + 2,).
    """
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    new, end = log_term.shape[1] - 1, capacity + n_levels + 1
    for length in range(top + 1, n_levels + 1):
        for i in range(length, 0, -1):
            deepest = n_levels - (length - i) if numbers.deeper else i
            for k in range(i, deepest + 1):
                if i == 1 and k > 1:
                    break
                n_used = graph.n_used[k]
                n_states = n_used + (1 if graph.n_nodes[k] > n_used else 0)
                for m in range(n_states):
                    x = graph.members[k, m] if m < n_used else capacity + k
                    value = log_term[length - i, x if m < n_used else new]
                    row = graph.probability[x]
                    if i == length:
                        value += math.log(row[end]) if label < 0 or label == x else -np.inf
                    else:
                        peak = -np.inf
                        last = n_levels - (length - i - 1) if numbers.deeper else k + 1
                        for below in range(k + 1, last + 1):
                            peak = max(peak, highest[below])
                        mass = 0.0
                        if peak > -np.inf:
                            for below in range(k + 1, last + 1):
                                part = row[capacity + below] * weight[capacity + below]
                                for o in range(graph.n_used[below]):
                                    y = graph.members[below, o]
                                    part += row[y] * weight[y]
                                if highest[below] > -np.inf:
                                    mass += part * math.exp(highest[below] - peak)
                        value = value + math.log(mass) + peak if mass > 0.0 else -np.inf
                    back[length, i, x] = value
            # The weights of this place, depth by depth, for the one before it.
            for k in range(i, deepest + 1):
                if i == 1:
                    break
                n_used = graph.n_used[k]
                peak = back[length, i, capacity + k] if graph.n_nodes[k] > n_used else -np.inf
                for m in range(n_used):
                    peak = max(peak, back[length, i, graph.members[k, m]])
                highest[k] = peak
                weight[capacity + k] = 0.0
                if peak > -np.inf:
                    if graph.n_nodes[k] > n_used:
                        weight[capacity + k] = math.exp(back[length, i, capacity + k] - peak)
                    for m in range(n_used):
                        weight[graph.members[k, m]] = math.exp(back[length, i, graph.members[k, m]] - peak)


@inner
def draw_log(rng, logits, n):
    """Index in proportion to exp(logits)."""
    peak = -np.inf
    for i in range(n):
        peak = max(peak, logits[i])
    total = 0.0
    for i in range(n):
        total += math.exp(logits[i] - peak)
    goal = rng.random() * total
    chosen = -1
    for i in range(n):
        weight = math.exp(logits[i] - peak)
        if weight > 0.0:
            chosen = i
            goal -= weight
            if goal < 0.0:
                break
    return chosen


@compiled(allocates=False)
def draw_path(rng, graph, numbers, n_words, tau, top, back, logits, states, path):
    """Draw the length of a path and its nodes, given `backward`; the length."""
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    for length in range(top + 1, n_levels + 1):
        logits[length - top - 1] = back[length, 1, 0] + log_length_factor(numbers, length, n_words, tau)
    length = top + 1 + draw_log(rng, logits, n_levels - top)
    path[0] = 0
    x, k = 0, 1
    for i in range(2, length + 1):
        n = np.int64(0)
        for below in range(k + 1, (n_levels - (length - i) if numbers.deeper else k + 1) + 1):
            for m in range(graph.n_used[below]):
                y = graph.members[below, m]
                states[n] = y
                logits[n] = math.log(graph.probability[x, y]) + back[length, i, y]
                n += 1
            if graph.n_nodes[below] > graph.n_used[below]:
                states[n] = capacity + below
                logits[n] = math.log(graph.probability[x, capacity + below]) + back[length, i, capacity + below]
                n += 1
        x = states[draw_log(rng, logits, n)]
        k = x - capacity if x >= capacity else graph.depth[x]
        path[i - 1] = x
    return length
