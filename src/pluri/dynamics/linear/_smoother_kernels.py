# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code=call-arg
"""The Kalman smoother as a compiled pass backwards over the rows of any sequences, with sums of squares alone.

In the notation of the filter, with s and X of the row after (T^T s = 0 and U = I after the last one),

    mean = m_filtered + F T^T s,    U = S + T^T X T,    V = F U F^T,    Cov(x_{t+1}, x_t) = L_{t+1} X T F^T,

and for the row before s = K^-1 (f + T^T s), X = K^-1 U K^-T. This is Bryson and Frazier's smoother in the coordinates
that L gives: r = L^-T s, N = L^-T (I - X) L^-1. No covariance is inverted and none is subtracted from another, so that
singular ones and vague starts are nothing special. V and X depend on what was seen, not on the values, and are kept in
slots as the filter's covariances are.

References
----------
Bierman (1973), Fixed interval smoothing with discrete measurements, International Journal of Control 18.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics.linear._filter_kernels import (
    FACTOR,
    FILTERED,
    FILTERED_MEAN,
    REST,
    ROOT,
    SCORE,
    TRIANGLE,
    TURN,
    is_settled,
)
from pluri.engine.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


#: Places of matrices and links in a record.
INNER, SMOOTHED, LAGGED = 0, 1, 2
OF, FOLLOWER, FOLLOWER_OF = 0, 1, 2


class Backward(NamedTuple):
    """Matrices (s, 3, d, d): X, V, Cov(x_{t+1}, x_t). Links (s, 3): the filter's slot; the slot of the row before, and
    for which slot of that in the filter. `first` (n_filter_slots,): slot of a last row, -1 until there is one.
    """

    matrices: Floats
    links: Integers
    first: Integers


@compiled(inner=True, allocates=False)
def multiply(left, right, out):
    """Change `out` (d, d) to the product of two matrices."""
    d = out.shape[0]
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += left[i, k] * right[k, j]
            out[i, j] = total


@compiled(inner=True, allocates=False)
def multiply_transposed(left, right, out):
    """Change `out` (d, d) to the product of a matrix and the transpose of another."""
    d = out.shape[0]
    for i in range(d):
        for j in range(d):
            total = 0.0
            for k in range(d):
                total += left[i, k] * right[j, k]
            out[i, j] = total


@compiled(inner=True, allocates=False)
def solve_triangle(K, rows):
    """Change each row x of `rows` to K^-1 x, for an upper triangle K."""
    d = K.shape[0]
    for r in range(rows.shape[0]):
        for back in range(d):
            i = d - 1 - back
            total = rows[r, i]
            for k in range(i + 1, d):
                total -= K[i, k] * rows[r, k]
            rows[r, i] = total / K[i, i]


@compiled(inner=True, allocates=False)
def fill_backward(slots, backward, new, now, after, room):
    """Change backward slot `new` to that of a row in filter slot `now`, before backward slot `after` (-1: the last)."""
    own, found = slots.matrices[now], backward.matrices[new]
    F, T, V = own[FACTOR], own[TURN], found[SMOOTHED]
    U, product, other = room[0], room[1], room[2]
    d = F.shape[0]
    for i in range(d):
        for j in range(d):
            U[i, j] = 1.0 if i == j else 0.0
            found[LAGGED, i, j] = 0.0
    if after >= 0:
        multiply(backward.matrices[after, INNER], T, product)
        for i in range(d):
            for j in range(d):
                total = own[REST, i, j]
                for k in range(d):
                    total += T[k, i] * product[k, j]
                U[i, j] = total
        multiply(slots.matrices[backward.links[after, OF], ROOT], product, other)
        multiply_transposed(other, F, found[LAGGED])
    multiply(F, U, product)
    multiply_transposed(product, F, V)
    # K^-1 U K^-T, U being symmetric: the rows of `other` become those of (K^-1 U)^T, then those of X.
    solve_triangle(own[TRIANGLE], U)
    for i in range(d):
        for j in range(d):
            other[i, j] = U[j, i]
    solve_triangle(own[TRIANGLE], other)
    for i in range(d):
        for j in range(d):
            found[INNER, i, j] = 0.5 * (other[i, j] + other[j, i])
        for j in range(i):
            V[i, j] = 0.5 * (V[i, j] + V[j, i])
            V[j, i] = V[i, j]
    backward.links[new, OF] = now
    backward.links[new, FOLLOWER] = -1
    backward.links[new, FOLLOWER_OF] = -1


@compiled(inner=True, allocates=False)
def slot_before(slots, backward, after, now, n_slots, room):
    """The backward slot of a row in filter slot `now` before `after` (-1: the last row); filled if it is new."""
    links = backward.links
    if after < 0:
        known = backward.first[now]
    else:
        known = links[after, FOLLOWER] if links[after, FOLLOWER_OF] == now else -1
    if known >= 0:
        return known
    fill_backward(slots, backward, n_slots, now, after, room)
    if after < 0:
        backward.first[now] = n_slots
        return n_slots
    new, old, P = backward.matrices[n_slots], backward.matrices[after], slots.matrices[now, FILTERED]
    same = links[after, OF] == now and is_settled(new[INNER], old[INNER], old[INNER])
    for place in (SMOOTHED, LAGGED):
        same = same and is_settled(new[place], old[place], P)
    links[after, FOLLOWER] = after if same else n_slots
    links[after, FOLLOWER_OF] = now
    return links[after, FOLLOWER]


@compiled(allocates=False)
def smooth_rows(slots, filtered, offsets, backward, out, room, vectors):
    """Change `backward` and `out`, smoothed means (n, d) and backward slots (n,); returns the number of these slots."""
    states, _, slot = filtered
    matrices = slots.matrices
    mean, place = out
    d = mean.shape[1]
    n_slots = 0
    s, a = vectors[:1], vectors[1]
    for sequence in range(len(offsets) - 1):
        after = -1
        for back in range(offsets[sequence + 1] - offsets[sequence]):
            t = offsets[sequence + 1] - 1 - back
            now = slot[t]
            for i in range(d):
                total = 0.0
                if after >= 0:
                    for k in range(d):
                        total += matrices[now, TURN, k, i] * s[0, k]
                a[i] = total
            after = slot_before(slots, backward, after, now, n_slots, room)
            if after == n_slots:
                n_slots += 1
            place[t] = after
            for i in range(d):
                total = states[FILTERED_MEAN, t, i]
                for k in range(d):
                    total += matrices[now, FACTOR, i, k] * a[k]
                mean[t, i] = total
            for i in range(d):
                s[0, i] = states[SCORE, t, i] + a[i]
            solve_triangle(matrices[now, TRIANGLE], s)
    return n_slots
