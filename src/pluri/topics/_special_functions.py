# mypy: allow-untyped-defs, allow-untyped-calls
"""Functions of the gamma family for compiled loops, which alone can call them: positive numbers, good to 1e-13.

    exp psi(x) = exp psi(x + 8) exp(-sum_{i < 8} 1 / (x + i)),
    exp psi(y + 1/2) = y + 1 / (24 y) - 37 / (5760 y^3) + ...,

so that no logarithm is needed, and the eight reciprocals are one quotient of polynomials in u = x (x + 7).
"""

from __future__ import annotations

import math

import numpy as np

from pluri.engine.compiled import compiled

#: Factors below exp(-SMALLEST) are zero; their products would be denormal numbers, which are slow.
SMALLEST = 300.0
LOG_2 = math.log(2.0)
HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)


@compiled(reorder=True, inner=True, allocates=False)
def exp_psi_parts(x):
    """(a, s) such that exp psi(x) = a exp(-s), x > 0."""
    u = x * (x + 7.0)
    one, two = u * (u + 6.0), (u + 10.0) * (u + 12.0)
    s = (2.0 * x + 7.0) * ((2.0 * u + 6.0) * two + one * (2.0 * u + 22.0)) / (one * two)
    y = x + 7.5
    z = 1.0 / (y * y)
    # fmt: off
    series = 1.0 + z * (4.1666666666666664e-2 + z * (-6.4236111111111111e-3 + z * (3.5524829144620810e-3 + z * (
        -3.9535574489730305e-3 + z * (7.3650332693086690e-3 + z * (-2.0734675824368137e-2
        + z * 8.2381852238787760e-2))))))
    # fmt: on
    return y * series, s


@compiled(reorder=True, inner=True, allocates=False)
def log_gamma(x):
    """Logarithm of the gamma function, x > 0."""
    u = x * (x + 7.0)
    z = x + 8.0
    r = 1.0 / (z * z)
    tail = (8.3333333333333333e-2 + r * (-2.7777777777777778e-3 + r * (7.9365079365079365e-4 + r * (
        -5.9523809523809524e-4 + r * (8.4175084175084175e-4 + r * -1.9175269175269175e-3))))) / z  # fmt: skip
    return (z - 0.5) * math.log(z) - z + HALF_LOG_2_PI + tail - math.log(u * (u + 6.0) * (u + 10.0) * (u + 12.0))


@compiled(reorder=True, inner=True, allocates=False)
def digamma(x):
    """Derivative of the logarithm of the gamma function, x > 0."""
    a, s = exp_psi_parts(x)
    return math.log(a) - s


@compiled(reorder=True, inner=True, allocates=False)
def exponentials(width, exponents, powers, bits, out):
    """Multiply `out` by exp(exponents), zero below -SMALLEST; `powers` is `bits` as floating-point numbers."""
    for k in range(width):
        n = np.floor(exponents[k] * 1.4426950408889634 + 0.5)
        f = exponents[k] - n * LOG_2
        f = f if exponents[k] > -SMALLEST else 0.0
        bits[k] = np.int64(n if exponents[k] > -SMALLEST else 0.0) + 1023 << 52
        e = 1.0 + f * (1.0 + f * (0.5 + f * (1.6666666666666667e-1 + f * (4.1666666666666667e-2 + f * (
            8.3333333333333333e-3 + f * (1.3888888888888889e-3 + f * (1.9841269841269841e-4 + f * (2.4801587301587302e-5
            + f * (2.7557319223985891e-6 + f * (2.7557319223985891e-7 + f * (2.5052108385441719e-8
            + f * 2.0876756987868099e-9)))))))))))  # fmt: skip
        out[k] = out[k] * e if exponents[k] > -SMALLEST else 0.0
    for k in range(width):
        out[k] *= powers[k]
