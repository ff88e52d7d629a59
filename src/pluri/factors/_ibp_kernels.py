# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled sweep over the rows of Z, with the features integrated out.

P = M^-1 and W = P Z' X describe the features given all rows. Without row n, with g = P z, d = 1 - z' g and the
residual r = x - W' z, they are P + g g' / d and W - g r' / d; adding a row is the same with the signs turned and
d = 1 + z' g. The density of x given z and the other rows is then N(W' z, s (1 + z' P z)), so that turning one entry of
z over costs O(K + D). A feature that no other row has is drawn with the rest of its kind: their number j is
Poisson(alpha / N) a priori and adds j f / s to z' P z. The sum over j is cut where what is left is below 1e-17 of it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled

#: Log of the share of the sum over numbers of new features that may be left out.
NEGLIGIBLE = -40.0
#: Taking away a row divides by d, and adding a feature multiplies by f / s: beyond these, rounding would be heard.
SMALLEST_DIVISOR, LARGEST_SPREAD = 1e-4, 1e4
#: What `sweep_rows` gives as pending: nothing, or a row that must be left out of P and W by computing them anew.
NOTHING, LEAVE_OUT = -1, -2


class Buffet(NamedTuple):
    """What a sweep changes, with room for features to come.

    `Z` is (n_rows, capacity); `owners` (capacity,) counts the ones of a column; `P` (capacity, capacity) and `W`
    (capacity, n_dims) are those of the module; `z`, `g` (capacity,) and `r` (n_dims,) are room to work in.
    """

    Z: Any
    owners: Any
    P: Any
    W: Any
    z: Any
    g: Any
    r: Any

    @classmethod
    def of(cls, columns: Any, n_dims: int, capacity: int) -> Buffet:
        """Copy columns of Z; P and W are zero."""
        Z = np.zeros((len(columns), capacity), dtype=np.int8)
        Z[:, : columns.shape[1]] = columns
        owners, P, W = Z.sum(axis=0, dtype=np.float64), np.zeros((capacity, capacity)), np.zeros((capacity, n_dims))
        return cls(Z, owners, P, W, np.zeros(capacity), np.zeros(capacity), np.zeros(n_dims))

    def fill(self, P: Any, W: Any, Z: Any) -> None:
        """Change P and W of the columns in use, and `owners` to those of Z."""
        k = len(P)
        self.P[:k, :k] = P
        self.W[:k] = W
        self.owners[:] = Z.sum(axis=0, dtype=np.float64)

    def grown(self, capacity: int) -> Buffet:
        """The same with more room; a row may be out of the counts just now, so they are copied, not counted."""
        old = len(self.owners)
        more = Buffet.of(self.Z, len(self.r), max(capacity, old))
        more.owners[:old] = self.owners
        more.P[:old, :old] = self.P
        more.W[:old] = self.W
        return more


@compiled(inner=True)
def log_weight_of_new(j, rate, spread, size, misfit, n_dims):
    """Log of Poisson weight times density for j new features; `size` is 1 + z' P z, `misfit` is r' r / s."""
    variance = size + j * spread
    return j * math.log(rate) - math.lgamma(j + 1.0) - 0.5 * (n_dims * math.log(variance) + misfit / variance)


@compiled()
def draw_new_features(rate, spread, size, misfit, n_dims, uniform):
    """Draw the number of new features of a row from its exact conditional distribution."""
    best = misfit / n_dims  # the variance under which x is likeliest
    largest = log_weight_of_new(0, rate, spread, size, misfit, n_dims)
    total = 1.0
    j = 0
    while True:
        j += 1
        weight = log_weight_of_new(j, rate, spread, size, misfit, n_dims)
        if not weight > -math.inf:
            break
        if weight > largest:
            total = total * math.exp(largest - weight) + 1.0
            largest = weight
        else:
            total += math.exp(weight - largest)
        # What is left is at most twice the next Poisson weight times the highest density that is still to come.
        variance = max(size + (j + 1) * spread, best)
        bound = (j + 1) * math.log(rate) - math.lgamma(j + 2.0)
        bound -= 0.5 * (n_dims * math.log(variance) + misfit / variance)
        if rate < 0.5 * (j + 2) and bound < largest + math.log(total) + NEGLIGIBLE:
            break
    threshold = uniform * total
    cumulative = 0.0
    for i in range(j + 1):
        cumulative += math.exp(log_weight_of_new(i, rate, spread, size, misfit, n_dims) - largest)
        if cumulative > threshold:
            return i
    return j


@compiled(inner=True)
def change_row(X, n, k, sign, buffet):
    """Change P, W and `owners`: add (sign 1) or take away (sign -1) row n.

    Gives whether that could be done without loss of digits.
    """
    Z, owners, P, W, z, g, r = buffet
    n_dims = X.shape[1]
    for a in range(k):
        z[a] = Z[n, a]
    scale = 1.0
    for a in range(k):
        g[a] = 0.0
        for b in range(k):
            g[a] += P[a, b] * z[b]
        scale += sign * z[a] * g[a]
    if scale < SMALLEST_DIVISOR:
        return False
    for j in range(n_dims):
        r[j] = X[n, j]
        for a in range(k):
            if z[a] > 0.5:
                r[j] -= W[a, j]
    for a in range(k):
        share = sign * g[a] / scale
        for b in range(k):
            P[a, b] -= share * g[b]
        for j in range(n_dims):
            W[a, j] += share * r[j]
        owners[a] += sign * z[a]
    return True


@compiled(inner=True)
def remove_column(a, last, buffet):
    """Change the buffet: put the last column in the place of column a, and clear it."""
    Z, owners, P, W = buffet.Z, buffet.owners, buffet.P, buffet.W
    if a != last:
        for b in range(last + 1):
            P[a, b] = P[last, b]
        for b in range(last + 1):
            P[b, a] = P[b, last]
        P[a, a] = P[last, last]
        for j in range(W.shape[1]):
            W[a, j] = W[last, j]
        owners[a] = owners[last]
        for n in range(Z.shape[0]):
            Z[n, a] = Z[n, last]
    for n in range(Z.shape[0]):
        Z[n, last] = 0


@compiled(inner=True)
def add_columns(n, k, new, spread, buffet):
    """Change the buffet: new columns, which only row n has, and which P and W do not know yet."""
    P, W = buffet.P, buffet.W
    for c in range(k, k + new):
        for b in range(c):
            P[b, c] = 0.0
            P[c, b] = 0.0
        P[c, c] = spread
        for j in range(W.shape[1]):
            W[c, j] = 0.0
        buffet.owners[c] = 0.0
        buffet.Z[n, c] = 1


@compiled(inner=True)
def draw_entries(X, n, k, first, extra, noise, uniforms, buffet):
    """Change the entries of row n in the columns from `first` to k, drawn in turn; the row is out of P and W.

    `extra` is what features that only this row had add to z' P z. Gives 1 + z' P z with it, and r' r.
    """
    Z, owners, P, W, z, g, r = buffet
    n_rows, n_dims = X.shape
    size = 1.0 + extra
    for a in range(k):
        z[a] = Z[n, a]
    for a in range(k):
        g[a] = 0.0
        for b in range(k):
            g[a] += P[a, b] * z[b]
        size += z[a] * g[a]
    misfit = 0.0
    for j in range(n_dims):
        r[j] = X[n, j]
        for a in range(k):
            if z[a] > 0.5:
                r[j] -= W[a, j]
        misfit += r[j] * r[j]
    for a in range(first, k):
        sign = 1.0 if z[a] < 0.5 else -1.0
        size_then = size + sign * 2.0 * g[a] + P[a, a]
        misfit_then = 0.0
        for j in range(n_dims):
            moved = r[j] - sign * W[a, j]
            misfit_then += moved * moved
        log_odds = -0.5 * n_dims * math.log(size_then / size)
        log_odds -= (misfit_then / size_then - misfit / size) / (2.0 * noise)
        log_odds += sign * math.log(owners[a] / (n_rows - owners[a]))
        if log_odds > 0.0:
            turn = 1.0 / (1.0 + math.exp(-log_odds))
        else:
            turn = math.exp(log_odds) / (1.0 + math.exp(log_odds))
        if uniforms[n, a] < turn:
            z[a] = 1.0 - z[a]
            Z[n, a] = 1 - Z[n, a]
            size = size_then
            misfit = misfit_then
            for j in range(n_dims):
                r[j] -= sign * W[a, j]
            for b in range(k):
                g[b] += sign * P[b, a]
    return size, misfit


@compiled()
def sweep_rows(X, n_columns, first, start, stop, pending, noise, feature, rate, uniforms, buffet):
    """Change the buffet: draw the rows from `start` to `stop` of Z, with P, W and `owners` kept in step.

    `n_columns` columns are in use, of which those before `first` are always on; `uniforms` is (n_rows, capacity + 1).
    If the capacity is used up the sweep stops short, row n being out of P, W and `owners`: it goes on
    when it is called again with more room and the number of features that row n was to get as `pending`. It also stops
    before a row that cannot be taken away without loss of digits (pending is then `LEAVE_OUT`: it goes on with the same
    and P, W and `owners` without that row), and after one whose new features cost digits.

    Returns (next row, number of columns, pending).
    """
    capacity = buffet.owners.size
    spread = feature / noise
    k = n_columns
    for n in range(start, stop):
        if pending < 0:
            if pending == NOTHING and not change_row(X, n, k, -1.0, buffet):
                return n, k, LEAVE_OUT
            new = 0
            a = first
            while a < k:
                if buffet.Z[n, a] == 1 and buffet.owners[a] < 0.5:
                    k -= 1
                    remove_column(a, k, buffet)
                    new += 1
                else:
                    a += 1
            size, misfit = draw_entries(X, n, k, first, new * spread, noise, uniforms, buffet)
            pending = draw_new_features(
                rate, spread, size - new * spread, misfit / noise, X.shape[1], uniforms[n, capacity]
            )
            if k + pending > capacity:
                return n, k, pending
        add_columns(n, k, pending, spread, buffet)
        k += pending
        change_row(X, n, k, 1.0, buffet)
        if pending > 0 and spread > LARGEST_SPREAD:
            return n + 1, k, NOTHING
        pending = NOTHING
    return stop, k, NOTHING
