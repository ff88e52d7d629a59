"""Rows given a dictionary: their codes, what they are without noise and how sure that is, and how likely they are.

Codes come from a short chain for each row. All rows use the same random numbers, so that what comes out for a row does
not depend on the others. A code is the mean over the sweeps of what it was expected to be just before each draw, which
varies less than the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pluri.factors.dictionaries._bound_kernels import bound_rows
from pluri.factors.dictionaries._code_kernels import CodePrior, CodeState
from pluri.factors.dictionaries.conditionals import draw_codes
from pluri.factors.dictionaries.records import Array, Rows
from pluri.validation import plain_array

#: Sweeps before those that count.
N_SETTLE = 10


class KnownDictionary(NamedTuple):
    """What rows are seen with.

    `components` is (n_components, n_features), `log_odds` (n_components,), and the precisions are numbers.
    """

    components: Array
    log_odds: Array
    noise_precision: float
    weight_precision: float


class InferredRows(NamedTuple):
    """Means of the codes, (n_samples, n_components); standard deviations of the rows without noise, or None."""

    codes: Array
    std: Array | None


def infer_codes(
    rng: np.random.Generator, rows: Rows, known: KnownDictionary, n_sweeps: int, *, with_std: bool = False
) -> InferredRows:
    """Codes of rows given a dictionary."""
    n, K = len(rows.values), len(known.components)
    atoms = plain_array(known.components)
    weights, used = np.zeros((n, K)), np.zeros((n, K), dtype=np.int8)
    prior = CodePrior(
        known.log_odds[None], np.zeros(n, dtype=np.intp), np.full(n, known.noise_precision),
        float(known.weight_precision), True,
    )  # fmt: skip
    codes, values, squares = np.zeros((n, K)), 0.0, 0.0
    for sweep in range(-N_SETTLE, n_sweeps):
        state = CodeState(weights, used, codes if sweep >= 0 else codes[:0])
        draw_codes(rng, rows.values, atoms, prior, state, observed=rows.observed, shared=True)
        if with_std and sweep >= 0:
            drawn = weights @ atoms
            values, squares = values + drawn, squares + drawn**2
    std = np.sqrt(np.maximum(squares - values**2 / n_sweeps, 0.0) / max(n_sweeps - 1, 1)) if with_std else None
    return InferredRows(codes / n_sweeps, std)


def log_density_bounds(rows: Rows, known: KnownDictionary) -> Array:
    """Lower bounds of the log densities of rows, (n_samples,): the mean-field bound of each."""
    there = np.ones_like(rows.values) if rows.observed is None else rows.observed.astype(np.float64)
    bounds, work = np.empty(len(rows.values)), np.empty((len(known.components), 3))
    bound_rows(
        rows.values.astype(np.float64), plain_array(known.components), there, plain_array(known.log_odds),
        float(known.noise_precision), float(known.weight_precision), work, bounds,
    )  # fmt: skip
    return bounds
