r"""The spectrum of a determinantal point process: independent coins, one for each eigenvector.

With :math:`L = \sum_n \lambda_n v_n v_n^\top` the process is a mixture: each eigenvector is taken with probability
:math:`\lambda_n / (1 + \lambda_n)`, and the items are then drawn from the projection on those taken. Normaliser, sizes,
marginals and the exact samplers follow from the pairs :math:`(\lambda_n, v_n)`. For features, :math:`L = F F^\top`,
they come from the small matrix :math:`F^\top F` (the dual representation): :math:`v_n = F c_n / \sqrt{\lambda_n}`.

References
----------
.. [1] J. B. Hough, M. Krishnapur, Y. Peres and B. Virag, "Determinantal processes and independence", Probability
   Surveys 3, 2006.
.. [2] A. Kulesza and B. Taskar, "Determinantal point processes for machine learning", Foundations and Trends in Machine
   Learning 5, 2012.
.. [3] Z. Drmac and K. Veselic, "New fast and accurate Jacobi SVD algorithm", SIAM Journal on Matrix Analysis and
   Applications 29, 2008.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.processes.dpp.kernel_checks import ROUNDING, check_eigenvalues
from pluri.processes.dpp.kernel_forms import Array

#: A marginal eigenvalue this close to one is a direction that is always taken.
CERTAIN = 1e-12
#: Below this ratio of eigenvalues the product of the features with themselves has lost the small ones.
SAFE_TO_SQUARE = 1e-8
#: Items of such different lengths (ratio of L_ii) need more than a method that is accurate relative to the longest.
GRADED = 1e10


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and eigenvectors of a kernel, without those that are zero.

    Attributes
    ----------
    odds : (rank,), descending
        Eigenvalues of L: the odds that an eigenvector is taken; infinity for one that always is.
    vectors : (n_items, rank)
        Orthonormal eigenvectors in columns, each contiguous in memory.
    """

    odds: Array
    vectors: Array

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.vectors.shape[0])

    @property
    def rank(self) -> int:
        """Number of eigenvalues that are not zero: no subset can be larger."""
        return int(self.odds.size)

    @cached_property
    def probabilities(self) -> Array:
        """Probability that each eigenvector is taken: eigenvalues of the marginal kernel K."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(1.0 / (1.0 + 1.0 / self.odds))

    @cached_property
    def log_odds(self) -> Array:
        """Logarithms of the odds."""
        return np.asarray(np.log(self.odds))

    @property
    def log_normalizer(self) -> float:
        """``log det(L + I)``; infinite if some direction is always taken."""
        return float(np.log1p(self.odds).sum())

    @property
    def has_certain(self) -> bool:
        """Whether a direction is always taken, so that there is no L."""
        return bool(self.rank and np.isinf(self.odds[0]))

    def scaled(self, factor: float) -> Spectrum:
        """The spectrum of ``factor * L``."""
        return Spectrum(self.odds * factor, self.vectors)


def spectrum_of_kernel(kernel: Array, name: str = "L") -> Spectrum:
    """Spectrum of a symmetric kernel L; ValueError if it has a negative eigenvalue beyond rounding.

    Eigenvalues below about n eps of the largest are rounding and count as zero, unless the kernel is diagonal. Items
    of very different quality are first brought to the same length, so that those of low quality keep their digits.
    """
    from scipy.linalg import eigh

    if len(kernel) == 0:
        return Spectrum(np.empty(0), np.empty((0, 0)))
    diagonal = np.diagonal(kernel)
    if np.count_nonzero(kernel) == np.count_nonzero(diagonal):
        # Independent items: their own eigenvalues, exact however far apart they are.
        check_eigenvalues(diagonal, name)
        order = np.argsort(-diagonal, kind="stable")[: np.count_nonzero(diagonal > 0)]
        return Spectrum(diagonal[order], np.asfortranarray(np.eye(len(kernel))[:, order]))
    if not np.isfinite(kernel).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    if _is_graded(diagonal) and (found := _graded_spectrum(kernel)) is not None:
        return found
    values, vectors = eigh(kernel, check_finite=False, driver="evd")
    check_eigenvalues(values, name)
    return _positive(values, vectors, values > _rounding(len(values)) * max(values[-1], 0.0))


def _is_graded(diagonal: Array) -> bool:
    """Whether the lengths of the items that are not zero span so much that the short ones would be lost."""
    positive = diagonal[diagonal > 0]
    return bool(positive.size and positive.max() > GRADED * positive.min())


def _graded_spectrum(kernel: Array) -> Spectrum | None:
    """Spectrum of ``D S D`` with a similarity S of unit diagonal: ``S = G G^T``, then singular values of ``D G``.

    None if S is not positive semi-definite: the short items are rounding of the long ones.
    """
    from scipy.linalg import eigh

    # Powers of two: nothing is rounded.
    scale = np.exp2(np.round(0.5 * np.log2(np.where(np.diagonal(kernel) > 0, np.diagonal(kernel), 1.0))))
    values, vectors = eigh(kernel / scale / scale[:, None], check_finite=False, driver="evd")
    if values[0] < -ROUNDING * values[-1]:
        return None
    keep = values > _rounding(len(values)) * values[-1]
    return _spectrum_of_graded_rows(scale[:, None] * (vectors[:, keep] * np.sqrt(values[keep])))


def _spectrum_of_graded_rows(rows: Array) -> Spectrum:
    """Spectrum of ``F F^T`` from rows of very different lengths, no fewer than columns, by one-sided Jacobi rotations.

    Singular values come out accurate relative to themselves, not only to the largest [3]_.
    """
    from scipy.linalg.lapack import dgejsv

    singular, left, _, work, _, trouble = dgejsv(rows, joba=2, jobu=0, jobv=3, jobr=1, jobt=0, jobp=0)
    if trouble:
        raise ValueError(f"the singular values of items of so different lengths were not found (LAPACK says {trouble})")
    singular = singular * (work[0] / work[1])
    order = np.argsort(-singular, kind="stable")
    order = order[singular[order] > 0]
    return Spectrum(singular[order] ** 2, np.asfortranarray(left[:, order]))


def spectrum_of_marginal(marginal: Array) -> Spectrum:
    """Spectrum from the marginal kernel K, whose eigenvalues must lie between 0 and 1."""
    from scipy.linalg import eigh

    if len(marginal) == 0:
        return Spectrum(np.empty(0), np.empty((0, 0)))
    values, vectors = eigh(marginal, check_finite=False, driver="evd")
    if values[0] < -ROUNDING or values[-1] > 1 + ROUNDING:
        worst = values[0] if values[0] < -ROUNDING else values[-1]
        raise ValueError(f"K must have eigenvalues between 0 and 1, got {worst:.6g}")
    clipped = np.clip(values, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        odds = np.where(clipped >= 1 - CERTAIN, np.inf, clipped / (1 - clipped))
    # K carries rounding of the size of one, not of its largest odds.
    return _positive(odds, vectors, clipped > _rounding(len(values)))


def spectrum_of_features(features: Any) -> Spectrum:
    """Spectrum of ``F F^T`` from feature rows, dense or sparse, through the smaller of its two products."""
    from scipy.linalg import eigh, svd

    n_items, n_features = features.shape
    is_sparse = not isinstance(features, np.ndarray)
    if n_features >= n_items:
        product = features @ features.T
        return spectrum_of_kernel(np.asarray(product.toarray() if is_sparse else product), "features @ features.T")
    product = features.T @ features
    values, vectors = eigh(np.asarray(product.toarray() if is_sparse else product), check_finite=False, driver="evd")
    if not is_sparse and values[-1] > 0 and values[0] < SAFE_TO_SQUARE * values[-1]:
        # Squaring has lost the small ones; the singular values of the features themselves keep twice the digits.
        if _is_graded(np.einsum("ij,ij->i", features, features)):
            return _spectrum_of_graded_rows(features)
        left, singular, _ = svd(features, full_matrices=False, check_finite=False)
        keep = singular > _rounding(max(features.shape)) * singular[0]
        return Spectrum(singular[keep] ** 2, np.asfortranarray(left[:, keep]))
    keep = values > _rounding(n_features) * max(values[-1], 0.0)
    odds = values[keep][::-1]
    directions = (vectors[:, keep] / np.sqrt(values[keep]))[:, ::-1]
    # The transpose of the product of the transposes: each eigenvector comes out contiguous, without a copy.
    return Spectrum(np.ascontiguousarray(odds), np.asfortranarray((directions.T @ features.T).T))


def _rounding(n: int) -> float:
    """Share of the largest eigenvalue below which one of n eigenvalues is rounding of zero."""
    return float(4 * n * np.finfo(np.float64).eps)


def _positive(values: Array, vectors: Array, keep: NDArray[np.bool_]) -> Spectrum:
    """What is to be kept of ascending eigenvalues, largest first."""
    order = np.flatnonzero(keep)[::-1]
    return Spectrum(values[order], np.asfortranarray(vectors[:, order]))
