# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep over the documents of a concept graph; see `pluri.topics.concept_graph.gibbs`."""

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph._graph_kernels import (
    fill_all,
    fill_row,
    list_members,
    log_stick,
    put_in,
    swap_places,
    take_out,
)
from pluri.topics.concept_graph._path_kernels import (
    backward,
    draw_levels,
    draw_log,
    draw_path,
    draw_tau,
    log_tau_density,
    logistic,
    tau_peak,
    word_terms,
)

#: Most paths compared in a joint move that frees one place, and paths proposed by one that frees all.
MOST_PATHS, N_PROPOSED = 48, 4
#: Paths among which a document that has none chooses.
N_FIRST = 8
#: Log score of a new node where paths are proposed.
NEW_SCORE = 3.0


@compiled()
def seat_levels(rng, graph, numbers, words, first, last, path, length, level, redraw, step, share, sizes, seen):
    """Draw the levels of all words of a document on a path, each given those before it, or keep them.

    Levels are drawn in proportion to ``g_l f_l``: f_l is the predictive probability of the word at the node of level
    l, and ``g_l = a_l + n_l`` counts the words before it, as if levels had a Dirichlet prior. Returns the logarithm of
    p(words | levels) / q(levels).
    """
    capacity = len(graph.depth)
    eta, prior = numbers.eta, numbers.eta * graph.word_count.shape[0]
    sizes[:] = 0
    product, log_weight, before = 1.0, 0.0, -1
    for i in range(first, last):
        word = words[i]
        if word != before:
            seen[:] = 0
            before = word
        total, all_shares = 0.0, 0.0
        for l in range(length):
            x = path[length - 1 - l]
            count, size = seen[l], sizes[l]
            if x < capacity:
                count += graph.word_count[word, x]
                size += graph.total[x]
            g = (numbers.a if l == 0 else numbers.b) + sizes[l] if numbers.dirichlet else 1.0 + sizes[l]
            all_shares += g
            total += g * (eta + count) / (prior + size)
            share[l] = total
        if redraw:
            goal, l = rng.random() * total, 0
            while l < length - 1 and share[l] <= goal:
                l += 1
            level[i - first] = l
        else:
            l = level[i - first]
        g = (numbers.a if l == 0 else numbers.b) + sizes[l] if numbers.dirichlet else 1.0 + sizes[l]
        # With the Dirichlet prior, g / sum g is the prior of the level itself and cancels.
        product *= total / all_shares if numbers.dirichlet else total / g
        seen[l] += 1
        sizes[l] += 1
        if (i - first) % step == step - 1:
            log_weight += math.log(product)
            product = 1.0
    return log_weight + math.log(product)


@compiled()
def log_path(graph, path, length):
    """Log predictive probability of a path."""
    end = graph.probability.shape[1] - 1
    value = math.log(graph.probability[path[length - 1], end])
    for i in range(length - 1):
        value += math.log(graph.probability[path[i], path[i + 1]])
    return value


@compiled()
def alternatives(rng, graph, numbers, label, path, length, paths, lengths):
    """List paths that differ from one in a single node, or in whether they go on; itself first. Their number.

    Which place may differ is drawn without looking at the path, and the paths that differ there are the same for all of
    them: a choice among them in proportion to their probability leaves it invariant.
    """
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    place = int(rng.random() * (n_levels - 1)) + 1
    ends = rng.random() < 0.5
    lengths[0] = length
    paths[0, :length] = path[:length]
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
    n = 1
    if ends and length == place + 1:
        lengths[n] = place
        paths[n, :place] = path[:place]
        n += 1
    now = path[place] if length > place else -1
    for depth in range(k + 1, min(limit, n_levels) + 1):
        used = graph.n_used[depth]
        for m in range(used + (1 if graph.n_nodes[depth] > used else 0)):
            x = graph.members[depth, m] if m < used else capacity + depth
            if x != now:
                lengths[n] = place + 1 if ends else length
                paths[n, :length] = path[:length]
                paths[n, place] = x
                n += 1
    # A random part of very many: which part does not depend on where the path is among them.
    while n > MOST_PATHS:
        other = 1 + int(rng.random() * (n - 1))
        n -= 1
        lengths[other] = lengths[n]
        paths[other] = paths[n]
    return n


