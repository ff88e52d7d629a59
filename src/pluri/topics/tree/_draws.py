# mypy: allow-untyped-defs, allow-untyped-calls
"""Random numbers inside compiled loops: never zero, gamma draws, and sticks built on them.

References
----------
Marsaglia, G. and Tsang, W. W. (2000). A simple method for generating gamma variables. ACM TOMS 26, 363-372.
"""

import math

from pluri.engine.compiled import compiled
from pluri.topics._draws import uniform as uniform_from_zero


@compiled(inner=True, allocates=False)
def uniform(stream):
    """Draw a number from (0, 1); `stream` is an array of one unsigned 64-bit number."""
    return uniform_from_zero(stream) + 5.551115123125783e-17


@compiled(inner=True, allocates=False)
def log_gamma_draw(stream, shape):
    """Logarithm of a gamma variable of scale 1: finite however small the shape."""
    d = shape + 1.0 - 1.0 / 3.0  # one more than asked for, mended by a power of a uniform number
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        radius = math.sqrt(-2.0 * math.log(uniform(stream)))
        x = radius * math.cos(2.0 * math.pi * uniform(stream))
        v = 1.0 + c * x
        if v > 0.0:
            v = v * v * v
            if math.log(uniform(stream)) < 0.5 * x * x + d - d * v + d * math.log(v):
                return math.log(d * v) + math.log(uniform(stream)) / shape


@compiled(inner=True, allocates=False)
def beta_draw(stream, a, b):
    """A beta variable and one minus it."""
    x, y = log_gamma_draw(stream, a), log_gamma_draw(stream, b)
    top = max(x, y)
    x, y = math.exp(x - top), math.exp(y - top)
    return x / (x + y), y / (x + y)


@compiled(inner=True, allocates=False)
def stick_draw(stream, concentration):
    """One minus a Beta(1, concentration) variable: what is left of a stick after a piece is broken off."""
    return math.exp(math.log(uniform(stream)) / concentration)
