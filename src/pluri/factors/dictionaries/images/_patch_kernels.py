# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled loop over patches whose dictionary is known: several sweeps of a Gibbs sampler for each.

As in `pluri.factors.dictionaries._code_kernels`, with the weight integrated out of the draw of z:

    log odds of z = 1:  logit(pi_k) + log(g_s v) / 2 + (g_e b)^2 v / 2,   v = 1 / (g_s + g_e q_k);   s ~ N(g_e v b, v)

but all sweeps of a patch are made while it is in the cache, and what is added up are its pixels, not its codes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pluri.engine.compiled import compiled

#: Below these log odds the code that counts is the one drawn, above them the one expected, which varies less: atoms
#: that are hardly ever used need no exponential.
RARE = -5.0
RARE_SHARE = math.exp(RARE)


class PatchPrior(NamedTuple):
    """What codes depend on besides the patches.

    `components` is (K, P). `offset`, the log odds without what the patch says, `variance` v and `length` q are (n, K),
    or (1, K) if all pixels of all patches are there. `noise` is a precision.
    """

    components: Any
    offset: Any
    variance: Any
    length: Any
    noise: Any


class PatchSums(NamedTuple):
    """Sums over sweeps: codes, (n, K), and drawn pixels and their squares, (n + 1, P); the last row is room to work."""

    codes: Any
    pixels: Any
    squares: Any


@compiled(reorder=True, allocates=False)
def add_sweeps(rng, left, observed, gram, prior, weights, sweeps, sums):
    """Change sums, what is left and weights: sweep over all patches.

    `left` comes as the patches, (n, P), zero where a pixel is missing, with `observed`, (n, P) of zeros and ones. If
    all pixels of all patches are there, it comes as products of patches and atoms instead, (n, K), with `gram`, the
    products of atoms; of these two arrays the one that is not needed has no rows. `weights` comes as (n, K) zeros. The
    first of the two numbers `sweeps` is how many are made before the first that counts, the second how many count.
    """
    components, offset, variance, length, noise = prior
    codes, pixels, squares = sums
    n_skipped, n_counted = sweeps
    n, P = left.shape
    K, n_rows = components.shape[0], variance.shape[0]
    has_gram = gram.shape[0] > 0
    for i in range(n):
        row = i % n_rows
        for sweep in range(n_skipped + n_counted):
            for k in range(K):
                old = weights[i, k]
                b = old * length[row, k]
                if has_gram:
                    b += left[i, k]
                else:
                    for p in range(P):
                        b += components[k, p] * left[i, p]
                v = variance[row, k]
                strength = noise * b
                odds = offset[row, k] + 0.5 * strength * strength * v
                new = 0.0 * old
                uniform = rng.random()
                if odds > RARE or uniform < RARE_SHARE:  # otherwise it cannot be used
                    m = strength * v
                    on = 1.0 / (1.0 + math.exp(-odds))
                    if uniform < on:
                        radius = math.sqrt(-2.0 * v * math.log(1.0 - rng.random()))
                        new += m + radius * math.cos(2.0 * math.pi * rng.random())
                    if odds <= RARE:
                        on = 1.0 if uniform < on else 0.0
                    if sweep >= n_skipped:
                        codes[i, k] += on * m
                if new != old:
                    weights[i, k] = new
                    change = new - old
                    if has_gram:
                        for j in range(K):
                            left[i, j] -= change * gram[k, j]
                    else:
                        for p in range(P):
                            left[i, p] -= change * components[k, p] * observed[i, p]
            if sweep >= n_skipped:
                add_draw(components, weights, i, pixels, squares)


@compiled(inner=True, reorder=True)
def add_draw(components, weights, i, pixels, squares):
    """Change the sums of pixels: add patch i as its code says."""
    K, P = components.shape
    room = pixels.shape[0] - 1
    for p in range(P):
        pixels[room, p] = 0.0
    for k in range(K):
        w = weights[i, k]
        if w != 0.0:
            for p in range(P):
                pixels[room, p] += w * components[k, p]
    for p in range(P):
        value = pixels[room, p]
        pixels[i, p] += value
        squares[i, p] += value * value
