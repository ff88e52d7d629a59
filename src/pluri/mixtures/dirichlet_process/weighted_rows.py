"""Rows in an order of their own, so that results depend neither on the order of the data nor on how copies are told."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from pluri.processes.conjugate_clusters.records import Array, Integers

#: More copies than this are a mistake.
MOST_COPIES = 10_000_000


def refuse_missing(data: Any) -> None:
    """Say what to do about NaN, which squares of distances and counts have no place for."""
    missing = np.isnan(data.data if sparse.issparse(data) else data)
    if missing.any():
        raise ValueError(
            f"X must not contain NaN, got {int(missing.sum())} of them: leave out the rows that have any, or fill them "
            "in first, for example with sklearn.impute.SimpleImputer"
        )


def check_row_weights(sample_weight: ArrayLike | None, n_samples: int) -> Array:
    """A finite weight of at least zero for each row, some of it positive; ones if none are given."""
    if sample_weight is None:
        return np.ones(n_samples)
    weights = np.asarray(sample_weight, dtype=np.float64)
    weights = np.full(n_samples, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},), got {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError("sample_weight must be finite and not negative, got other values")
    if not weights.any():
        raise ValueError("sample_weight must have a positive weight, got only weights of zero")
    return weights


def row_order(data: Any) -> tuple[Integers, NDArray[np.bool_]]:
    """Order of the rows by their content, and which rows, in that order, differ from the one before."""
    n = data.shape[0]
    if sparse.issparse(data):
        canonical = sparse.csr_matrix(data)
        canonical.sort_indices()
        start, column, value = canonical.indptr, canonical.indices.astype(np.int64), canonical.data
        keys = [column[begin:end].tobytes() + b"|" + value[begin:end].tobytes() for begin, end in pairwise(start)]
        order = np.array(sorted(range(n), key=keys.__getitem__), dtype=np.int64)
        differs = [keys[b] != keys[a] for a, b in pairwise(order)]
        return order, np.array([True, *differs])
    rows = np.ascontiguousarray(data, dtype=np.float64) + 0.0  # no negative zeros
    order = np.argsort(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel(), kind="stable")
    there = rows[order]
    return order, np.append(True, (there[1:] != there[:-1]).any(axis=1))


def copies(weights: Array) -> Integers:
    """Index of each row as many times as its weight says, which must be whole."""
    if not (weights == np.rint(weights)).all() or weights.sum() > MOST_COPIES:
        raise ValueError(
            f"sample_weight must hold whole numbers that sum to at most {MOST_COPIES} for a sampler, which sees a row "
            "or does not; use inference='vb' for others"
        )
    return np.repeat(np.arange(len(weights)), weights.astype(np.int64))


def merged(data: Any, weights: Array) -> tuple[Any, Array]:
    """Distinct rows of positive weight, ordered, with the weights of their copies summed."""
    kept = np.flatnonzero(weights > 0)
    order, differs = row_order(data[kept])
    order = kept[order]
    group = np.cumsum(differs) - 1
    return data[order[differs]], np.asarray(np.bincount(group, weights=weights[order]), dtype=np.float64)
