# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""The compiled loops over the cells (i, j) of two sequences, one diagonal i + j = d after the other.

With I(i, j) = k(x_i, v_j), i and j from 1, and steps (a, b) of 0 to q frames, not both 0:

    best path:     G(i, j) = max over (a, b) of G(i - a, j - b) + (a + b) I(i, j)
    sum of paths:  G(i, j) = I(i, j) * sum over (a, b) of G(i - a, j - b)

Cells of one diagonal do not depend on each other, and with the second sequence reversed all that a diagonal needs lies
side by side: the loops run in vector instructions. Of G the last 2q + 1 diagonals are kept, in a ring; row d % (2q + 1)
holds diagonal d, cell i at column q + i, with what stands for "no path" on both sides of it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pluri.components.chain._kernels import exp_nonpositive
from pluri.engine.compiled import compiled
from pluri.sequences.alignment.frames import BLOCK

#: Totals of a diagonal outside these bounds are scaled to 1.
SMALLEST, LARGEST = 1e-50, 1e50
#: Logarithm of a bound on what a cell can lose by underflow, in the units of its diagonal: below 1e-307 (what exp of
#: less than -708 is taken for) times totals below LARGEST.
LOG_LOST = -575.0
#: Logarithm of the share of the result that may be lost.
LOG_SHARE = -36.0


class Warping(NamedTuple):
    """How frames are compared (by inner products, or with a precision) and which paths there are; window 0 is none."""

    linear: bool
    precision: float
    max_step: int
    window: int


@compiled(fastmath={"contract"}, inner=True, allocates=False)
def _add_products(x, begin, v, start, f, frame):
    """Add the products of feature f along a diagonal to `frame`, which the first feature begins."""
    count = frame.shape[0]
    left, right = x[f, begin : begin + count], v[f, start : start + count]
    if f == 0:
        for k in range(count):
            frame[k] = left[k] * right[k]
    else:
        for k in range(count):
            frame[k] += left[k] * right[k]


@compiled(fastmath={"contract"}, inner=True, allocates=False)
def _add_squares(x, begin, v, start, f, frame):
    """Add the squared differences of feature f along a diagonal to `frame`, which the first feature begins."""
    count = frame.shape[0]
    left, right = x[f, begin : begin + count], v[f, start : start + count]
    if f == 0:
        for k in range(count):
            frame[k] = (left[k] - right[k]) ** 2
    else:
        for k in range(count):
            frame[k] += (left[k] - right[k]) ** 2


@compiled(fastmath={"contract"}, inner=True, allocates=False)
def _add_four_squares(x, begin, v, start, f, frame):
    """The same for the features f to f + 3: loops over a diagonal are short, and each of them costs its beginning."""
    count = frame.shape[0]
    left, right = x[f, begin : begin + count], v[f, start : start + count]
    left1, right1 = x[f + 1, begin : begin + count], v[f + 1, start : start + count]
    left2, right2 = x[f + 2, begin : begin + count], v[f + 2, start : start + count]
    left3, right3 = x[f + 3, begin : begin + count], v[f + 3, start : start + count]
    for k in range(count):
        total = 0.0 if f == 0 else frame[k]
        total += (left[k] - right[k]) ** 2
        total += (left1[k] - right1[k]) ** 2
        total += (left2[k] - right2[k]) ** 2
        frame[k] = total + (left3[k] - right3[k]) ** 2


@compiled(fastmath={"contract"}, inner=True, allocates=False)
def _compare_frames(x, begin, v, start, warping, frame):
    """Write the frame kernel along a diagonal: columns of x from `begin` with columns of v from `start`."""
    n_features = x.shape[0]
    if warping.linear:
        for f in range(n_features):
            _add_products(x, begin, v, start, f, frame)
        return
    f = 0
    while f + 4 <= n_features:
        _add_four_squares(x, begin, v, start, f, frame)
        f += 4
    while f + 1 < n_features:
        _add_squares(x, begin, v, start, f, frame)
        f += 1
    count, precision = frame.shape[0], warping.precision
    if f == n_features:
        for k in range(count):
            frame[k] = exp_nonpositive(-precision * frame[k])
        return
    left, right = x[f, begin : begin + count], v[f, start : start + count]
    for k in range(count):  # the last feature here: one loop less
        total = 0.0 if f == 0 else frame[k]
        frame[k] = exp_nonpositive(-precision * (total + (left[k] - right[k]) ** 2))


