# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled changes of a concept graph: steps between nodes, nodes that come and go, orders of atoms.

See `pluri.topics.concept_graph.edge_prior` for the formulas and `pluri.topics.concept_graph.arrays` for the arrays.
"""

import math

import numpy as np

from pluri.engine.compiled import compiled

END = -1
#: For what only compiled functions call, and makes no arrays.
inner = compiled(inner=True, allocates=False)
# Constants that are passed on are np.int64: numba compiles a function once more for a literal, and for an int32.


@inner
def count_of(edge, x, atom):
    """How many documents go from x to an atom."""
    if atom >= 0:
        return edge[x, atom]
    if atom == END:
        return edge[x, edge.shape[1] - 1]
    return 0


@inner
def fill_row(graph, numbers, x):
    """Predictive probabilities of all steps from x; the last atom takes what the sticks before it leave."""
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    row = graph.probability[x]
    for k in range(n_levels + 1):
        row[capacity + k] = 0.0
    n = graph.n_atoms[graph.depth[x]]
    alpha, beta = numbers.alpha, numbers.beta
    remaining, left = graph.visits[x], 1.0
    for r in range(n):
        atom = graph.order[x, r]
        p = left
        if r < n - 1:
            count = count_of(graph.edge, x, atom)
            scale = left / (alpha + beta + remaining)
            p = scale * (alpha + count)
            remaining -= count
            left = scale * (beta + remaining)
        if atom >= 0:
            row[atom] = p
        elif atom == END:
            row[capacity + n_levels + 1] = p
        else:
            row[capacity - 1 - atom] += p


@compiled(allocates=False)
def fill_all(graph, numbers):
    """Predictive probabilities of all steps from all nodes, and from new ones, whose order is anybody's guess."""
    capacity, n_levels = len(graph.depth), len(graph.n_nodes) - 1
    for k in range(1, n_levels + 1):
        for m in range(graph.n_used[k]):
            fill_row(graph, numbers, np.int64(graph.members[k, m]))
        row = graph.probability[capacity + k]
        share = 1.0 / graph.n_atoms[k]
        row[capacity + n_levels + 1] = share
        for below in range(k + 1, n_levels + 1):
            if below == k + 1 or numbers.deeper:
                row[capacity + below] = share * (graph.n_nodes[below] - graph.n_used[below])
                for m in range(graph.n_used[below]):
                    row[graph.members[below, m]] = share


@inner
def list_members(graph):
    """Rewrite the lists of slots in use."""
    for k in range(len(graph.n_used)):
        graph.n_used[k] = 0
    for x in range(len(graph.depth)):
        k = graph.depth[x]
        if k > 0:
            graph.members[k, graph.n_used[k]] = x
            graph.n_used[k] += 1


@inner
def delete_node(graph, x):
    """Make a node blank again."""
    k = graph.depth[x]
    for y in range(len(graph.depth)):
        if 0 < graph.depth[y] < k:
            for r in range(graph.n_atoms[graph.depth[y]]):
                if graph.order[y, r] == x:
                    graph.order[y, r] = -1 - k
                    break
    graph.depth[x] = 0


@inner
def blank_place(rng, graph, numbers, x, k, weighted):
    """Place of a blank node of depth k in the order of x: anyone, or in proportion to its probability."""
    total = 0.0
    for wanted in range(2):
        goal = rng.random() * total if wanted else 0.0
        seen, remaining, left, found = 0.0, graph.visits[x], 1.0, -1
        n = graph.n_atoms[graph.depth[x]]
        for r in range(n):
            atom = graph.order[x, r]
            count = count_of(graph.edge, x, atom)
            scale = left / (numbers.alpha + numbers.beta + remaining)
            p = scale * (numbers.alpha + count) if r < n - 1 else left
            remaining -= count
            left = scale * (numbers.beta + remaining)
            if atom == -1 - k:
                found = r
                seen += p if weighted else 1.0
                if wanted and seen > goal:
                    return r
        total = seen
    return found


@inner
def fresh_order(rng, graph, numbers, x, target):
    """Order of a new node that one path has just left for an atom; the place of that atom."""
    k, n_levels = graph.depth[x], len(graph.n_nodes) - 1
    order, n = graph.order[x], 1
    order[0] = END
    for below in range(k + 1, n_levels + 1):
        if below == k + 1 or numbers.deeper:
            for m in range(graph.n_nodes[below]):
                order[n] = graph.members[below, m] if m < graph.n_used[below] else -1 - below
                n += 1
    for r in range(n - 1, 0, -1):
        other = int(rng.random() * (r + 1))
        order[r], order[other] = order[other], order[r]
    place, stop = 0, numbers.alpha / (numbers.alpha + numbers.beta)
    while place < n - 1 and rng.random() >= stop:
        place += 1
    for r in range(n):
        if order[r] == target:
            order[r] = order[place]
            order[place] = target
            break
    return place


