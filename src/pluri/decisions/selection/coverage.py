r"""Set functions of what items hold: elements covered, and features present in plenty.

.. math::

    \text{coverage} \quad f(A) = \sum_{u \in \bigcup_{j \in A} S_j} w_u, \qquad
    \text{features} \quad f(A) = \sum_u w_u \, g\Bigl(\sum_{j \in A} x_{ju}\Bigr), \; g \text{ concave}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.utils import check_array

from pluri.decisions.selection.set_function import Array, IntArray, SelectionState, SetFunction, checked_items
from pluri.decisions.selection.similarity_functions import checked_weights

#: Concave functions by name.
CONCAVE: dict[str, Callable[[Array], Array]] = {
    "sqrt": np.sqrt,
    "log": np.log1p,
    "saturated": lambda total: np.minimum(total, 1.0),
}


class Coverage(SetFunction):
    """Weight of the elements that are in at least one of the chosen sets.

    Parameters
    ----------
    membership : array-like or sparse matrix of shape (n_items, n_elements), or list of sets
        Which elements each item holds: whatever is not zero. Elements of a list of sets may be anything that can be
        sorted.
    weights : array-like of shape (n_elements,), optional
        What each element is worth; 1 by default. For a list of sets, in the order of `elements`.

    Attributes
    ----------
    elements : list
        What the columns stand for.

    Examples
    --------
    >>> from pluri.decisions import Coverage
    >>> f = Coverage([{"a", "b"}, {"b", "c", "d"}, {"d"}])
    >>> f.value([0, 1]), f.gains(f.start([1])).tolist()
    (4.0, [1.0, 0.0, 0.0])
    """

    monotone = True

    def __init__(self, membership: Any, weights: ArrayLike | None = None) -> None:
        self.membership, self.elements = membership_matrix(membership)
        self.n_items, n_elements = self.membership.shape
        self.weights = np.ones(n_elements) if weights is None else checked_weights(weights, n_elements, "element")

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        chosen = checked_items(items, self.n_items)
        covered = np.asarray(self.membership[chosen].sum(axis=0)).ravel() > 0
        return float(self.weights[covered].sum())

    def _begin(self) -> Array:
        return self.weights.copy()  # of what is not covered yet

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        rows = self.membership if len(items) == self.n_items else self.membership[items]
        return np.asarray(rows @ state.memory)

    def _insert(self, item: int, state: SelectionState) -> None:
        begin, end = self.membership.indptr[item], self.membership.indptr[item + 1]
        state.memory[self.membership.indices[begin:end]] = 0.0


class FeatureCoverage(SetFunction):
    """Features that are present in plenty, with diminishing returns: a concave function of each one's total.

    Parameters
    ----------
    features : array-like or sparse matrix of shape (n_items, n_features)
        Non-negative amounts.
    concave : {"sqrt", "log", "saturated"} or callable, default="sqrt"
        Square root, log(1 + total), min(total, 1), or a concave function of an array with g(0) = 0 that never falls.
    weights : array-like of shape (n_features,), optional

    Examples
    --------
    >>> from pluri.decisions import FeatureCoverage
    >>> f = FeatureCoverage([[4.0, 0.0], [0.0, 4.0], [4.0, 0.0]])
    >>> f.value([0, 1]), round(f.value([0, 2]), 3)
    (4.0, 2.828)
    """

    monotone = True

    def __init__(
        self,
        features: Any,
        concave: str | Callable[[Array], Array] = "sqrt",
        weights: ArrayLike | None = None,
    ) -> None:
        found = check_array(features, accept_sparse="csr", dtype=np.float64, input_name="features")
        self.features = sparse.csr_array(found) if sparse.issparse(found) else found
        if self.features.size and self.features.min() < 0:
            raise ValueError(f"features must be non-negative, got {self.features.min():.3g}")
        self.n_items, n_features = self.features.shape
        if isinstance(concave, str):
            if concave not in CONCAVE:
                raise ValueError(f"concave must be one of {sorted(CONCAVE)} or a callable, got {concave!r}")
            concave = CONCAVE[concave]
        self.concave = concave
        self.weights = np.ones(n_features) if weights is None else checked_weights(weights, n_features, "feature")

    def value(self, items: ArrayLike) -> float:
        """f(items)."""
        total = np.asarray(self.features[checked_items(items, self.n_items)].sum(axis=0)).ravel()
        return float(self.weights @ self.concave(total))

    def _begin(self) -> Array:
        return np.zeros(self.features.shape[1])

    def _gains(self, state: SelectionState, items: IntArray) -> Array:
        rows = self.features if len(items) == self.n_items else self.features[items]
        before = self.concave(state.memory)
        if not sparse.issparse(rows):
            return np.asarray((self.concave(rows + state.memory) - before) @ self.weights)
        columns = rows.indices
        more = (self.concave(rows.data + state.memory[columns]) - before[columns]) * self.weights[columns]
        return np.asarray(sparse.csr_array((more, columns, rows.indptr), shape=rows.shape).sum(axis=1)).ravel()

    def _insert(self, item: int, state: SelectionState) -> None:
        row = self.features[[item]]
        state.memory += row.toarray()[0] if sparse.issparse(row) else row[0]


def membership_matrix(membership: Any) -> tuple[Any, list[Any]]:
    """Sets as the rows of a compressed matrix of zeros and ones, and the elements that its columns stand for."""
    if isinstance(membership, list | tuple) and all(isinstance(one, set | frozenset) for one in membership):
        return _of_sets(membership)
    found = check_array(
        membership, accept_sparse="csr", dtype=np.float64, ensure_min_features=0, input_name="membership"
    )
    matrix = sparse.csr_array(found, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.data = np.ones(len(matrix.data))
    return matrix, list(range(matrix.shape[1]))


def _of_sets(sets: Iterable[Any]) -> tuple[Any, list[Any]]:
    listed = list(sets)
    if not listed:
        raise ValueError("membership must have at least one set, got none")
    try:
        elements = sorted(set().union(*listed))
    except TypeError as error:
        raise ValueError(f"elements must be of one kind, that they can be sorted: {error}") from None
    places = {element: number for number, element in enumerate(elements)}
    columns = [np.sort([places[element] for element in one]).astype(np.int64) for one in listed]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in columns])]).astype(np.int64)
    flat = np.concatenate(columns) if columns else np.zeros(0, dtype=np.int64)
    return sparse.csr_array((np.ones(len(flat)), flat, starts), shape=(len(listed), len(elements))), elements
