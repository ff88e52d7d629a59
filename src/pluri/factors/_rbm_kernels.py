# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled log-odds of the visible units of a restricted Boltzmann machine."""

import math

from pluri.engine.compiled import compiled


@compiled(reorder=True)
def log_odds(on, off, growth, decline, flipped, bias, step, out):
    """Set out = log p(x_i = 1 | rest) / p(x_i = 0 | rest), for every unit of every row.

    Turning unit i on multiplies the weight of a row by exp(b_i) prod_l (off_l + on_l growth_il), growth = exp(W), where
    on and off are the probabilities of the hidden units being one and zero with unit i off. For units that are on in
    the row (`flipped`) the same is asked the other way round. A logarithm is taken of `step` factors at a time.
    """
    n_hidden = growth.shape[1]
    for n in range(out.shape[0]):
        for i in range(out.shape[1]):
            total = 0.0
            for first in range(0, n_hidden, step):
                product = 1.0
                if flipped[n, i]:
                    for j in range(first, min(first + step, n_hidden)):
                        product *= off[n, j] + on[n, j] * decline[i, j]
                else:
                    for j in range(first, min(first + step, n_hidden)):
                        product *= off[n, j] + on[n, j] * growth[i, j]
                total += math.log(product)
            out[n, i] = bias[i] - total if flipped[n, i] else bias[i] + total
