# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled joint moves of path, levels and tau of a document; see `pluri.topics.concept_graph.sampling.gibbs`."""

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph._level_kernels import log_tau_density, logistic, seat_levels, tau_peak
from pluri.topics.concept_graph.arrays import MOST_PATHS
from pluri.topics.concept_graph.sampling._graph_kernels import put_in, take_out
from pluri.topics.concept_graph.sampling._path_kernels import draw_log

inner = compiled(inner=True, allocates=False)
#: Log score of a new node where paths are proposed.
NEW_SCORE = 3.0


@inner
def log_path(graph, path, length):
    """Log predictive probability of a path."""
    end = graph.probability.shape[1] - 1
    value = math.log(graph.probability[path[length - 1], end])
    for i in range(length - 1):
        value += math.log(graph.probability[path[i], path[i + 1]])
    return value


@inner
def copy_path(path, length, paths, lengths, row):
    """Write a path into a row: a loop, as slices that may differ in length take long to compile."""
    lengths[row] = length
    for i in range(paths.shape[1]):
        paths[row, i] = path[i]


@inner
def alternatives(rng, graph, numbers, label, path, length, paths, lengths):
    """List paths that differ from one in a single node, or in whether they go on; itself first. Their number.

    Which place may differ is drawn without looking at the path, and the paths that differ there are the same for all of
    them: a choice among them in proportion to their probability leaves it invariant.
    """
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    place = int(rng.random() * (n_levels - 1)) + 1
    ends = rng.random() < 0.5
    copy_path(path, length, paths, lengths, np.int64(0))
    if ends:
        # Paths through the same first nodes that end there or one step later.
        if label >= 0 or (length != place and length != place + 1):
            return 1
    elif length <= place or (label >= 0 and length == place + 1):
        return 1
    above = path[place - 1]
    k = above - capacity if above >= capacity else graph.depth[above]
    limit = n_levels
    if not numbers.deeper:
        limit = k + 1
    elif not ends and length > place + 1:
        below = path[place + 1]
        limit = (below - capacity if below >= capacity else graph.depth[below]) - 1
    n = np.int64(1)
    if ends and length == place + 1:
        copy_path(path, place, paths, lengths, n)
        n += 1
    now = path[place] if length > place else -1
    for depth in range(k + 1, min(limit, n_levels) + 1):
        used = graph.n_used[depth]
        for m in range(used + (1 if graph.n_nodes[depth] > used else 0)):
            x = graph.members[depth, m] if m < used else capacity + depth
            if x != now:
                copy_path(path, place + 1 if ends else length, paths, lengths, n)
                paths[n, place] = x
                n += 1
    # A random part of very many: which part does not depend on where the path is among them.
    while n > MOST_PATHS:
        other = 1 + int(rng.random() * (n - 1))
        n -= 1
        copy_path(paths[n], lengths[n], paths, lengths, other)
    return n


@compiled(reorder=True, inner=True, allocates=False)
def score_nodes(graph, eta, words, first, last, factor, share, score):
    """Score each node by the share it gets if the words of a document may come from any node: (1 + n share)^2.

    A few steps of EM from equal shares; the document is taken out, so that scores do not depend on where it was.
    """
    capacity, n_words = len(graph.depth), graph.word_count.shape[0]
    n, m = last - first, 0
    for x in range(capacity):
        score[x] = 0.0
    for x in range(capacity):
        if graph.depth[x] > 0:
            scale = 1.0 / (eta * n_words + graph.total[x])
            for i in range(first, last):
                factor[i - first, m] = (eta + graph.word_count[words[i], x]) * scale
            m += 1
    if n == 0 or m == 1:
        return
    for x in range(m):
        share[x] = 1.0 / m
    for _ in range(4):
        for x in range(m):
            score[x] = 0.0
        for i in range(n):
            total = 0.0
            for x in range(m):
                total += share[x] * factor[i, x]
            scale = 1.0 / total
            for x in range(m):
                score[x] += share[x] * factor[i, x] * scale
        for x in range(m):
            share[x] = score[x] / n + 1e-6
    m -= 1
    for x in range(capacity - 1, -1, -1):
        if graph.depth[x] > 0:
            score[x] = 2.0 * math.log1p(score[m])
            m -= 1
        else:
            score[x] = 0.0


