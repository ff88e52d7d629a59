"""Counts at a glance, before they are fitted: which occur, how many there are, and whether they are counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Source

Array = NDArray[np.float64]

#: Largest count for whose values there is a table.
MOST_COUNTS = 5000


@dataclass(frozen=True, eq=False)
class Survey:
    """Per neuron (N,) the weight of the values seen and their weighted sum, which counts occur (N, K + 1), and the
    lengths of the sequences that are not empty.
    """

    n_seen: Array
    total: Array
    occurs: NDArray[np.bool_]
    lengths: NDArray[np.int64]


def check_missing_counts(X: NDArray[Any]) -> NDArray[Any]:
    """Refuse negative, fractional and infinite counts; NaN is a missing one."""
    seen = X[~np.isnan(X)]
    wrong = seen[~((seen >= 0) & (seen == np.floor(seen)) & np.isfinite(seen))]
    if wrong.size:
        hint = ": Negative values in data" if wrong[0] < 0 else ""
        raise ValueError(f"X must hold counts 0, 1, 2, ... or NaN where one is missing, got {wrong[0]:g}{hint}")
    return X


def survey_of(source: Source) -> Survey:
    """One pass over the data."""
    n_seen: Array | None = None
    total = largest = np.zeros(0)
    occurs: list[NDArray[np.bool_]] = []
    lengths: list[NDArray[np.int64]] = []
    for lazy in source.batches():
        batch = lazy.load()
        X = check_missing_counts(np.asarray(batch.X))
        kept = np.asarray(batch.lengths)
        weight = np.ones(len(kept)) if batch.weight is None else batch.weight
        X, kept, weight = X[np.repeat(weight > 0, kept)], kept[weight > 0], weight[weight > 0]
        by_row = np.repeat(weight, kept)
        seen = ~np.isnan(X)
        largest = np.where(seen, X, 0.0).max(axis=0, initial=0.0)
        if n_seen is None:
            n_seen, total = np.zeros(X.shape[1]), np.zeros(X.shape[1])
        n_seen, total = n_seen + by_row @ seen, total + by_row @ np.where(seen, X, 0.0)
        if largest.max(initial=0.0) > MOST_COUNTS:
            raise ValueError(f"X must hold counts up to {MOST_COUNTS}, got {largest.max():g}: count in shorter bins")
        width = int(largest.max(initial=0.0)) + 1
        present = np.zeros((X.shape[1], width), dtype=bool)
        rows, columns = np.nonzero(seen)
        present[columns, X[rows, columns].astype(np.int64)] = True
        occurs.append(present)
        lengths.append(kept[kept > 0])
    if n_seen is None:
        raise ValueError("X must hold at least one batch, got an empty source")
    width = max(one.shape[1] for one in occurs)
    union = np.zeros((len(n_seen), width), dtype=bool)
    for one in occurs:
        union[:, : one.shape[1]] |= one
    return Survey(n_seen, total, union, np.concatenate(lengths))
