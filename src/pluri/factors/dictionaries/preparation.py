"""From what a user gives to the rows that a dictionary is learned from: centred, of unit size, with groups of noise.

Rows are divided by one number, the root of their mean square, so that priors mean the same for pictures from 0 to 1 and
from 0 to 255, and single precision is enough.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.factors.dictionaries.records import Array, Floats, Rows

#: Numbers larger than this, or smaller than one over it, could not be squared and summed.
LARGEST = 1e100


class Prepared(NamedTuple):
    """Rows, and what was taken from them: ``X = values * scale + center``.

    `center` is (n_samples, 1) or (n_features,); `noise_labels` are the names of the groups of noise, or None.
    """

    rows: Rows
    center: Array
    scale: float
    noise_labels: NDArray[Any] | None


def prepare(
    X: Array, *, center: str | None, dtype: Any, noise_type: str = "shared", noise_groups: ArrayLike | None = None,
    locations: ArrayLike | None = None,
) -> Prepared:  # fmt: skip
    """Rows to learn from; ValueError if a row has no value at all, or labels and locations do not fit."""
    check_present(X)
    group, n_groups, labels = _noise_groups(len(X), noise_type, noise_groups)
    offset = center_of(X, center)
    centred = X - offset
    largest = float(np.nanmax(np.abs(X)))
    if 0.0 < largest < 1 / LARGEST:
        raise ValueError(f"X must not be smaller than {1 / LARGEST:g} in size, got at most {largest:.3g}; rescale it")
    size = math.sqrt(float(np.nanmean(centred**2)))
    if size == 0.0:
        what = "zero" if center is None else "constant"
        warnings.warn(f"X is {what}: there is nothing to learn", UserWarning, stacklevel=3)
        size = 1.0
    places = None if locations is None else _checked_locations(locations, len(X))
    rows = Rows.of(centred / size, dtype, noise_group=group, n_noise_groups=n_groups, locations=places)
    return Prepared(rows, offset, size, labels)


def check_present(X: Floats) -> None:
    """Refuse rows without any value."""
    empty = np.isnan(X).all(axis=1)
    if empty.any():
        raise ValueError(
            f"X must have at least one value in each row, got {int(empty.sum())} rows of NaN only, "
            f"the first of which is row {int(empty.argmax())}"
        )


def scaled(X: Array, offset: Array, scale: float) -> Array:
    """Further rows in the units of a fit; ValueError if they are too large for it."""
    values = (X - offset) / scale
    largest = float(np.nanmax(np.abs(values), initial=0.0))
    if not largest <= LARGEST:
        raise ValueError(f"X must not exceed {LARGEST:g} times the size of the rows fitted ({scale:.3g})")
    return values


def center_of(X: Array, center: str | None, mean: Array | None = None) -> Array:
    """What is subtracted: the mean of each row, of each feature (or `mean`, if it is known), or zero."""
    if center == "sample":
        return np.asarray(np.nanmean(X, axis=1, keepdims=True))
    if center == "feature" and mean is None:
        there = np.isfinite(X).any(axis=0)
        result = np.zeros(X.shape[1])
        result[there] = np.nanmean(X[:, there], axis=0)
        return result
    return np.zeros(X.shape[1]) if mean is None else mean


def _noise_groups(
    n: int, noise_type: str, noise_groups: ArrayLike | None
) -> tuple[NDArray[np.intp], int, NDArray[Any] | None]:
    if noise_type != "per_group" and noise_groups is not None:
        raise ValueError(f"noise_groups must be None for noise_type={noise_type!r}: use noise_type='per_group'")
    if noise_type == "shared":
        return np.zeros(n, dtype=np.intp), 1, None
    if noise_type == "per_sample":
        return np.arange(n, dtype=np.intp), n, None
    if noise_groups is None:
        raise ValueError("noise_groups must be given for noise_type='per_group': a label for each row")
    given = np.asarray(noise_groups)
    if given.shape != (n,):
        raise ValueError(f"noise_groups must have one label for each of {n} rows, got shape {given.shape}")
    labels, group = np.unique(given, return_inverse=True)
    return group.astype(np.intp), len(labels), labels


def _checked_locations(locations: ArrayLike, n: int) -> Array:
    places = np.asarray(locations, dtype=np.float64)
    places = places[:, None] if places.ndim == 1 else places
    if places.ndim != 2 or len(places) != n or not np.isfinite(places).all():
        raise ValueError(f"locations must be finite and have one row for each of {n} rows of X, got {places.shape}")
    return places
