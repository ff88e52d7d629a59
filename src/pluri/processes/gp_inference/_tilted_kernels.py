# mypy: allow-untyped-defs, allow-untyped-calls
"""Moments of ``sig(y f) N(f | mean, variance)``, compiled: for expectation propagation, which needs them in thousands.

In ``u = y f`` the integrand is ``exp(-(u - m)^2 / 2v) / (1 + exp(-u))``. Along a regular grid both exponentials are
products of the one before: no exponential is computed but at the start. Sums go outwards from a point near the mode,
relative to the value there, until the Gaussian has died away.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pluri.engine.compiled import compiled

Array = NDArray[np.float64]

#: Terms smaller than this share of the central one are left out.
NEGLIGIBLE = 1e-17


@compiled()
def tilted_moments_loop(labels, means, variances, log_mass, first, second):
    """Fill log mass, mean and variance of each entry; y times the mean must be above -600."""
    for i in range(len(labels)):
        m = labels[i] * means[i]
        v = variances[i]
        s = math.sqrt(v)
        # The mode solves u = m + v sig(-u), between m and m + v; half a standard deviation from it is near enough.
        low, high = m, m + v
        while high - low > 0.5 * s:
            u = 0.5 * (low + high)
            if u < m + v / (1.0 + math.exp(u)):
                low = u
            else:
                high = u
        center = 0.5 * (low + high)
        h = min(0.6 * s, 0.8)
        start = math.exp(-center)
        scale = 1.0 + start
        total, moment, square = 1.0, 0.0, 0.0
        decay = math.exp(-h * h / v)
        for side in (-1.0, 1.0):
            # Ratio of neighbouring Gaussian weights, and of exponentials exp(-u).
            ratio = math.exp(-0.5 * h * h / v - side * h * (center - m) / v)
            shrink = math.exp(-side * h)
            gauss, e, d = 1.0, start, 0.0
            while True:
                gauss *= ratio
                ratio *= decay
                d += side * h
                # From a start that has underflowed no product comes back.
                e = math.exp(-center - d) if center > 600.0 else e * shrink
                term = gauss * scale / (1.0 + e)
                total += term
                moment += term * d
                square += term * d * d
                if ratio < 1.0 and term < NEGLIGIBLE * total:
                    break
        moment /= total
        log_mass[i] = (
            math.log(total * h / (s * math.sqrt(2.0 * math.pi))) - 0.5 * (center - m) ** 2 / v - math.log(scale)
        )
        first[i] = labels[i] * (center + moment)
        second[i] = square / total - moment * moment


def compiled_tilted_moments(labels: Array, means: Array, variances: Array) -> tuple[Array, Array, Array]:
    """Log mass, mean and variance, each (n,)."""
    log_mass, first, second = np.empty((3, len(labels)))
    tilted_moments_loop(labels, means, variances, log_mass, first, second)
    return log_mass, first, second
