"""Where the chains of an infinite hidden Markov model begin: sequences cut into blocks, and like blocks put together.

Steps that are near each other are mostly in one state, so that a block says more of its state than a step does: of a
regression on the past a single step says nothing. All sequences are cut into blocks of one length, at places that
differ from chain to chain, and the two blocks whose union has the highest marginal density, compared with them apart,
are put together until as many groups remain as states are asked for. Where states do not last, blocks are mixtures of
several of them: steps in states at random are then the better start.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pluri.sequences.infinite.observations import Array, Integers, Observations

#: Blocks for each state to begin with.
BLOCKS_PER_STATE = 4


def block_labels(rng: np.random.Generator, observations: Observations, offsets: Integers, n_states: int) -> Integers:
    """A state for each step, of at most `n_states`."""
    blocks = _cut(rng, offsets, BLOCKS_PER_STATE * n_states)
    n_blocks = int(blocks.max()) + 1
    if n_blocks <= n_states:
        return blocks
    return _put_together(observations, blocks, n_blocks, n_states)[blocks]


def _cut(rng: np.random.Generator, offsets: Integers, n_blocks: int) -> Integers:
    """Block of each step: blocks are of one length but for the ends of sequences, about `n_blocks` in all."""
    length = max(-(-int(offsets[-1]) // n_blocks), 1)
    begins = np.zeros(int(offsets[-1]), dtype=np.int64)
    for begin, end in pairwise(offsets.tolist()):
        if begin < end:
            begins[begin] = 1
            begins[begin + int(rng.integers(length)) : end : length] = 1
    return np.cumsum(begins) - 1


def _put_together(observations: Observations, blocks: Integers, n_blocks: int, n_states: int) -> Integers:
    """The state of each block."""
    sums = observations.sums(blocks, n_blocks)
    alone = _log_marginals(observations, sums)
    gains: NDArray[np.float64] = np.full((n_blocks, n_blocks), -np.inf)
    for a in range(n_blocks - 1):
        later = np.arange(a + 1, n_blocks)
        gains[a, later] = _gain(observations, sums, alone, a, later)
    state = np.arange(n_blocks)
    for _ in range(n_blocks - n_states):
        a, b = divmod(int(np.argmax(gains)), n_blocks)
        for own in sums:
            own[a] += own[b]
        state[state == b] = a
        alone[a] = _log_marginals(observations, [own[a : a + 1] for own in sums])[0]
        gains[b, :] = gains[:, b] = -np.inf
        others = np.setdiff1d(np.unique(state), [a])
        renewed = _gain(observations, sums, alone, a, others)
        gains[np.minimum(a, others), np.maximum(a, others)] = renewed
    return np.asarray(np.unique(state, return_inverse=True)[1], dtype=np.int64)


def _gain(observations: Observations, sums: list[Array], alone: Array, a: int, others: Integers) -> Array:
    """What the log density gains when block a and each of the others are one."""
    return _log_marginals(observations, [own[a] + own[others] for own in sums]) - alone[a] - alone[others]


def _log_marginals(observations: Observations, sums: list[Array]) -> Array:
    parts = zip(observations.parts, sums)
    return np.sum([part.likelihood.log_marginal(own) for part, own in parts], axis=0)
