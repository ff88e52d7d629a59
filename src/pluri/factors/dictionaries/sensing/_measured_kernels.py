# mypy: allow-untyped-defs, allow-untyped-calls
"""The compiled sweep over codes of measured rows, all weights of a row integrated out while its atoms are drawn.

For one row, ``y ~ N(0, C)`` with ``C = I / g_e + v sum_{k in use} phi_k phi_k'``, v = 1 / g_s. With ``S_k = phi_k' C^-1
phi_k`` and ``Q_k = phi_k' C^-1 y``, C without atom k, the log odds that it is used are

    logit(pi_k) - log(1 + v S_k) / 2 + v Q_k^2 / (2 (1 + v S_k)).

S and Q of all atoms are kept, and change by the product with ``C^-1 phi_k`` when atom k joins or leaves, so that a row
costs n K for each atom in use and each change. The weights follow: s = s0 + v Phi' C^-1 (y - Phi s0 - e0), s0 and e0
drawn from their priors, is a draw given y (Bhattacharya, Chakraborty and Mallick 2016, Biometrika 103), and v Q their
mean.

An atom that is in the place of another leaves only together with its coming. So a few times in each sweep one of the
atoms in use, chosen at random, leaves, and another or the same joins with its probability given that exactly one does:
the number of atoms to choose from is the same on the way back, so that the posterior stays what it is.

With few measurements the weights of one atom after another, as
`pluri.factors.dictionaries.conditionals.draw_codes` draws them, hardly ever leave a wrong choice of atoms.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from pluri.engine.compiled import compiled
from pluri.factors.dictionaries._code_kernels import is_on

#: What is left of the variance along an atom that is in use: below the one C^-1 is made anew, at least the other.
SAFE_REST, SMALLEST_REST = 1e-5, 1e-15


class MeasuredRows(NamedTuple):
    """Measurements (n_rows, n), and atoms as they are measured, (n_rows or 1, K, n)."""

    values: Any
    atoms: Any


class RowPrior(NamedTuple):
    """Log odds (n_groups, K), group of each row (n_rows,), variance of the noise, and of the weights (n_groups, K)."""

    log_odds: Any
    group: Any
    noise: Any
    weight: Any


class RowDraws(NamedTuple):
    """Uniform numbers (n_rows, K) and (n_rows, n_exchanges, 2), and normal ones (n_rows, K) and (n_rows, n)."""

    uniforms: Any
    exchanges: Any
    weights: Any
    noise: Any


class RowCodes(NamedTuple):
    """Atoms in use, their weights, and what these are expected to be given the atoms: (n_rows, K) each."""

    used: Any
    weights: Any
    expected: Any


class Room(NamedTuple):
    """Room for one row: C^-1 (n, n), S and Q (K,), a vector (n,), and another (K,)."""

    inverse: Any
    strength: Any
    quality: Any
    direction: Any
    chances: Any


@compiled(inner=True)
def change_atom(k, variance, phi, room):
    """Change `room`: C grows by `variance` times the outer product of atom k; a negative one takes it out."""
    inverse, strength, quality, direction, _ = room
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
    inverse, strength, quality, _, _ = room
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
            change_atom(k, weight[k], phi, room)


@compiled(inner=True)
def take_out(k, y, phi, used, noise, weight, room):
    """Change `used` and `room`: atom k leaves. An atom that explains all but a trace is not subtracted again."""
    used[k] = 0
    if 1.0 - weight[k] * room.strength[k] < SAFE_REST:
        begin_row(y, phi, used, noise, weight, room)
    else:
        change_atom(k, -weight[k], phi, room)


@compiled(inner=True)
def exchange_atom(y, phi, used, log_odds, variances, uniforms, room):
    """Change `used` and `room`: one atom in use, any of them, leaves, and one joins; `uniforms` are two numbers."""
    strength, quality, chances = room.strength, room.quality, room.chances
    noise, weight = variances
    K = len(used)
    count = 0
    for k in range(K):
        count += used[k]
    if count == 0:
        return
    leaving, left = 0, int(uniforms[0] * count)
    for k in range(K):
        if used[k] == 1:
            if left == 0:
                leaving = k
            left -= 1
    take_out(leaving, y, phi, used, noise, weight, room)
    highest = -math.inf
    for k in range(K):
        if used[k] == 0:
            growth = 1.0 + weight[k] * strength[k]
            chances[k] = log_odds[k] + 0.5 * (weight[k] * quality[k] * quality[k] / growth - math.log(growth))
            highest = max(highest, chances[k])
    total = 0.0
    for k in range(K):
        if used[k] == 0:
            chances[k] = math.exp(chances[k] - highest)
            total += chances[k]
    threshold = uniforms[1] * total
    joining, passed = leaving, 0.0
    for k in range(K):
        if used[k] == 0 and chances[k] > 0.0:
            joining = k
            passed += chances[k]
            if passed > threshold:
                break
    used[joining] = 1
    change_atom(joining, weight[joining], phi, room)


@compiled(inner=True)
def draw_weights(y, phi, used, variances, normals, weights, room):
    """Change `weights`: draw those of the atoms in use, zero for the others; `variances` and `normals` are pairs."""
    inverse, _, _, direction, _ = room
    (noise, weight), (of_weights, of_noise) = variances, normals
    K, n = phi.shape
    for p in range(n):
        direction[p] = y[p] - math.sqrt(noise) * of_noise[p]
    for k in range(K):
        weights[k] = 0.0
        if used[k] == 1:
            weights[k] = math.sqrt(weight[k]) * of_weights[k]
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
            weights[k] += weight[k] * total


@compiled(reorder=True)
def draw_measured_codes(rows, prior, draws, codes, room):
    """Change codes: draw those of all rows, and what their weights are expected to be given the atoms in use."""
    values, atoms = rows
    log_odds, group, noise, variances = prior
    uniforms, exchanges, of_weights, of_noise = draws
    used, weights, expected = codes
    strength, quality = room.strength, room.quality
    own = 1 if atoms.shape[0] > 1 else 0
    n_rows, K = used.shape
    for i in range(n_rows):
        phi, y, z = atoms[i * own], values[i], used[i]
        weight = variances[group[i]]
        begin_row(y, phi, z, noise, weight, room)
        for k in range(K):
            # With the atom in C, 1 + v S without it is one over this, and Q without it is Q over this.
            rest = 1.0 - weight[k] * strength[k] if z[k] == 1 else 1.0 / (1.0 + weight[k] * strength[k])
            rest = max(rest, SMALLEST_REST)
            square = weight[k] * quality[k] * quality[k]
            gain = square / rest if z[k] == 1 else square * rest
            on = is_on(log_odds[group[i], k] + 0.5 * (gain + math.log(rest)), uniforms[i, k])
            if on and z[k] == 0:
                z[k] = 1
                change_atom(k, weight[k], phi, room)
            elif not on and z[k] == 1:
                take_out(k, y, phi, z, noise, weight, room)
        for exchange in range(exchanges.shape[1]):
            exchange_atom(y, phi, z, log_odds[group[i]], (noise, weight), exchanges[i, exchange], room)
        for k in range(K):
            expected[i, k] = weight[k] * quality[k] if z[k] == 1 else 0.0
        draw_weights(y, phi, z, (noise, weight), (of_weights[i], of_noise[i]), weights[i], room)
