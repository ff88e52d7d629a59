"""Rows of whatever a model learns from: arrays, sparse matrices, data frames, lists of texts or of sequences."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse, vstack
from sklearn.utils import _safe_indexing

Indices = NDArray[np.int64]


def count_rows(X: Any, name: str = "X_pool") -> int:
    """The number of rows; an error for what has none."""
    shape = getattr(X, "shape", None)
    if shape is None and not hasattr(X, "__len__"):
        raise ValueError(f"{name} must be rows, as an array, matrix, data frame or list, got {type(X).__name__}")
    if shape is not None and len(shape) == 0:
        raise ValueError(f"{name} must be rows, got a single number")
    return int(shape[0]) if shape is not None else len(X)


def indexable(X: Any) -> Any:
    """X such that rows can be taken: sparse matrices by rows, other sequences as lists."""
    if issparse(X):
        return X.tocsr()
    if hasattr(X, "__array__") and not hasattr(X, "shape"):
        return np.asarray(X)
    return list(X) if isinstance(X, tuple) else X


def take(X: Any, rows: ArrayLike) -> Any:
    """Some rows of X, as the same kind of thing."""
    return _safe_indexing(X, np.asarray(rows, dtype=np.int64))


def join(first: Any, second: Any) -> Any:
    """The rows of both, as the kind of thing that the first is."""
    if issparse(first) or issparse(second):
        return vstack([csr_array(first), csr_array(second)], format="csr")
    if hasattr(first, "iloc"):
        import pandas

        if not hasattr(second, "iloc"):
            labels = {"columns": first.columns} if hasattr(first, "columns") else {"name": first.name}
            second = type(first)(second, **labels)
        return pandas.concat([first, second], ignore_index=True)
    if hasattr(first, "iter_rows") and hasattr(second, "iter_rows"):  # Polars
        return first.vstack(second)
    if isinstance(first, list) and isinstance(second, list):
        return first + second
    return np.concatenate([np.asarray(first), np.asarray(second)])


def first_missing(X: Any) -> int | None:
    """The first row of an array, matrix or frame of numbers with a missing value."""
    if issparse(X):
        csr = X.tocsr()
        wrong = np.flatnonzero(np.isnan(csr.data)) if csr.data.dtype.kind == "f" else np.empty(0, dtype=int)
        return int(np.searchsorted(csr.indptr, wrong[0], side="right") - 1) if wrong.size else None
    if hasattr(X, "isna"):
        missing = np.asarray(X.isna())
    else:
        array = X if isinstance(X, np.ndarray) else None
        if array is None or array.dtype.kind != "f":
            return None
        missing = np.isnan(array)
    found = np.flatnonzero(missing.reshape(len(missing), -1).any(axis=1))
    return int(found[0]) if found.size else None


def row_prints(X: Any) -> list[bytes]:
    """A short digest of each row: equal rows have equal ones."""
    if issparse(X):
        csr = csr_array(X, copy=True)
        csr.sum_duplicates()
        csr.eliminate_zeros()
        ends = csr.indptr
        parts = [
            csr.indices[a:b].astype(np.int64).tobytes() + csr.data[a:b].astype(np.float64).tobytes()
            for a, b in pairwise(ends)
        ]
    elif hasattr(X, "iloc"):
        parts = [repr(row).encode() for row in (X.itertuples(index=False, name=None) if X.ndim == 2 else X)]
    elif hasattr(X, "iter_rows"):  # a frame of Polars, which is a sequence of columns
        parts = [repr(row).encode() for row in X.iter_rows()]
    elif isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        parts = [(row + 0.0).astype(np.float64).tobytes() for row in X]  # -0.0 is 0.0
    else:
        parts = [row.tobytes() if isinstance(row, np.ndarray) else repr(row).encode() for row in X]
    return [hashlib.blake2b(part, digest_size=16).digest() for part in parts]


def fingerprint(X: Any) -> str:
    """A digest of all rows in their order."""
    return hashlib.blake2b(b"".join(row_prints(X)), digest_size=16).hexdigest()


def check_disjoint(X_pool: Any, X_eval: Any) -> None:
    """Refuse rows to evaluate by that are also in the pool: what is learned from must not be judged by."""
    known = {print: row for row, print in enumerate(row_prints(X_pool))}
    shared = [row for row, print in enumerate(row_prints(X_eval)) if print in known]
    if shared:
        raise ValueError(
            f"X_eval must have no row that is also in X_pool, got {len(shared)} of {count_rows(X_eval)}, the first is "
            f"row {shared[0]}; rows that are equal but not the same item are allowed with check_rows=False"
        )
