r"""Trees of any depth and width: scales and nodes are made from the prior when a token wants them.

Tokens keep their paths and move one after the other. First the scale, given the path, continued below it from the
prior; then each node of the path given those above and below. In each case numbers t = 0, 1, ... have weights p_t (a
stick without end) and likelihoods f_t, and the token is at c.

Retrospective [1]_. T numbers are in use, ``M = max_{t<T} f_t``, ``C(T) = sum_{t<T} p_t f_t + M (1 - sum_{t<T} p_t)``.
Propose t with probability ``p_t f_t / C`` if t < T and ``p_t M / C`` otherwise, making what is needed until the sum
passes a uniform number. If T' would be in use after the move, accept with probability

    1                                   if T' = T,
    C(T) M(T') / (C(T') f_c)            if T' < T,
    C(T) f_t / (C(T') M(T))             if t >= T.

Slices [2]_. Draw ``u ~ U(0, p_c)``, make numbers until what is left of the stick is below u, and choose among those
with ``p_t > u`` with probability proportional to f_t.

Adaptive. Give all that is left of the stick to one new node: a truncation, not exact.

What no token uses is forgotten after a sweep, which is to draw it anew from the prior.

References
----------
.. [1] Papaspiliopoulos, O. and Roberts, G. O. (2008). Retrospective Markov chain Monte Carlo methods for Dirichlet
   process hierarchical models. Biometrika 95, 169-186.
.. [2] Walker, S. G. (2007). Sampling the Dirichlet mixture model with slices. Communications in Statistics 36, 45-54.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pluri.topics.tree.settings import TreeSettings
from pluri.topics.tree.state import Array, Numbers, TreeState, count_words
from pluri.topics.tree.sticks import LEAST

if TYPE_CHECKING:
    from pluri.topics.tree.gibbs import TreeGibbs
    from pluri.topics.tree.path_counts import PathCounts

#: Nodes and scales that there is room for beyond those that are there.
SPARE_NODES, SPARE_SCALES = 8, 2


def move_all_tokens(rng: np.random.Generator, state: TreeState, kernel: TreeGibbs) -> tuple[TreeState, PathCounts]:
    """Move every token; gives the state, which may have other rooms, and what its paths count."""
    from pluri.topics.tree._path_kernels import move_tokens
    from pluri.topics.tree._token_kernels import count_paths, draw_paths
    from pluri.topics.tree.gibbs import stream
    from pluri.topics.tree.path_counts import PathCounts

    tokens, settings = kernel.tokens, kernel.settings
    if settings.scale_dependent:  # words that moved left paths behind
        draw_paths(
            stream(rng), tokens.offsets, state.nodes(settings.top), state.theta, state.placed, PathCounts.none(state)
        )  # fmt: skip
    topics, start = kernel.draw_topics(rng, state), stream(rng)
    sliced, factor = kernel.inference == "slice", 1
    while True:
        # Without enough room all is done again with more of it and the same random numbers, as if it had been there.
        grown = state.with_rooms(roomier(state, settings, factor), settings.top)
        tree = _growing(grown, state, topics, settings)
        if move_tokens(
            start.copy(), tokens.words, tokens.documents, tree, len(grown.rooms), not settings.scale_dependent,
            sliced, kernel.width == "adaptive", grown.scale, grown.paths, np.zeros(int(grown.rooms.max())),
        ):  # fmt: skip
            break
        factor *= 2
    grown.theta_rest, grown.usage_rest = tree.theta_rest, tree.usage_rest
    grown.node = grown.paths[np.arange(tokens.n_tokens), grown.scale]
    grown.node_word[:], grown.node_total[:] = 0, 0
    count_words(tokens.words, grown.scale, grown.node, grown.offsets, grown.node_word, grown.node_total)
    counts = PathCounts.none(grown)
    count_paths(tokens.documents, settings.top, grown.offsets, grown.scale, grown.paths, *counts)
    if not settings.scale_dependent:
        _forget_unused(grown, counts.passed(grown, settings.top), settings.top)
    return grown, counts


def roomier(state: TreeState, settings: TreeSettings, factor: int) -> Numbers:
    """Rooms with space for new nodes and scales, as far as the settings allow them."""
    if settings.scale_dependent:
        return state.rooms
    depth = int(state.depth[0])
    n_scales = min(depth + SPARE_SCALES * factor, settings.most_depth)
    wanted = np.full(n_scales, SPARE_NODES * factor, dtype=np.int64)
    wanted[:depth] += (1 + factor) * state.widths[:depth] // 2
    return np.minimum(wanted, settings.caps[:n_scales])


def _growing(state: TreeState, before: TreeState, topics: Array, settings: TreeSettings) -> Any:
    from pluri.topics.tree._growth_kernels import GrowingTree

    phi = np.zeros((len(topics), int(state.rooms.sum())))
    for s in range(int(state.depth[0])):
        phi[:, state.nodes_of(s)] = topics[:, before.nodes_of(s)]
    base_concentration, eta, rho, _ = state.concentrations
    learned = settings.learned
    # A fixed concentration is a prior without width, of shape 0.
    shape, rate = (learned.prior.shape, learned.prior.rate) if learned.prior is not None else (0.0, learned.value)
    return GrowingTree(
        settings.top, settings.most_depth, settings.caps, state.depth, state.widths, state.offsets, state.base,
        state.theta, state.theta_rest, state.usage, state.usage_rest, state.transition, state.transition_rest, phi,
        state.zeta, np.zeros(int(state.rooms.sum()), dtype=np.int64), float(settings.topic_word_prior),
        float(base_concentration), float(eta), float(rho), float(shape), float(rate), LEAST,
    )  # fmt: skip


def _forget_unused(state: TreeState, passed: Numbers, top: int) -> None:
    """Leave out the scales and nodes after the last one that is used; the sticks are drawn anew anyway."""
    depth = int(state.scale.max()) + 1
    for s in range(len(state.rooms)):
        in_use = np.flatnonzero(passed[state.nodes_of(s)]) if s < depth else np.zeros(0, dtype=np.int64)
        state.widths[s] = in_use[-1] + 1 if in_use.size else 0
    # The base measure decides how tables are counted: what is left of it takes the nodes that go.
    if depth > top:
        n_top = int(state.widths[top])
        state.base[-1] += state.base[n_top:-1].sum()
        state.base[n_top:-1] = 0.0
    state.depth[0] = depth
