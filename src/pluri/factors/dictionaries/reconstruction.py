"""Codes of rows given a dictionary, and the rows without noise: a short chain for each row.

All rows use the same random numbers, so that what comes out for a row does not depend on the others. A code is the mean
over the sweeps of what it was expected to be just before each draw, which varies less than the draws.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pluri.factors.dictionaries._code_kernels import CodePrior, CodeState
from pluri.factors.dictionaries.conditionals import draw_codes
from pluri.factors.dictionaries.records import Array, Rows

#: Sweeps before those that count.
N_SETTLE = 10


class KnownDictionary(NamedTuple):
    """What codes of new rows are inferred with.

    `components` is (n_components, n_features), `log_odds` (n_components,), and the precisions are numbers.
    """

    components: Array
    log_odds: Array
    noise_precision: float
    weight_precision: float


class InferredCodes(NamedTuple):
    """Means of the codes, (n_samples, n_components)."""

    mean: Array


def infer_codes(rng: np.random.Generator, rows: Rows, known: KnownDictionary, n_sweeps: int) -> InferredCodes:
    """Codes of rows given a dictionary."""
    n, K = len(rows.values), len(known.components)
    weights, used = np.zeros((n, K)), np.zeros((n, K), dtype=np.int8)
    prior = CodePrior(
        known.log_odds[None], np.zeros(n, dtype=np.intp), np.full(n, known.noise_precision),
        float(known.weight_precision), True,
    )  # fmt: skip
    total = np.zeros((n, K))
    for sweep in range(-N_SETTLE, n_sweeps):
        codes = CodeState(weights, used, total if sweep >= 0 else total[:0])
        draw_codes(rng, rows.values, known.components, prior, codes, observed=rows.observed, shared=True)
    return InferredCodes(total / n_sweeps)