@compiled(reorder=True)
def score_nodes(graph, eta, words, first, last, factor, share, score):
    """Score each node by the share it gets if the words of a document may come from any node: (1 + n share)^2.

    A few steps of EM from equal shares; the document is taken out, so that scores do not depend on where it was.
    """
    capacity, n_words = len(graph.depth), graph.word_count.shape[0]
    n, m = last - first, 0
    score[:] = 0.0
    for x in range(capacity):
        if graph.depth[x] > 0:
            scale = 1.0 / (eta * n_words + graph.total[x])
            for i in range(first, last):
                factor[i - first, m] = (eta + graph.word_count[words[i], x]) * scale
            m += 1
    if n == 0 or m == 1:
        return
    share[:m] = 1.0 / m
    for _ in range(4):
        score[:m] = 0.0
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


@compiled()
def propose_paths(rng, graph, numbers, label, number, score, value, logits, states, paths, lengths, log_score):
    """Draw paths in proportion to their predictive probability times the scores of their nodes, from row 1 on.

    `log_score` gets the sum of the scores of the nodes of each, which is the logarithm of the proposal's density over
    the predictive probability, but for a constant.
    """
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
        log_score[c] = score[0]
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
            log_score[c] += score[x] if x < capacity else NEW_SCORE
            paths[c, length] = x
            length += 1
        lengths[c] = length


@compiled()
def log_score_of(graph, score, path, length):
    """Sum of the scores of the nodes of a path."""
    total = 0.0
    for i in range(length):
        total += score[path[i]] if path[i] < len(graph.depth) else NEW_SCORE
    return total


@compiled()
def weigh_paths(rng, graph, numbers, corpus, d, step, present, n, paths, lengths, levels, taus, logits, share, sizes,
                seen):  # fmt: skip
    """Add to `logits` the importance weight of each path, with levels and tau drawn; row 0 keeps the present ones."""
    first, last = corpus.offsets[d], corpus.offsets[d + 1]
    n_words = last - first
    for c in range(0 if present else 1, n):
        logits[c] += seat_levels(
            rng, graph, numbers, corpus.words, first, last, paths[c], lengths[c], levels[c], c > 0, step, share, sizes,
            seen,
        )  # fmt: skip
        if numbers.dirichlet:
            continue
        total = 0
        for l in range(lengths[c]):
            total += l * sizes[l]
        peak, scale = tau_peak(numbers.a, numbers.b, total, n_words, lengths[c])
        if c == 0:
            taus[c] = corpus.tau[d]
            z = math.log(taus[c]) - math.log1p(-taus[c])
        else:
            # Student's t with two degrees of freedom, whose distribution function can be inverted.
            u = min(max(rng.random(), 1e-12), 1.0 - 1e-12)
            z = peak + scale * (2.0 * u - 1.0) / math.sqrt(2.0 * u * (1.0 - u))
            taus[c] = logistic(z)
        t = (z - peak) / scale
        logits[c] += log_tau_density(z, numbers.a, numbers.b, total, n_words, lengths[c])
        logits[c] += math.log(scale) + 1.5 * math.log(2.0 + t * t)


