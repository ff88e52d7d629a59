# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled sweep over the documents of a concept graph; see `pluri.topics.concept_graph.sampling.gibbs`."""

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.concept_graph._level_kernels import draw_levels, draw_tau
from pluri.topics.concept_graph.arrays import N_FIRST, N_PROPOSED
from pluri.topics.concept_graph.sampling._graph_kernels import (
    fill_all,
    fill_row,
    list_members,
    put_in,
    swap_places,
    take_out,
)
from pluri.topics.concept_graph.sampling._joint_kernels import joint_move
from pluri.topics.concept_graph.sampling._path_kernels import backward, draw_path, word_terms


@compiled(inner=True, allocates=False)
def path_given_levels(rng, graph, numbers, corpus, d, step, compared, joint, places):
    """Draw the path of a document that was taken out, given its levels; its length."""
    depth, first, last, high = graph.depth, corpus.offsets[d], corpus.offsets[d + 1], 0
    log_term, back = places.log_term, places.back
    for x in range(len(depth)):
        if depth[x] > 0:
            high = x + 1
    top = word_terms(
        graph, numbers.eta, corpus.words, corpus.level, first, last, high, step, log_term, places.product, joint.seen,
        joint.sizes,
    )  # fmt: skip
    backward(graph, numbers, corpus.label[d], top, log_term, back, places.weight, places.highest)
    return draw_path(
        rng, graph, numbers, last - first, corpus.tau[d], top, back, compared.logits, joint.states, places.path
    )


@compiled(allocates=False)
def sweep(rng, graph, numbers, sticks, corpus, documents, plan, compared, joint, places):
    """Change `graph` and `corpus`: visit documents for path, joint moves, levels, tau, and swaps at nodes on the path.

    Documents without a path get one, and no more. Probabilities of steps are filled in first: without documents, that
    is all. `compared`, `joint` and `places` are memory. Returns the numbers of joint moves and swaps that changed
    something, and of swaps that were tried.
    """
    path, level, tau, offsets = places.path, corpus.level, corpus.tau, corpus.offsets
    moved = swapped = tried = 0
    list_members(graph)
    fill_all(graph, numbers)
    for d in documents:
        if corpus.frozen[d]:
            continue
        seated = corpus.length[d] > 0
        # Move 0 draws the path given the levels, the others path, levels and tau together.
        for move in range(0 if seated and plan.draw_paths else 1, (plan.n_joint if seated else 1) + 1):
            if seated:
                take_out(graph, numbers, corpus, d, path)
            if move == 0:
                length = path_given_levels(rng, graph, numbers, corpus, d, plan.step, compared, joint, places)
            else:
                anywhere = not seated or rng.random() < 0.5
                number = N_PROPOSED if seated else N_FIRST
                row = joint_move(rng, graph, numbers, corpus, d, plan.step, anywhere, number, path, compared, joint)
                length = compared.lengths[row]
                moved += row > 0
            put_in(rng, graph, numbers, corpus, d, path, length)
        if not seated:
            continue
        draw_levels(rng, graph, numbers, corpus, d, joint.share, places.decay, joint.sizes)
        length = corpus.length[d]
        if not numbers.dirichlet:
            first, last, summed = offsets[d], offsets[d + 1], 0
            for i in range(first, last):
                summed += level[i]
            tau[d] = draw_tau(rng, tau[d], numbers.a, numbers.b, summed, last - first, length)
        if numbers.reorder:
            for i in range(length):
                tried += 1
                node = np.int64(corpus.path[d, i])
                if swap_places(rng, graph, sticks, node):
                    swapped += 1
                    fill_row(graph, numbers, node)
    if plan.reorder_all:
        for x in range(len(graph.depth)):
            if graph.depth[x] > 0:
                for _ in range(graph.n_atoms[graph.depth[x]]):
                    swap_places(rng, graph, sticks, x)
    return moved, swapped, tried
