"""Scores from counting past commits: plain functions on arrays, which need nothing but NumPy.

They stand apart from the estimators that use them, so that a hook before each commit can answer without importing
scikit-learn, which takes several times longer than the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CommitRows:
    """Transactions by rows and by columns.

    Attributes
    ----------
    indptr, items : ndarray
        Items of row r: ``items[indptr[r] : indptr[r + 1]]``.
    column_indptr, column_rows : ndarray
        Rows of item i: ``column_rows[column_indptr[i] : column_indptr[i + 1]]``.
    weights : ndarray of shape (n_rows,)
    """

    indptr: Places
    items: Places
    column_indptr: Places
    column_rows: Places
    weights: Array

    #: Attributes of an estimator that hold the fields, in their order.
    NAMES = ("row_indptr_", "row_items_", "column_indptr_", "column_rows_", "row_weights_")

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Self:
        """From the fitted attributes of an estimator."""
        return cls(*(state[name] for name in cls.NAMES))

    @property
    def n_rows(self) -> int:
        """Number of transactions."""
        return len(self.weights)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.column_indptr) - 1

    def rows_with(self, item: int) -> Places:
        """Numbers of the transactions that contain an item."""
        return self.column_rows[self.column_indptr[item] : self.column_indptr[item + 1]]

    def rows_of(self, present: Places, absent: Places) -> Places:
        """Transactions that contain all items of `present` and none of `absent`."""
        if present.size:
            rows = self.rows_with(int(present[0]))
            for item in present[1:]:
                rows = np.intersect1d(rows, self.rows_with(int(item)), assume_unique=True)
        else:
            rows = np.arange(self.n_rows)
        for item in absent:
            rows = np.setdiff1d(rows, self.rows_with(int(item)), assume_unique=True)
        return rows

    def counts(self, rows: Places, weights: Array | None = None) -> Array:
        """Weight of the given transactions that contain each item; their own weights by default."""
        starts, stops = self.indptr[rows], self.indptr[rows + 1]
        sizes = stops - starts
        # Places of all entries of these rows: a range for each row, end to end.
        entries = np.arange(sizes.sum()) + np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        repeated = np.repeat(self.weights[rows] if weights is None else weights, sizes)
        counts = np.bincount(self.items[entries], repeated, minlength=self.n_items)
        return counts.astype(np.float64)  # of no entries at all it counts whole numbers

    def check(self) -> None:
        """Refuse arrays that do not belong together, as in a damaged file."""
        whole = all(part.ndim == 1 and part.dtype.kind in "iu" for part in (self.indptr, self.items))
        whole &= all(part.ndim == 1 and part.dtype.kind in "iu" for part in (self.column_indptr, self.column_rows))
        whole &= self.weights.ndim == 1 and self.weights.dtype.kind == "f"
        if not (
            whole
            and len(self.indptr) == self.n_rows + 1
            and _is_partition(self.indptr, len(self.items))
            and _is_partition(self.column_indptr, len(self.column_rows))
            and len(self.items) == len(self.column_rows)
            and _within(self.items, self.n_items)
            and _within(self.column_rows, self.n_rows)
            and bool(np.all(np.isfinite(self.weights) & (self.weights >= 0)))
        ):
            raise ValueError("rows and columns must list the same transactions, got arrays that contradict each other")


def _is_partition(indptr: Places, total: int) -> bool:
    return bool(len(indptr) and indptr[0] == 0 and indptr[-1] == total and np.all(np.diff(indptr) >= 0))


def _within(places: Places, stop: int) -> bool:
    return not len(places) or bool(places.min() >= 0 and places.max() < stop)


def frequent(rows: CommitRows, present: Places, absent: Places, *, min_support: float) -> Array:
    """Supports of the items with those present; zero below `min_support`."""
    counts = rows.counts(rows.rows_of(present, absent))
    return np.where(counts >= min_support, counts, 0.0)


def together(rows: CommitRows, present: Places, absent: Places, *, measure: str, combine: str) -> Array:
    """Share or number of the transactions with all items present, or with one after the other, averaged."""
    if combine == "joint" or present.size < 2:
        return _joint(rows, present, absent, measure)
    scores: Array = np.mean([_joint(rows, present[[place]], absent, measure) for place in range(present.size)], axis=0)
    return scores


def _joint(rows: CommitRows, present: Places, absent: Places, measure: str) -> Array:
    chosen = rows.rows_of(present, absent)
    counts = rows.counts(chosen)
    total = rows.weights[chosen].sum()
    return counts / total if measure == "confidence" and total > 0 else counts


def popular(rows: CommitRows) -> Array:
    """Share of all transactions that contain each item."""
    total = rows.weights.sum()
    counts = rows.counts(np.arange(rows.n_rows))
    return counts / total if total > 0 else np.zeros(rows.n_items)


def row_votes(rows: CommitRows, *, size_power: float, age_scale: float | None) -> tuple[Array, Array]:
    """How much each transaction counts by its size and age, and the sum of the squares of that.

    A row of weight w is w rows in succession. With the age t, the weight of all later rows, it counts

        I1 = integral over [t, t + w] of 1 / (1 + s / age_scale) ds,

    divided by ``(size - 1)^size_power``, and likewise the squares: so a weight of 2 is exactly two rows.
    """
    weights = rows.weights
    once = np.maximum(np.diff(rows.indptr) - 1, 1).astype(np.float64) ** -size_power
    if age_scale is None:
        return weights * once, weights * once**2
    older = np.cumsum(weights[::-1])[::-1] / age_scale
    younger = np.append(older[1:], 0.0)
    lasting = age_scale * (np.log1p(older) - np.log1p(younger))
    squared = age_scale * (1 / (1 + younger) - 1 / (1 + older))
    return lasting * once, squared * once**2


def votes(
    rows: CommitRows,
    present: Places,
    absent: Places,
    *,
    row_votes: Array,
    row_squares: Array,
    overlap_power: float,
    shrinkage: float,
) -> Array:
    """Share of the votes of the transactions that contain some of the items present; see `CommitNeighbors`."""
    if present.size:
        lists = [rows.rows_with(int(item)) for item in present]
        found = np.concatenate(lists)
        totals = np.array([row_votes[part].sum() for part in lists])
        shares = np.repeat(np.divide(1.0, totals, out=np.zeros_like(totals), where=totals > 0), [*map(len, lists)])
        chosen, place = np.unique(found, return_inverse=True)
        factors = np.bincount(place, minlength=len(chosen)) ** overlap_power * np.bincount(place, shares, len(chosen))
    else:
        chosen, factors = np.arange(rows.n_rows), np.ones(rows.n_rows)
    if absent.size:
        kept = ~np.isin(chosen, np.concatenate([rows.rows_with(int(item)) for item in absent]))
        chosen, factors = chosen[kept], factors[kept]
    cast = row_votes[chosen] * factors
    total, squares = cast.sum(), (row_squares[chosen] * factors**2).sum()
    if not (total > 0 and squares > 0):
        return np.zeros(rows.n_items)
    heard = total**2 / squares  # as many commits of equal weight would be as reliable
    return rows.counts(chosen, cast) / total * (heard / (heard + shrinkage))
