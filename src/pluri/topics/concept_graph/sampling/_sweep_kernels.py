# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep over the documents of a concept graph; see `pluri.topics.concept_graph.sampling.gibbs`."""

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph._level_kernels import draw_levels, draw_tau
from pluri.topics.concept_graph.arrays import Compared, JointRoom
from pluri.topics.concept_graph.sampling._graph_kernels import (
    count_path,
    count_words,
    fill_all,
    fill_row,
    list_members,
    put_in,
    swap_places,
    take_out,
)
from pluri.topics.concept_graph.sampling._joint_kernels import MOST_PATHS, joint_move
from pluri.topics.concept_graph.sampling._path_kernels import backward, draw_path, word_terms

#: Paths proposed by a joint move that frees all places, and those among which a document that has none chooses.
N_PROPOSED, N_FIRST = 4, 8


@compiled()
def sweep(rng, graph, numbers, sticks, corpus, documents, step, n_joint, draw_paths, longest):
    """Change `graph` and `corpus`: visit documents for path, joint moves, levels, tau, and swaps at nodes on the path.

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
    path = np.empty(n_levels, dtype=np.int64)
    paths, lengths = np.empty((room, n_levels), dtype=np.int64), np.empty(room, dtype=np.int64)
    levels = np.empty((min(room, MOST_PATHS + 1), longest), dtype=np.int8)
    share, decay = np.empty(n_levels), np.empty(n_levels)
    sizes, seen = np.empty(n_levels, np.int64), np.empty(n_levels, np.int64)
    compared = Compared(paths, lengths, levels, taus, logits)
    joint = JointRoom(states, share, sizes, seen, np.empty((longest, capacity)), np.empty(capacity), value)
    moved = swapped = tried = 0
    for d in documents:
        if corpus.frozen[d]:
            continue
        first, last = corpus.offsets[d], corpus.offsets[d + 1]
        seated = corpus.length[d] > 0
        if draw_paths and seated:
            take_out(graph, numbers, corpus, d, path)
            high = np.int64(0)
            for x in range(capacity):
                if graph.depth[x] > 0:
                    high = np.int64(x + 1)
            top = word_terms(
                graph, numbers.eta, corpus.words, corpus.level, first, last, high, step, log_term, product, seen
            )
            backward(graph, numbers, corpus.label[d], top, log_term, back, weight)
            length = draw_path(rng, graph, numbers, last - first, corpus.tau[d], top, back, logits, states, path)
            put_in(rng, graph, numbers, corpus, d, path, length)
        for _ in range(n_joint if seated else 1):
            anywhere = not seated or rng.random() < 0.5
            number = N_PROPOSED if seated else N_FIRST
            moved += joint_move(rng, graph, numbers, corpus, d, step, anywhere, number, path, compared, joint)
        if not seated:
            continue
        draw_levels(rng, graph, numbers, corpus, d, share, decay, sizes)
        length = corpus.length[d]
        if not numbers.dirichlet:
            summed = np.int64(0)
            for i in range(first, last):
                summed += corpus.level[i]
            corpus.tau[d] = draw_tau(rng, corpus.tau[d], numbers.a, numbers.b, summed, last - first, length)
        if numbers.reorder:
            for i in range(length):
                tried += 1
                node = np.int64(corpus.path[d, i])
                if swap_places(rng, graph, numbers, sticks, node):
                    swapped += 1
                    fill_row(graph, numbers, node)
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
    path = np.empty(corpus.path.shape[1], dtype=np.int64)
    for d in range(len(corpus.length)):
        length = corpus.length[d]
        if length == 0:
            continue
        for i in range(length):
            path[i] = corpus.path[d, i]
        count_path(graph, path, length, np.int64(1))
        count_words(graph, corpus, d, np.int64(1))
    list_members(graph)
    fill_all(graph, numbers)
