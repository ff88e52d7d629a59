# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep over the documents of a concept graph; see `pluri.topics.concept_graph.sampling.gibbs`."""

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph._level_kernels import draw_levels, draw_tau
from pluri.topics.concept_graph.arrays import N_FIRST, N_PROPOSED
from pluri.topics.concept_graph.sampling._graph_kernels import (
    fill_all,
    fill_row,
    put_in,
    swap_places,
    take_out,
)
from pluri.topics.concept_graph.sampling._joint_kernels import joint_move
from pluri.topics.concept_graph.sampling._path_kernels import backward, draw_path, word_terms


@compiled(allocates=False)
def sweep(rng, graph, numbers, sticks, corpus, documents, task, compared, joint, places):
    """Change `graph` and `corpus`: visit documents for path, joint moves, levels, tau, and swaps at nodes on the path.

    Documents without a path get one, and no more. Probabilities of steps are computed afresh before that; after it, if
    the task says so, comes a swap for each atom of each node. The last three arguments are memory. Returns the numbers
    of joint moves and swaps that changed something, and of swaps that were tried.
    """
    fill_all(graph, numbers)
    capacity = len(graph.depth)
    step, n_joint, draw_paths = task.step, task.n_joint, task.draw_paths
    logits, states, share, sizes, seen = compared.logits, joint.states, joint.share, joint.sizes, joint.seen
    path, log_term, back, weight = places.path, places.log_term, places.back, places.weight
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
                graph, numbers.eta, corpus.words, corpus.level, first, last, high, step, log_term, places.product, seen,
                sizes,
            )  # fmt: skip
            backward(graph, numbers, corpus.label[d], top, log_term, back, weight, places.highest)
            length = draw_path(rng, graph, numbers, last - first, corpus.tau[d], top, back, logits, states, path)
            put_in(rng, graph, numbers, corpus, d, path, length)
        for _ in range(n_joint if seated else 1):
            anywhere = not seated or rng.random() < 0.5
            number = N_PROPOSED if seated else N_FIRST
            moved += joint_move(rng, graph, numbers, corpus, d, step, anywhere, number, path, compared, joint)
        if not seated:
            continue
        draw_levels(rng, graph, numbers, corpus, d, share, places.decay, sizes)
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
    if task.swap_all:
        for x in range(capacity):
            if graph.depth[x] > 0:
                for _ in range(graph.n_atoms[graph.depth[x]]):
                    swap_places(rng, graph, numbers, sticks, np.int64(x))
    return moved, swapped, tried