@compiled(inner=True, allocates=False)
def _ends(d, n, m, window):
    """First and last i of a diagonal: inside both sequences, and within the band |i m - j n| <= window max(n, m)."""
    first, last = max(1, d - m), min(n, d - 1)
    if window > 0:
        reach = window * max(n, m)
        first = max(first, -((reach - d * n) // (n + m)))
        last = min(last, (d * n + reach) // (n + m))
    return first, last


@compiled(inner=True, allocates=False)
def _best_step(ring, d, at, frame, q):
    """Write a diagonal of best paths: its cells begin at column `at` of the ring."""
    n_rows, count = ring.shape[0], frame.shape[0]
    target = ring[d % n_rows, at : at + count]
    if q == 1:
        beside, above = ring[(d - 1) % n_rows, at : at + count], ring[(d - 1) % n_rows, at - 1 : at - 1 + count]
        diagonal = ring[(d - 2) % n_rows, at - 1 : at - 1 + count]
        for k in range(count):
            straight = (beside[k] if beside[k] > above[k] else above[k]) + frame[k]
            oblique = diagonal[k] + 2.0 * frame[k]
            target[k] = straight if straight > oblique else oblique
        return
    for k in range(count):
        target[k] = -np.inf
    for steps in range(1, 2 * q + 1):
        for a in range(max(0, steps - q), min(q, steps) + 1):
            source = ring[(d - steps) % n_rows, at - a : at - a + count]
            for k in range(count):
                value = source[k] + steps * frame[k]
                target[k] = value if value > target[k] else target[k]


@compiled(inner=True, allocates=False)
def _sum_step(ring, d, at, frame, q):
    """Write a diagonal of sums of paths, with the frame kernel k turned into k / (2 - k)."""
    n_rows, count = ring.shape[0], frame.shape[0]
    target = ring[d % n_rows, at : at + count]
    if q == 1:
        beside, above = ring[(d - 1) % n_rows, at : at + count], ring[(d - 1) % n_rows, at - 1 : at - 1 + count]
        diagonal = ring[(d - 2) % n_rows, at - 1 : at - 1 + count]
        for k in range(count):
            target[k] = ((beside[k] + above[k]) + diagonal[k]) * (frame[k] / (2.0 - frame[k]))
        return
    for k in range(count):
        target[k] = 0.0
    for steps in range(1, 2 * q + 1):
        for a in range(max(0, steps - q), min(q, steps) + 1):
            source = ring[(d - steps) % n_rows, at - a : at - a + count]
            for k in range(count):
                target[k] += source[k]
    for k in range(count):
        target[k] *= frame[k] / (2.0 - frame[k])


@compiled(inner=True, reorder=True, allocates=False)
def _total(values):
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k]
    return total


@compiled(inner=True, allocates=False)
def _clear_sides(ring, d, at, count, q, empty):
    """Mark the columns beside a diagonal, as far as later ones look, as cells without a path."""
    row = ring[d % ring.shape[0]]
    for k in range(at - q, at):
        row[k] = empty
    for k in range(at + count, at + count + 2 * q):
        row[k] = empty


@compiled(inner=True, allocates=False)
def _align(x, begin, n, v, start, m, warping, growth, ring, frame):
    """Value of the best path, or the logarithm of the sum of all paths; NaN if too much of it may have been lost."""
    q, n_rows = warping.max_step, ring.shape[0]
    empty = -np.inf if growth is None else 0.0
    for row in range(n_rows):
        for k in range(n + 1 + 3 * q):
            ring[row, k] = empty
    ring[0, q] = 0.0 if growth is None else 1.0
    log_scale, log_lost = 0.0, -np.inf
    for d in range(2, n + m + 1):
        first, last = _ends(d, n, m, warping.window)
        count = max(last - first + 1, 0)
        similar = frame[:count]
        block = (count + BLOCK - 1) // BLOCK * BLOCK
        _compare_frames(x, begin + first - 1, v, start + m - d + first, warping, frame[:block])
        if growth is None:
            _best_step(ring, d, q + first, similar, q)
        else:
            _sum_step(ring, d, q + first, similar, q)
        _clear_sides(ring, d, q + first, count, q, empty)
        if growth is not None:
            total = _total(ring[d % n_rows, q + first : q + first + count])
            if not total > 0.0:
                return np.nan
            if total < SMALLEST or total > LARGEST:
                for row in range(n_rows):
                    for k in range(n + 1 + 3 * q):
                        ring[row, k] /= total
                log_scale += np.log(total)
            log_lost = max(log_lost, log_scale + (n + m - d) * growth)
    value = ring[(n + m) % n_rows, q + n]
    if growth is None:
        return value / (n + m)
    log_value = np.log(value) + log_scale
    return log_value if log_value > log_lost + LOG_LOST - LOG_SHARE + np.log(n * m) else np.nan


@compiled(allocates=False)
def align_pairs(rows, columns, left, right, warping, growth, ring, frame, values):
    """Write the values of pairs: of sequence rows[p] of `left` and columns[p] of `right`, whose frames are reversed.

    With `growth` None that of the best path, else the logarithm of the sum of all, whose number grows from one diagonal
    to the next by a factor of e to the `growth`.
    """
    x, v = left.values, right.values
    for p in range(rows.shape[0]):
        begin, start = left.offsets[rows[p]], right.offsets[columns[p]]
        n, m = left.offsets[rows[p] + 1] - begin, right.offsets[columns[p] + 1] - start
        values[p] = _align(x, begin, n, v, start, m, warping, growth, ring, frame)


@compiled(fastmath={"contract"}, allocates=False)
def resample_pairs(rows, columns, left, right, warping, length, values):
    """Write the mean frame kernel of pairs along linear warps of `length` frames; 0: of the longer sequence's."""
    x, v = left.values, right.values
    for p in range(rows.shape[0]):
        begin, start = left.offsets[rows[p]], right.offsets[columns[p]]
        n, m = left.offsets[rows[p] + 1] - begin, right.offsets[columns[p] + 1] - start
        steps = length if length > 0 else max(n, m)
        total = 0.0
        for k in range(1, steps + 1):
            # Rounded up in whole numbers: n k / steps in floating point may be just above its integer.
            i, j = begin - (-n * k // steps) - 1, start - (-m * k // steps) - 1
            value = 0.0
            for f in range(x.shape[0]):
                if warping.linear:
                    value += x[f, i] * v[f, j]
                else:
                    value += (x[f, i] - v[f, j]) ** 2
            total += value if warping.linear else exp_nonpositive(-warping.precision * value)
        values[p] = total / steps


@compiled()
def best_paths(similarity, max_step, window):
    """Values G of the best paths to all cells, (n + 1, m + 1), from the frame kernel of all pairs of frames."""
    n, m = similarity.shape
    best = np.full((n + 1, m + 1), -np.inf)
    best[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if window > 0 and abs(i * m - j * n) > window * max(n, m):
                continue
            for a in range(min(max_step, i) + 1):
                for b in range(min(max_step, j) + 1):
                    if a + b > 0:
                        best[i, j] = max(best[i, j], best[i - a, j - b] + (a + b) * similarity[i - 1, j - 1])
    return best


@compiled()
def log_sum_of_paths(log_similarity, max_step, window):
    """Logarithm of the sum over all paths of their products: nothing underflows."""
    n, m = log_similarity.shape
    log_sum = np.full((n + 1, m + 1), -np.inf)
    log_sum[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if window > 0 and abs(i * m - j * n) > window * max(n, m):
                continue
            largest = -np.inf
            for a in range(min(max_step, i) + 1):
                for b in range(min(max_step, j) + 1):
                    if a + b > 0:
                        largest = max(largest, log_sum[i - a, j - b])
            if largest == -np.inf:
                continue
            total = 0.0
            for a in range(min(max_step, i) + 1):
                for b in range(min(max_step, j) + 1):
                    if a + b > 0:
                        total += np.exp(log_sum[i - a, j - b] - largest)
            log_sum[i, j] = largest + np.log(total) + log_similarity[i - 1, j - 1]
    return log_sum[n, m]
