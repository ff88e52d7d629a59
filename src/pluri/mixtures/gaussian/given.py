"""Starting values and priors of Gaussian components as users give them, checked; the words are scikit-learn's."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

Array = NDArray[np.float64]


def warn_of_floor(rows: Array, floor: float, names: Any = None) -> None:
    """Say so if the least variance that a component may have is above that of a whole column."""
    lowest, highest = np.fmin.reduce(rows, axis=0, initial=np.inf), np.fmax.reduce(rows, axis=0, initial=-np.inf)
    # The variance of numbers in an interval is at most the square of half its length: no pass for sums of squares.
    narrow = np.flatnonzero((highest > lowest) & (0.5 * highest - 0.5 * lowest < np.sqrt(floor)))
    if narrow.size:
        column = int(narrow[0]) if names is None else names[narrow[0]]
        warnings.warn(
            f"reg_covar={floor:g} is above the variance of column {column!r} of X, which no component can then divide: "
            "scale X, or lower reg_covar",
            UserWarning,
            stacklevel=4,
        )


def covariance_shape(covariance_type: str, n_components: int, n_features: int) -> tuple[int, ...]:
    """Shape of the array of all covariances."""
    shapes = {
        "full": (n_components, n_features, n_features),
        "tied": (n_features, n_features),
        "diag": (n_components, n_features),
        "spherical": (n_components,),
    }
    return shapes[covariance_type]


def starting_weights(value: ArrayLike, n_components: int) -> Array:
    """Weights that sum to one."""
    weights = np.asarray(value, dtype=np.float64)
    if weights.shape != (n_components,):
        raise ValueError(f"The parameter 'weights' should have the shape of ({n_components},), but got {weights.shape}")
    if (weights < 0).any() or (weights > 1).any():
        raise ValueError(
            "The parameter 'weights' should be in the range [0, 1], but got max value "
            f"{weights.min():.5f}, min value {weights.max():.5f}"  # the slip is scikit-learn's too
        )
    if abs(1.0 - weights.sum()) > 1e-6:
        raise ValueError(f"The parameter 'weights' should be normalized, but got sum(weights) = {weights.sum():.5f}")
    return weights / weights.sum()


def starting_means(value: ArrayLike, shape: tuple[int, int]) -> Array:
    """Means of this shape."""
    means = np.asarray(value, dtype=np.float64)
    if means.shape != shape:
        raise ValueError(f"The parameter 'means' should have the shape of {shape}, but got {means.shape}")
    if not np.isfinite(means).all():
        raise ValueError("means_init must be finite")
    return means


def covariances(value: ArrayLike, covariance_type: str, means_shape: tuple[int, int]) -> Array:
    """Covariances, in the shape of their type, of given precisions."""
    precisions = np.asarray(value, dtype=np.float64)
    shape = covariance_shape(covariance_type, *means_shape)
    if precisions.shape != shape:
        raise ValueError(
            f"The parameter '{covariance_type} precision' should have the shape of {shape}, but got {precisions.shape}"
        )
    if covariance_type in ("diag", "spherical"):
        if not ((precisions > 0) & np.isfinite(precisions)).all():
            raise ValueError(f"'{covariance_type} precision' should be positive")
        return 1.0 / precisions
    matrices = precisions if precisions.ndim == 3 else precisions[None]
    symmetric = np.allclose(matrices, matrices.transpose(0, 2, 1))
    if not symmetric or not (np.linalg.eigvalsh(matrices) > 0).all():
        raise ValueError(f"'{covariance_type} precision' should be symmetric, positive-definite")
    inverse = np.linalg.inv(matrices)
    return np.asarray(inverse if precisions.ndim == 3 else inverse[0])


def prior_scale(value: ArrayLike, covariance_type: str, n_features: int) -> Array:
    """The scale of the prior in the shape of one covariance."""
    scale = np.asarray(value, dtype=np.float64)
    if covariance_type in ("full", "tied"):
        if scale.ndim < 2:
            scale = np.diag(np.broadcast_to(scale, (n_features,)))
        good = scale.shape == (n_features, n_features) and np.allclose(scale, scale.T)
        good = bool(good and (linalg.eigvalsh(scale) > 0).all())
        wanted = f"a positive number, {n_features} of them or a positive definite matrix of that size"
    else:
        good = scale.shape in ((), (n_features,)) and bool((scale > 0).all() and np.isfinite(scale).all())
        wanted = f"a positive number or {n_features} of them"
    if not good:
        raise ValueError(f"covariance_prior must be {wanted}, got {value!r}")
    return scale


def prior_degrees(value: Any, n_features: int) -> float:
    """Degrees of freedom of the prior; two more than features if none are given."""
    if value is None:
        return n_features + 2.0
    if not isinstance(value, Real) or not float(value) > n_features - 1:
        raise ValueError(f"degrees_of_freedom_prior must be above n_features - 1 = {n_features - 1}, got {value!r}")
    return float(value)
