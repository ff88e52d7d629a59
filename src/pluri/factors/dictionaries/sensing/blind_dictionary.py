"""The dictionary given codes and measurements of rows: what is drawn when it is learned without seeing a single row.

With ``y_i = S_i D' w_i + noise`` and atoms d_k ~ N(0, I / P), one atom given the others has

    precision  P I + g sum_i w_ik^2 S_i'S_i   and linear term  g sum_i w_ik S_i' r_i,

r_i being the residual without the atom. If all rows have the same S = U diag(s) V', the atoms are drawn at once: in the
coordinates V'd, of which feature j has precision ``P I + g s_j^2 W'W`` and linear term ``g s_j W' (y U)_j``. Features
beyond the rank of S never meet the data, and are drawn from the prior.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import solve_triangular

from pluri.factors.dictionaries.records import Array
from pluri.factors.dictionaries.sensing.measurements import Measurements

#: Numbers in the matrices S_i'S_i of all rows that are kept; more, and they are made anew for each atom.
MOST_KEPT = 2**26


def gram_matrices(data: Measurements) -> Array | None:
    """S_i'S_i of all rows, (n_samples, n_features^2); None if they are too many or the same for all."""
    n, P = len(data.values), data.projections.shape[-1]
    if data.shared or n * P * P > MOST_KEPT:
        return None
    return np.matmul(data.projections.transpose(0, 2, 1), data.projections).reshape(n, P * P)


def draw_dictionary(
    rng: np.random.Generator, data: Measurements, codes: Array, atoms: Array, noise: float, grams: Array | None
) -> Array:
    """Draw all atoms once, (n_components, n_features), given codes (n_samples, n_components)."""
    if data.shared:
        return _draw_shared(rng, data, codes, noise)
    found, P = atoms.copy(), atoms.shape[1]
    residuals = data.values - data.seen(codes @ atoms)
    for k in range(len(atoms)):
        users = np.flatnonzero(codes[:, k])
        if not len(users):
            found[k] = rng.standard_normal(P) / math.sqrt(P)
            continue
        weights, S = codes[users, k], data.projections[users]
        residuals[users] += weights[:, None] * (S @ found[k])
        precision, linear = atom_posterior(S, residuals[users], weights, noise, None if grams is None else grams[users])
        root = np.linalg.cholesky(precision)
        half = solve_triangular(root, linear, lower=True, check_finite=False) + rng.standard_normal(P)
        found[k] = solve_triangular(root, half, lower=True, trans="T", check_finite=False)
        residuals[users] -= weights[:, None] * (S @ found[k])
    return found


def atom_posterior(
    projections: Array, residuals: Array, weights: Array, noise: float, grams: Array | None = None
) -> tuple[Array, Array]:
    """Precision (P, P) and linear term (P,) of one atom given its weights in the rows that use it.

    `projections` (n_users, n, P), `residuals` (n_users, n) without the atom, `weights` (n_users,).
    """
    P = projections.shape[2]
    if grams is None:
        scaled = (weights[:, None, None] * projections).reshape(-1, P)
        squares = scaled.T @ scaled
    else:
        squares = (weights**2 @ grams).reshape(P, P)
    linear = (weights[:, None] * residuals).ravel() @ projections.reshape(-1, P)
    return P * np.eye(P) + noise * squares, noise * linear


def _draw_shared(rng: np.random.Generator, data: Measurements, codes: Array, noise: float) -> Array:
    """All atoms at once, where one projection measures all rows."""
    P, K = data.projections.shape[1], codes.shape[1]
    left, size, right = np.linalg.svd(data.projections, full_matrices=True)
    strength = np.zeros(P)
    strength[: len(size)] = size
    turned = np.zeros((len(codes), P))
    turned[:, : len(size)] = data.values @ left[:, : len(size)]
    # W'W = E diag(e) E': in these coordinates everything is independent.
    values, vectors = np.linalg.eigh(codes.T @ codes)
    precision = P + noise * np.outer(np.maximum(values, 0.0), strength**2)
    linear = noise * (vectors.T @ (codes.T @ turned)) * strength
    drawn = linear / precision + rng.standard_normal((K, P)) / np.sqrt(precision)
    return np.ascontiguousarray(vectors @ drawn @ right)
