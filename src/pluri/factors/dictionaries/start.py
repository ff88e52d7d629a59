"""Where a sampler of a dictionary begins: a draw of the prior, principal axes, or atoms that are given.

No row uses any atom in the beginning, whatever they are: where all rows use all principal axes, as published, a chain
of 40 sweeps on 5,000 patches of pictures still has twice the atoms per row (`benchmarks/peers/dictionaries.py starts`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pluri.factors.dictionaries.records import DictionaryState, Floats, Rows
from pluri.factors.dictionaries.usage.protocol import UsagePrior

#: Share of the variance that counts as noise in the beginning.
NOISE_SHARE = 0.1
#: Atoms of unit length that have the variance of a row together in the beginning.
ATOMS = 10


def start_dictionary(
    rng: np.random.Generator, rows: Rows, usage: UsagePrior, n_components: int, init: Any = "svd"
) -> DictionaryState:
    """Position to begin with.

    Parameters
    ----------
    rng : Generator
    rows : Rows
    usage : UsagePrior
    n_components : int
    init : {"prior", "svd"} or array of shape (n_components, n_features)
        Atoms of the prior; principal axes first, and then atoms of the prior; or atoms that are given.

    Returns
    -------
    DictionaryState
    """
    n, P = rows.values.shape
    dtype = rows.values.dtype
    atoms = rng.standard_normal((n_components, P)) / math.sqrt(P)
    weights = np.zeros((n, n_components), dtype=dtype)
    used = np.zeros((n, n_components), dtype=np.int8)
    variance = max(float((rows.values**2).sum() / max(rows.n_observed.sum(), 1)), 1e-10)
    if isinstance(init, str) and init == "svd":
        axes = principal_axes(rows.values)[:n_components]
        atoms[: len(axes)] = axes
    elif not isinstance(init, str):
        atoms = np.asarray(init, dtype=np.float64)
    noise = np.full(rows.n_noise_groups, 1 / (NOISE_SHARE * variance))
    return DictionaryState(atoms.astype(dtype), weights, used, noise, ATOMS / (P * variance), usage.start(used, rng))


def principal_axes(values: Floats) -> Floats:
    """Directions of the largest sums of squares, (at most n_features, n_features), those of nothing left out."""
    squares, axes = np.linalg.eigh((values.T @ values).astype(np.float64))
    kept = squares[::-1] > 1e-10 * max(squares[-1], 1e-300)
    return np.ascontiguousarray(axes.T[::-1][kept], dtype=values.dtype)
