"""What models of clusters that live through several batches share: the batches, and the track of each cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

from pluri.validation import plain_array

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClusterTrack:
    """Where a cluster was, whenever it had points.

    Attributes
    ----------
    identity : int
    steps : (n_seen,)
        Numbers of the batches in which it had points.
    centers : (n_seen, n_features)
    sizes : (n_seen,)
        Numbers of points.
    """

    identity: int
    steps: Integers
    centers: Array
    sizes: Integers

    @property
    def birth(self) -> int:
        """Batch in which it was first seen."""
        return int(self.steps[0])

    @property
    def last_seen(self) -> int:
        """Batch in which it was last seen."""
        return int(self.steps[-1])


def collect_tracks(history: Iterable[Mapping[str, NDArray[Any]]]) -> dict[int, ClusterTrack]:
    """Tracks by identity, from the ``identities``, ``centers`` and ``sizes`` of the clusters seen in each batch."""
    records = list(history)
    if not records:
        return {}
    steps = np.repeat(np.arange(len(records)), [len(record["identities"]) for record in records])
    names, centers, sizes = (
        np.concatenate([record[key] for record in records]) for key in ("identities", "centers", "sizes")
    )
    order = np.argsort(names, kind="stable")
    found, starts = np.unique(names[order], return_index=True)
    pieces = np.split(order, starts[1:]) if len(found) else []
    return {int(k): ClusterTrack(int(k), steps[own], centers[own], sizes[own]) for k, own in zip(found, pieces)}


def is_list_of_batches(X: Any) -> bool:
    """Whether X is a list of matrices (or an array with three axes), instead of a matrix (or a list of rows)."""
    if not isinstance(X, list | tuple) or not len(X):
        return getattr(X, "ndim", 2) == 3
    axes = [_n_axes(batch) for batch in X]
    if 2 not in axes:
        return False
    if set(axes) != {2}:
        place = next(place for place, n_axes in enumerate(axes) if n_axes != 2)
        raise ValueError(
            f"X must be a list of batches with two axes (rows and columns), got {axes[place]} in batch {place}"
        )
    return True


def _n_axes(batch: Any) -> int:
    try:
        return 2 if hasattr(batch, "iloc") else np.ndim(batch)
    except ValueError as error:
        raise ValueError(f"X must hold rows of equal length in each batch, got others: {error}") from error


def as_batches(X: Any, y: Any, lengths: ArrayLike | None) -> list[Any]:
    """Batches in the order of time: a list of them, or one matrix with the lengths of the batches (one if None).

    An array in the place of y that has not one entry for each row of X can only be meant as lengths.
    """
    if is_list_of_batches(X):
        if lengths is not None:
            raise ValueError(f"lengths must not be given with a list of batches, got lengths={lengths!r}")
        return list(X)
    rows = X if hasattr(X, "shape") else np.asarray(X)
    if len(rows.shape) != 2:
        return [X]  # `check_batch` says what is wrong
    if lengths is None and np.ndim(y) == 1 and len(y) != rows.shape[0]:
        lengths = y
    if lengths is None:
        return [X]
    sizes = np.asarray(lengths)
    if sizes.ndim != 1 or not sizes.size or sizes.dtype.kind not in "iu" or (sizes < 0).any():
        raise ValueError(f"lengths must be a list of non-negative integers, one for each batch, got {lengths!r}")
    total = sum(sizes.tolist())  # in Python integers, which do not overflow
    if total != rows.shape[0]:
        raise ValueError(f"lengths must sum to the number of rows of X ({rows.shape[0]}), got the sum {total}")
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    cut = rows.iloc if hasattr(rows, "iloc") else rows
    return [cut[begin:end] for begin, end in zip([0, *ends], ends)]


def check_batch(estimator: Any, X: Any, *, first: bool, may_be_empty: bool) -> Array:
    """Finite numbers, (n_samples, n_features); a later batch may have no rows, which only lets time pass."""
    least = 0 if may_be_empty and not first else 1
    rows: Array = validate_data(estimator, X, dtype=np.float64, reset=first, ensure_min_samples=least)
    return plain_array(rows)
