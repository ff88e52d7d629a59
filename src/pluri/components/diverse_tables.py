r"""The M-step of tables of probabilities that repel each other, and the kernel that says how alike two of them are.

A component's table is the concatenation of one distribution for each column. Components are products of these, and so
is their Bhattacharyya coefficient: ``K_ij = prod_f sum_v sqrt(p_if(v) p_jf(v))``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.components.diverse_update import ascend
from pluri.components.probability_rows import softmax
from pluri.priors import DeterminantalPrior
from pluri.priors.kernels.similarity import SimilarityKernel, log_determinant_of_matrix, symmetric

Array = NDArray[np.float64]

#: Probabilities do not fall below this while they climb: a zero has no logarithm and no slope.
FLOOR = 1e-12


@dataclass(frozen=True)
class ProductCategoricalKernel(SimilarityKernel):
    """Bhattacharyya coefficients of products of categorical distributions.

    Parameters
    ----------
    sizes : tuple of int
        Number of categories of each column; the parameters are rows (n_parts, sum(sizes)) with all columns' tables.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.components.diverse_tables import ProductCategoricalKernel
    >>> tables = np.array([[0.9, 0.1, 0.5, 0.5], [0.2, 0.8, 0.5, 0.5]])
    >>> ProductCategoricalKernel((2, 2))(tables).round(4)
    array([[1.    , 0.7071],
           [0.7071, 1.    ]])
    """

    sizes: tuple[int, ...]

    def __call__(self, parameters: Any, others: Any = None) -> Array:
        """Similarities (n_parts, n_others)."""
        first = np.sqrt(np.asarray(parameters, dtype=np.float64))
        second = first if others is None else np.sqrt(np.asarray(others, dtype=np.float64))
        matrix = np.ones((len(first), len(second)))
        for column in columns_of(self.sizes):
            matrix *= first[:, column] @ second[:, column].T
        return matrix

    def log_determinant(self, parameters: Any) -> float:
        """Log determinant of the kernel matrix, minus infinity when it is singular to rounding."""
        return log_determinant_of_matrix(self(parameters))

    def pullback(self, parameters: Any, sensitivity: ArrayLike) -> Array:
        """Gradient of ``sum(sensitivity * self(parameters))``; entries at zero are read 1e-12 above it."""
        rows = np.maximum(np.asarray(parameters, dtype=np.float64), FLOOR)
        roots = np.sqrt(rows)
        weights = symmetric(sensitivity, len(rows)) * self(rows)
        gradient = np.empty_like(rows)
        for column in columns_of(self.sizes):
            part = roots[:, column]
            gradient[:, column] = (weights / (part @ part.T)) @ part / part
        return gradient


def columns_of(sizes: tuple[int, ...]) -> list[slice]:
    """Where each column's probabilities stand in a row of all."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return [slice(int(begin), int(end)) for begin, end in pairwise(offsets)]


def spread_tables(
    evidence: Array, old: Array, plain: Array, sizes: tuple[int, ...], repulsion: DeterminantalPrior
) -> Array:
    """Tables that raise ``sum(evidence * log(tables))`` plus the repulsion, climbing on logits; all (k, sum(sizes))."""
    columns, shape = columns_of(sizes), evidence.shape

    def tables(vector: Array) -> Array:
        logits = vector.reshape(shape)
        rows = np.empty(shape)
        for column in columns:
            rows[:, column] = _lifted(softmax(logits[:, column]))
        return rows

    def value_and_gradient(vector: Array) -> tuple[float, Array]:
        rows = tables(vector)
        value = float(np.sum(evidence * np.log(rows))) + repulsion.log_density(rows)
        slope = evidence + rows * np.asarray(repulsion.gradient(rows))
        for column in columns:
            slope[:, column] -= rows[:, column] * slope[:, column].sum(axis=1, keepdims=True)
        return value, slope.ravel()

    starts = [np.log(np.maximum(rows, FLOOR)).ravel() for rows in (old, plain)]
    totals = np.empty(shape)
    for column in columns:
        totals[:, column] = evidence[:, column].sum(axis=1, keepdims=True)
    curvature = ((totals + 2.0 * repulsion.weight) * plain * (1.0 - plain) + 1e-6).ravel()
    return tables(ascend(value_and_gradient, starts, curvature=curvature))


def _lifted(rows: Array) -> Array:
    """Rows above the floor that still sum to one."""
    if (rows >= FLOOR).all():
        return rows
    lifted = np.maximum(rows, FLOOR)
    return lifted / lifted.sum(axis=1, keepdims=True)
