# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled Hermite functions, draws from their squares, and points of a process whose eigenfunctions they are."""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled
from pluri.processes.dpp.samplers._spectral_kernels import NOTHING_LEFT, extend, reaches

#: log of pi^(1/4).
LOG_QUARTER_PI = 0.25 * math.log(math.pi)
#: The recursion is rescaled beyond this, so that high orders far out neither underflow nor overflow.
LARGE = 1e120


@compiled()
def fill_hermite(t, order, log_factor, values):
    """Orthonormal Hermite functions of orders 0 to ``order`` at t, times ``exp(log_factor)``."""
    log_scale = log_factor - 0.5 * t * t - LOG_QUARTER_PI
    scale = math.exp(log_scale)
    before, now = 0.0, 1.0
    values[0] = scale
    for m in range(order):
        before, now = now, math.sqrt(2.0 / (m + 1.0)) * t * now - math.sqrt(m / (m + 1.0)) * before
        if abs(now) > LARGE:
            before /= LARGE
            now /= LARGE
            log_scale += math.log(LARGE)
            scale = math.exp(log_scale)
        values[m + 1] = now * scale


@compiled()
def hermite_cdf(t, order, values):
    """Integral of the squared Hermite function up to t: erfc(-t) / 2 - sum_m psi_m psi_(m-1) / sqrt(2 m)."""
    fill_hermite(t, order, 0.0, values)
    total = 0.5 * math.erfc(-t)
    for m in range(1, order + 1):
        total -= values[m] * values[m - 1] / math.sqrt(2.0 * m)
    return total


@compiled()
def draw_squared_hermite(rng, order, values):
    """A number t with density psi_order(t)^2, by bisection of its distribution function."""
    target = rng.random()
    # Beyond the turning point the density falls faster than exp(-(t - turn)^2).
    high = math.sqrt(2.0 * order + 1.0) + 7.0
    low = -high
    for _ in range(64):  # as many halvings as there are digits
        middle = 0.5 * (low + high)
        if hermite_cdf(middle, order, values) < target:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@compiled()
def draw_hermite_points(rng, orders, taken, counts, patience, points, found):
    """Points of the projection process on products of Hermite functions, for each draw, by rejection.

    ``orders`` is (rank, n_dimensions); ``points`` gets the coordinates t.
    """
    n_dimensions = orders.shape[1]
    largest, highest = 0, 0
    for count in counts:
        largest = max(largest, count)
    for n in range(orders.shape[0]):
        for d in range(n_dimensions):
            highest = max(highest, orders[n, d])
    basis = np.empty((largest, largest))
    row, coefficients = np.empty(largest), np.empty(largest)
    values = np.empty((n_dimensions, highest + 1))
    begin = 0
    for draw in range(counts.size):
        size = counts[draw]
        found[draw] = size
        for drawn in range(size):
            accepted = False
            for _ in range(patience * size):
                n = taken[begin + int(rng.random() * size)]
                for d in range(n_dimensions):
                    t = draw_squared_hermite(rng, orders[n, d], values[d])
                    points[begin + drawn, d] = t
                    fill_hermite(t, highest, 0.0, values[d])
                full = 0.0
                for a in range(size):
                    row[a] = 1.0
                    for d in range(n_dimensions):
                        row[a] *= values[d, orders[taken[begin + a], d]]
                    full += row[a] * row[a]
                bound = full * (1.0 - max(rng.random(), NOTHING_LEFT))
                if not reaches(basis[:, :size], row[:size], bound, drawn):
                    accepted = True
                    break
            if not accepted:
                found[draw] = drawn
                break
            extend(basis[:, :size], row[:size], coefficients, drawn)
        begin += size


@compiled()
def fill_eigenfunctions(t, log_factors, orders, result):
    """``result[i, n]``: product over the coordinates of Hermite functions at ``t[i]``, times ``exp(log_factors)``."""
    highest = 0
    for n in range(orders.shape[0]):
        for d in range(orders.shape[1]):
            highest = max(highest, orders[n, d])
    values = np.empty((orders.shape[1], highest + 1))
    for i in range(t.shape[0]):
        for d in range(orders.shape[1]):
            fill_hermite(t[i, d], highest, log_factors[i, d], values[d])
        for n in range(orders.shape[0]):
            total = 1.0
            for d in range(orders.shape[1]):
                total *= values[d, orders[n, d]]
            result[i, n] = total
