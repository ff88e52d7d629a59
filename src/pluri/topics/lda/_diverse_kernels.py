# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over the words of a topic that is pushed away from the others."""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled


@compiled(reorder=True)
def diverse_root(evidence, dual, strength, root):
    """Write u into `root`: (E + s) u^2 = E_w + c p_w u with c p'u = s, where E is the sum of all E_w.

    p'u rises with c, so that c p'u does where it is positive, and c is unique. Newton's method starts from s, where c
    is if nothing changes, and is kept between bounds that close.
    """
    total = strength
    for w in range(evidence.size):
        total += evidence[w]
    low, high, c = 0.0, math.inf, strength
    length = 1.0
    for _ in range(60):
        product = 0.0
        slope = 0.0
        length = 0.0
        for w in range(evidence.size):
            pull = c * dual[w]
            radius = math.sqrt(pull * pull + 4.0 * total * evidence[w])
            far = abs(pull) + radius + 1e-300
            # The positive root of the quadratic equation, without cancellation.
            u = far / (2.0 * total) if pull > 0.0 else 2.0 * evidence[w] / far
            root[w] = u
            product += dual[w] * u
            slope += dual[w] * dual[w] * u / (radius + 1e-300)
            length += u * u
        excess = c * product - strength
        if abs(excess) <= 1e-9 * strength:
            break
        if excess > 0.0:
            high = c
        else:
            low = c
        following = c - excess / (product + c * slope) if product > 0.0 else 2.0 * c
        if not low < following < high:
            following = 0.5 * (low + high) if high < math.inf else 2.0 * c
        c = following
    scale = 1.0 / math.sqrt(length)
    for w in range(evidence.size):
        root[w] *= scale


@compiled(reorder=True)
def trigamma(x):
    """psi'(x): recurrence up to 6, then the asymptotic series, good to ten digits."""
    value = 0.0
    while x < 6.0:
        value += 1.0 / (x * x)
        x += 1.0
    y = 1.0 / (x * x)
    return value + 0.5 * y + (1.0 + y * (1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0)))) / x


@compiled(reorder=True)
def newton_step(target, row, root, dual, strength, step):
    """Write the step in log lambda: slope of the bound over a positive estimate of its curvature, at most 1.

    slope_w = lambda_w ((t_w - lambda_w) psi'(lambda_w) - psi'(sum) (sum of t - sum of lambda)) + s (u_w p_w - u_w^2).
    """
    sum_target, sum_row = 0.0, 0.0
    for w in range(row.size):
        sum_target += target[w]
        sum_row += row[w]
    common = trigamma(sum_row) * (sum_target - sum_row)
    for w in range(row.size):
        bend = trigamma(row[w])
        gain, share = strength * root[w] * dual[w], strength * root[w] * root[w]
        slope = row[w] * ((target[w] - row[w]) * bend - common) + gain - share
        curvature = row[w] * row[w] * bend + abs(gain) + share
        step[w] = min(max(slope / curvature, -1.0), 1.0)
