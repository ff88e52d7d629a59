"""The matrices of a linear matrix inequality as one linear map: sparse, diagonal, dense and low-rank ones together.

For symmetric F_1, ..., F_n of size m the perceptron asks for three things: the combination ``sum_i x_i F_i``, the
quadratic forms ``(u'F_1 u, ..., u'F_n u)``, and the inner products ``<F_i, Y>``. Each matrix is kept as it is given,
so that a diagonal or a sparse one costs its entries and one of rank r costs r products.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

#: Largest difference of a matrix from its transpose, relative to its largest entry.
ASYMMETRY = 1e-8
#: A matrix with a smaller share of non-zero entries is kept by its entries.
SPARSE_SHARE = 0.25
#: Bytes of dense matrices from which on a warning is due.
MUCH_MEMORY = 2**30


@dataclass(frozen=True)
class LowRank:
    """A symmetric matrix of low rank, ``factors @ diag(weights) @ factors.T``.

    Parameters
    ----------
    factors : array-like of shape (m, rank) or (m,)
    weights : array-like of shape (rank,), optional
        All one by default.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.optimize.sdp import LowRank
    >>> LowRank([1.0, 2.0]).toarray()
    array([[1., 2.],
           [2., 4.]])
    """

    factors: ArrayLike
    weights: ArrayLike | None = None
    V: Array = field(init=False, repr=False, compare=False)
    w: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        V = np.asarray(self.factors, dtype=np.float64)
        V = V[:, None] if V.ndim == 1 else V
        w = np.ones(V.shape[-1]) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if V.ndim != 2 or w.shape != (V.shape[1],):
            raise ValueError(
                f"factors must have shape (m, rank) and weights (rank,), got shapes {V.shape} and {w.shape}"
            )
        object.__setattr__(self, "V", V)
        object.__setattr__(self, "w", w)

    @property
    def shape(self) -> tuple[int, int]:
        """Of the matrix."""
        return len(self.V), len(self.V)

    def toarray(self) -> Array:
        """The matrix itself."""
        return np.asarray((self.V * self.w) @ self.V.T)


@dataclass(frozen=True)
class MatrixFamily:
    """Symmetric matrices F_0, ..., F_(n-1) of one size: entries, dense matrices and factors, each with its owner i.

    Attributes
    ----------
    n, m : number of matrices, and their size
    owner, row, column, value : (n_entries,) entries of sparse matrices, both triangles
    dense_owner, dense : (n_dense,) and (n_dense, m * m)
    factor_owner, factors, weights : (n_factors,), (m, n_factors) and (n_factors,)
    """

    n: int
    m: int
    owner: Indices
    row: Indices
    column: Indices
    value: Array
    dense_owner: Indices
    dense: Array
    factor_owner: Indices
    factors: Array
    weights: Array

    def combine(self, x: Array) -> Array:
        """``sum_i x_i F_i``, (m, m)."""
        place = self.row * self.m + self.column
        total = _sums(place, self.value * x[self.owner], self.m * self.m)
        if len(self.dense):
            total += x[self.dense_owner] @ self.dense
        total = total.reshape(self.m, self.m)
        if len(self.weights):
            total += (self.factors * (self.weights * x[self.factor_owner])) @ self.factors.T
        return np.asarray(total)

    def forms(self, u: Array) -> Array:
        """``u'F_i u`` for all i."""
        found = _sums(self.owner, self.value * u[self.row] * u[self.column], self.n)
        if len(self.dense):
            found[self.dense_owner] += self.dense @ np.outer(u, u).ravel()
        if len(self.weights):
            found += _sums(self.factor_owner, self.weights * (u @ self.factors) ** 2, self.n)
        return found

    def inner(self, Y: Array) -> Array:
        """``<F_i, Y>`` for all i."""
        found = _sums(self.owner, self.value * Y[self.row, self.column], self.n)
        if len(self.dense):
            found[self.dense_owner] += self.dense @ Y.ravel()
        if len(self.weights):
            along = np.einsum("mr,mr->r", self.factors, Y @ self.factors)
            found += _sums(self.factor_owner, self.weights * along, self.n)
        return found

    def one(self, i: int) -> Array:
        """F_i as an array."""
        pick = np.zeros(self.n)
        pick[i] = 1.0
        return self.combine(pick)

    @cached_property
    def gram(self) -> Array:
        """``<F_i, F_j>`` for all pairs."""
        return np.stack([self.inner(self.one(i)) for i in range(self.n)])

    @cached_property
    def norms(self) -> Array:
        """Frobenius norm of each matrix."""
        return np.array([np.linalg.norm(self.one(i)) for i in range(self.n)])

    def scaled(self, factor: Array) -> MatrixFamily:
        """The family ``factor_i F_i``."""
        return replace(
            self,
            value=self.value * factor[self.owner],
            dense=self.dense * factor[self.dense_owner, None],
            weights=self.weights * factor[self.factor_owner],
        )

    def without_first(self) -> MatrixFamily:
        """The family F_1, ..., F_(n-1)."""
        entry, dense, low = self.owner > 0, self.dense_owner > 0, self.factor_owner > 0
        return MatrixFamily(
            self.n - 1, self.m,
            self.owner[entry] - 1, self.row[entry], self.column[entry], self.value[entry],
            self.dense_owner[dense] - 1, self.dense[dense],
            self.factor_owner[low] - 1, self.factors[:, low], self.weights[low],
        )  # fmt: skip


