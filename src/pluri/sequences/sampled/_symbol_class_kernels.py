# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled sweep of the symbol-class sampler: one new class for every symbol, drawn from its full conditional.

With all counts taken without symbol v, which occurs n times, l_i times after state i and r_j times before state j
(its occurrences beside itself are `twins`, counted apart), class c is drawn in proportion to

    (m_c + g)  G((m_c + 1) b) G(m_c b + N_c) / [ G(m_c b) G((m_c + 1) b + N_c + n) ]        symbols and tokens
    x  G(N_c + K a) / G(N_c + n + K a)  prod over cells of G(n_ij + d_ij + a) / G(n_ij + a)   transitions
    x  prod_f (r_fcx + e_f) / (m_c + S_f e_f),                                                features

G being the gamma function and d_ij what the symbol adds to a transition count: l_i in cell (i, c), r_j in cell (c, j),
and l_c + r_c + twins in cell (c, c). State k is the boundary of the sequences; the states are left N_c times, since a
boundary follows the last token.
"""

from __future__ import annotations

from math import exp, lgamma, log

from pluri.engine.compiled import compiled


@compiled()
def _renew(c, counts, concentration, sizes, log_gamma_rows, base, single):
    """Change `base` and `single` in place at class c: what its weight is made of, whatever the symbol.

    `single` is what a symbol seen once takes off. These change only for the class that a symbol leaves and the one it
    enters, so that a rare symbol costs next to no logarithms.
    """
    b = concentration[0]
    m = counts.types[c]
    total = counts.tokens[c]
    value = log(m + concentration[1]) + lgamma((m + 1) * b) + log_gamma_rows[total]
    if m > 0:
        value += lgamma(m * b + total) - lgamma(m * b)
    for f in range(sizes.shape[0]):
        value -= log(m + sizes[f] * concentration[2 + f])
    base[c] = value
    single[c] = lgamma((m + 1) * b + total + 1) + log_gamma_rows[total + 1]


@compiled()
def resample_classes(order, uniforms, corpus, tables, point):
    """Change `point` in place: a new class for each symbol of `order`; returns how many moved.

    `corpus`, `tables` and `point` are `Corpus`, `Tables` and `Assignment` of
    `pluri.sequences.sampled.symbol_class_sampler`. After a call with a single symbol, ``tables.work[0]`` has its
    unnormalised conditional.
    """
    symbols = corpus.symbols
    places = corpus.places
    firsts = corpus.firsts
    frequencies = corpus.frequencies
    features = corpus.features
    sizes = corpus.sizes
    concentration = tables.concentration
    log_gamma_cells = tables.cells
    log_gamma_rows = tables.rows
    log_features = tables.features
    classes = point.classes
    states = point.states
    counts = point.counts
    transition = counts.transition
    tokens = counts.tokens
    types = counts.types
    feature_counts = counts.features
    k = tokens.shape[0]
    b = concentration[0]
    before = tables.neighbours[0]
    after = tables.neighbours[1]
    weights = tables.work[0]
    base = tables.work[1]
    single = tables.work[2]
    for c in range(k):
        _renew(c, counts, concentration, sizes, log_gamma_rows, base, single)
    moved = 0
    for rank in range(order.shape[0]):
        v = order[rank]
        old = classes[v]
        n = frequencies[v]
        for i in range(k + 1):
            before[i] = 0
            after[i] = 0
        twins = 0
        for q in range(firsts[v], firsts[v + 1]):
            t = places[q]
            if symbols[t - 1] == v:
                twins += 1
            else:
                before[states[t - 1]] += 1
            if symbols[t + 1] != v:
                after[states[t + 1]] += 1
        for i in range(k + 1):
            transition[i, old] -= before[i]
            transition[old, i] -= after[i]
        transition[old, old] -= twins
        tokens[old] -= n
        types[old] -= 1
        for f in range(sizes.shape[0]):
            feature_counts[features[v, f], old] -= 1
        _renew(old, counts, concentration, sizes, log_gamma_rows, base, single)
        for c in range(k):
            if n == 1:
                weights[c] = base[c] - single[c]
            else:
                weights[c] = base[c] - lgamma((types[c] + 1) * b + tokens[c] + n) - log_gamma_rows[tokens[c] + n]
            both = before[c] + after[c] + twins
            if both > 0:
                weights[c] += log_gamma_cells[transition[c, c] + both] - log_gamma_cells[transition[c, c]]
        for i in range(k + 1):
            if before[i] > 0:
                for c in range(k):
                    if c != i:
                        count = transition[i, c]
                        weights[c] += log_gamma_cells[count + before[i]] - log_gamma_cells[count]
            if after[i] > 0:
                for c in range(k):
                    if c != i:
                        count = transition[c, i]
                        weights[c] += log_gamma_cells[count + after[i]] - log_gamma_cells[count]
        for f in range(sizes.shape[0]):
            row = features[v, f]
            for c in range(k):
                weights[c] += log_features[f, feature_counts[row, c]]
        largest = weights[0]
        for c in range(1, k):
            largest = max(largest, weights[c])
        total = 0.0
        for c in range(k):
            weights[c] = exp(weights[c] - largest)
            total += weights[c]
        threshold = uniforms[rank] * total
        new = 0
        cumulative = weights[0]
        while cumulative <= threshold and new < k - 1:
            new += 1
            cumulative += weights[new]
        if new != old:
            moved += 1
            classes[v] = new
            for q in range(firsts[v], firsts[v + 1]):
                states[places[q]] = new
        for i in range(k + 1):
            transition[i, new] += before[i]
            transition[new, i] += after[i]
        transition[new, new] += twins
        tokens[new] += n
        types[new] += 1
        for f in range(sizes.shape[0]):
            feature_counts[features[v, f], new] += 1
        _renew(new, counts, concentration, sizes, log_gamma_rows, base, single)
    return moved
