r"""What a similarity kernel is, and the log determinant of its matrix.

A kernel turns ``n`` parts (rows, points, distributions, subspaces) into the symmetric positive semi-definite matrix
:math:`K_{ij} = k(\theta_i, \theta_j)`. A prior that rewards difference needs :math:`\log\det K` and its gradient, and
since :math:`d \log\det K = \operatorname{tr}(K^{-1} dK)` the gradient follows from one operation, the *pullback*

.. math:: \Bigl(\frac{\partial}{\partial \theta_i} \sum_{jl} S_{jl} K_{jl}\Bigr)_i, \qquad S = K^{-1},

in which both arguments of the kernel vary. Each kernel of this folder has it in closed form.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pluri.priors.determinant import DiversityWarning
from pluri.priors.protocol import FloatArray


class SimilarityKernel(ABC):
    """A similarity of parts; kernels derive from it, give `__call__` and `pullback`, and inherit the determinant.

    Examples
    --------
    >>> import numpy as np
    >>> from pluri.priors.kernels import RBFKernel
    >>> points = np.array([[0.0], [1.0], [3.0]])
    >>> RBFKernel(length_scale=1.0).log_determinant(points)
    -0.485312
    """

    @abstractmethod
    def __call__(self, parameters: Any, others: Any = None) -> FloatArray:
        """Similarities (n_parts, n_others); of the parts among each other if ``others`` is None."""

    @abstractmethod
    def pullback(self, parameters: Any, sensitivity: ArrayLike) -> Any:
        """Gradient of ``sum(sensitivity * self(parameters))``, in the shape of the parameters.

        Only the symmetric part of the sensitivity (n_parts, n_parts) counts.
        """

    def diagonal(self, parameters: Any) -> FloatArray:
        """Similarity of each part with itself, (n_parts,)."""
        return np.array(np.diagonal(self(parameters)))

    def log_determinant(self, parameters: Any) -> float:
        """Log determinant of the kernel matrix, minus infinity when it is singular to rounding."""
        return log_determinant_of_matrix(self(parameters))

    def log_determinant_gradient(self, parameters: Any) -> Any:
        """Gradient of `log_determinant`, in the shape of the parameters; see `pullback`."""
        return self.pullback(parameters, inverse_of_matrix(self(parameters)))


def log_determinant_of_matrix(matrix: ArrayLike) -> float:
    """Log determinant of a positive semi-definite matrix, minus infinity when it is singular to rounding.

    Examples
    --------
    >>> from pluri.priors.kernels import log_determinant_of_matrix
    >>> log_determinant_of_matrix([[1.0, 0.5], [0.5, 1.0]]), log_determinant_of_matrix([[1.0, 1.0], [1.0, 1.0]])
    (-0.287682, -inf)
    """
    units, roots = _scaled_to_unit_diagonal(np.asarray(matrix, dtype=np.float64))
    if not (roots > 0).all():
        return -np.inf
    spectrum: FloatArray = np.linalg.eigvalsh(units).astype(np.float64)
    if spectrum[0] <= _rounding(spectrum):
        return -np.inf
    return float(np.sum(np.log(spectrum)) + 2.0 * np.sum(np.log(roots)))


def inverse_of_matrix(matrix: ArrayLike) -> FloatArray:
    """Inverse of a positive semi-definite matrix; its pseudo-inverse, with a warning, when it is singular."""
    units, roots = _scaled_to_unit_diagonal(np.asarray(matrix, dtype=np.float64))
    spectrum, vectors = np.linalg.eigh(units)
    keep = spectrum > _rounding(spectrum)
    if not (keep.all() and (roots > 0).all()):
        warnings.warn(
            "the kernel matrix is singular (parts coincide, or are linearly dependent): its pseudo-inverse is used",
            DiversityWarning,
            stacklevel=3,
        )
    inverse = (vectors * np.where(keep, 1.0 / np.where(keep, spectrum, 1.0), 0.0)) @ vectors.T
    scale = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    return inverse * scale[:, None] * scale


def symmetric(sensitivity: ArrayLike, n_parts: int) -> FloatArray:
    """The symmetric part of a sensitivity, after a check of its shape."""
    values = np.asarray(sensitivity, dtype=np.float64)
    if values.shape != (n_parts, n_parts):
        raise ValueError(f"sensitivity must be a matrix over the {n_parts} parts, got shape {values.shape}")
    return 0.5 * (values + values.T)


def _scaled_to_unit_diagonal(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    # Rows of very different scales would otherwise drown the small eigenvalues in the rounding of the large ones.
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise ValueError(f"the kernel matrix must be square and not empty, got shape {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise ValueError("the kernel matrix must be finite, got NaN or infinity")
    diagonal = np.diagonal(matrix)
    if (diagonal < 0).any():
        raise ValueError(f"the kernel matrix must have a non-negative diagonal, got {diagonal.min():.6g}")
    roots = np.sqrt(diagonal)
    scale = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0)
    return 0.5 * (matrix + matrix.T) * scale[:, None] * scale, roots


def _rounding(spectrum: FloatArray) -> float:
    return float(spectrum.size * np.finfo(np.float64).eps * max(spectrum[-1], np.finfo(np.float64).tiny))
