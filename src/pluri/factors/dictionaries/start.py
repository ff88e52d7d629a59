"""Where a sampler of a dictionary begins: principal axes, a draw of the prior, or atoms that are given.

No row uses any atom in the beginning, and more than all of the data passes for noise: atoms are then taken into use one
by one, as they are needed. Where all rows use all principal axes at first, as published, or the noise is small, a chain
is long in finding few atoms to do with. Atoms that are given would be lost in so much noise, and begin with less.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from pluri.factors.dictionaries.records import Array, DictionaryState, Floats, Rows
from pluri.factors.dictionaries.usage.protocol import UsagePrior

#: Variance of the noise in the beginning, as a multiple of that of the data: with atoms to be found, and to be kept.
NOISE_RATIO, KEPT_RATIO = 4.0, 0.1
#: Atoms of unit length that have the variance of a row together in the beginning.
ATOMS = 10


class Earlier(NamedTuple):
    """What an earlier fit found, in the units of the rows: atoms and the precisions of noise and weights."""

    components: Array
    noise_precision: float
    weight_precision: float


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
    init : {"svd", "prior"}, array of shape (n_components, n_features), or Earlier
        Principal axes, and then atoms of the prior; only the latter; atoms that are given; or an earlier fit.

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
        atoms = np.asarray(init.components if isinstance(init, Earlier) else init, dtype=np.float64)
    ratio = NOISE_RATIO if isinstance(init, str) else KEPT_RATIO
    noise, precision = 1 / (ratio * variance), ATOMS / (P * variance)
    if isinstance(init, Earlier):
        noise, precision = init.noise_precision, init.weight_precision
    each = np.full(rows.n_noise_groups, noise)
    return DictionaryState(atoms.astype(dtype), weights, used, each, precision, usage.start(used, rng))


def principal_axes(values: Floats) -> Floats:
    """Directions of the largest sums of squares, (at most n_features, n_features), those of nothing left out."""
    squares, axes = np.linalg.eigh((values.T @ values).astype(np.float64))
    kept = squares[::-1] > 1e-10 * max(squares[-1], 1e-300)
    return np.ascontiguousarray(axes.T[::-1][kept], dtype=values.dtype)
