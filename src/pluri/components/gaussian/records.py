"""Parameters, statistics and priors of a set of Gaussian components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pluri.engine import Statistics

Array = NDArray[np.float64]

#: The floor of a feature's variance, as a share of its mean variance at the start.
RELATIVE_FLOOR = 1e-6
#: Larger values overflow when they are squared and summed.
LARGEST = 1e140


class CollapsedComponentError(ValueError):
    """A covariance is not positive definite (any more)."""


@dataclass(frozen=True)
class GaussianParameters:
    """Means and covariances of C components in D dimensions.

    Attributes
    ----------
    means : (C, D)
    covariances : (C,) spherical, (C, D) diagonal, or (G, D, D) full
    kind : "spherical", "diag" or "full"
    group : (C,)
        Which of the G full covariances each component has: ``arange(C)`` unless some share one ("tied").
    floor : (), or (D,) unless spherical
        No variance is updated to less than this, in any direction once each feature is measured in units of its
        floor's root: a component cannot shrink onto one point.
    """

    means: Array
    covariances: Array
    kind: str
    group: NDArray[np.int64]
    floor: Array | float = 0.0

    @property
    def variances(self) -> Array:
        """(C, D) variances of spherical and diagonal covariances."""
        if self.kind == "spherical":
            return np.repeat(self.covariances[:, None], self.means.shape[1], axis=1)
        return self.covariances

    @cached_property
    def whitening(self) -> tuple[Array, Array]:
        """Inverse Cholesky factors and log determinants of full covariances: computed once for all batches."""
        return _whitening(self.covariances)

    @cached_property
    def precisions(self) -> Array:
        """Inverses (G, D, D) of full covariances."""
        whitening, _ = self.whitening
        return np.ascontiguousarray(whitening.transpose(0, 2, 1) @ whitening)


def _whitening(covariances: Array) -> tuple[Array, Array]:
    """Inverse Cholesky factors (lower triangular) and log determinants of (G, D, D) covariances."""
    try:
        factors = np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError as error:
        raise CollapsedComponentError(
            "covars_ must be symmetric and positive definite, and one is not; a component may have collapsed onto "
            "too few points: raise covars_prior or min_covar"
        ) from error
    log_determinant = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return np.linalg.inv(factors), log_determinant


@dataclass(frozen=True)
class GaussianPrior:
    """Normal-inverse-Wishart hyper-parameters, one of each for every component or covariance (module docstring)."""

    location: Array  # m: (C, D)
    weight: Array  # lambda: (C,)
    scale: Array  # Psi: like the covariances; (C, D) for spherical
    degrees: Array  # w: (C, D) for spherical and diag, (G,) for full


@dataclass(frozen=True)
class GaussianStatistics(Statistics):
    """Weighted moments about the means they were taken at.

    Attributes
    ----------
    count : (C, D) for spherical and diag, (C,) for full: sum of weights (of observed features)
    first : (C, D): sum of weight * (x - mean)
    second : (C, D) or (C, D, D), lower triangle: sum of weight * (x - mean)(x - mean)^T
    """

    count: Array
    first: Array
    second: Array


def variance_floor(covariances: Array, kind: str) -> Array:
    """Smallest variance of each feature that EM may reach, given the covariances it starts from."""
    variances = np.diagonal(covariances, axis1=1, axis2=2) if kind == "full" else covariances
    floor = np.asarray(RELATIVE_FLOOR * variances.mean(axis=0))
    if kind == "full":
        # In units of the floor, no starting matrix may have an eigenvalue below one.
        root = np.sqrt(floor)
        return floor * min(1.0, float(np.linalg.eigvalsh(covariances / (root[:, None] * root)).min()))
    return np.minimum(floor, variances.min(axis=0))


def check_magnitude(X: Array) -> Array:
    """Refuse values whose square is not a number any more; NaN is a missing value."""
    largest = float(np.fmax.reduce(np.abs(X), axis=None, initial=0.0))
    if largest > LARGEST:
        raise ValueError(f"X must hold values below {LARGEST:g} in size, got {largest:g}: rescale the data")
    return X
