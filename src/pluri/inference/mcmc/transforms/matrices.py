"""Covariance and correlation matrices, or their Cholesky factors, as functions of free vectors.

A covariance is ``L L'`` with the logarithms of the diagonal of L free. A correlation matrix has factors whose rows have
length one: ``L_ij = z_ij prod_{l<j} sqrt(1 - z_il^2)`` with ``z = tanh(u)``, and what is left of the row stands on the
diagonal. A density may be one of the factor (its lower triangle) or of the matrix (likewise); their Jacobians differ.

References
----------
.. [1] Lewandowski, D., Kurowicka, D. and Joe, H. (2009). Generating random correlation matrices based on vines and
       extended onion method. J. Multivariate Analysis 100, 1989-2001.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.inference.mcmc.transforms.scalars import Transform, as_shape, total
from pluri.inference.mcmc.transforms.vectors import checked_count, sums_from_the_end

Array = NDArray[np.float64]


def factor_of(matrix: Array) -> Array:
    """Cholesky factors of matrices that must be symmetric and positive definite."""
    if not np.allclose(matrix, np.swapaxes(matrix, -1, -2), rtol=1e-8, atol=1e-12):
        raise ValueError("it must be symmetric")
    try:
        return np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise ValueError("it must be positive definite") from None


def checked_factor(factor: Array) -> Array:
    """Lower triangular matrices with a positive diagonal."""
    if np.triu(factor, 1).any() or not (np.diagonal(factor, axis1=-2, axis2=-1) > 0).all():
        raise ValueError("it must be lower triangular with a positive diagonal")
    return factor


def through_product(gradient: Array, factor: Array) -> Array:
    """Gradient with respect to L of a function of ``L L'``."""
    return (gradient + np.swapaxes(gradient, -1, -2)) @ factor


