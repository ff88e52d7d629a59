"""Categories and codes: columns of whole numbers or strings as sparse rows with one 1 for each value that is there.

Column f with V_f categories owns the places ``offset_f .. offset_f + V_f`` of a row; a missing value (NaN, None) or, by
request, one that is not among the categories, has no 1 in its column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pluri.validation import check_width

Integers = NDArray[np.int64]

UNSEEN = ("new", "missing", "error")
#: Largest whole number that a float64 holds exactly.
LARGEST = 2**53


@dataclass(frozen=True)
class Categories:
    """What the columns may hold.

    Attributes
    ----------
    values : categories of each column, whole numbers or strings, in the order of their codes
    unseen : "error" or "missing": what to do with a value that is not among them; "new" refuses it in `encode`, as
        nothing can be learnt about it, and counts it in `encode_with_new`
    """

    values: tuple[NDArray[Any], ...]
    unseen: str = "error"

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of categories of each column."""
        return tuple(len(known) for known in self.values)

    def encode(self, X: NDArray[Any]) -> Any:
        """One-hot rows of X: a CSR array (n_samples, sum(sizes))."""
        rows, new = self.encode_with_new(X)
        if self.unseen != "missing" and new.any():
            row, column = (int(places[0]) for places in np.nonzero(new))
            value = column_values(X[row : row + 1, column], column)[0][0].item()
            raise ValueError(
                f"X must hold known categories in column {column}, got {value!r}; name it in categories, or set "
                "unseen='missing'"
            )
        return rows

    def encode_with_new(self, X: NDArray[Any]) -> tuple[Any, NDArray[np.bool_]]:
        """One-hot rows of X, and which values are there but not among the categories: (n_samples, n_features)."""
        check_width(X, len(self.values))
        codes, new = np.empty(X.shape, dtype=np.int32), np.empty(X.shape, dtype=bool)
        offset = 0
        for f, known in enumerate(self.values):
            column, new[:, f] = self._codes(X[:, f], f)
            codes[:, f] = np.where(column >= 0, column + offset, -1)
            offset += len(known)
        present = codes >= 0
        ends = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
        indices = codes[present]
        rows = sparse.csr_array((np.ones(len(indices)), indices, ends), shape=(len(X), offset))
        rows.has_canonical_format = True
        return rows, new

    def decode(self, column: int, codes: Integers) -> NDArray[Any]:
        """Values of one column from its own codes 0 .. V-1."""
        return np.asarray(self.values[column][codes])

    def _codes(self, column: NDArray[Any], number: int) -> tuple[Integers, NDArray[np.bool_]]:
        """Codes of a column, -1 for none, and where a value is that has none."""
        known = self.values[number]
        values, missing = column_values(column, number)
        if values.dtype.kind != known.dtype.kind and not missing.all():
            kinds = {"i": "whole numbers", "U": "strings"}
            raise ValueError(
                f"X must hold {kinds[known.dtype.kind]} in column {number}, like its categories, got "
                f"{kinds[values.dtype.kind]}"
            )
        order = np.argsort(known, kind="stable")
        places = order[np.minimum(np.searchsorted(known, values, sorter=order), len(known) - 1)]
        found = (known[places] == values) & ~missing
        return np.where(found, places, -1), ~found & ~missing


def learn_categories(X: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Sorted values of each column; empty for a column in which all are missing."""
    learned = []
    for f in range(X.shape[1]):
        values, missing = column_values(X[:, f], f)
        learned.append(np.unique(values[~missing]))
    return tuple(learned)


def joined_categories(first: Sequence[NDArray[Any]], second: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], ...]:
    """Sorted values that occur in either of two batches."""
    joined = []
    for f, (one, other) in enumerate(zip(first, second, strict=True)):
        if len(one) and len(other) and one.dtype.kind != other.dtype.kind:
            raise ValueError(f"X must hold whole numbers or strings in column {f}, not both")
        joined.append(np.union1d(one, other) if len(one) and len(other) else one if len(one) else other)
    return tuple(joined)


def given_categories(categories: Any, n_features: int) -> tuple[NDArray[Any], ...]:
    """The user's list of categories, checked: one array of distinct whole numbers or strings for each column."""
    try:
        columns = [np.asarray(column) for column in categories]
    except (TypeError, ValueError) as error:
        raise ValueError(f"categories must be None or a list of arrays, got {categories!r}") from error
    if len(columns) != n_features:
        raise ValueError(f"categories must have one array for each of {n_features} columns, got {len(columns)}")
    known = []
    for f, column in enumerate(columns):
        if column.ndim != 1 or column.size == 0:
            raise ValueError(f"categories must be one-dimensional and not empty, got {column!r} for column {f}")
        values, missing = column_values(column, f, "categories")
        if missing.any() or len(np.unique(values)) < len(values):
            raise ValueError(f"categories must be distinct and present, got {column!r} for column {f}")
        known.append(values)
    return tuple(known)


def column_values(column: NDArray[Any], number: int, name: str = "X") -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values of a column as int64 or str, with anything where they are missing, and where that is."""
    if column.dtype.kind in "US":
        return column.astype(str), np.zeros(len(column), dtype=bool)
    if column.dtype.kind == "O":
        return _object_values(column, number, name)
    if column.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold whole numbers or strings in column {number}, got {column.dtype}")
    missing = np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)
    values = np.where(missing, 0, column)
    if values.dtype.kind == "f":
        if np.isinf(values).any():
            raise ValueError(f"{name} must hold finite values in column {number}, got infinity")
        if (values != np.floor(values)).any() or np.abs(values).max(initial=0.0) > LARGEST:
            wrong = values[(values != np.floor(values)) | (np.abs(values) > LARGEST)][0]
            raise ValueError(
                f"{name} must hold whole numbers or strings in column {number}, got {wrong}; cut real numbers into "
                "classes first"
            )
    elif values.dtype.kind == "u" and values.max(initial=0) > LARGEST:
        raise ValueError(f"{name} must hold whole numbers up to 2^53 in column {number}, got {values.max()}")
    return values.astype(np.int64), missing


def _object_values(column: NDArray[Any], number: int, name: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    missing = np.array([_is_missing(value) for value in column], dtype=bool)
    present = column[~missing]
    if all(isinstance(value, str) for value in present):
        return np.where(missing, "", column).astype(str) if len(present) else np.zeros(len(column), np.int64), missing
    for value in present:
        if not isinstance(value, (Real, np.bool_)):
            both = isinstance(value, str)
            raise ValueError(
                f"{name} must hold whole numbers or strings in column {number}, "
                f"{'not both' if both else f'got a {type(value).__name__}'}"
            )
    numbers = np.where(missing, np.nan, column).astype(np.float64)
    return column_values(numbers, number, name)[0], missing


def _is_missing(value: Any) -> bool:
    """None, NaN or one of pandas' missing values."""
    return (
        value is None
        or (isinstance(value, (float, np.floating)) and bool(value != value))
        or type(value).__name__ in ("NAType", "NaTType")
    )
