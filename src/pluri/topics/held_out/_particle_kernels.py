# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled bookkeeping of weighted particles that read a document from left to right.

At each word a model multiplies the weight of each particle by what it predicted; `normalise` gives the sum of the
weights, which is the estimate of p(word | words before). Where `few_effective`, particles are chosen anew: those that
`copy_whom` names keep their state in place, and the model copies theirs over the state of the others.
"""

from __future__ import annotations

from pluri.engine.compiled import compiled


@compiled()
def normalise(weight):
    """Make weights sum to one; return what they summed to. If that is zero they become equal."""
    total = 0.0
    for r in range(weight.size):
        total += weight[r]
    for r in range(weight.size):
        weight[r] = weight[r] / total if total > 0.0 else 1.0 / weight.size
    return total


@compiled()
def few_effective(weight):
    """Whether less than half the particles are effective, ``1 / sum(weight**2) < n / 2``."""
    squares = 0.0
    for r in range(weight.size):
        squares += weight[r] * weight[r]
    return squares * weight.size > 2.0


@compiled()
def systematic(u, weight, offspring):
    """How often each particle is chosen, by one random number for all; never one of weight zero."""
    n = weight.size
    reached = 0.0
    chosen, last = 0, 0
    for r in range(n):
        reached += weight[r] * n
        until = chosen
        while until < n and u + until < reached:
            until += 1
        offspring[r] = until - chosen
        chosen = until
        if weight[r] > 0.0:
            last = r
    offspring[last] += n - chosen  # rounding


@compiled()
def copy_whom(u, weight, offspring, source):
    """Choose particles anew: ``source[r]`` is the one whose state r takes over, r itself if it was chosen.

    So copies can be made in place, in any order. Weights become equal; `offspring` is room.
    """
    systematic(u, weight, offspring)
    spare = 0
    for r in range(weight.size):
        source[r] = r
        if offspring[r] == 0:
            while offspring[spare] < 2:
                spare += 1
            offspring[spare] -= 1
            source[r] = spare
        weight[r] = 1.0 / weight.size
