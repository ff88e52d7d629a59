# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""Whole filters in one compiled loop over time, for the models that come with the package.

Layout. Clouds of n particles in d dimensions are rows of arrays: step t is in row
t % rows, so that rows = n_steps keeps everything and rows = 2 only what the next step needs. The arguments come in
bundles: `scheme` is the number of the resampling scheme and the share of n under which the effective sample size calls
for it; `storage` is particles (rows, n d), log weights (rows, n), ancestors (rows or 1, n) and the normalised weights
(n,) of the last step; `records` are increments, effective sample size (n_steps,), mean and variance (n_steps, d);
`room` is space for noise (n d,), points (n,) and one number; `lots` is space for random numbers (n + 1,), copies (n,)
and extra copies (n,), which the multinomial and the residual scheme need, and None for the others: a test for None is
decided when a function is compiled, so that each half of `resample_into` is compiled only where it is used.

Each loop does steps start:stop and returns the first at which the increment of the log evidence is not finite, or -1;
between two calls the interpreter can be interrupted.

Random numbers are drawn into a buffer first: the loops that use them are then plain arithmetic on arrays, which the
compiler turns into vector instructions.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from pluri.engine.compiled import compiled
from pluri.inference.smc._kernels import MULTINOMIAL, SYSTEMATIC, invert, invert_strata, merge, order, take_shares

LOG_2_PI = np.log(2 * np.pi)


#: Added to a number below 2^51, it leaves the nearest whole number in the low bits.
_SHIFTER = 6755399441055744.0


@intrinsic
def _power_of_two(typing_context, shifted):
    """2^n from n + _SHIFTER: the low bits of the sum are put where a double has its exponent."""

    def generate(context, builder, signature, arguments):
        integer = ir.IntType(64)
        bits = builder.add(builder.bitcast(arguments[0], integer), integer(1023))
        return builder.bitcast(builder.shl(bits, integer(52)), ir.DoubleType())

    return types.float64(types.float64), generate


@compiled(fastmath={"contract"}, allocates=False)
def exponential(x):
    """e^x to a few units in the last place; 0 below -708, e^708 above 708, NaN stays NaN.

    Straight-line code that the compiler turns into vector instructions (a call of the C library's exp is not):
    x = n ln 2 + r with |r| <= ln 2 / 2, then the Taylor polynomial of degree 12 and the exponent n put into the bits.
    """
    clamped = min(max(x, -708.0), 708.0)
    shifted = clamped * 1.4426950408889634 + _SHIFTER
    n = shifted - _SHIFTER
    r = (clamped - n * 0.693145751953125) - n * 1.4286068203094172e-06
    p = 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    value = p * _power_of_two(shifted)
    return value if x >= -708.0 else (0.0 if x < -708.0 else x)


@compiled(inner=True)
def resample_into(rng, method, weights, room, lots, out):
    """Ancestors of n particles by the scheme with this number; the random numbers are drawn as `resample` does."""
    n = out.shape[0]
    _, points, single = room
    if lots is None:
        if method == SYSTEMATIC:
            single[0] = rng.random()
            invert_strata(weights, single, out)
        else:
            for j in range(n):
                points[j] = rng.random()
            invert_strata(weights, points, out)
    else:
        numbers, copies, extra = lots
        left = n if method == MULTINOMIAL else take_shares(weights, n, copies, points)
        if left > 0:
            for j in range(left + 1):
                numbers[j] = rng.standard_exponential()
            order(numbers, left, numbers)
        if method == MULTINOMIAL:
            invert(weights, numbers, n, out)
        else:
            invert(points, numbers, left, extra)
            merge(copies, extra, left, out)


@compiled(inner=True, allocates=False)
def largest_of(values):
    """Largest entry; four running maxima hide the latency of a comparison."""
    n = values.shape[0]
    a = b = c = d = -np.inf
    for i in range(0, n - 3, 4):
        a = values[i] if values[i] > a else a
        b = values[i + 1] if values[i + 1] > b else b
        c = values[i + 2] if values[i + 2] > c else c
        d = values[i + 3] if values[i + 3] > d else d
    for i in range(n - n % 4, n):
        a = values[i] if values[i] > a else a
    a = a if a > b else b
    c = c if c > d else d
    return a if a > c else c


@compiled(reorder=True, inner=True, allocates=False)
def normalize(log_weights, weights):
    """Normalise in place, and write the weights; returns log of the sum, and the effective sample size.

    A NaN anywhere makes the sum NaN (an infinity as well), and no weight at all makes it -inf.
    """
    n = log_weights.shape[0]
    largest = largest_of(log_weights)
    if not (-np.inf < largest < np.inf):
        total = 0.0
        for i in range(n):
            total += log_weights[i]
        return (-np.inf if total == -np.inf else np.nan), 0.0
    total = 0.0
    squares = 0.0
    for i in range(n):
        value = exponential(log_weights[i] - largest)
        weights[i] = value
        total += value
        squares += value * value
    log_total = largest + np.log(total)
    inverse = 1.0 / total
    for i in range(n):
        weights[i] *= inverse
        log_weights[i] -= log_total
    return log_total, total * total / squares


@compiled(reorder=True, inner=True, allocates=False)
def moments(particles, weights, d, mean, variance):
    """Weighted mean and variance (d,) of particles (n d,), one after the other."""
    n = weights.shape[0]
    for k in range(d):
        centre = particles[k]  # sums of squares around a point of the cloud do not cancel
        first = 0.0
        second = 0.0
        if d == 1:
            for i in range(n):
                difference = particles[i] - centre
                first += weights[i] * difference
                second += weights[i] * difference * difference
        else:
            for i in range(n):
                difference = particles[i * d + k] - centre
                first += weights[i] * difference
                second += weights[i] * difference * difference
        mean[k] = centre + first
        variance[k] = max(second - first * first, 0.0)


@compiled(inner=True)
def begin_step(rng, t, scheme, storage, records, room, lots):
    """Choose the parents of step t, and give their children the weights they start with."""
    _, log_weights, ancestors, weights = storage
    rows, n = log_weights.shape
    # Loops over entries: an assignment to a slice takes seconds to compile.
    parents = ancestors[t % ancestors.shape[0]]
    current = log_weights[t % rows]
    previous = log_weights[(t - 1) % rows]
    equal = -np.log(n)
    if t > 0 and records[1][t - 1] < scheme[1] * n:
        resample_into(rng, scheme[0], weights, room, lots, parents)
        for i in range(n):
            current[i] = equal
        return
    for i in range(n):
        parents[i] = i
        current[i] = previous[i] if t > 0 else equal


@compiled(inner=True, allocates=False)
def end_step(t, observed, storage, records):
    """Normalise the weights of step t and write its records; returns whether they are finite."""
    particles, log_weights, _, weights = storage
    increments, ess, mean, variance = records
    current = log_weights[t % log_weights.shape[0]]
    increments[t], ess[t] = normalize(current, weights)
    if not -np.inf < increments[t] < np.inf:
        return False
    if not observed:
        increments[t] = 0.0
    moments(particles[t % particles.shape[0]], weights, mean.shape[1], mean[t], variance[t])
    return True