def matrix_family(matrices: Sequence[Any], name: str = "F", *, first: str | None = None) -> MatrixFamily:
    """Check matrices and bring them into one family.

    Parameters
    ----------
    matrices : sequence
        Of symmetric arrays (m, m), of diagonals (m,), of sparse arrays of SciPy, of `LowRank`.
    name : str
        What the sequence is called in refusals: ``F[2]``.
    first : str, optional
        What its first member is called, if it came as an argument of its own; the others then count from 0.
    """
    parts = [_entries(one, _called(i, name, first)) for i, one in enumerate(matrices)]
    if not parts:
        raise ValueError(f"{name} must hold at least one matrix, got none")
    m = parts[0].m
    for i, part in enumerate(parts):
        if part.m != m:
            raise ValueError(f"{_called(i, name, first)} must be of size {m} as the first matrix, got {part.m}")
    n_dense = sum(part.dense is not None for part in parts)
    if n_dense * m * m * 8 > MUCH_MEMORY:
        warnings.warn(
            f"{name} holds {n_dense} dense matrices of size {m}, which take {n_dense * m * m * 8 / 2**30:.1f} GB: give "
            "sparse or low-rank ones if they are",
            UserWarning,
            stacklevel=3,
        )
    dense = [part.dense.ravel() for part in parts if part.dense is not None]
    return MatrixFamily(
        len(parts), m,
        _owners([len(part.value) for part in parts]),
        np.concatenate([part.row for part in parts]),
        np.concatenate([part.column for part in parts]),
        np.concatenate([part.value for part in parts]),
        _owners([int(part.dense is not None) for part in parts]),
        np.stack(dense) if dense else np.zeros((0, m * m)),
        _owners([len(part.weights) for part in parts]),
        np.concatenate([part.factors for part in parts], axis=1),
        np.concatenate([part.weights for part in parts]),
    )  # fmt: skip


@dataclass(frozen=True)
class _Part:
    """One matrix, kept in one of three ways."""

    m: int
    row: Indices
    column: Indices
    value: Array
    dense: Array | None
    factors: Array
    weights: Array


def _sums(group: Indices, values: Array, n: int) -> Array:
    """Sum of the values of each group."""
    # As numbers with a point: without values NumPy counts in integers.
    return np.asarray(np.bincount(group, values, minlength=n), dtype=np.float64)


def _owners(sizes: list[int]) -> Indices:
    return np.repeat(np.arange(len(sizes)), sizes)


def _called(i: int, name: str, first: str | None) -> str:
    if first is None:
        return f"{name}[{i}]"
    return first if i == 0 else f"{name}[{i - 1}]"


def _entries(one: Any, name: str) -> _Part:
    none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
    if isinstance(one, LowRank):
        if not (np.isfinite(one.V).all() and np.isfinite(one.w).all()):
            raise ValueError(f"{name} must be finite, got NaN or infinity")
        return _Part(len(one.V), none, none, nothing, None, one.V, one.w)
    if hasattr(one, "tocoo"):
        entries = one.tocoo()
        shape, row, column, value = entries.shape, entries.row, entries.col, entries.data.astype(np.float64)
        _refuse(shape, value, name)
        difference = abs(one - one.T).max() if len(value) else 0.0
        _check_symmetry(difference, value, name)
        both = np.concatenate([row, column]), np.concatenate([column, row]), np.concatenate([value, value]) / 2
        return _Part(
            shape[0], both[0].astype(np.int64), both[1].astype(np.int64), both[2], None, *_no_factors(shape[0])
        )
    try:
        array = np.asarray(one, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be a matrix of numbers, got {type(one).__name__}") from error
    if array.ndim == 1:
        _refuse((len(array), len(array)), array, name)
        place = np.flatnonzero(array)
        return _Part(len(array), place, place, array[place], None, *_no_factors(len(array)))
    _refuse(array.shape, array, name)
    _check_symmetry(np.abs(array - array.T).max(), array, name)
    array = (array + array.T) / 2
    m = len(array)
    row, column = np.nonzero(array)
    if len(row) > SPARSE_SHARE * m * m and m > 1:
        return _Part(m, none, none, nothing, array, *_no_factors(m))
    return _Part(m, row, column, array[row, column], None, *_no_factors(m))


def _no_factors(m: int) -> tuple[Array, Array]:
    return np.zeros((m, 0)), np.zeros(0)


def _refuse(shape: tuple[int, ...], values: Array, name: str) -> None:
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        raise ValueError(f"{name} must be a square matrix or a diagonal, got shape {shape}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")


def _check_symmetry(difference: float, values: Array, name: str) -> None:
    largest = float(np.abs(values).max(initial=0.0))
    if difference > ASYMMETRY * largest:
        raise ValueError(
            f"{name} must be symmetric, got entries that differ by {float(difference):.2g} from the transpose"
        )
