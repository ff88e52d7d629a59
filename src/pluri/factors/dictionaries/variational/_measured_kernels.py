# mypy: allow-untyped-defs, allow-untyped-calls
r"""The compiled update of the codes of measured rows: q(s_i) with its whole covariance, then q(z_ik) one by one.

For one row, with t = E z, Phi the measured atoms (n x K), g and h the expected precisions of noise and weights,

    S^-1 = Gamma + g T Phi' Phi T,   Gamma = diag(h + g t_k (1 - t_k) |phi_k|^2),   T = diag(t),
    C    = I / g + Phi T Gamma^-1 T Phi' = L L',     U = L^-1 Phi T Gamma^-1,
    S    = Gamma^-1 - U' U,          mu = U' L^-1 y.

S is never formed: its entries off the diagonal are -u_k' u_l, so that what the z-step needs of it is
``sum_l t_l (phi_k' phi_l)(u_k' u_l) = phi_k' M u_k`` with ``M = sum_l t_l phi_l u_l'``, an n x n matrix that changes by
a rank-one term when t_l does. A row costs O(K n^2) in place of O(K^2 n).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.engine.compiled import compiled

#: Log odds are kept within this: beyond it an entry is on or off to the last bit.
LARGEST_LOGIT = 40.0


class Measured(NamedTuple):
    """What was measured: `values` (n_samples, n) and `atoms` (n_samples or 1, n, K), the measurements of the atoms."""

    values: Any
    atoms: Any


class Codes(NamedTuple):
    """What a sweep changes.

    `used`, `mean`, `variance` (n_samples, K): t, mu and the diagonal of S; `misfit` (n_samples,): the expected squared
    error E |y - Phi (z s)|^2; `log_det` (n_samples,): log det S.
    """

    used: Any
    mean: Any
    variance: Any
    misfit: Any
    log_det: Any


class Room(NamedTuple):
    """Room to work in: `columns` (K, n), `factor` and `cross` (n, n), `spread` (n, K) and `rows` (K, n) for U, and
    `residual`, `white` (n,), `norms`, `inverse` (K,).
    """

    columns: Any
    factor: Any
    cross: Any
    spread: Any
    rows: Any
    residual: Any
    white: Any
    norms: Any
    inverse: Any

    @classmethod
    def of(cls, n: int, K: int) -> Room:
        """Empty room for n measurements and K atoms."""
        shapes = [(K, n), (n, n), (n, n), (n, K), (K, n), (n,), (n,), (K,), (K,)]
        return cls(*(np.empty(shape) for shape in shapes))


@compiled(reorder=True, inner=True, allocates=False)
def factorize(atoms, y, t, g, h, room):
    """Change `room`: U, L^-1 y, Gamma^-1 and |phi|^2 of one row. Gives log det S."""
    n, K = atoms.shape
    C, U, columns = room.factor, room.spread, room.columns
    inverse, norms, white = room.inverse, room.norms, room.white
    log_det = -n * math.log(g)
    for k in range(K):
        norm = 0.0
        for r in range(n):
            columns[k, r] = atoms[r, k]
            norm += atoms[r, k] * atoms[r, k]
        norms[k] = norm
        precision = h + g * t[k] * (1.0 - t[k]) * norm
        inverse[k] = 1.0 / precision
        log_det -= math.log(precision)
    for r in range(n):
        for k in range(K):
            U[r, k] = atoms[r, k] * t[k] * inverse[k]
        for c in range(r + 1):
            total = 0.0
            for k in range(K):
                total += U[r, k] * t[k] * atoms[c, k]
            C[r, c] = total
        C[r, r] += 1.0 / g
    for r in range(n):
        white[r] = y[r]
        for c in range(r):
            total = C[r, c]
            for j in range(c):
                total -= C[r, j] * C[c, j]
            total /= C[c, c]
            C[r, c] = total
            white[r] -= total * white[c]
            for k in range(K):
                U[r, k] -= total * U[c, k]
        pivot = C[r, r]
        for j in range(r):
            pivot -= C[r, j] * C[r, j]
        pivot = math.sqrt(max(pivot, 1e-300))
        C[r, r] = pivot
        log_det -= 2.0 * math.log(pivot)
        white[r] /= pivot
        for k in range(K):
            U[r, k] /= pivot
    return log_det


@compiled(reorder=True, inner=True, allocates=False)
def set_weights(y, t, mean, variance, room):
    """Change `mean`, `variance` and the rest of `room` (M, the residual, U by atoms) given U."""
    columns, U, rows, M, residual = room.columns, room.spread, room.rows, room.cross, room.residual
    K, n = columns.shape
    for r in range(n):
        residual[r] = y[r]
        for c in range(n):
            M[r, c] = 0.0
    for k in range(K):
        m, square = 0.0, 0.0
        for r in range(n):
            u = U[r, k]
            rows[k, r] = u
            m += u * room.white[r]
            square += u * u
        mean[k] = m
        # Rounding could take all of a small variance away.
        variance[k] = max(room.inverse[k] - square, 1e-15 * room.inverse[k])
        for r in range(n):
            residual[r] -= t[k] * m * columns[k, r]
            share = t[k] * columns[k, r]
            for c in range(n):
                M[r, c] += share * rows[k, c]


@compiled(reorder=True, inner=True, allocates=False)
def switch_atoms(log_odds, g, t, mean, variance, room):
    """Change `t`, one entry after the other, and M and the residual with it. Gives the expected squared error."""
    columns, rows, M, residual, norms = room.columns, room.rows, room.cross, room.residual, room.norms
    K, n = columns.shape
    for k in range(K):
        product, crossed, square = 0.0, 0.0, 0.0
        for r in range(n):
            part = 0.0
            for c in range(n):
                part += M[r, c] * rows[k, c]
            crossed += columns[k, r] * part
            product += columns[k, r] * residual[r]
            square += rows[k, r] * rows[k, r]
        own = mean[k] * t[k] * norms[k]
        energy = (mean[k] * mean[k] + variance[k]) * norms[k] - 2.0 * mean[k] * (product + own)
        energy -= 2.0 * (crossed - t[k] * norms[k] * square)
        logit = log_odds[k] - 0.5 * g * energy
        new = 1.0 / (1.0 + math.exp(-min(max(logit, -LARGEST_LOGIT), LARGEST_LOGIT)))
        change = new - t[k]
        t[k] = new
        if change != 0.0:
            for r in range(n):
                residual[r] -= change * mean[k] * columns[k, r]
                share = change * columns[k, r]
                for c in range(n):
                    M[r, c] += share * rows[k, c]
    misfit = 0.0
    for r in range(n):
        misfit += residual[r] * residual[r]
        for c in range(n):
            misfit -= M[r, c] * M[r, c]
    for k in range(K):
        square = 0.0
        for r in range(n):
            square += rows[k, r] * rows[k, r]
        misfit += t[k] * norms[k] * (t[k] * square + variance[k] + (1.0 - t[k]) * mean[k] * mean[k])
    return misfit


@compiled(allocates=False)
def sweep_codes(measured, log_odds, noise_precision, weight_precision, codes, room):
    """Change `codes`: weights, then usage, row by row; `log_odds` (n_samples, K), `noise_precision` (n_samples,)."""
    values, atoms = measured.values, measured.atoms
    used, means, variances = codes.used, codes.mean, codes.variance
    own = 1 if atoms.shape[0] > 1 else 0
    for i in range(values.shape[0]):
        y, t, g = values[i], used[i], noise_precision[i]
        codes.log_det[i] = factorize(atoms[i * own], y, t, g, weight_precision, room)
        set_weights(y, t, means[i], variances[i], room)
        codes.misfit[i] = switch_atoms(log_odds[i], g, t, means[i], variances[i], room)


@compiled(allocates=False)
def signal_variances(measured, noise_precision, weight_precision, codes, components, room, out):
    """Change `out` (n_samples, P): variances of the rows of ``(z * s) components``, components being (K, P).

    The weights are at their best given t, so `codes.mean` and `codes.variance` change too, unless the ascent has ended.
    """
    values, atoms = measured.values, measured.atoms
    own = 1 if atoms.shape[0] > 1 else 0
    K, P = components.shape
    n = values.shape[1]
    for i in range(values.shape[0]):
        t, mean, variance = codes.used[i], codes.mean[i], codes.variance[i]
        factorize(atoms[i * own], values[i], t, noise_precision[i], weight_precision, room)
        set_weights(values[i], t, mean, variance, room)
        for p in range(P):
            out[i, p] = 0.0
        for k in range(K):
            single = t[k] * t[k] * room.inverse[k] + t[k] * (1.0 - t[k]) * (mean[k] * mean[k] + variance[k])
            for p in range(P):
                out[i, p] += single * components[k, p] * components[k, p]
        for r in range(n):
            for p in range(P):
                total = 0.0
                for k in range(K):
                    total += room.spread[r, k] * t[k] * components[k, p]
                out[i, p] = max(out[i, p] - total * total, 0.0)