@compiled()
def joint_move(rng, graph, numbers, corpus, d, step, anywhere, number, path, paths, lengths, levels, taus, logits,
               states, share, sizes, seen, factor, score, value, log_score):  # fmt: skip
    """Draw path, levels and tau of a document together; put in a document that has no path yet."""
    first, last = corpus.offsets[d], corpus.offsets[d + 1]
    length, chosen = corpus.length[d], 0
    present = length > 0
    if present:
        take_out(graph, numbers, corpus, d, path)
    if anywhere:
        score_nodes(graph, numbers.eta, corpus.words, first, last, factor, value, score)
        propose_paths(
            rng, graph, numbers, corpus.label[d], number, score, value, logits, states, paths, lengths, log_score
        )
        n = number + 1
        lengths[0] = length
        paths[0, :length] = path[:length]
        logits[0] = -np.inf
        for c in range(0 if present else 1, n):
            logits[c] = -log_score_of(graph, score, paths[c], lengths[c])
    else:
        n = alternatives(rng, graph, numbers, corpus.label[d], path, length, paths, lengths)
        for c in range(n):
            logits[c] = log_path(graph, paths[c], lengths[c])
    if n > 1:
        if present:
            levels[0, : last - first] = corpus.level[first:last]
        weigh_paths(rng, graph, numbers, corpus, d, step, present, n, paths, lengths, levels, taus, logits, share,
                    sizes, seen)  # fmt: skip
        chosen = draw_log(rng, logits, n)
        corpus.level[first:last] = levels[chosen, : last - first]
        if not numbers.dirichlet:
            corpus.tau[d] = taus[chosen]
    for i in range(lengths[chosen]):
        path[i] = paths[chosen, i]
    put_in(rng, graph, numbers, corpus, d, path, lengths[chosen])
    return 1 if chosen > 0 else 0


@compiled()
def sweep(rng, graph, numbers, sticks, corpus, documents, step, n_joint, draw_paths, longest):
    """One visit to each of the documents: path, joint moves, levels, tau, and a swap at each node on the path.

    Documents without a path get one, and no more. Returns the numbers of joint moves and swaps that changed something,
    and of swaps that were tried.
    """
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    log_term = np.empty((n_levels, capacity + 1))
    product = np.empty((n_levels, capacity + 1))
    back = np.empty((n_levels + 1, n_levels + 1, capacity + n_levels + 1))
    weight, value = np.empty(capacity + n_levels + 1), np.empty(capacity + n_levels + 1)
    room = max(capacity, N_FIRST) + n_levels + 2
    logits, states, taus = np.empty(room), np.empty(room, dtype=np.int64), np.empty(room)
    path, log_score = np.empty(n_levels, dtype=np.int64), np.empty(room)
    paths, lengths = np.empty((room, n_levels), dtype=np.int64), np.empty(room, dtype=np.int64)
    levels = np.empty((min(room, MOST_PATHS + 1), longest), dtype=np.int8)
    factor, score = np.empty((longest, capacity)), np.empty(capacity)
    share, decay = np.empty(n_levels), np.empty(n_levels)
    sizes, seen = np.empty(n_levels, np.int64), np.empty(n_levels, np.int64)
    moved = swapped = tried = 0
    for d in documents:
        if corpus.frozen[d]:
            continue
        first, last = corpus.offsets[d], corpus.offsets[d + 1]
        seated = corpus.length[d] > 0
        if draw_paths and seated:
            take_out(graph, numbers, corpus, d, path)
            high = 0
            for x in range(capacity):
                if graph.depth[x] > 0:
                    high = x + 1
            top = word_terms(
                graph, numbers.eta, corpus.words, corpus.level, first, last, high, step, log_term, product, seen
            )
            backward(graph, numbers, corpus.label[d], top, log_term, back, weight)
            length = draw_path(rng, graph, numbers, last - first, corpus.tau[d], top, back, logits, states, path)
            put_in(rng, graph, numbers, corpus, d, path, length)
        for _ in range(n_joint if seated else 1):
            anywhere = not seated or rng.random() < 0.5
            moved += joint_move(
                rng, graph, numbers, corpus, d, step, anywhere, N_PROPOSED if seated else N_FIRST, path, paths, lengths,
                levels, taus, logits, states, share, sizes, seen, factor, score, value, log_score,
            )  # fmt: skip
        if not seated:
            continue
        draw_levels(rng, graph, numbers, corpus, d, share, decay, sizes)
        length = corpus.length[d]
        if not numbers.dirichlet:
            total = 0
            for i in range(first, last):
                total += corpus.level[i]
            corpus.tau[d] = draw_tau(rng, corpus.tau[d], numbers.a, numbers.b, total, last - first, length)
        if numbers.reorder:
            for i in range(length):
                tried += 1
                if swap_places(rng, graph, numbers, sticks, corpus.path[d, i]):
                    swapped += 1
                    fill_row(graph, numbers, corpus.path[d, i])
    return moved, swapped, tried


