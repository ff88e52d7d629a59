r"""How the kernel of a determinantal point process is held: as a matrix, as features, or as a function of two items.

A kernel L is a symmetric positive semi-definite matrix over the items; ``det(L_Y)`` measures how good and how different
the items of Y are. Algorithms ask only for its diagonal, for rows and for blocks, so that a kernel given by features,
:math:`L = F F^\top`, or by a function is never written out as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.processes.dpp.kernel_checks import check_features, check_kernel, check_lengths, check_symmetric

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]


class KernelForm(Protocol):
    """What algorithms ask of a kernel over ``n_items`` items."""

    @property
    def n_items(self) -> int:
        """Number of items."""

    def diagonal(self) -> Array:
        """``L[i, i]`` of all items."""

    def rows(self, indices: ArrayLike) -> Array:
        """``L[indices, :]``."""

    def block(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """``L[rows][:, columns]``."""


@dataclass(frozen=True, eq=False)
class DenseKernel:
    """A kernel written out.

    Parameters
    ----------
    matrix : ndarray (n_items, n_items)
        Symmetric and positive semi-definite; `check_kernel` makes sure.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import DenseKernel
    >>> DenseKernel(np.array([[2.0, 1.0], [1.0, 2.0]])).rows([1])
    array([[1., 2.]])
    """

    matrix: Array

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.matrix.shape[0])

    def diagonal(self) -> Array:
        """``L[i, i]`` of all items."""
        return np.array(np.diagonal(self.matrix))

    def rows(self, indices: ArrayLike) -> Array:
        """``L[indices, :]``."""
        return self.matrix[np.asarray(indices)]

    def block(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """``L[rows][:, columns]``."""
        return self.matrix[np.ix_(np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64))]


@dataclass(frozen=True, eq=False)
class FeatureKernel:
    """The kernel ``F F^T`` of feature rows: an item's squared length is its quality, an angle is a difference.

    Parameters
    ----------
    features : ndarray or scipy.sparse.csr_array (n_items, n_features)
        One row for each item.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import FeatureKernel
    >>> FeatureKernel(np.array([[1.0, 0.0], [1.0, 1.0]])).diagonal()
    array([1., 2.])
    """

    features: Any

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.features.shape[0])

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a sparse matrix."""
        return not isinstance(self.features, np.ndarray)

    def diagonal(self) -> Array:
        """``L[i, i]`` of all items."""
        if self.is_sparse:
            return np.asarray(self.features.multiply(self.features).sum(axis=1), dtype=np.float64).ravel()
        return np.einsum("ij,ij->i", self.features, self.features)

    def rows(self, indices: ArrayLike) -> Array:
        """``L[indices, :]``."""
        return self._products(self.features[np.asarray(indices)], self.features)

    def block(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """``L[rows][:, columns]``."""
        return self._products(
            self.features[np.asarray(rows, dtype=np.int64)], self.features[np.asarray(columns, dtype=np.int64)]
        )

    def _products(self, left: Any, right: Any) -> Array:
        product = left @ right.T
        return np.asarray(product.toarray() if self.is_sparse else product, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class FunctionKernel:
    """A kernel computed when it is asked for: ``quality_i * function(X[i], X[j]) * quality_j``.

    Parameters
    ----------
    function : callable
        ``function(A, B)`` gives the similarities (n_a, n_b) of rows.
    X : ndarray or sparse matrix (n_items, n_features)
        What the function takes, one row for each item.
    quality : ndarray (n_items,), optional
        Non-negative factors; 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.processes.dpp import FunctionKernel
    >>> closeness = lambda a, b: np.exp(-((a - b.T) ** 2))
    >>> FunctionKernel(closeness, np.array([[0.0], [1.0]])).rows([0]).round(4)
    array([[1.    , 0.3679]])
    """

    function: Callable[[Any, Any], ArrayLike]
    X: Any
    quality: Array | None = None

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.X.shape[0])

    def diagonal(self) -> Array:
        """``L[i, i]`` of all items; computed once."""
        return self._diagonal.copy()

    def rows(self, indices: ArrayLike) -> Array:
        """``L[indices, :]``."""
        chosen = np.asarray(indices)
        values = np.array(self.function(self.X[chosen], self.X), dtype=np.float64)
        if self.quality is not None:
            values *= self.quality[chosen, None] * self.quality
        return values

    def block(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """``L[rows][:, columns]``."""
        above, beside = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
        if not (above.size and beside.size):
            return np.zeros((above.size, beside.size))
        values = np.array(self.function(self.X[above], self.X[beside]), dtype=np.float64)
        if self.quality is not None:
            values *= self.quality[above, None] * self.quality[beside]
        return values

    @cached_property
    def _diagonal(self) -> Array:
        values = np.empty(self.n_items)
        # In blocks of 64: a function of two sets of rows gives 64 times what is wanted, not n_items times.
        for begin in range(0, self.n_items, 64):
            block = self.X[begin : begin + 64]
            values[begin : begin + 64] = np.diagonal(np.asarray(self.function(block, block), dtype=np.float64))
        return values if self.quality is None else values * self.quality**2


def as_kernel_form(kernel: Any, name: str = "kernel") -> KernelForm:
    """A kernel as an object with ``diagonal``, ``rows`` and ``block``; a matrix is checked, a process gives its own."""
    if isinstance(kernel, type):
        raise ValueError(f"{name} must be a matrix or a kernel such as FeatureKernel(features), got {kernel!r}")
    if all(hasattr(kernel, part) for part in ("n_items", "diagonal", "rows", "block")):
        form: KernelForm = kernel
        return form
    inner = getattr(kernel, "kernel", None)
    if inner is not None and hasattr(inner, "block"):
        if kernel.n_items != inner.n_items:
            raise ValueError(
                f"{name} must be a process that is not conditioned, whose items have other numbers than its kernel's "
                "rows: use its own methods, such as map()"
            )
        return as_kernel_form(inner, name)
    return DenseKernel(check_kernel(kernel, name))


def checked_form(kernel: KernelForm, name: str = "L") -> KernelForm:
    """A kernel object as the algorithms want it: finite float64 numbers. That it is positive is not looked at."""
    if isinstance(kernel, DenseKernel):
        return DenseKernel(check_symmetric(kernel.matrix, name))
    if isinstance(kernel, FeatureKernel):
        rows = kernel.features
        if isinstance(rows, np.ndarray) and rows.dtype == np.float64 and rows.ndim == 2 and np.isfinite(rows).all():
            check_lengths(rows, name)
            return kernel
        return FeatureKernel(check_features(rows, name))
    return kernel


def as_subset(items: ArrayLike, n_items: int, name: str = "Y") -> IntArray:
    """Sorted ids of a subset given as ids or as a boolean mask.

    Examples
    --------
    >>> from pluri.processes.dpp import as_subset
    >>> as_subset([3, 1], 4), as_subset([False, True, False, True], 4)
    (array([1, 3]), array([1, 3]))
    """
    try:
        given = np.asarray(sorted(items) if isinstance(items, (set, frozenset)) else items)
    except ValueError as error:
        raise ValueError(f"{name} must be one list of items or one mask, got several of them") from error
    if given.ndim != 1:
        raise ValueError(f"{name} must be a list of items or a mask, got shape {given.shape}")
    if given.dtype == np.bool_ and given.size:
        if given.size != n_items:
            raise ValueError(f"{name} must be a mask over the {n_items} items, got {given.size} entries")
        return np.flatnonzero(given).astype(np.int64)
    if given.size == 0:
        return np.empty(0, dtype=np.int64)
    if not np.issubdtype(given.dtype, np.integer):
        raise ValueError(f"{name} must hold whole numbers, got {given.dtype}")
    ids: IntArray = np.sort(given.astype(np.int64))
    if ids[0] < 0 or ids[-1] >= n_items:
        raise ValueError(f"{name} must hold items from 0 to {n_items - 1}, got {ids[0] if ids[0] < 0 else ids[-1]}")
    repeated = ids[1:][ids[1:] == ids[:-1]]
    if repeated.size:
        raise ValueError(f"{name} must not name an item twice, got {repeated[0]} more than once")
    return ids
