# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Exponentials and quotients of sixteen numbers at a time."""

from __future__ import annotations

import math

import numpy as np

from pluri.topics.lda._lanes import _FLOATS, _INTS, WIDTH, _constant, _lanes, intrinsic

#: Below this an exponential is taken for that of this: the smallest that is a full float32 number, nearly.
LOWEST = -86.0
#: Adding it to a number, and taking it off again, rounds to whole numbers; the last bits of the sum are that number.
ROUNDER = 1.5 * 2.0**23
#: Logarithm of two in two parts, the first of few digits so that whole multiples of it are exact.
LOG_TWO = (355.0 / 512.0, math.log(2.0) - 355.0 / 512.0)
#: exp(r) = 1 + r + r^2 (c_5 + c_4 r + ... + c_0 r^5) for |r| <= log(2) / 2, by interpolation: highest power first.
POWERS = tuple(
    np.polynomial.Chebyshev.interpolate(lambda r: (np.exp(r) - 1.0 - r) / r**2, 5, domain=[-0.3466, 0.3466])
    .convert(kind=np.polynomial.Polynomial)
    .coef[::-1]
    .tolist()
)
_FUSED = ("contract",)


def _everywhere(number):
    return _constant(_FLOATS, [number] * WIDTH)


@intrinsic
def exponential(typing, values):
    """Exponentials, to one part in ten million; arguments must be below 88.

    With n the whole number next to x / log 2, exp(x) = 2^n exp(x - n log 2): a polynomial, the exponent of which is
    then raised by n.
    """

    def generate(context, builder, signature, arguments):
        def fused(left, right, more):
            return builder.fadd(builder.fmul(left, right, flags=_FUSED), more, flags=_FUSED)

        lowest = _everywhere(LOWEST)
        x = builder.select(builder.fcmp_ordered(">", arguments[0], lowest), arguments[0], lowest)
        shifted = builder.fadd(builder.fmul(x, _everywhere(1.0 / math.log(2.0))), _everywhere(ROUNDER))
        whole = builder.fsub(shifted, _everywhere(ROUNDER))
        for part in LOG_TWO:
            x = fused(whole, _everywhere(-part), x)
        series = _everywhere(POWERS[0])
        for power in POWERS[1:]:
            series = fused(series, x, _everywhere(power))
        series = builder.fadd(fused(series, builder.fmul(x, x), x), _everywhere(1.0))
        raised = builder.shl(builder.bitcast(shifted, _INTS), _constant(_INTS, [23] * WIDTH))
        return builder.bitcast(builder.add(builder.bitcast(series, _INTS), raised), _FLOATS)

    return _lanes(_lanes), generate


@intrinsic
def divide(typing, left, right):
    """Quotients."""

    def generate(context, builder, signature, arguments):
        return builder.fdiv(*arguments)

    return _lanes(_lanes, _lanes), generate
