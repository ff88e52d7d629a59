"""Gaussian distributions of whole state paths: their precision is block tridiagonal.

A path x_1, ..., x_T with p(x) proportional to exp(-x^T J x / 2 + h^T x), where J couples neighbours in time only, has
the mean J^-1 h and the covariance J^-1. The Cholesky factor of J is block bidiagonal, so that the mean, the blocks of
the covariance on and beside the diagonal, the log determinant and draws all cost O(T p^3): this is the Kalman smoother
in information form, for precisions that may differ from step to step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pluri.dynamics import _block_kernels as kernels

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PathDistribution:
    """Gaussian distributions of the paths of several sequences, by the Cholesky factors of their precisions.

    Parameters
    ----------
    offsets : ndarray (n_sequences + 1,)
        Where each sequence begins and ends.
    factors, couplings : ndarray (n, p, p)
        Blocks of the factor on and below the diagonal; the last coupling of a sequence means nothing.
    """

    offsets: Integers
    factors: Array
    couplings: Array

    @classmethod
    def from_precision(cls, diagonal: Array, below: Array, offsets: Integers) -> PathDistribution:
        """From the blocks J_tt (n, p, p) and J_{t+1,t} (n, p, p); neither is changed.

        Raises
        ------
        FloatingPointError
            If a precision is not positive definite.
        """
        factors, couplings = np.array(diagonal, dtype=np.float64), np.array(below, dtype=np.float64)
        offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        step = kernels.factorize(offsets, factors, couplings)
        if step >= 0:
            raise FloatingPointError(f"the precision of a state path is not positive definite at step {step}")
        return cls(offsets, factors, couplings)

    def log_determinants(self) -> Array:
        """Log determinant of the precision of each sequence: (n_sequences,)."""
        out = np.empty(len(self.offsets) - 1)
        kernels.log_determinants(self.offsets, self.factors, out)
        return out

    def solve(self, linear: Array) -> Array:
        """J^-1 h, which is the mean: (n, p)."""
        x = np.array(linear, dtype=np.float64)
        kernels.solve(self.offsets, self.factors, self.couplings, x)
        return x

    def covariances(self) -> tuple[Array, Array]:
        """Cov(x_t) and Cov(x_{t+1}, x_t), each (n, p, p); the latter 0 in the last step of a sequence."""
        marginal, lagged = np.empty_like(self.factors), np.empty_like(self.factors)
        p = self.factors.shape[1]
        kernels.covariances(self.offsets, self.factors, self.couplings, marginal, lagged, np.empty((2, p, p)))
        return marginal, lagged

    def sample(self, rng: np.random.Generator) -> Array:
        """Deviations from the mean, one path for each sequence: (n, p)."""
        x = rng.standard_normal(self.factors.shape[:2])
        kernels.backward(self.offsets, self.factors, self.couplings, x)
        return x
