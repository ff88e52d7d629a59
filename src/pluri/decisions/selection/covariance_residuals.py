"""Covariance matrices: checked, inverted, and what is left of their diagonals as variables become known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from pluri.decisions.selection.set_function import Array

#: A residual variance below this share of the variance itself is rounding.
NOTHING_LEFT = 1e-12


@dataclass
class Residuals:
    """What is left of the diagonal of a matrix after a partial Cholesky factorisation.

    Attributes
    ----------
    matrix : (n, n)
    left : (n,)
        Schur complement's diagonal, given the pivots so far.
    columns : list of (n,)
        Columns of the factor.
    """

    matrix: Array
    left: Array
    columns: list[Array]

    @classmethod
    def of(cls, matrix: Array) -> Residuals:
        """Before the first pivot."""
        return cls(matrix, np.diagonal(matrix).copy(), [])

    def pivot(self, item: int) -> None:
        """Change the record: one more pivot."""
        column = self.matrix[item].copy()
        for earlier in self.columns:
            column -= earlier[item] * earlier
        column /= np.sqrt(self.left[item])
        self.columns.append(column)
        self.left -= column**2
        np.maximum(self.left, 0.0, out=self.left)


def checked_covariance(covariance: Any) -> Array:
    """A finite symmetric matrix without negative variances."""
    found = np.asarray(covariance, dtype=np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not len(found):
        raise ValueError(f"covariance must be a square matrix, got shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("covariance must be finite, got NaN or infinity")
    gap = float(np.abs(found - found.T).max())
    if gap == 0 and (np.diagonal(found) >= 0).all():
        return found
    if gap > 1e-8 * max(1.0, float(np.abs(found).max())):
        raise ValueError(f"covariance must be symmetric, got entries that differ by {gap:.3g}")
    if (np.diagonal(found) < 0).any():
        raise ValueError(f"covariance must have non-negative variances, got {np.diagonal(found).min():.3g}")
    return (found + found.T) / 2.0


def inverse(covariance: Array) -> Array:
    """Inverse of a positive definite matrix, by its Cholesky factor."""
    # A symmetric matrix is its own transpose, so that LAPACK, which wants columns, need not copy it into another order.
    factor, failed = lapack.dpotrf(covariance.T.copy(order="F"), lower=1, clean=0, overwrite_a=1)
    if failed == 0:
        found, failed = lapack.dpotri(factor, lower=1, overwrite_c=1)
    if failed:
        raise ValueError(
            "covariance must be positive definite, got one that is not: add the variance of the noise to its diagonal"
        )
    upper = np.triu(found.T)  # the same numbers, in C order
    whole = upper + upper.T
    np.fill_diagonal(whole, np.diagonal(upper))
    return np.asarray(whole)


def log_det(block: Array) -> float:
    """Log determinant; minus infinity if it is not positive."""
    if not len(block):
        return 0.0
    sign, value = np.linalg.slogdet(block)
    return float(value) if sign > 0 else -np.inf
