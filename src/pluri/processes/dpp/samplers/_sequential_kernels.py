# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled coins, one item after the other: each with the probability given all decisions before."""

from __future__ import annotations

from pluri.engine.compiled import compiled


@compiled()
def toss_block(rng, block, pivots, kept):
    """Decide the items of a block; its lower triangle becomes the unit factor U of U diag(pivots) U^T."""
    for j in range(pivots.size):
        probability = block[j, j]
        for c in range(j):
            probability -= block[j, c] * pivots[c] * block[j, c]
        kept[j] = rng.random() < probability
        pivots[j] = probability if kept[j] else probability - 1.0
        for i in range(j + 1, pivots.size):
            value = block[i, j]
            for c in range(j):
                value -= block[i, c] * pivots[c] * block[j, c]
            block[i, j] = value / pivots[j]


@compiled(reorder=True)
def toss_rows(rng, rows, inner, image, kept):
    """Decide the items of the kernel ``rows @ inner @ rows.T``; ``inner`` is conditioned in place."""
    n_items, rank = rows.shape
    for i in range(n_items):
        probability = 0.0
        for a in range(rank):
            dot = 0.0
            for b in range(rank):
                dot += inner[a, b] * rows[i, b]
            image[a] = dot
            probability += dot * rows[i, a]
        kept[i] = rng.random() < probability
        pivot = probability if kept[i] else probability - 1.0
        for a in range(rank):
            share = image[a] / pivot
            for b in range(rank):
                inner[a, b] -= share * image[b]
