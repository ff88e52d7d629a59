# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled Markov chain over subsets: items are added, removed and swapped, and the inverse of L_Y goes along.

With A the inverse of L_Y, b the entries of L between Y and an item i, and u = A b, determinants change by

    add i           det(L_{Y+i}) / det(L_Y)    = s = L_ii - b.u
    remove p        det(L_{Y-p}) / det(L_Y)    = A_pp
    swap p for i    det(L_{Y-p+i}) / det(L_Y)  = A_pp s + u_p^2

and A follows in O(|Y|^2).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from pluri.engine.compiled import compiled
from pluri.processes.dpp.kernel_forms import Array, IntArray
from pluri.processes.dpp.samplers._inverse_kernels import (
    SIZE,
    append_item,
    fill_column,
    invert,
    multiply,
    remove_item,
    replace_item,
    unit_entry,
)

#: Entries of `counts` beside SIZE, the items in Y: accepted moves since the inverse was made afresh, accepted moves,
#: steps, records made, items written to `drawn`.
SINCE, ACCEPTED, STEPS, RECORDS, WRITTEN = range(1, 6)
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


class Entries(NamedTuple):
    """The kernel L: `matrix` is L itself or features, and `diagonal` (n_items,) that of L."""

    matrix: Array
    from_features: bool
    diagonal: Array


class WalkArrays(NamedTuple):
    """A subset Y and the inverse of L_Y, with room for more items than Y has. Steps change them in place.

    Attributes
    ----------
    items : (room,), of which the first are Y
    place : (n_items,): where an item is in `items`, or -1
    inverse : (room, room)
    counts, numbers : see above
    marks : (n_items,) a number for each item, whose sum over Y is followed
    factor, column, product : (room, room), (room,) and (room,), to work in
    """

    items: IntArray
    place: IntArray
    inverse: Array
    counts: IntArray
    numbers: Array
    marks: Array
    factor: Array
    column: Array
    product: Array


class RecordArrays(NamedTuple):
    """What is kept of a walk: log determinants, sizes and sums of marks, and the items one subset after the other."""

    log_dets: Array
    sizes: IntArray
    mark_sums: Array
    drawn: IntArray


@compiled(inner=True)
def swap_item(items, place, inverse, counts, p, item, product, ratio, column):
    """Another item in the p-th place, given u and the ratio of determinants; Y, A and `product` are changed."""
    share = product[p] / inverse[p, p]
    gain = ratio / inverse[p, p]
    for m in range(counts[SIZE]):
        product[m] -= share * inverse[m, p]
    product[p] = 0.0
    replace_item(items, place, inverse, counts, p, item, product, gain, column)


@compiled(inner=True)
def record(items, counts, numbers, records):
    """Write the state of a walk to the records, which are changed; its items only if `drawn` has any length."""
    row = counts[RECORDS]
    records.log_dets[row] = numbers[LOG_DET]
    records.sizes[row] = counts[SIZE]
    records.mark_sums[row] = numbers[MARK]
    if records.drawn.size > 0:
        for m in range(counts[SIZE]):
            records.drawn[counts[WRITTEN] + m] = items[m]
        counts[WRITTEN] += counts[SIZE]
    counts[RECORDS] = row + 1


@compiled()
def take_steps(kernel, walk, proposals, uniforms, begin, moves, rule, laziness, thin, records):
    """Steps `begin`, begin + 1, ... of a walk, which is changed; returns the step to begin with next time.

    `proposals` and `uniforms` (n, 2) hold the randomness: an item, whether to accept it, and what to swap it for. Every
    `thin` steps the state goes to the records. Stops early when the walk or `records.drawn` has no room: the caller
    makes some. Returns -1 if Y has become dependent, which no accepted move allows.
    """
    matrix, from_features, diagonal = kernel
    items, place, inverse, counts, numbers, marks, factor, column, product = walk
    for step in range(begin, proposals.size):
        size = counts[SIZE]
        is_recorded = thin > 0 and (counts[STEPS] + 1) % thin == 0
        if size == items.size or (is_recorded and 0 < records.drawn.size < counts[WRITTEN] + size + 1):
            return step
        item, choice = proposals[step], uniforms[step, 1]
        swap = moves == SWAP or (moves == FLIP_OR_SWAP and choice >= 0.5)
        if moves == FLIP_OR_SWAP:
            choice = 2.0 * choice - 1.0
        p = place[item]
        ratio = gain = 0.0
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
        acceptance = (min(1.0, ratio) if rule == METROPOLIS else ratio / (1.0 + ratio)) * laziness
        numbers[ACCEPTANCE] += acceptance
        if uniforms[step, 0] < acceptance:
            drifted = False
            numbers[LOG_DET] += math.log(ratio)
            if p >= 0 and counts[SINCE] % CHECK == 0:
                drifted = not abs(unit_entry(matrix, from_features, diagonal, items, size, inverse, p) - 1.0) < DRIFT
            if p >= 0:
                numbers[MARK] -= marks[items[p]]
            if swap or p < 0:
                numbers[MARK] += marks[item]
            if swap:
                swap_item(items, place, inverse, counts, p, item, product, ratio, column)
            elif p >= 0:
                remove_item(items, place, inverse, counts, p, column)
            else:
                append_item(items, place, inverse, counts, item, product, gain)
            counts[ACCEPTED] += 1
            counts[SINCE] += 1
            if drifted or counts[SINCE] >= REFRESH:
                numbers[LOG_DET] = invert(matrix, from_features, diagonal, items, counts[SIZE], inverse, factor, column)
                counts[SINCE] = 0
                if numbers[LOG_DET] == -math.inf:
                    return -1
        counts[STEPS] += 1
        if is_recorded:
            record(items, counts, numbers, records)
    return proposals.size
