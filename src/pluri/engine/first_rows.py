"""A look at the data before the first sweep: rows to choose starting values from, and a checksum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.engine.batches import Source

#: Rows looked at to choose starting values when the data do not fit in memory.
MAX_INITIAL_ROWS = 200_000


def initial_rows(source: Source, prepare: Callable[[Any], Any]) -> Any:
    """The first rows of the data, up to `MAX_INITIAL_ROWS`, spread over the batches if one batch is longer."""
    return weighted_initial_rows(source, prepare)[0]


def weighted_initial_rows(source: Source, prepare: Callable[[Any], Any]) -> tuple[Any, NDArray[np.float64] | None]:
    """The rows of `initial_rows`, without those of weight zero, and their weights (None if all are one)."""
    parts: list[Any] = []
    weights: list[NDArray[np.float64]] = []
    weighted = False
    n_rows = 0
    for lazy in source.batches():
        batch = lazy.load()
        X, weight = batch.X, np.ones(batch.n_samples)
        if batch.weight is not None:
            weight = batch.weight if batch.lengths is None else np.repeat(batch.weight, batch.lengths)
            weighted = True
            if not (weight > 0).all():  # what does not count should not be started from
                X, weight = X[weight > 0], weight[weight > 0]
        if X.shape[0] == 0:
            continue
        if X.shape[0] > MAX_INITIAL_ROWS:
            step = -(-X.shape[0] // MAX_INITIAL_ROWS)
            X, weight = X[::step], weight[::step]
        if parts and X.shape[1] != parts[0].shape[1]:
            raise ValueError(f"X must have the same features in all batches, got {parts[0].shape[1]} and {X.shape[1]}")
        parts.append(prepare(X))
        weights.append(weight)
        n_rows += X.shape[0]
        if n_rows >= MAX_INITIAL_ROWS:
            break
    rows = parts[0] if len(parts) == 1 else sparse.vstack(parts, "csr") if sparse.issparse(parts[0]) else None
    if rows is None:
        rows = np.concatenate(parts)
    return rows, np.concatenate(weights) if weighted else None


def digest(source: Source) -> str:
    """A checksum of (up to `MAX_INITIAL_ROWS` rows of each batch of) the data, to tell one data set from another."""
    checksum = 0
    for lazy in source.batches():
        batch = lazy.load()
        rows = batch.X[:: -(-max(batch.n_samples, 1) // MAX_INITIAL_ROWS)]
        for content in _contents(rows):
            checksum = crc32(content, crc32(repr(batch.offsets.tolist()).encode(), checksum))
        for extra in (batch.weight, batch.labels):
            checksum = checksum if extra is None else crc32(extra.tobytes(), checksum)
    return f"{checksum:08x}"


def _contents(rows: Any) -> list[bytes]:
    if sparse.issparse(rows):
        return [np.ascontiguousarray(part).tobytes() for part in (rows.indptr, rows.indices, rows.data)]
    return [repr(rows.tolist()).encode() if rows.dtype.kind == "O" else np.ascontiguousarray(rows).tobytes()]