@dataclass(frozen=True)
class CovarianceCholesky(Transform):
    """Lower triangular k x k matrices with a positive diagonal; the density is one of the triangle.

    Parameters
    ----------
    k : int
    shape : int or tuple of int, default=()
        Several matrices: the variable has shape ``(*shape, k, k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.matrices import CovarianceCholesky
    >>> CovarianceCholesky(2).forward(np.array([0.0, 0.5, 0.0]))[0]
    array([[1. , 0. ],
           [0.5, 1. ]])
    """

    k: int
    shape: Any = ()
    whole = False

    def __post_init__(self) -> None:
        k = checked_count(self.k, 1)
        lead = as_shape(self.shape)
        self._set_shape((*lead, k, k), math.prod(lead) * k * (k + 1) // 2)
        rows, columns = np.tril_indices(k)
        # |d L L' / d L| = 2^k prod_i L_ii^(k - i), i from 0; the diagonal itself adds one power for its logarithm.
        power = 1.0 + (k - np.arange(k) if self.whole else np.zeros(k))
        object.__setattr__(self, "_triangle", rows * k + columns)
        object.__setattr__(self, "_diagonal", np.flatnonzero(rows == columns))
        object.__setattr__(self, "_power", power)
        object.__setattr__(self, "_constant", math.prod(lead) * k * math.log(2.0) if self.whole else 0.0)

    def forward(self, free: Array) -> tuple[Array, float, Any]:
        """The logarithm of the Jacobian is a weighted sum of the logarithms of the diagonal."""
        entries = free.reshape(*self.shape[:-2], -1).copy()
        diagonal: NDArray[np.int64] = self._diagonal  # type: ignore[attr-defined]
        logarithms = entries[..., diagonal]
        log_jacobian = total(logarithms * self._power) + self._constant  # type: ignore[attr-defined]
        entries[..., diagonal] = np.exp(logarithms)
        factor = np.zeros((*self.shape[:-2], self.k * self.k))
        factor[..., self._triangle] = entries  # type: ignore[attr-defined]
        factor = factor.reshape(self.shape)
        return (factor @ np.swapaxes(factor, -1, -2) if self.whole else factor), log_jacobian, factor

    def backward(self, gradient: Any, memory: Any) -> Array:
        """The lower triangle of the gradient; times the diagonal, plus the powers of the Jacobian, on the diagonal."""
        gradient = np.asarray(gradient, dtype=np.float64)
        if self.whole:
            gradient = through_product(gradient, memory)
        diagonal: NDArray[np.int64] = self._diagonal  # type: ignore[attr-defined]
        flat = (*self.shape[:-2], self.k * self.k)
        result = gradient.reshape(flat)[..., self._triangle]  # type: ignore[attr-defined]
        scale = np.diagonal(memory, axis1=-2, axis2=-1)
        result[..., diagonal] = result[..., diagonal] * scale + self._power  # type: ignore[attr-defined]
        return result.reshape(-1)

    def inverse(self, value: Array) -> Array:
        """Free numbers of a factor, or of a covariance matrix."""
        factor = factor_of(value) if self.whole else checked_factor(value)
        triangle: NDArray[np.int64] = self._triangle  # type: ignore[attr-defined]
        entries = factor.reshape(*self.shape[:-2], -1)[..., triangle]
        diagonal: NDArray[np.int64] = self._diagonal  # type: ignore[attr-defined]
        entries[..., diagonal] = np.log(entries[..., diagonal])
        return entries.reshape(-1)


@dataclass(frozen=True)
class Covariance(CovarianceCholesky):
    """Symmetric positive definite k x k matrices; the density is one of the lower triangle.

    Gradients are taken entry by entry, as if the two triangles were free of each other.

    Parameters
    ----------
    k : int
    shape : int or tuple of int, default=()
        Several matrices: the variable has shape ``(*shape, k, k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.matrices import Covariance
    >>> Covariance(2).forward(np.array([0.0, 0.5, 0.0]))[0]
    array([[1.  , 0.5 ],
           [0.5 , 1.25]])
    """

    whole = True


@dataclass(frozen=True)
class CorrelationCholesky(Transform):
    """Cholesky factors of k x k correlation matrices; the density is one of the triangle below the diagonal.

    Parameters
    ----------
    k : int
    shape : int or tuple of int, default=()
        Several matrices: the variable has shape ``(*shape, k, k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.matrices import CorrelationCholesky
    >>> factor = CorrelationCholesky(3).forward(np.array([0.5, -1.0, 2.0]))[0]
    >>> np.diagonal(factor @ factor.T).round(12)
    array([1., 1., 1.])
    """

    k: int
    shape: Any = ()
    whole = False

    def __post_init__(self) -> None:
        k = checked_count(self.k, 2)
        lead = as_shape(self.shape)
        self._set_shape((*lead, k, k), math.prod(lead) * k * (k - 1) // 2)
        rows, columns = np.tril_indices(k, -1)
        # Powers of sqrt(1 - z^2) in the Jacobian: two of dz/du, one for each later entry of the row below the
        # diagonal; and for the matrix, L_ii once for each row below it.
        power = np.zeros((k, k))
        power[rows, columns] = rows - columns + 1 + (k - 1 - rows if self.whole else 0)
        object.__setattr__(self, "_triangle", rows * k + columns)
        object.__setattr__(self, "_power", power)
        object.__setattr__(self, "_on_diagonal", np.eye(k, dtype=bool))

    def forward(self, free: Array) -> tuple[Array, float, Any]:
        """Row by row: tanh(u) of what is left of the length."""
        lead = self.shape[:-2]
        spread = np.zeros((*lead, self.k * self.k))
        spread[..., self._triangle] = free.reshape(*lead, -1)  # type: ignore[attr-defined]
        spread = spread.reshape(self.shape)
        share = np.tanh(spread)
        # log sqrt(1 - tanh^2 u) = -log cosh u
        size = np.abs(spread)
        log_left = math.log(2.0) - size - np.log1p(np.exp(-2.0 * size))
        before = np.exp(np.add.accumulate(log_left, axis=-1) - log_left)
        factor = np.where(self._on_diagonal, before, share * before)  # type: ignore[attr-defined]
        log_jacobian = total(self._power * log_left)  # type: ignore[attr-defined]
        return (factor @ np.swapaxes(factor, -1, -2) if self.whole else factor), log_jacobian, (factor, share, before)

    def backward(self, gradient: Any, memory: Any) -> Array:
        """An entry's own slope, and what it takes from those after it in its row."""
        factor, share, before = memory
        gradient = np.asarray(gradient, dtype=np.float64)
        if self.whole:
            gradient = through_product(gradient, factor)
        effect = gradient * factor
        after = sums_from_the_end(effect) - effect
        result = gradient * (1.0 - share**2) * before - share * (after + self._power)  # type: ignore[attr-defined]
        flat = result.reshape(*self.shape[:-2], -1)
        return flat[..., self._triangle].reshape(-1)  # type: ignore[attr-defined]

    def inverse(self, value: Array) -> Array:
        """Free numbers of a factor, or of a correlation matrix."""
        factor = factor_of(value) if self.whole else checked_factor(value)
        if not np.allclose((factor**2).sum(axis=-1), 1.0, rtol=0, atol=1e-8):
            raise ValueError("it must have ones on the diagonal of the correlation matrix")
        squares = sums_from_the_end(factor**2)
        share = np.clip(factor / np.sqrt(np.where(squares > 0, squares, 1.0)), -1.0, 1.0)
        triangle: NDArray[np.int64] = self._triangle  # type: ignore[attr-defined]
        return np.arctanh(share.reshape(*self.shape[:-2], -1)[..., triangle]).reshape(-1)


@dataclass(frozen=True)
class Correlation(CorrelationCholesky):
    """Correlation matrices of k variables; the density is one of the triangle below the diagonal.

    Gradients are taken entry by entry, as if the two triangles were free of each other.

    Parameters
    ----------
    k : int
    shape : int or tuple of int, default=()
        Several matrices: the variable has shape ``(*shape, k, k)``.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.inference.mcmc.transforms.matrices import Correlation
    >>> Correlation(2).forward(np.arctanh([0.3]))[0]
    array([[1. , 0.3],
           [0.3, 1. ]])
    """

    whole = True
