"""Shapes of covariances: spherical (k,), diag (k, D), full (k, D, D), tied (D, D)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COVARIANCE_TYPES = ("spherical", "diag", "full", "tied")


def covariance_shape(covariance_type: str, n_components: int, n_features: int) -> tuple[int, ...]:
    """Shape of the array of all covariances."""
    shapes = {
        "full": (n_components, n_features, n_features),
        "tied": (n_features, n_features),
        "diag": (n_components, n_features),
        "spherical": (n_components,),
    }
    return shapes[covariance_type]


def spread_covariance(covariance: Array, covariance_type: str, n_components: int) -> Array:
    """The covariance matrix of all data, as the starting value of each state."""
    if covariance_type == "spherical":
        return np.full(n_components, np.trace(covariance) / len(covariance))
    if covariance_type == "diag":
        return np.tile(np.diag(covariance), (n_components, 1))
    if covariance_type == "full":
        return np.tile(covariance, (n_components, 1, 1))
    return covariance.copy()


def expand_covariances(covars: Array, covariance_type: str, n_components: int, n_features: int) -> Array:
    """Full matrices, (n_components, n_features, n_features), of covariances of any type."""
    diagonal = np.eye(n_features, dtype=bool)
    if covariance_type == "spherical":
        return np.where(diagonal, np.asarray(covars).reshape(n_components, -1)[:, :1, None], 0.0)
    if covariance_type == "diag":
        return np.where(diagonal, covars[:, :, None], 0.0)
    if covariance_type == "full":
        return covars
    return np.tile(covars, (n_components, 1, 1))


def check_covariances(covars: Array, covariance_type: str, n_components: int) -> None:
    """Refuse covariances of the wrong shape, or that are not positive (definite)."""
    if covariance_type == "spherical":
        if covars.ndim != 1 or len(covars) != n_components:
            raise ValueError(f"'spherical' covars_ must have shape ({n_components},), got {covars.shape}")
        _check_positive(covars, covariance_type)
    elif covariance_type == "diag":
        if covars.ndim != 2 or len(covars) != n_components:
            raise ValueError(f"'diag' covars_ must have shape ({n_components}, n_features), got {covars.shape}")
        _check_positive(covars, covariance_type)
    elif covariance_type == "tied":
        if covars.ndim != 2 or covars.shape[0] != covars.shape[1]:
            raise ValueError(f"'tied' covars_ must have shape (n_features, n_features), got {covars.shape}")
        check_positive_definite(covars[None], "'tied' covars_")
    else:
        if covars.ndim != 3 or len(covars) != n_components or covars.shape[1] != covars.shape[2]:
            raise ValueError(
                f"'full' covars_ must have shape ({n_components}, n_features, n_features), got {covars.shape}"
            )
        check_positive_definite(covars, "'full' covars_")


def _check_positive(covars: Array, covariance_type: str) -> None:
    if not ((covars > 0) & np.isfinite(covars)).all():
        raise ValueError(f"{covariance_type!r} covars_ must be positive and finite, got values from {covars.min()}")


def check_positive_definite(matrices: Array, name: str) -> None:
    """Refuse matrices that are not symmetric and positive definite."""
    if not np.isfinite(matrices).all():
        raise ValueError(f"{name} must be finite")
    symmetric = np.isclose(matrices, matrices.transpose(0, 2, 1)).all(axis=(1, 2))
    good = symmetric & (np.linalg.eigvalsh(matrices) > 0).all(axis=1)
    if not good.all():
        raise ValueError(f"{name} must be symmetric, positive-definite; matrix {int(np.argmin(good))} is not")