@compiled()
def reorder_all(rng, graph, numbers, sticks):
    """A swap for each atom of each node."""
    for x in range(len(graph.depth)):
        if graph.depth[x] > 0:
            for _ in range(graph.n_atoms[graph.depth[x]]):
                swap_places(rng, graph, numbers, sticks, x)
    fill_all(graph, numbers)


@compiled()
def count_corpus(graph, numbers, corpus):
    """Count all words and paths afresh."""
    graph.word_count[:] = 0
    graph.total[:] = 0
    graph.visits[:] = 0
    graph.edge[:] = 0
    for d in range(len(corpus.length)):
        length = corpus.length[d]
        if length == 0:
            continue
        for i in range(length):
            x = corpus.path[d, i]
            graph.visits[x] += 1
            graph.edge[x, corpus.path[d, i + 1] if i < length - 1 else len(graph.depth)] += 1
        for i in range(corpus.offsets[d], corpus.offsets[d + 1]):
            x = corpus.path[d, length - 1 - corpus.level[i]]
            graph.word_count[corpus.words[i], x] += 1
            graph.total[x] += 1
    list_members(graph)
    fill_all(graph, numbers)


@compiled()
def log_words(graph, eta, histogram):
    """Log probability of all words given where they are; `histogram` counts how often each count occurs."""
    n_words = graph.word_count.shape[0]
    value = 0.0
    for x in range(len(graph.depth)):
        if graph.depth[x] > 0:
            value += math.lgamma(eta * n_words) - math.lgamma(eta * n_words + graph.total[x])
    none = math.lgamma(eta)
    for count in range(1, len(histogram)):
        if histogram[count] > 0:
            value += histogram[count] * (math.lgamma(eta + count) - none)
    return value


@compiled()
def count_histogram(graph, most):
    """How often each count of a word at a node occurs."""
    histogram = np.zeros(most + 1, dtype=np.int64)
    for v in range(graph.word_count.shape[0]):
        for x in range(graph.word_count.shape[1]):
            histogram[graph.word_count[v, x]] += 1
    return histogram


@compiled()
def log_steps(graph, sticks):
    """Log probability of all steps given the orders."""
    capacity = len(graph.depth)
    value, none = 0.0, log_stick(sticks, 0, 0)
    for x in range(capacity):
        if graph.depth[x] > 0:
            remaining = graph.visits[x]
            for r in range(graph.n_atoms[graph.depth[x]] - 1):
                atom = graph.order[x, r]
                count = graph.edge[x, atom] if atom >= 0 else (graph.edge[x, capacity] if atom == -1 else 0)
                remaining -= count
                value += log_stick(sticks, count, remaining) - none
    return value


@compiled()
def flat_sweep(rng, words, offsets, topic, word_count, total, doc_prior, eta):
    """Collapsed Gibbs sweep of plain topics without a graph: (n_dk + a) (eta + N_kw) / (V eta + N_k)."""
    n_topics, prior = len(total), eta * word_count.shape[0]
    own, weights = np.zeros(n_topics, dtype=np.int64), np.empty(n_topics)
    for d in range(len(offsets) - 1):
        own[:] = 0
        for i in range(offsets[d], offsets[d + 1]):
            own[topic[i]] += 1
        for i in range(offsets[d], offsets[d + 1]):
            k, counts = topic[i], word_count[words[i]]
            own[k] -= 1
            counts[k] -= 1
            total[k] -= 1
            mass = 0.0
            for k in range(n_topics):
                mass += (own[k] + doc_prior) * (eta + counts[k]) / (prior + total[k])
                weights[k] = mass
            goal, k = rng.random() * mass, 0
            while k < n_topics - 1 and weights[k] <= goal:
                k += 1
            topic[i] = k
            own[k] += 1
            counts[k] += 1
            total[k] += 1
