# mypy: allow-untyped-defs, allow-untyped-calls
"""Compiled recursions for elementary symmetric polynomials in logarithms."""

from __future__ import annotations

import numpy as np

from pluri.engine.compiled import compiled


@compiled()
def log_sum(a, b):
    """log(exp(a) + exp(b)) for a and b below infinity."""
    if a < b:
        a, b = b, a
    if b == -np.inf:
        return a
    return a + np.log1p(np.exp(b - a))


@compiled()
def fill_table(log_values, table):
    """``table[n, m]`` = log e_m of the first n values: e_m^n = e_m^{n-1} + value_n e_{m-1}^{n-1}."""
    n_values, order = log_values.size, table.shape[1] - 1
    for m in range(order + 1):
        table[0, m] = -np.inf
    table[0, 0] = 0.0
    for n in range(n_values):
        table[n + 1, 0] = 0.0
        for m in range(1, order + 1):
            table[n + 1, m] = log_sum(table[n, m], log_values[n] + table[n, m - 1])


@compiled()
def fold(log_values, result):
    """The last row of the table alone, in place."""
    order = result.size - 1
    result[:] = -np.inf
    result[0] = 0.0
    for n in range(log_values.size):
        for m in range(min(order, n + 1), 0, -1):
            result[m] = log_sum(result[m], log_values[n] + result[m - 1])


@compiled()
def leave_one_out(log_values, table, backward, result):
    """Log of e_order without each value: sums over how many of the others lie before and after it.

    ``table`` is that of `fill_table`; ``backward`` is room for the polynomials of the values after n.
    """
    order = table.shape[1] - 1
    backward[:] = -np.inf
    backward[0] = 0.0
    for n in range(log_values.size - 1, -1, -1):
        largest = -np.inf
        for m in range(order + 1):
            largest = max(largest, table[n, m] + backward[order - m])
        total = 0.0
        if largest > -np.inf:
            for m in range(order + 1):
                total += np.exp(table[n, m] + backward[order - m] - largest)
            result[n] = largest + np.log(total)
        else:
            result[n] = -np.inf
        for m in range(order, 0, -1):
            backward[m] = log_sum(backward[m], log_values[n] + backward[m - 1])
