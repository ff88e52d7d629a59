"""Every partition, binary matrix and feature allocation of a small set: what Bayesian nonparametrics sums over."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

Integers = NDArray[np.int64]


def set_partitions(n: int, max_blocks: int | None = None) -> Iterator[Integers]:
    """Every partition of n things, as labels: the first thing is in block 0, a new block has the next number.

    Parameters
    ----------
    n : int
    max_blocks : int, optional
        Leave out partitions with more blocks.

    Yields
    ------
    ndarray of shape (n,)

    Examples
    --------
    >>> from pluri.testing import set_partitions
    >>> [p.tolist() for p in set_partitions(3)]
    [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]]
    """
    if n < 0:
        raise ValueError(f"n must be at least 0, got {n}")
    most = n if max_blocks is None else max_blocks

    def extend(labels: list[int], used: int) -> Iterator[Integers]:
        if len(labels) == n:
            yield np.array(labels, dtype=np.int64)
            return
        for label in range(min(used + 1, most)):
            yield from extend([*labels, label], max(used, label + 1))

    yield from extend([], 0)


def canonical_labels(labels: ArrayLike) -> Integers:
    """The same partition with blocks numbered in the order in which they appear.

    Examples
    --------
    >>> from pluri.testing import canonical_labels
    >>> canonical_labels([7, 2, 7, 0])
    array([0, 1, 0, 2])
    """
    _, first, inverse = np.unique(np.asarray(labels), return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse.reshape(-1)]


def binary_matrices(n_rows: int, n_columns: int) -> Iterator[Integers]:
    """Every matrix of zeros and ones of a shape.

    Examples
    --------
    >>> from pluri.testing import binary_matrices
    >>> sum(1 for _ in binary_matrices(2, 3))
    64
    """
    if n_rows < 0 or n_columns < 0 or n_rows * n_columns > 24:
        raise ValueError(f"n_rows * n_columns must lie between 0 and 24, got {n_rows} x {n_columns}")
    for entries in product((0, 1), repeat=n_rows * n_columns):
        yield np.array(entries, dtype=np.int64).reshape(n_rows, n_columns)


def feature_allocations(n_rows: int, max_features: int) -> Iterator[Integers]:
    """Every way in which n things may have features that have no names: left-ordered matrices without empty columns.

    Parameters
    ----------
    n_rows : int
    max_features : int
        Allocations with more features are left out: under an Indian buffet process there is no end of them.

    Yields
    ------
    ndarray of shape (n_rows, n_features)

    Examples
    --------
    >>> from pluri.testing import feature_allocations
    >>> sum(1 for _ in feature_allocations(2, 3))  # multisets of 0 to 3 of the three columns
    20
    """
    if n_rows < 1 or n_rows > 10:
        raise ValueError(f"n_rows must lie between 1 and 10, got {n_rows}")
    powers = 1 << np.arange(n_rows)[::-1]
    for n_features in range(max_features + 1):
        for histories in combinations_with_replacement(range((1 << n_rows) - 1, 0, -1), n_features):
            columns = np.array(histories, dtype=np.int64).reshape(1, -1)
            yield (columns & powers[:, None] > 0).astype(np.int64)


def left_ordered(matrix: ArrayLike) -> Integers:
    """The same features in the order of `feature_allocations`, empty columns left out.

    Examples
    --------
    >>> from pluri.testing import left_ordered
    >>> left_ordered([[0, 0, 1], [0, 1, 1]])
    array([[1, 0],
           [1, 1]])
    """
    values = np.asarray(matrix, dtype=np.int64)
    kept = values[:, values.any(axis=0)]
    # The first row decides, then the second, ...; lexsort takes its most important key last.
    order = np.lexsort(-kept[::-1]) if kept.size else np.arange(kept.shape[1])
    return kept[:, order]
