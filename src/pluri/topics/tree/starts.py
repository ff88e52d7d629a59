"""Where chains over trees of topics begin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pluri.topics.tree.state import TreeState
from pluri.topics.tree.word_scales import scales_by_frequency

if TYPE_CHECKING:
    from pluri.topics.tree.gibbs import Position, TreeGibbs

#: Scales and nodes to begin with where the tree has no limits.
FIRST_SCALES, FIRST_NODES = 3, 10
#: How much more likely a node's own children are to begin with.
OWN = 200.0


def empty_state(rng: np.random.Generator, kernel: TreeGibbs) -> TreeState:
    """Tree and proportions drawn evenly, with tokens that have no node yet."""
    settings, tokens = kernel.settings, kernel.tokens
    top = settings.top
    if kernel.grows and not settings.scale_dependent:
        depth = min(settings.most_depth, max(FIRST_SCALES, settings.least_depth))
        rooms = np.minimum(settings.caps[:depth], FIRST_NODES)
    else:
        depth, rooms = settings.most_depth, settings.caps
    n_documents, n_scales, widest, n_top = tokens.n_documents, len(rooms), int(rooms.max()), int(rooms[top])
    if settings.scale_dependent:
        word_scale = scales_by_frequency(tokens, depth)
        sizes = np.bincount(word_scale, minlength=n_scales)
    else:
        word_scale, sizes = np.empty(0, dtype=np.int32), np.full(n_scales, tokens.n_words)
    transition = np.zeros((int(rooms.sum()), widest))
    offsets = np.concatenate([[0], np.cumsum(rooms)])
    for s in range(top + 1, depth):
        columns = rng.dirichlet(np.ones(rooms[s]), size=rooms[s - 1]).T
        # Nodes that lie below all parents alike do not tell documents apart, and then nothing ever pulls them apart.
        own = np.arange(rooms[s])[:, None] % rooms[s - 1] == np.arange(rooms[s - 1]) % rooms[s]
        columns *= np.where(own, OWN, 1.0)
        transition[offsets[s] : offsets[s + 1], : rooms[s - 1]] = columns / columns.sum(axis=0)
    first, eta = settings.learned.value, settings.learned_eta.value
    return TreeState(
        rooms=rooms.copy(),
        widths=rooms.copy(),
        depth=np.array([depth]),
        scale=np.zeros(tokens.n_tokens, dtype=np.int32),
        node=np.full(tokens.n_tokens, -1, dtype=np.int32),
        paths=np.zeros((tokens.n_tokens, n_scales) if kernel.grows else (0, 0), dtype=np.int32),
        word_scale=word_scale,
        sizes=np.asarray(sizes, dtype=np.int64),
        base=np.append(np.full(n_top, 1.0 / n_top), 0.0),
        theta=rng.dirichlet(np.ones(n_top), size=n_documents),
        theta_rest=np.zeros(n_documents),
        usage=rng.dirichlet(np.ones(n_scales), size=n_documents),
        usage_rest=np.zeros(n_documents),
        transition=transition,
        transition_rest=np.zeros((n_scales, widest)),
        log_stop=np.full(n_scales, -np.log(n_scales)),
        zeta=np.full(n_scales, first),
        concentrations=np.array([first, eta, first, first]),
        node_word=np.zeros((tokens.n_words, int(rooms.sum())), dtype=np.int32),
        node_total=np.zeros(int(rooms.sum()), dtype=np.int64),
        passed=np.zeros(int(rooms.sum()), dtype=np.int64),
    )


def first_position(rng: np.random.Generator, kernel: TreeGibbs) -> Position:
    """Words by the number of their documents; tokens put in turn on nodes of the scales of their words."""
    from dataclasses import replace

    state = empty_state(rng, kernel)
    free = state.word_scale
    if not kernel.settings.scale_dependent:
        state.word_scale = scales_by_frequency(kernel.tokens, min(int(state.depth[0]), kernel.tokens.n_words))
    counts = replace(kernel, collapsed=True).draw_all_tokens(rng, state)
    state.word_scale = free
    kernel.draw_parameters(rng, state, counts)
    return state.position
