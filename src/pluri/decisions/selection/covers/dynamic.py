r"""Exact covers by dynamic programming, over subsets of the elements or along a line.

Elements that are in exactly the same sets are one. Of m that differ, a table of :math:`2^m` entries holds the least
cost to cover each subset (`cheapest_cover`, :math:`O(2^m n)`) or the fewest sets that reach it (`best_cover`). Sets
that are intervals of the elements need no such table: the cost to cover all from element i on is

.. math:: E_i = \min_{j \ni i} c_j + E_{r_j + 1}, \qquad E_m = 0,

with r_j the last element of set j.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from pluri.decisions.selection.covers._kernels import cheapest_covers
from pluri.decisions.selection.set_function import Array, IntArray

#: Elements that differ, at most: tables of 2^22 entries take a hundred megabytes.
MOST_ELEMENTS = 22


def distinct_elements(membership: Any) -> tuple[Any, IntArray]:
    """Columns that differ, and for each column which of them it is."""
    dense = np.asarray(membership.toarray() > 0)
    columns, which = np.unique(dense, axis=1, return_inverse=True)
    return columns, np.ravel(which)


def check_table(n_distinct: int) -> None:
    """Refuse tables that would not fit into memory."""
    if n_distinct > MOST_ELEMENTS:
        raise ValueError(
            f"method='exact' needs at most {MOST_ELEMENTS} elements that differ (a table of 2^elements), "
            f"got {n_distinct}"
        )


def cheapest_cover(membership: Any, costs: Array) -> IntArray:
    """The sets of least total cost that hold every element.

    Parameters
    ----------
    membership : sparse matrix of shape (n_sets, n_elements)
    costs : (n_sets,)

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from pluri.decisions.selection.covers.dynamic import cheapest_cover
    >>> cheapest_cover(csr_array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]), np.array([1.0, 1.0, 3.0]))
    array([0, 1])
    """
    last_elements = _ends_of_intervals(membership)
    if last_elements is not None:
        return _along_a_line(membership, costs, last_elements)
    columns, _ = distinct_elements(membership)
    columns = columns[:, columns.any(axis=0)]
    n_distinct = columns.shape[1]
    check_table(n_distinct)
    masks = columns.astype(np.int64) @ (1 << np.arange(n_distinct, dtype=np.int64))
    by_element = sparse.csr_array(columns.T.astype(np.float64))
    best = np.full(1 << n_distinct, np.inf)
    best[0] = 0.0
    last, before = np.full((2, 1 << n_distinct), -1, dtype=np.int64)
    holders, starts = by_element.indices.astype(np.int64), by_element.indptr.astype(np.int64)
    cheapest_covers(masks, costs, holders, starts, best, last, before)
    found, mask = [], len(best) - 1
    while mask:
        found.append(int(last[mask]))
        mask = int(before[mask])
    return np.sort(np.array(found, dtype=np.int64))


def _ends_of_intervals(membership: Any) -> IntArray | None:
    """Last element of each set if each set is an interval of the elements."""
    rows = sparse.csr_array(membership)
    sizes = np.diff(rows.indptr)
    ends = np.full(rows.shape[0], -1, dtype=np.int64)
    filled = np.flatnonzero(sizes)
    rows.sort_indices()
    first, last = rows.indices[rows.indptr[filled]], rows.indices[rows.indptr[filled + 1] - 1]
    if (last - first + 1 != sizes[filled]).any():
        return None
    ends[filled] = last
    return ends


def _along_a_line(membership: Any, costs: Array, ends: IntArray) -> IntArray:
    columns = sparse.csc_array(membership)
    n_elements = membership.shape[1]
    from_here = np.zeros(n_elements + 1)
    pick = np.zeros(n_elements, dtype=np.int64)
    for element in range(n_elements - 1, -1, -1):
        holders = columns.indices[columns.indptr[element] : columns.indptr[element + 1]]
        totals = costs[holders] + from_here[ends[holders] + 1]
        pick[element] = holders[totals.argmin()]
        from_here[element] = totals.min()
    found, element = [], 0
    while element < n_elements:
        found.append(int(pick[element]))
        element = int(ends[pick[element]]) + 1
    return np.sort(np.array(found, dtype=np.int64))


def best_cover(membership: Any, weights: Array, size: int) -> IntArray:
    """At most `size` sets that hold most weight.

    Parameters
    ----------
    membership : sparse matrix of shape (n_sets, n_elements)
    weights : (n_elements,)
    size : int

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.sparse import csr_array
    >>> from pluri.decisions.selection.covers.dynamic import best_cover
    >>> best_cover(csr_array([[1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [0, 0, 1, 0, 1]]), np.ones(5), 2)
    array([1, 2])
    """
    columns, which = distinct_elements(membership)
    n_distinct = columns.shape[1]
    check_table(n_distinct)
    worth = np.bincount(which, weights=weights, minlength=n_distinct)
    masks = columns.astype(np.int64) @ (1 << np.arange(n_distinct, dtype=np.int64))
    before = np.full(1 << n_distinct, -1, dtype=np.int32)
    added = np.full(1 << n_distinct, -1, dtype=np.int32)
    reached, everything = np.zeros(1, dtype=np.int64), [np.zeros(1, dtype=np.int64)]
    before[0] = 0
    for _ in range(size):
        new = []
        for number, mask in enumerate(masks):
            joined = reached | mask
            fresh = np.flatnonzero(before[joined] < 0)
            targets, first = np.unique(joined[fresh], return_index=True)
            before[targets], added[targets] = reached[fresh[first]], number
            new.append(targets)
        reached = np.concatenate(new)
        if not len(reached):
            break
        everything.append(reached)
    found = np.concatenate(everything)
    values = np.zeros(len(found))
    for bit in range(n_distinct):
        values += worth[bit] * (found >> bit & 1)
    mask, chosen = int(found[values.argmax()]), []
    while mask:
        chosen.append(int(added[mask]))
        mask = int(before[mask])
    return np.sort(np.array(chosen, dtype=np.int64))
