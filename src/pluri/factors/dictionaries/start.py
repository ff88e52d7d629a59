"""Where a sampler of a dictionary begins: principal axes, a draw of the prior, or atoms that are given."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pluri.factors.dictionaries.records import DictionaryState, Floats, Rows
from pluri.factors.dictionaries.usage.protocol import UsagePrior

#: Share of the variance that counts as noise in the beginning.
NOISE_SHARE = 0.1


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
    init : {"svd", "prior"} or array of shape (n_components, n_features)
        "svd" begins with the principal axes, which all rows use, and with atoms of the prior that no row uses yet;
        "prior" with atoms of the prior, and an array with atoms that are given, which no row uses yet.

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
        n_axes = len(axes)
        atoms[:n_axes] = axes
        weights[:, :n_axes] = rows.values @ axes.T
        used[:, :n_axes] = 1
    elif not isinstance(init, str):
        atoms = np.asarray(init, dtype=np.float64)
    noise = np.full(rows.n_noise_groups, 1 / (NOISE_SHARE * variance))
    in_use = weights[used == 1].astype(np.float64)
    spread = float((in_use**2).mean()) if in_use.size else P * variance / 10
    return DictionaryState(atoms.astype(dtype), weights, used, noise, 1 / max(spread, 1e-10), usage.start(used, rng))


def principal_axes(values: Floats) -> Floats:
    """Directions of the largest sums of squares, (at most n_features, n_features), those of nothing left out."""
    squares, axes = np.linalg.eigh((values.T @ values).astype(np.float64))
    kept = squares[::-1] > 1e-10 * max(squares[-1], 1e-300)
    return np.ascontiguousarray(axes.T[::-1][kept], dtype=values.dtype)
