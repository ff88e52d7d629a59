"""What models of clusters that live through several batches share: the batches, and the track of each cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

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
    """Whether X is a list of matrices, instead of a matrix (or a list of rows)."""
    if not isinstance(X, list | tuple) or not len(X):
        return False
    return all(hasattr(batch, "iloc") or np.ndim(batch) == 2 for batch in X)


def check_batch(estimator: Any, X: Any, *, first: bool, may_be_empty: bool) -> Array:
    """Finite numbers, (n_samples, n_features); a later batch may have no rows, which only lets time pass."""
    least = 0 if may_be_empty and not first else 1
    rows: Array = validate_data(estimator, X, dtype=np.float64, reset=first, ensure_min_samples=least)
    return rows
