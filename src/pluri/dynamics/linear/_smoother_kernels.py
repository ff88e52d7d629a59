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

from pluri.dynamics.linear._filter_kernels import is_settled
from pluri.engine.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Backward(NamedTuple):
    """X, V, Cov(x_{t+1}, x_t) (s, d, d); slot of the filter; slot of the row before, and for which slot of its own.

    `first` (n_filter_slots,) is the slot of a last row, -1 until there is one.
    """

    inner: Floats
    covariance: Floats
    lagged: Floats
    of: Integers
    follower: Integers
    follower_of: Integers
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
    F, K, T, S = slots.factor[now], slots.triangle[now], slots.turn[now], slots.rest[now]
    X, V, lagged = backward.inner[new], backward.covariance[new], backward.lagged[new]
    U, product, other = room[0], room[1], room[2]
    d = F.shape[0]
    for i in range(d):
        for j in range(d):
            U[i, j] = 1.0 if i == j else 0.0
            lagged[i, j] = 0.0
    if after >= 0:
        multiply(backward.inner[after], T, product)
        for i in range(d):
            for j in range(d):
                total = S[i, j]
                for k in range(d):
                    total += T[k, i] * product[k, j]
                U[i, j] = total
        multiply(slots.root[backward.of[after]], product, other)
        multiply_transposed(other, F, lagged)
    multiply(F, U, product)
    multiply_transposed(product, F, V)
    for i in range(d):
        for j in range(d):
            product[i, j] = U[j, i]
    solve_triangle(K, product)  # rows K^-1 U_i, which is (K^-1 U)^T
    for i in range(d):
        for j in range(d):
            other[i, j] = product[j, i]
    solve_triangle(K, other)  # K^-1 U K^-T, transposed
    for i in range(d):
        for j in range(d):
            X[i, j] = 0.5 * (other[i, j] + other[j, i])
    for i in range(d):
        for j in range(i):
            mean = 0.5 * (V[i, j] + V[j, i])
            V[i, j] = mean
            V[j, i] = mean
    backward.of[new] = now
    backward.follower[new] = -1
    backward.follower_of[new] = -1


@compiled(inner=True, allocates=False)
def slot_before(slots, backward, after, now, n_slots, room):
    """The backward slot of a row in filter slot `now` before `after` (-1: the last row); filled if it is new."""
    if after < 0:
        known = backward.first[now]
    else:
        known = backward.follower[after] if backward.follower_of[after] == now else -1
    if known >= 0:
        return known
    fill_backward(slots, backward, n_slots, now, after, room)
    if after < 0:
        backward.first[now] = n_slots
        return n_slots
    P, X = slots.filtered[now], backward.inner
    same = (
        backward.of[after] == now
        and is_settled(X[n_slots], X[after], X[after])
        and is_settled(backward.covariance[n_slots], backward.covariance[after], P)
        and is_settled(backward.lagged[n_slots], backward.lagged[after], P)
    )
    backward.follower[after] = after if same else n_slots
    backward.follower_of[after] = now
    return backward.follower[after]


@compiled(allocates=False)
def smooth_rows(slots, filtered, offsets, backward, out, room, vectors):
    """Change `backward` and `out`, smoothed means (n, d) and backward slots (n,); returns the number of these slots."""
    means, score, slot = filtered.mean, filtered.score, filtered.slot
    factor, turn, triangle = slots.factor, slots.turn, slots.triangle
    mean, place = out
    d = means.shape[1]
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
                        total += turn[now, k, i] * s[0, k]
                a[i] = total
            after = slot_before(slots, backward, after, now, n_slots, room)
            n_slots = max(n_slots, after + 1)
            place[t] = after
            for i in range(d):
                total = means[t, i]
                for k in range(d):
                    total += factor[now, i, k] * a[k]
                mean[t, i] = total
            for i in range(d):
                s[0, i] = score[t, i] + a[i]
            solve_triangle(triangle[now], s)
    return n_slots
