# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled Markov chain over subsets: items are added, removed and swapped, and the inverse of L_Y goes along.

With A the inverse of L_Y, b the entries of L between Y and an item i, and u = A b, determinants change by

    add i           det(L_{Y+i}) / det(L_Y)    = s = L_ii - b.u
    remove p        det(L_{Y-p}) / det(L_Y)    = A_pp
    swap p for i    det(L_{Y-p+i}) / det(L_Y)  = A_pp s + u_p^2

and A follows in O(|Y|^2). The state is in arrays that are changed in place, with room for more items than Y has:
`items`, `inverse` (padded), `place` (where an item is in Y, -1 outside), `counts` and `numbers` (see below).
"""

from __future__ import annotations

import math

from pluri.engine.compiled import compiled

#: Entries of `counts`: items in Y, accepted moves since the inverse was made afresh, accepted moves, steps, records
#: made, items written to `drawn`.
SIZE, SINCE, ACCEPTED, STEPS, RECORDS, WRITTEN = range(6)
#: Entries of `numbers`: log det L_Y, sum of the marks of the items in Y, sum of the acceptance probabilities.
LOG_DET, MARK, ACCEPTANCE = range(3)
#: What a step may do, and how it is accepted: with min(1, r) or with r / (1 + r).
FLIP, SWAP, FLIP_OR_SWAP = range(3)
METROPOLIS, HEAT_BATH = range(2)

#: The inverse is made afresh after this many accepted moves, or when an entry of A L_Y, looked at after every `CHECK`
#: of them, is off by more than `DRIFT`.
REFRESH = 500
CHECK = 10
DRIFT = 1e-6
#: An item that adds less than this share of its own L_ii depends on the others.
DEPENDENT = 1e-10
#: Squared correlations below this are zero: they are far below rounding, and their products would fall among the
#: denormal numbers, which are slow.
UNRELATED = 1e-60


@compiled(reorder=True)
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


@compiled(reorder=True)
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


@compiled(reorder=True)
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


@compiled(reorder=True)
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


@compiled(reorder=True)
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


@compiled(reorder=True)
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


@compiled()
def walk(
    matrix, from_features, diagonal, marks, proposals, uniforms, begin,
    items, place, inverse, factor, column, product, counts, numbers,
    moves, rule, laziness, thin, log_dets, sizes, mark_sums, drawn,
):  # fmt: skip
    """Steps `begin`, begin + 1, ... of a chain; returns the step to begin with next time.

    `proposals` and `uniforms` (n, 2) hold the randomness: an item, whether to accept it, and what to swap it for. Every
    `thin` steps the state goes to `log_dets`, `sizes`, `mark_sums`, and its items to the end of `drawn` (if that has
    any length). Stops early when the workspace or `drawn` has no room: the caller makes some. Returns -1 if Y has
    become dependent, which no accepted move allows.
    """
    for step in range(begin, proposals.size):
        size = counts[SIZE]
        record = thin > 0 and (counts[STEPS] + 1) % thin == 0
        if size == items.size or (record and drawn.size > 0 and counts[WRITTEN] + size + 1 > drawn.size):
            return step
        item, decision, choice = proposals[step], uniforms[step, 0], uniforms[step, 1]
        swap = moves == SWAP
        if moves == FLIP_OR_SWAP:
            swap = choice >= 0.5
            choice = 2.0 * choice - 1.0
        p = place[item]
        ratio = 0.0
        gain = 0.0
        if swap:
            # An item of Y, or an empty Y: nothing to swap. Both ends of a swap have the same size, so it is symmetric.
            if p < 0 and size > 0:
                p = min(int(choice * size), size - 1)
                fill_column(matrix, from_features, diagonal, items, size, item, column)
                gain = diagonal[item] - multiply(inverse, size, column, diagonal[item], product)
                ratio = inverse[p, p] * gain + product[p] * product[p]
                if ratio <= DEPENDENT * diagonal[item] * inverse[p, p]:
                    ratio = 0.0
            else:
                p = -1
        elif p >= 0:
            ratio = inverse[p, p]
        else:
            fill_column(matrix, from_features, diagonal, items, size, item, column)
            gain = diagonal[item] - multiply(inverse, size, column, diagonal[item], product)
            if gain > DEPENDENT * diagonal[item]:
                ratio = gain
        acceptance = min(1.0, ratio) if rule == METROPOLIS else ratio / (1.0 + ratio)
        acceptance *= laziness
        numbers[ACCEPTANCE] += acceptance
        if decision < acceptance:
            drifted = False
            numbers[LOG_DET] += math.log(ratio)
            if p >= 0:
                if counts[SINCE] % CHECK == 0:
                    drifted = (
                        not abs(unit_entry(matrix, from_features, diagonal, items, size, inverse, p) - 1.0) < DRIFT
                    )
                numbers[MARK] -= marks[items[p]]
            if swap:
                share = product[p] / inverse[p, p]
                gain = ratio / inverse[p, p]
                for m in range(size):
                    product[m] -= share * inverse[m, p]
                product[p] = 0.0
                replace_item(items, place, inverse, counts, p, item, product, gain, column)
                numbers[MARK] += marks[item]
            elif p >= 0:
                remove_item(items, place, inverse, counts, p, column)
            else:
                append_item(items, place, inverse, counts, item, product, gain)
                numbers[MARK] += marks[item]
            counts[ACCEPTED] += 1
            counts[SINCE] += 1
            if drifted or counts[SINCE] >= REFRESH:
                numbers[LOG_DET] = invert(matrix, from_features, diagonal, items, counts[SIZE], inverse, factor, column)
                counts[SINCE] = 0
                if numbers[LOG_DET] == -math.inf:
                    return -1
        counts[STEPS] += 1
        if record:
            row = counts[RECORDS]
            log_dets[row] = numbers[LOG_DET]
            sizes[row] = counts[SIZE]
            mark_sums[row] = numbers[MARK]
            if drawn.size > 0:
                for m in range(counts[SIZE]):
                    drawn[counts[WRITTEN] + m] = items[m]
                counts[WRITTEN] += counts[SIZE]
            counts[RECORDS] = row + 1
    return proposals.size
