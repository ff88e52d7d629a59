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

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

#: Entries of a kernel above this, or of features above its root, would overflow once they are added up.
LARGEST = 1e300
#: Asymmetry, and negative eigenvalues, up to this share of the largest entry or eigenvalue count as rounding.
ROUNDING = 1e-8
#: The same for a matrix of single precision.
SINGLE_ROUNDING = 1e-5


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


def check_kernel(kernel: ArrayLike, name: str = "L") -> Array:
    """A finite, symmetric, positive semi-definite matrix as float64; what is neither is refused.

    Asymmetry up to 1e-8 of the largest entry is averaged away. Whether the matrix is positive semi-definite is judged
    by a Cholesky factorisation of the slightly shifted matrix, and by its eigenvalues only where that fails.

    Examples
    --------
    >>> from pluri.processes.dpp import check_kernel
    >>> check_kernel([[1, 2], [2, 1]])
    Traceback (most recent call last):
        ...
    ValueError: L must be positive semi-definite, got the eigenvalue -1 (the largest is 3)
    """
    matrix = check_symmetric(kernel, name)
    scale = float(np.abs(matrix).sum(axis=1).max())
    if scale > 0:
        if not np.diagonal(matrix).any():
            raise ValueError(
                f"{name} must hold similarities, got a diagonal of zeros, as distances have: turn them into "
                "similarities first, for instance by exp(-distance**2)"
            )
        # The largest eigenvalue is at least scale / sqrt(n): what passes with this shift is within the rounding.
        shifted = matrix.copy()
        shifted.flat[:: len(matrix) + 1] += ROUNDING * scale / np.sqrt(len(matrix))
        try:
            np.linalg.cholesky(shifted)
        except np.linalg.LinAlgError:
            if _tolerance(kernel) > ROUNDING:
                return _without_negative(matrix, _tolerance(kernel), name)
            check_eigenvalues(np.linalg.eigvalsh(matrix), name)
    return matrix


def _tolerance(kernel: ArrayLike) -> float:
    """Share of the largest entry or eigenvalue that is rounding: more for numbers of single precision."""
    kind = getattr(kernel, "dtype", None)
    return SINGLE_ROUNDING if kind in (np.float32, np.float16) else ROUNDING


def _without_negative(matrix: Array, tolerance: float, name: str) -> Array:
    """A kernel of single precision without the negative eigenvalues that its rounding gave it."""
    values, vectors = np.linalg.eigh(matrix)
    check_eigenvalues(values, name, tolerance)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def check_symmetric(kernel: ArrayLike, name: str = "L") -> Array:
    """A finite, symmetric matrix of at least one item as a new float64 array; rounding is averaged away."""
    if hasattr(kernel, "toarray"):
        raise ValueError(f"{name} must be a dense matrix, got a sparse one: call its toarray(), or give features=")
    if isinstance(kernel, list | tuple):
        kernel = _as_array(kernel, name)
    if np.iscomplexobj(kernel):
        raise ValueError(f"{name} must be real, got complex numbers")
    matrix = _numbers(kernel, name)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be a square matrix, got shape {matrix.shape}")
    if matrix.shape[0] == 0:
        raise ValueError(f"{name} must have at least one item, got an empty matrix")
    largest = float(np.abs(matrix).max())
    if not np.isfinite(largest):
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if largest > LARGEST:
        raise ValueError(f"{name} must have entries of at most {LARGEST:g}, got {largest:.3g}: scale it down")
    asymmetry = float(np.abs(matrix - matrix.T).max())
    if asymmetry > _tolerance(kernel) * max(largest, np.finfo(np.float64).tiny):
        raise ValueError(f"{name} must be symmetric, got entries that differ by {asymmetry:.3g} from their mirror")
    matrix += matrix.T.copy()
    matrix *= 0.5
    return matrix


def check_eigenvalues(values: NDArray[Any], name: str, tolerance: float = ROUNDING) -> None:
    """Refuse a negative eigenvalue that is no rounding."""
    smallest, largest = float(values.min()), float(np.abs(values).max())
    if smallest < -tolerance * largest:
        small = smallest > -1e-2 * largest
        hint = "; if that is rounding, pluri.priors.kernels.repair_kernel mends it" if small else ""
        raise ValueError(
            f"{name} must be positive semi-definite, got the eigenvalue {smallest:.6g} (the largest is "
            f"{largest:.6g}){hint}"
        )


def _as_array(values: Any, name: str) -> NDArray[Any]:
    """An array of whatever type; rows of several lengths are none."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} must hold numbers only, in rows of one length") from error


def _numbers(values: Any, name: str) -> Array:
    """A new float64 array."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers only, in rows of one length") from error


def check_features(features: Any, name: str = "features") -> Any:
    """Finite feature rows as a float64 array, or as a CSR array if they are sparse."""
    from scipy import sparse

    if sparse.issparse(features):
        rows = sparse.csr_array(features, dtype=np.float64)
        finite = np.isfinite(rows.data).all()
    else:
        rows = _numbers(features, name)
        finite = bool(np.isfinite(rows).all())
    if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
        raise ValueError(f"{name} must be a matrix with a row for each item, got shape {rows.shape}")
    if not finite:
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return check_lengths(rows, name)


def check_lengths(rows: Any, name: str) -> Any:
    """The feature rows as they are, unless their products would overflow."""
    entries = rows if isinstance(rows, np.ndarray) else rows.data
    largest = float(np.abs(entries).max(initial=0.0))
    if not largest < np.sqrt(LARGEST / rows.shape[1]):
        raise ValueError(f"{name} must be so small that their products stay finite, got {largest:.3g}: scale them down")
    return rows


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


def check_quality(quality: ArrayLike, n_items: int) -> Array:
    """Finite, non-negative numbers, one for each item."""
    values = np.array(quality, dtype=np.float64)
    if values.shape != (n_items,) or not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError(
            f"quality must be {n_items} finite, non-negative numbers, one for each item, got shape {values.shape}"
            + (f" with a minimum of {values.min():.3g}" if values.size else "")
        )
    return values


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