@inner
def settle(rng, graph, numbers, path, length):
    """Give the new nodes of a path slots and orders. True if there were any."""
    capacity = len(graph.depth)
    created, place = False, -1
    for i in range(length):
        if path[i] < capacity:
            place = -1
            continue
        k = path[i] - capacity
        x = 0
        while graph.depth[x] > 0:
            x += 1
        for y in range(capacity):
            above = graph.depth[y]
            if 0 < above < k and (above == k - 1 or numbers.deeper):
                here = y == path[i - 1]
                r = place if here and place >= 0 else blank_place(rng, graph, numbers, y, k, here)
                graph.order[y, r] = x
        graph.depth[x] = k
        graph.name[x] = graph.next_name[0]
        graph.next_name[0] += 1
        list_members(graph)
        target = END
        if i < length - 1:
            target = path[i + 1] if path[i + 1] < capacity else -1 - (path[i + 1] - capacity)
        place = fresh_order(rng, graph, numbers, x, target)
        path[i] = x
        created = True
    return created


@inner
def count_path(graph, path, length, step):
    """Count a path (step 1), or no longer (step -1)."""
    for i in range(length):
        graph.visits[path[i]] += step
        graph.edge[path[i], path[i + 1] if i < length - 1 else len(graph.depth)] += step


@inner
def count_words(graph, corpus, d, step):
    """Count the words of a document where they are, or no longer."""
    last = corpus.length[d] - 1
    for i in range(corpus.offsets[d], corpus.offsets[d + 1]):
        x = corpus.path[d, last - corpus.level[i]]
        graph.word_count[corpus.words[i], x] += step
        graph.total[x] += step


@compiled(allocates=False)
def take_out(graph, numbers, corpus, d, path):
    """Take a document out; `path` gets its path, with c + depth for nodes that nobody else uses. They go."""
    capacity, length = len(graph.depth), corpus.length[d]
    count_words(graph, corpus, d, np.int64(-1))
    for i in range(length):
        path[i] = corpus.path[d, i]
    count_path(graph, path, length, np.int64(-1))
    gone = False
    for i in range(length):
        x = path[i]
        if graph.visits[x] == 0 and not graph.protected[x]:
            path[i] = capacity + graph.depth[x]
            delete_node(graph, x)
            gone = True
    if gone:
        list_members(graph)
        fill_all(graph, numbers)
    else:
        for i in range(length):
            fill_row(graph, numbers, path[i])


@compiled(allocates=False)
def put_in(rng, graph, numbers, corpus, d, path, length):
    """Put a document on a path, whose new nodes get slots; its levels must be set."""
    created = settle(rng, graph, numbers, path, length)
    corpus.length[d] = length
    for i in range(corpus.path.shape[1]):
        corpus.path[d, i] = path[i] if i < length else -1
    count_path(graph, path, length, np.int64(1))
    count_words(graph, corpus, d, np.int64(1))
    if created:
        fill_all(graph, numbers)
    else:
        for i in range(length):
            fill_row(graph, numbers, path[i])


@inner
def log_stick(first, second, both, count, after):
    """Log B(alpha + count, beta + after), by the tables of `StickTables`."""
    return first[count] + second[after] - both[count + after]


@compiled(allocates=False)
def log_swap(graph, sticks, x, i, j):
    """Log ratio of the probability of all steps from x if the atoms at places i < j change places, to that now."""
    edge, order, tables = graph.edge, graph.order, (sticks.first, sticks.second, sticks.both)
    first, second = count_of(edge, x, order[x, i]), count_of(edge, x, order[x, j])
    if first == second:
        return 0.0
    last = graph.n_atoms[graph.depth[x]] - 1
    remaining = graph.visits[x]
    for r in range(i):
        remaining -= count_of(edge, x, order[x, r])
    before, after, ratio = remaining, remaining, 0.0
    for r in range(i, j + 1):
        now = count_of(edge, x, order[x, r])
        then = second if r == i else (first if r == j else now)
        before -= now
        after -= then
        if r < last:
            ratio += log_stick(*tables, then, after) - log_stick(*tables, now, before)
    return ratio


@inner
def swap_places(rng, graph, numbers, sticks, x):
    """Metropolis-Hastings: two places in the order of x, chosen at random, change their atoms. 1 if they did."""
    n = graph.n_atoms[graph.depth[x]]
    if n < 2:
        return 0
    i, j = int(rng.random() * n), int(rng.random() * (n - 1))
    if j >= i:
        j += 1
    else:
        i, j = j, i
    ratio = log_swap(graph, sticks, x, i, j)
    if ratio < 0.0 and rng.random() >= math.exp(ratio):
        return 0
    graph.order[x, i], graph.order[x, j] = graph.order[x, j], graph.order[x, i]
    return 1
