# mypy: allow-untyped-defs, allow-untyped-calls
"""The inverse A of L_Y that a chain over subsets takes along: made from L, and changed with Y in O(|Y|^2)."""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled

#: Entry of the counts of a walk that holds the number of items in Y.
SIZE = 0
#: Squared correlations below this are zero: they are far below rounding, and their products would fall among the
#: denormal numbers, which are slow.
UNRELATED = 1e-60


@compiled(reorder=True, inner=True)
def fill_column(matrix, from_features, diagonal, items, size, item, column):
    """Entries of L between the first `size` of `items` and `item`; `matrix` is L itself, or features."""
    if from_features:
        for m in range(size):
            other = items[m]
            total = 0.0
            for d in range(matrix.shape[1]):
                total += matrix[other, d] * matrix[item, d]
            column[m] = total
    else:
        for m in range(size):
            column[m] = matrix[item, items[m]]
    least = UNRELATED * diagonal[item]
    for m in range(size):
        if column[m] * column[m] < least * diagonal[items[m]]:
            column[m] = 0.0


@compiled(reorder=True, inner=True)
def multiply(inverse, size, column, scale, product):
    """``product = A column``; returns ``column . product``. The item has L_ii = `scale`."""
    form = 0.0
    for m in range(size):
        total = 0.0
        for n in range(size):
            total += inverse[m, n] * column[n]
        if total * total < UNRELATED * scale * inverse[m, m]:
            total = 0.0
        product[m] = total
        form += column[m] * total
    return form


@compiled(reorder=True, inner=True)
def append_item(items, place, inverse, counts, item, product, gain):
    """Y + item, given u = A b and s; the inverse becomes [[A + u u^T / s, -u / s], [-u^T / s, 1 / s]]."""
    size = counts[SIZE]
    per_gain = 1.0 / gain
    for m in range(size):
        share = product[m] * per_gain
        for n in range(size):
            inverse[m, n] += share * product[n]
        inverse[m, size] = -share
        inverse[size, m] = -share
    inverse[size, size] = per_gain
    items[size] = item
    place[item] = size
    counts[SIZE] = size + 1


@compiled(reorder=True, inner=True)
def remove_item(items, place, inverse, counts, p, column):
    """Y without its p-th item: the other entries become E - f f^T / g; the last item takes the place."""
    last = counts[SIZE] - 1
    per_pivot = 1.0 / inverse[p, p]
    for n in range(last + 1):
        column[n] = inverse[p, n]
    for m in range(last + 1):
        share = column[m] * per_pivot
        for n in range(last + 1):
            inverse[m, n] -= share * column[n]
    place[items[p]] = -1
    if p != last:
        for n in range(last):
            inverse[p, n] = inverse[last, n]
            inverse[n, p] = inverse[last, n]
        inverse[p, p] = inverse[last, last]
        items[p] = items[last]
        place[items[p]] = p
    counts[SIZE] = last


@compiled(reorder=True, inner=True)
def replace_item(items, place, inverse, counts, p, item, product, gain, column):
    """Another item in the p-th place: the two updates at once, given u and s without the item that leaves."""
    size = counts[SIZE]
    per_pivot = 1.0 / inverse[p, p]
    per_gain = 1.0 / gain
    for n in range(size):
        column[n] = inverse[p, n]
    for m in range(size):
        joins = product[m] * per_gain
        leaves = column[m] * per_pivot
        for n in range(size):
            inverse[m, n] += joins * product[n] - leaves * column[n]
        inverse[m, p] = -joins
    for n in range(size):
        inverse[p, n] = -product[n] * per_gain
    inverse[p, p] = per_gain
    place[items[p]] = -1
    items[p] = item
    place[item] = p


@compiled(reorder=True)
def invert(matrix, from_features, diagonal, items, size, inverse, factor, column):
    """The inverse of L_Y by its Cholesky factor, and log det L_Y; -inf if the items depend on each other."""
    log_det = 0.0
    for m in range(size):
        fill_column(matrix, from_features, diagonal, items, m, items[m], column)
        pivot = diagonal[items[m]]
        for n in range(m):
            total = column[n]
            for k in range(n):
                total -= factor[m, k] * factor[n, k]
            total /= factor[n, n]
            factor[m, n] = total
            pivot -= total * total
        if not pivot > 1e-14 * diagonal[items[m]]:
            return -math.inf
        factor[m, m] = math.sqrt(pivot)
        log_det += math.log(pivot)
    # The inverse of the factor goes row by row into the upper triangle: column m of V^-1 is inverse[m, m:].
    for m in range(size):
        inverse[m, m] = 1.0 / factor[m, m]
        for n in range(m + 1, size):
            total = 0.0
            for k in range(m, n):
                total += factor[n, k] * inverse[m, k]
            inverse[m, n] = -total / factor[n, n]
    # A = V^-T V^-1, in place: an entry needs only entries of the upper triangle that come later.
    for m in range(size):
        for n in range(m, size):
            total = 0.0
            for k in range(n, size):
                total += inverse[m, k] * inverse[n, k]
            inverse[m, n] = total
            inverse[n, m] = total
    return log_det


@compiled(reorder=True, inner=True)
def unit_entry(matrix, from_features, diagonal, items, size, inverse, p):
    """Entry (p, p) of A L_Y, which is 1 but for rounding."""
    total = inverse[p, p] * diagonal[items[p]]
    for m in range(size):
        if m != p:
            entry = 0.0
            if from_features:
                for d in range(matrix.shape[1]):
                    entry += matrix[items[m], d] * matrix[items[p], d]
            else:
                entry = matrix[items[p], items[m]]
            total += inverse[p, m] * entry
    return total
