"""Observed subsets, counted: the form in which every learning method sees its data.

Equal subsets are merged into one with the sum of their weights, and subsets of the same size are rows of one array, so
that their determinants are computed together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

#: Numbers in the largest stack of submatrices that is made at a time (16 MB).
LARGEST_STACK = 2**21


@dataclass(frozen=True, eq=False)
class SizeGroup:
    """Different subsets of one size.

    Attributes
    ----------
    items : (n_subsets, size): sorted item numbers
    weight : (n_subsets,): positive
    """

    items: IntArray
    weight: Array

    @property
    def size(self) -> int:
        """Number of items of each subset."""
        return int(self.items.shape[1])

    def pieces(self, width: int) -> Iterator[SizeGroup]:
        """Parts of at most `LARGEST_STACK` / (size * width) subsets."""
        step = max(1, LARGEST_STACK // max(1, self.size * width))
        for begin in range(0, len(self.items), step):
            yield SizeGroup(self.items[begin : begin + step], self.weight[begin : begin + step])


@dataclass(frozen=True, eq=False)
class SubsetCounts:
    """Weighted different subsets of ``0 .. n_items - 1``, grouped by size.

    Attributes
    ----------
    n_items : size of the ground set
    groups : one for each size that occurs, ascending
    total : sum of all weights (the number of subsets if there are no weights)
    """

    n_items: int
    groups: tuple[SizeGroup, ...]
    total: float

    @property
    def largest(self) -> int:
        """Size of the largest subset."""
        return self.groups[-1].size

    def item_weights(self) -> Array:
        """Total weight of the subsets that hold each item: (n_items,)."""
        weights = np.zeros(self.n_items)
        for group in self.groups:
            np.add.at(weights, group.items.ravel(), np.repeat(group.weight, group.size))
        return weights

    def pair_weights(self) -> Array:
        """Total weight of the subsets that hold both of two items: (n_items, n_items)."""
        pairs = np.zeros((self.n_items, self.n_items))
        for group in self.groups:
            for piece in group.pieces(group.size):
                scatter(
                    pairs, piece.items, np.broadcast_to(piece.weight[:, None, None], (*piece.items.shape, piece.size))
                )
        return pairs

    def renumbered(self, kept: IntArray) -> SubsetCounts:
        """The same subsets on the ground set `kept`, which must hold all their items."""
        place = np.full(self.n_items, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        return SubsetCounts(
            len(kept), tuple(SizeGroup(place[group.items], group.weight) for group in self.groups), self.total
        )


def scatter(matrix: Array, items: IntArray, blocks: Array) -> None:
    """Add blocks (n, size, size) to the rows and columns of a square matrix that `items` (n, size) names, in place."""
    flat = items[:, :, None] * len(matrix) + items[:, None, :]
    np.add.at(matrix.reshape(-1), flat.ravel(), np.ascontiguousarray(blocks).ravel())


def count_subsets(
    subsets: Any, n_items: int | None = None, sample_weight: ArrayLike | None = None, name: str = "subsets"
) -> SubsetCounts:
    """Check a collection of subsets and count the different ones.

    Parameters
    ----------
    subsets : list of subsets, table of shape (n_subsets, n_items), or SubsetCounts
        Each subset holds item numbers in any order, or is a boolean mask; it may be empty. A table (array, data frame
        or sparse matrix) holds booleans, or 0 and 1 in more than two columns.
    n_items : int, optional
        Size of the ground set; one more than the largest number (or the length of a mask) if None.
    sample_weight : array of shape (n_subsets,), optional
        Non-negative weights; a weight of 2 is the same as the subset twice.

    Examples
    --------
    >>> from pluri.processes.dpp.learning import count_subsets
    >>> counts = count_subsets([[2, 0], [0, 2], [1], []])
    >>> counts.n_items, counts.total, [(group.size, group.weight.tolist()) for group in counts.groups]
    (3, 4.0, [(0, [1.0]), (1, [1.0]), (2, [2.0])])
    """
    if n_items is not None and (not isinstance(n_items, Integral) or isinstance(n_items, bool) or n_items < 1):
        raise ValueError(f"n_items must be an integer of at least 1 or None, got {n_items!r}")
    if isinstance(subsets, SubsetCounts):
        if sample_weight is not None:
            raise ValueError(f"sample_weight must be None when {name} are counted already")
        if n_items is not None and subsets.n_items != n_items:
            raise ValueError(f"{name} must be subsets of {n_items} items, got counts over {subsets.n_items}")
        return subsets
    ragged = read_subsets(subsets, n_items, name)
    weight = subset_weights(sample_weight, len(ragged.sizes))
    groups = []
    for size in np.unique(ragged.sizes[weight > 0]).tolist():
        index, table = ragged.of_size(size)
        chosen = weight[index] > 0
        table, own = table[chosen], weight[index][chosen]
        if size == 0:
            groups.append(SizeGroup(table[:1], own.sum(keepdims=True)))
            continue
        different, which = np.unique(table, axis=0, return_inverse=True)
        groups.append(SizeGroup(different, np.bincount(which.ravel(), weights=own).astype(np.float64)))
    return SubsetCounts(ragged.n_items, tuple(groups), float(weight.sum()))


@dataclass(frozen=True, eq=False)
class RaggedSubsets:
    """Subsets one after the other, in the order given.

    Attributes
    ----------
    n_items : size of the ground set
    items : (sum of sizes,): sorted within each subset
    sizes : (n_subsets,)
    """

    n_items: int
    items: IntArray
    sizes: IntArray

    def of_size(self, size: int) -> tuple[IntArray, IntArray]:
        """Which subsets have this size, and their items: (n,) and (n, size)."""
        index = np.flatnonzero(self.sizes == size)
        begin = (np.cumsum(self.sizes) - self.sizes)[index]
        return index, self.items[begin[:, None] + np.arange(size)]


def read_subsets(subsets: Any, n_items: int | None, name: str = "subsets") -> RaggedSubsets:
    """Check a collection of subsets of ``0 .. n_items - 1``."""
    rows, width = _rows(subsets, name)
    sizes = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    items = np.concatenate(rows)
    owner = np.repeat(np.arange(len(rows)), sizes)
    if n_items is None:
        n_items = width if width is not None else int(items.max(initial=-1)) + 1
        if n_items < 1:
            raise ValueError(f"n_items must be given when all {name} are empty")
    if width is not None and width != n_items:
        raise ValueError(f"{name} given as masks must have one entry per item ({n_items}), got {width}")
    wrong = np.flatnonzero((items < 0) | (items >= n_items))
    if wrong.size:
        at = wrong[0]
        raise ValueError(
            f"{name} must hold item numbers from 0 to {n_items - 1}, got {items[at]} in subset {owner[at]}"
        )
    items = items[np.lexsort((items, owner))]
    twice = np.flatnonzero((items[1:] == items[:-1]) & (owner[1:] == owner[:-1]))
    if twice.size:
        at = twice[0]
        raise ValueError(f"{name} must hold each item once, got item {items[at]} twice in subset {owner[at]}")
    return RaggedSubsets(int(n_items), items, sizes)


def _rows(subsets: Any, name: str) -> tuple[list[IntArray], int | None]:
    """Item numbers of each subset, and the length of the masks if any was a mask."""
    table = _table(subsets)
    if table is not None:
        subsets = list(table)
    if isinstance(subsets, str | bytes) or not (
        isinstance(subsets, Sequence | np.ndarray) or hasattr(subsets, "__iter__")
    ):
        raise ValueError(f"{name} must be a list of subsets, got {subsets!r}")
    rows: list[IntArray] = []
    width: int | None = None
    for index, subset in enumerate(subsets):
        row = np.asarray(sorted(subset) if isinstance(subset, set | frozenset) else subset)
        if row.ndim != 1:
            raise ValueError(
                f"{name} must be a list of lists of item numbers, got shape {row.shape} for subset {index}"
            )
        if row.dtype == np.bool_ and row.size:
            if width is not None and len(row) != width:
                raise ValueError(f"{name} given as masks must have one length, got {width} and {len(row)}")
            width = len(row)
            row = np.flatnonzero(row)
        elif row.size and row.dtype.kind not in "iu":
            raise ValueError(f"{name} must hold integer item numbers, got {row.dtype} in subset {index}")
        rows.append(row.astype(np.int64, copy=False))
    if not rows:
        raise ValueError(f"{name} must hold at least one subset, got none")
    return rows, width


def _table(subsets: Any) -> NDArray[np.bool_] | None:
    """A table of subsets by items (array, data frame or sparse matrix) that holds nothing but 0 and 1, as masks.

    Whole numbers in two columns could be pairs of items too, and are taken for those.
    """
    if hasattr(subsets, "toarray"):
        subsets = subsets.toarray()
    elif hasattr(subsets, "to_numpy"):
        subsets = subsets.to_numpy()
    if not isinstance(subsets, np.ndarray) or subsets.ndim != 2 or subsets.dtype.kind not in "biuf":
        return None
    if subsets.dtype == np.bool_:
        return subsets
    is_mask = subsets.shape[1] > 2 and np.isin(subsets, (0, 1)).all()
    return subsets.astype(np.bool_) if is_mask else None


def subset_weights(sample_weight: ArrayLike | None, n_subsets: int) -> Array:
    """Non-negative weights, one per subset; ones if None."""
    if sample_weight is None:
        return np.ones(n_subsets)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n_subsets,):
        raise ValueError(f"sample_weight must have one weight per subset ({n_subsets}), got shape {weight.shape}")
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError("sample_weight must be finite and non-negative, with at least one positive weight")
    return weight