@inner
def propose_paths(rng, graph, numbers, label, number, score, value, logits, states, paths, lengths):
    """Draw paths in proportion to their predictive probability times the scores of their nodes, from row 1 on."""
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    end = capacity + n_levels + 1
    for k in range(n_levels, 0, -1):
        n_used = graph.n_used[k]
        for m in range(n_used + (1 if graph.n_nodes[k] > n_used else 0)):
            x = graph.members[k, m] if m < n_used else capacity + k
            row = graph.probability[x]
            total = row[end] if label < 0 or label == x else 0.0
            if label != x:
                for below in range(k + 1, (n_levels if numbers.deeper else min(k + 1, n_levels)) + 1):
                    for o in range(graph.n_used[below]):
                        total += row[graph.members[below, o]] * value[graph.members[below, o]]
                    if graph.n_nodes[below] > graph.n_used[below]:
                        total += row[capacity + below] * value[capacity + below]
            value[x] = total * math.exp(score[x] if m < n_used else NEW_SCORE)
    for c in range(1, number + 1):
        x, k, length = 0, 1, 1
        paths[c, 0] = 0
        while x != label:
            n = 0
            if label < 0:
                states[0] = -1
                logits[0] = graph.probability[x, end]
                n = 1
            for below in range(k + 1, (n_levels if numbers.deeper else min(k + 1, n_levels)) + 1):
                for o in range(graph.n_used[below] + (1 if graph.n_nodes[below] > graph.n_used[below] else 0)):
                    y = graph.members[below, o] if o < graph.n_used[below] else capacity + below
                    states[n] = y
                    logits[n] = graph.probability[x, y] * value[y]
                    n += 1
            total = 0.0
            for o in range(n):
                total += logits[o]
            goal, o = rng.random() * total, 0
            while o < n - 1 and (goal >= logits[o] or logits[o] == 0.0):
                goal -= logits[o]
                o += 1
            x = states[o]
            if x < 0:
                break
            k = x - capacity if x >= capacity else graph.depth[x]
            paths[c, length] = x
            length += 1
        lengths[c] = length


@inner
def log_score_of(graph, score, path, length):
    """Sum of the scores of a path's nodes: log density of its proposal over its probability, but for a constant."""
    total = 0.0
    for i in range(length):
        total += score[path[i]] if path[i] < len(graph.depth) else NEW_SCORE
    return total


@inner
def weigh_paths(rng, graph, numbers, corpus, d, step, present, n, compared, room):
    """Add to the logits of n paths their importance weights, with levels and tau drawn; row 0 keeps those it has."""
    paths, lengths, levels, taus, logits = compared
    share, sizes, seen = room.share, room.sizes, room.seen
    words = corpus.words[corpus.offsets[d] : corpus.offsets[d + 1]]
    for c in range(0 if present else 1, n):
        logits[c] += seat_levels(
            rng, graph, numbers, words, paths[c], lengths[c], levels[c], c > 0, step, share, sizes, seen
        )
        if numbers.dirichlet:
            continue
        total = np.int64(0)
        for l in range(lengths[c]):
            total += l * sizes[l]
        peak, scale = tau_peak(numbers.a, numbers.b, total, len(words), lengths[c])
        if c == 0:
            taus[c] = corpus.tau[d]
            z = math.log(taus[c]) - math.log1p(-taus[c])
        else:
            # Student's t with two degrees of freedom, whose distribution function can be inverted.
            u = min(max(rng.random(), 1e-12), 1.0 - 1e-12)
            z = peak + scale * (2.0 * u - 1.0) / math.sqrt(2.0 * u * (1.0 - u))
            taus[c] = logistic(z)
        t = (z - peak) / scale
        logits[c] += log_tau_density(z, numbers.a, numbers.b, total, len(words), lengths[c])
        logits[c] += math.log(scale) + 1.5 * math.log(2.0 + t * t)


@inner
def joint_move(rng, graph, numbers, corpus, d, step, anywhere, number, path, compared, room):
    """Change `graph` and `corpus`: draw path, levels and tau of a document together; it may have no path yet."""
    first, last = corpus.offsets[d], corpus.offsets[d + 1]
    paths, lengths, levels, taus, logits = compared
    score, value = room.score, room.value
    length, chosen = corpus.length[d], 0
    present = length > 0
    if present:
        take_out(graph, numbers, corpus, d, path)
    if anywhere:
        score_nodes(graph, numbers.eta, corpus.words, first, last, room.factor, value, score)
        propose_paths(rng, graph, numbers, corpus.label[d], number, score, value, logits, room.states, paths, lengths)
        n = number + 1
        copy_path(path, length, paths, lengths, np.int64(0))
        logits[0] = -np.inf
        for c in range(0 if present else 1, n):
            logits[c] = -log_score_of(graph, score, paths[c], lengths[c])
    else:
        n = alternatives(rng, graph, numbers, corpus.label[d], path, length, paths, lengths)
        for c in range(n):
            logits[c] = log_path(graph, paths[c], lengths[c])
    if n > 1:
        if present:
            for i in range(first, last):
                levels[0, i - first] = corpus.level[i]
        weigh_paths(rng, graph, numbers, corpus, d, step, present, n, compared, room)
        chosen = draw_log(rng, logits, n)
        for i in range(first, last):
            corpus.level[i] = levels[chosen, i - first]
        if not numbers.dirichlet:
            corpus.tau[d] = taus[chosen]
    for i in range(lengths[chosen]):
        path[i] = paths[chosen, i]
    put_in(rng, graph, numbers, corpus, d, path, lengths[chosen])
    return 1 if chosen > 0 else 0
