# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled loops over abstract units."""

import math

from pluri.engine.compiled import compiled
from pluri.neurons.numerics._spike_kernels import uniform


@compiled(inner=True, allocates=False)
def past_value(now, past, step, lag, share, column):
    """The value `lag` steps ago (0: that of now), `share` of it from the step before that one."""
    if lag == 0:
        return now
    depth = past.shape[0]
    value = past[(step - lag) % depth, column]
    if share > 0.0:
        value += share * (past[(step - lag - 1) % depth, column] - value)
    return value


@compiled(inner=True, allocates=False)
def weighted_input(units, state, past, step, i):
    """Bias and weighted inputs of a unit."""
    total = units.bias[i]
    for k in range(units.begin[i], units.begin[i + 1]):
        value = past_value(state[units.address[k]], past, step + 1, units.lag[k], units.share[k], units.column[k])
        total += units.weight[k] * value
    return total


@compiled(inner=True, allocates=False)
def output_of(total, function):
    """What a rate unit makes of its input; the numbers are places in `pluri.neurons.library.units.FUNCTIONS`."""
    if function == 0:
        return 1.0 / (1.0 + math.exp(-total))
    if function == 1:
        return math.tanh(total)
    if function == 2:
        return total
    if function == 3:
        return max(total, 0.0)
    return 1.0 if total >= 0.0 else -1.0


@compiled(inner=True, allocates=False)
def move_units(units, state, past, step):
    """Change the outputs of units: rates in the order of links, then binary ones in a random order; or None."""
    if units is None:
        return
    y = units.y
    for i in range(units.n_rates):
        if step % units.period[i] == 0:
            settled = output_of(weighted_input(units, state, past, step, i), units.function[i])
            y[i] = settled + (y[i] - settled) * units.keep[i]
    n = len(y) - units.n_rates
    if n == 0:
        return
    shuffle(units, step, n)
    for k in range(n):
        i = units.order[k]
        if step % units.period[i] == 0:
            total = weighted_input(units, state, past, step, i)
            if total != 0.0:  # else it stays as it is
                y[i] = 1.0 if total > 0.0 else -1.0


@compiled(inner=True, allocates=False)
def shuffle(units, step, n):
    """Change `order` to the binary units in the order of random numbers of their own, by Shell's sort."""
    order, key = units.order, units.order_key
    for k in range(n):
        order[k] = units.n_rates + k
        key[k] = uniform(units.key[units.n_rates + k], step)
    gap = n // 2
    while gap > 0:
        for k in range(gap, n):
            one, value, at = order[k], key[k], k
            while at >= gap and key[at - gap] > value:
                order[at], key[at] = order[at - gap], key[at - gap]
                at -= gap
            order[at], key[at] = one, value
        gap //= 2
