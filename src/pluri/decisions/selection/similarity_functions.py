r"""Set functions of similarities: how well a few items stand for all, and how little they repeat each other.

.. math::

    \text{facility location} \quad f(A) = \sum_i \max\bigl(0, \max_{j \in A} s_{ji}\bigr)

    \text{graph cut} \quad f(A) = \sum_i \sum_{j \in A} s_{ji} - \lambda \sum_{j \in A} \sum_{k \in A} s_{jk}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array

from pluri.decisions.selection._kernels import dense_gains, sparse_gains
from pluri.decisions.selection.set_function import Array, IntArray, SelectionState, SetFunction, checked_items
from pluri.validation import Number, check_value, plain_array


class FacilityLocation(SetFunction):
    """How similar rows are to the nearest chosen item, in total: good representatives have the highest value.

    Parameters
    ----------
    similarity : array-like or sparse matrix of shape (n_items, n_rows)
        Similarity of each item to each row that is to be represented; usually both are the same and the matrix is
        square. What is not stored in a sparse matrix is 0, and no similarity counts less than 0.
    weights : array-like of shape (n_rows,), optional
        How much each row counts.

    Examples
    --------
    >>> from pluri.decisions import FacilityLocation
    >>> f = FacilityLocation([[1.0, 0.8, 0.0], [0.8, 1.0, 0.1], [0.0, 0.1, 1.0]])
    >>> f.value([1, 2])
    2.8
    >>> f.gains(f.start([1])).round(2)
    array([0.2, 0. , 0.9])
    """

    monotone = True

    def __init__(self, similarity: Any, weights: ArrayLike | None = None) -> None:
        self.similarity = _checked_similarity(similarity)
        self.n_items, self.n_rows = self.similarity.shape
        if weights is not None:
            scale = checked_weights(weights, self.n_rows, "row")
            self.similarity = _scaled(self.similarity, scale)

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        chosen = checked_items(items, self.n_items)
        if not chosen.size:
            return 0.0
        nearest = self.similarity[chosen].max(axis=0)
        nearest = nearest.toarray() if sparse.issparse(nearest) else nearest
        return float(np.maximum(nearest, 0.0).sum())

    def _begin(self) -> Array:
        return np.zeros(self.n_rows)

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        out = np.empty(len(items))
        if sparse.issparse(self.similarity):
            matrix = self.similarity
            sparse_gains(matrix.data, matrix.indices, matrix.indptr, state.memory, items, out)
        else:
            dense_gains(self.similarity, state.memory, items, out)
        return out

    def _insert(self, item: int, state: SelectionState) -> None:
        row = self.similarity[[item]]
        row = row.toarray()[0] if sparse.issparse(row) else row[0]
        np.maximum(state.memory, row, out=state.memory)


class GraphCut(SetFunction):
    """Similarity of the chosen items to all, less what they have in common.

    Parameters
    ----------
    similarity : array-like or sparse matrix of shape (n_items, n_items)
        Symmetric and non-negative.
    redundancy : float, default=0.5
        Price of similarity among the chosen (lambda). Up to 0.5 the function is monotone; 1 is the cut of a graph:
        the weight of the edges between the chosen items and the others.

    Examples
    --------
    >>> from pluri.decisions import GraphCut
    >>> path = [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    >>> GraphCut(path, redundancy=1.0).value([1])  # both edges are cut
    2.0
    """

    batch = 1 << 30  # all gains are one sum of vectors

    def __init__(self, similarity: Any, redundancy: float = 0.5) -> None:
        self.similarity = _checked_similarity(similarity)
        check_value(redundancy, "redundancy", Number(least=0))
        n_items, n_rows = self.similarity.shape
        if n_items != n_rows:
            raise ValueError(f"similarity must be square, got shape {self.similarity.shape}")
        gap = abs(self.similarity - self.similarity.T)
        if gap.max() > 1e-8 * max(1.0, abs(self.similarity).max()):
            raise ValueError(f"similarity must be symmetric, got entries that differ by {gap.max():.3g}")
        if self.similarity.min() < 0:
            raise ValueError(f"similarity must be non-negative, got {self.similarity.min():.3g}")
        self.n_items, self.redundancy = n_items, float(redundancy)
        self.monotone = self.redundancy <= 0.5
        self._degree = np.asarray(self.similarity.sum(axis=1), dtype=np.float64).ravel()
        self._self = np.asarray(self.similarity.diagonal(), dtype=np.float64)

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        chosen = checked_items(items, self.n_items)
        among = self.similarity[chosen][:, chosen].sum()
        return float(self._degree[chosen].sum() - self.redundancy * among)

    def _begin(self) -> Array:
        return np.zeros(self.n_items)

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        return np.asarray(self._degree[items] - self.redundancy * (2.0 * state.memory[items] + self._self[items]))

    def _insert(self, item: int, state: SelectionState) -> None:
        row = self.similarity[[item]]
        state.memory += row.toarray()[0] if sparse.issparse(row) else row[0]

    def last_gains(self, items: Sequence[int]) -> Array:
        """What each item adds to all the others."""
        chosen = np.asarray(items, dtype=np.int64)
        others = self._degree[chosen] - self._self[chosen]
        return np.asarray(self._degree[chosen] - self.redundancy * (2.0 * others + self._self[chosen]))


def _checked_similarity(similarity: Any) -> Any:
    found = check_array(
        similarity, accept_sparse="csr", dtype=np.float64, ensure_all_finite=True, input_name="similarity"
    )
    if sparse.issparse(found):
        matrix = sparse.csr_array(found)
        if not matrix.has_sorted_indices or not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        return matrix
    return plain_array(found)


def _scaled(similarity: Any, scale: Array) -> Any:
    if not sparse.issparse(similarity):
        return similarity * scale
    scaled = similarity.copy()
    scaled.data = scaled.data * scale[scaled.indices]
    return scaled


def checked_weights(weights: ArrayLike, number: int, what: str) -> Array:
    """Non-negative finite weights, one for each."""
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != (number,) or not (np.isfinite(found).all() and (found >= 0).all()):
        raise ValueError(f"weights must be a finite non-negative number for each {what} ({number}), got {weights!r}")
    return found
