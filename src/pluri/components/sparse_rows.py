"""Sparse rows as the component families read them: CSR, in order, without ever being made dense."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.components import _sparse_kernels as kernels
from pluri.engine.aligned import padded_width
from pluri.validation import check_width, plain_array

Array = NDArray[np.float64]


def canonical_rows(X: Any) -> Any:
    """A CSR array of finite float64 without duplicate entries or stored zeros; X itself if it is one."""
    rows = X if isinstance(X, sparse.csr_array) else sparse.csr_array(X)  # sums of a matrix would be matrices
    if not np.isfinite(rows.data).all():
        raise ValueError(
            "X must hold finite values when it is sparse, got NaN or infinity; a missing value needs a dense array"
        )
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    # One type of index: every other one would compile the loops again.
    index = np.int32 if max(rows.nnz, *rows.shape) < 2**31 else np.int64
    if (rows.data == 0).any():
        rows = rows.copy()
        rows.eliminate_zeros()
    parts = (plain_array(rows.data), plain_array(rows.indices, index), plain_array(rows.indptr, index))
    if rows.data is parts[0] and rows.indices is parts[1] and rows.indptr is parts[2]:
        return rows
    return _matrix(parts, rows.shape)


def mapped_values(X: Any, values: Array) -> Any:
    """A CSR array with the pattern of X and other values."""
    return _matrix((values, X.indices, X.indptr), X.shape)


def _matrix(parts: tuple[NDArray[Any], ...], shape: tuple[int, ...]) -> Any:
    matrix = sparse.csr_array(parts, shape=shape)
    matrix.has_canonical_format = True
    return matrix


def padded_table(values: Array, fill: float = 0.0) -> Array:
    """Values (k, D) of components and features as a table (D, padded width)."""
    k, n_features = values.shape
    table = np.full((n_features, padded_width(k)), fill)
    table[:, :k] = values.T
    return table


def look_up(X: Any, table: Array, base: Array, out: Array) -> None:
    """``out[:, :k] = base + X @ table``; columns beyond those of `base` (k,) become minus infinity."""
    check_width(X, len(table))
    padded = np.full(out.shape[1], -np.inf)
    padded[: len(base)] = base
    kernels.look_up(X.indptr, X.indices, X.data, table, padded, out)


def sparse_sums(X: Any, posterior: Array, n_components: int) -> Array:
    """``posterior.T @ X``: (n_components, n_features)."""
    sums = np.zeros((X.shape[1], posterior.shape[1]))
    kernels.scatter(X.indptr, X.indices, X.data, np.ascontiguousarray(posterior), sums)
    return sums[:, :n_components].T
