# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled terms of the logistic log-likelihood, from the natural parameter and exp(-|natural parameter|).

Exponentials come from NumPy, which does several at a time; logarithms of factors between 1 and 2 are taken of products
of many.
"""

import math

from pluri.engine.compiled import compiled

#: So many factors of at most 2 fit into a double.
FACTORS = 512
#: Below this, tanh(t/2)/t is 1/2 - t^2/24 to all digits.
SMALL = 1e-3


@compiled(reorder=True)
def tangents(theta, decay, out):
    """Set out = tanh(theta/2)/theta, which is 1/2 at 0; returns the sum of log(1 + exp(theta))."""
    total = 0.0
    for n in range(theta.shape[0]):
        for first in range(0, theta.shape[1], FACTORS):
            product, positive = 1.0, 0.0
            for d in range(first, min(first + FACTORS, theta.shape[1])):
                t = theta[n, d]
                size, e = abs(t), decay[n, d]
                product *= 1.0 + e
                positive += max(t, 0.0)
                exact = (1.0 - e) / ((1.0 + e) * max(size, SMALL))
                out[n, d] = exact if size > SMALL else 0.5 - t * t / 24.0
            total += math.log(product) + positive
    return total


@compiled(reorder=True)
def newton_terms(theta, decay, mean, weight, total):
    """Set mean = sigma(theta), weight = its derivative, total (n_rows,) = sums of log(1 + exp(theta))."""
    for n in range(theta.shape[0]):
        total[n] = 0.0
        for first in range(0, theta.shape[1], FACTORS):
            product, positive = 1.0, 0.0
            for d in range(first, min(first + FACTORS, theta.shape[1])):
                t = theta[n, d]
                e = decay[n, d]
                product *= 1.0 + e
                positive += max(t, 0.0)
                small = 1.0 / (1.0 + e)
                mean[n, d] = small if t > 0 else e * small
                weight[n, d] = e * small * small
            total[n] += math.log(product) + positive
