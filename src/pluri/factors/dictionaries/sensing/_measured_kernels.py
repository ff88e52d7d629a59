# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled sweep over codes of measured rows, all weights of a row integrated out while its atoms are drawn.

For one row, ``y ~ N(0, C)`` with ``C = I / g_e + v sum_{k in use} phi_k phi_k'``, v = 1 / g_s. With ``S_k = phi_k' C^-1
phi_k`` and ``Q_k = phi_k' C^-1 y``, C without atom k, the log odds that it is used are

    logit(pi_k) - log(1 + v S_k) / 2 + v Q_k^2 / (2 (1 + v S_k)).

S and Q of all atoms are kept, and change by the product with ``C^-1 phi_k`` when atom k joins or leaves, so that a row
costs n K for each atom in use and each change. The weights follow: s = s0 + v Phi' C^-1 (y - Phi s0 - e0), s0 and e0
drawn from their priors, is a draw given y (Bhattacharya, Chakraborty and Mallick 2016, Biometrika 103).

With few measurements the weights of one atom after another, as
`pluri.factors.dictionaries.conditionals.draw_codes` draws them, hardly ever leave a wrong choice of atoms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pluri.engine.compiled import compiled
from pluri.factors.dictionaries._code_kernels import is_on


class MeasuredRows(NamedTuple):
    """Measurements (n_rows, n), and atoms as they are measured, (n_rows or 1, K, n)."""

    values: Any
    atoms: Any


class RowPrior(NamedTuple):
    """Log odds (n_groups, K), group of each row (n_rows,), and variances of noise and weights, two numbers."""

    log_odds: Any
    group: Any
    noise: Any
    weight: Any


class RowDraws(NamedTuple):
    """Uniform numbers (n_rows, K), and normal ones (n_rows, K) and (n_rows, n)."""

    uniforms: Any
    weights: Any
    noise: Any


class Room(NamedTuple):
    """Room for one row: C^-1 (n, n), S and Q (K,), and a vector (n,)."""

    inverse: Any
    strength: Any
    quality: Any
    direction: Any


@compiled(inner=True)
def change_atom(k, variance, phi, room):
    """Change `room`: C grows by `variance` times the outer product of atom k; a negative one takes it out."""
    inverse, strength, quality, direction = room
    K, n = phi.shape
    for p in range(n):
        total = 0.0
        for r in range(n):
            total += inverse[p, r] * phi[k, r]
        direction[p] = total
    factor = variance / (1.0 + variance * strength[k])
    own = quality[k]
    for j in range(K):
        reach = 0.0
        for p in range(n):
            reach += phi[j, p] * direction[p]
        strength[j] = max(strength[j] - factor * reach * reach, 0.0)
        quality[j] -= factor * reach * own
    for p in range(n):
        share = factor * direction[p]
        for r in range(n):
            inverse[p, r] -= share * direction[r]


@compiled(inner=True)
def begin_row(y, phi, used, noise, weight, room):
    """Change `room`: C^-1, S and Q of a row that uses these atoms."""
    inverse, strength, quality, _ = room
    K, n = phi.shape
    for p in range(n):
        for r in range(n):
            inverse[p, r] = 0.0
        inverse[p, p] = 1.0 / noise
    for k in range(K):
        square, product = 0.0, 0.0
        for p in range(n):
            square += phi[k, p] * phi[k, p]
            product += phi[k, p] * y[p]
        strength[k] = square / noise
        quality[k] = product / noise
    for k in range(K):
        if used[k] == 1:
            change_atom(k, weight, phi, room)


@compiled(inner=True)
def draw_weights(y, phi, used, variances, normals, weights, room):
    """Change `weights`: draw those of the atoms in use, zero for the others; `variances` and `normals` are pairs."""
    inverse, _, _, direction = room
    (noise, weight), (of_weights, of_noise) = variances, normals
    K, n = phi.shape
    for p in range(n):
        direction[p] = y[p] - math.sqrt(noise) * of_noise[p]
    for k in range(K):
        weights[k] = 0.0
        if used[k] == 1:
            weights[k] = math.sqrt(weight) * of_weights[k]
            for p in range(n):
                direction[p] -= weights[k] * phi[k, p]
    for k in range(K):
        if used[k] == 1:
            total = 0.0
            for p in range(n):
                part = 0.0
                for r in range(n):
                    part += inverse[p, r] * direction[r]
                total += phi[k, p] * part
            weights[k] += weight * total


@compiled(reorder=True)
def draw_measured_codes(rows, prior, draws, used, weights, room):
    """Change `used` and `weights`, (n_rows, K): draw those of all rows."""
    values, atoms = rows
    log_odds, group, noise, weight = prior
    uniforms, of_weights, of_noise = draws
    strength, quality = room.strength, room.quality
    own = 1 if atoms.shape[0] > 1 else 0
    n_rows, K = used.shape
    for i in range(n_rows):
        phi, y, z = atoms[i * own], values[i], used[i]
        begin_row(y, phi, z, noise, weight, room)
        for k in range(K):
            s, q = strength[k], quality[k]
            if z[k] == 1:  # without the atom itself
                left = max(1.0 - weight * s, 1e-300)
                s, q = s / left, q / left
            growth = 1.0 + weight * s
            odds = log_odds[group[i], k] + 0.5 * (weight * q * q / growth - math.log(growth))
            on = is_on(odds, uniforms[i, k])
            if on and z[k] == 0:
                z[k] = 1
                change_atom(k, weight, phi, room)
            elif not on and z[k] == 1:
                z[k] = 0
                change_atom(k, -weight, phi, room)
        draw_weights(y, phi, z, (noise, weight), (of_weights[i], of_noise[i]), weights[i], room)
