# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""What compiled samplers of topics share: random numbers, and finding where a target falls."""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled
from pluri.topics.lda._lanes import count_at_most, cumulated, lane_of, last, subtract

_u = np.uint64
ZERO, BELOW_ONE = np.float32(0.0), np.float32(1.0 - 2.0**-24)
#: How many tokens ahead the rows of counts are asked for.
AHEAD = 3


@compiled(inner=True, allocates=False)
def next_bits(state):
    """Generator xoroshiro128+ by Blackman and Vigna: 64 random bits and the next state."""
    first, second = state
    bits = first + second
    second ^= first
    first = ((first << _u(24)) | (first >> _u(40))) ^ second ^ (second << _u(16))
    second = (second << _u(37)) | (second >> _u(27))
    return bits, (first, second)


@compiled(inner=True, allocates=False)
def search(sums, cumulative, n_blocks, target):
    """Where a target falls: sixteen times the block, plus the lane.

    Row b of `cumulative` is the sum of blocks 0..b lane by lane, and `sums` its last row: lanes are cumulated first,
    then the blocks of one lane. Rounding cannot lead to a block of weight zero.
    """
    ends = cumulated(sums)
    lane = count_at_most(ends, max(ZERO, min(target, last(ends) * BELOW_ONE)))
    lane = min(lane, _u(15))
    rest = target - lane_of(subtract(ends, sums), lane)
    rest = min(rest, cumulative[_u(16) * (n_blocks - _u(1)) + lane] * BELOW_ONE)
    place = lane
    for block in range(n_blocks - _u(1)):
        place += _u(16) * _u(cumulative[_u(16) * _u(block) + lane] <= rest)
    return place
