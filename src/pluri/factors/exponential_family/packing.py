"""Symmetric matrices as rows of numbers, so that sums of outer products become one matrix product."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def packed(matrices: Array) -> Array:
    """Upper triangles of symmetric matrices: (n, d, d) to (n, d (d + 1) / 2).

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.factors.exponential_family.packing import packed
    >>> packed(np.array([[[1.0, 2.0], [2.0, 3.0]]]))
    array([[1., 2., 3.]])
    """
    first, second = np.triu_indices(matrices.shape[1])
    return np.ascontiguousarray(matrices[:, first, second])


def unpacked(triangles: Array, width: int) -> Array:
    """The symmetric matrices again: (n, d, d)."""
    first, second = np.triu_indices(width)
    full = np.empty((len(triangles), width, width))
    full[:, first, second] = triangles
    full[:, second, first] = triangles
    return full


def outer_packed(vectors: Array) -> Array:
    """Packed outer products of each row with itself: (n, d) to (n, d (d + 1) / 2)."""
    first, second = np.triu_indices(vectors.shape[1])
    return vectors[:, first] * vectors[:, second]


def doubled(triangles: Array, width: int) -> Array:
    """Packed triangles with the entries off the diagonal twice: their product with a triangle is a trace."""
    first, second = np.triu_indices(width)
    return triangles * np.where(first == second, 1.0, 2.0)


def quadratic_forms(triangles: Array, products: Array, width: int) -> Array:
    """``w_j^T S_n w_j`` for all pairs, (n, n_features), from packed S and packed outer products of w."""
    return doubled(triangles, width) @ products.T


def with_identity(triangles: Array, width: int) -> Array:
    """Packed triangles of the matrices plus the identity."""
    first, second = np.triu_indices(width)
    return triangles + np.where(first == second, 1.0, 0.0)


def inverses(matrices: Array) -> Array:
    """Inverse of each matrix."""
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)
