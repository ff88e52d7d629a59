# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled draws from a spectrum: which eigenvectors are taken, and which items they give."""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled

#: Items in a block whose squared entries are summed beforehand.
BLOCK = 64
#: What is left of an item below this share of its length is rounding.
NOTHING_LEFT = 1e-10


@compiled()
def fill_coins(table, log_odds, coins):
    """``coins[n, r]``: probability that eigenvector n is taken when r of 0..n are still wanted.

    ``table`` holds the symmetric polynomials of ``log_odds`` (ascending), so that the largest are asked first.
    """
    for n in range(log_odds.size):
        for r in range(1, coins.shape[1]):
            if table[n + 1, r] == -np.inf:
                coins[n, r] = 1.0
            else:
                coins[n, r] = np.exp(log_odds[n] + table[n, r - 1] - table[n + 1, r])


@compiled()
def toss_exactly(rng, coins, size, taken):
    """Exactly ``size`` of the eigenvectors for each draw; ``taken`` is (n_draws, size)."""
    for draw in range(taken.shape[0]):
        wanted = size
        n = coins.shape[0] - 1
        while wanted > 0:
            # With as many left as wanted the coin is 1 up to rounding.
            if n + 1 == wanted or rng.random() < coins[n, wanted]:
                wanted -= 1
                taken[draw, wanted] = n
            n -= 1


@compiled(inner=True)
def propose(rng, modes, blocks, n):
    """An item with probability the squared entry of eigenvector n."""
    n_items, last = modes.shape[1], blocks.shape[1] - 1
    target = rng.random() * blocks[n, last]
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if blocks[n, middle] <= target:
            low = middle
        else:
            high = middle
    total = blocks[n, low]
    end = min(n_items, (low + 1) * BLOCK)
    chosen = end - 1
    for i in range(low * BLOCK, end):
        total += modes[n, i] * modes[n, i]
        if total > target:
            chosen = i
            break
    return chosen


@compiled(reorder=True, inner=True)
def reaches(basis, row, bound, n_drawn):
    """Whether ``row`` has more than ``bound`` of squared length inside the basis; looks no further than it must."""
    inside = 0.0
    for b in range(n_drawn):
        dot = 0.0
        for a in range(row.size):
            dot += row[a] * basis[b, a]
        inside += dot * dot
        if inside > bound:
            return True
    return False


@compiled(reorder=True, inner=True)
def project(basis, row, coefficients, n_drawn):
    """Coefficients of ``row`` in the basis; ``row`` keeps what lies outside."""
    for b in range(n_drawn):
        dot = 0.0
        for a in range(row.size):
            dot += row[a] * basis[b, a]
        coefficients[b] = dot
    for b in range(n_drawn):
        for a in range(row.size):
            row[a] -= coefficients[b] * basis[b, a]


@compiled(inner=True)
def extend(basis, row, coefficients, n_drawn):
    """What ``row`` has outside the basis becomes its next direction; ``row`` is overwritten."""
    # Orthogonalised twice: what the first pass leaves by rounding, the second removes.
    for _ in range(2):
        project(basis, row, coefficients, n_drawn)
    length = 0.0
    for a in range(row.size):
        length += row[a] * row[a]
    length = np.sqrt(length)
    for a in range(row.size):
        basis[n_drawn, a] = row[a] / length


@compiled()
def draw_many(rng, modes, blocks, taken, counts, largest, items, found):
    """Items of the projection processes on the eigenvectors ``taken``, by rejection.

    ``taken`` and ``items`` hold the draws one after the other; ``found`` tells how many items each draw got before its
    patience ended, normally all. An item is proposed with probability its squared length p_i / size in the span (an
    eigenvector at random, then one of its items), and accepted with the share of p_i that lies outside the items drawn
    so far. The mean number of proposals for the s-th item is size / (size - s + 1), whatever the number of items.
    """
    room = np.empty((largest, largest))
    row_room, coefficients = np.empty(largest), np.empty(largest)
    begin = 0
    for draw in range(counts.size):
        size = counts[draw]
        basis, row = room[:size, :size], row_room[:size]
        found[draw] = size
        for drawn in range(size):
            chosen = -1
            for _ in range(200 + 50 * size):
                i = propose(rng, modes, blocks, taken[begin + int(rng.random() * size)])
                full = 0.0
                for a in range(size):
                    row[a] = modes[taken[begin + a], i]
                    full += row[a] * row[a]
                if not reaches(basis, row, full * (1.0 - max(rng.random(), NOTHING_LEFT)), drawn):
                    chosen = i
                    break
            if chosen < 0:
                found[draw] = drawn
                break
            extend(basis, row, coefficients, drawn)
            items[begin + drawn] = chosen
        begin += size
