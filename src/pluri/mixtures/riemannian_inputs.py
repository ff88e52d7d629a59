"""What a fit on the manifold is given: data, start, settings and prior, checked and standardised."""

from __future__ import annotations

import math
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pluri.mixtures.riemannian_coordinates import Penalty, Standardization, augment, standardize

Array = NDArray[np.float64]


def checked_data(X: ArrayLike, sample_weight: ArrayLike | None) -> tuple[Array, Array | None]:
    data = np.asarray(X, dtype=np.float64)
    if data.ndim != 2 or 0 in data.shape:
        raise ValueError(f"X must be a matrix with at least one row and column, got shape {data.shape}")
    if not np.isfinite(data).all():
        raise ValueError("X must be finite, got NaN or infinity: descent on the manifold takes no missing values")
    if sample_weight is None:
        return data, None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(data),) or not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise ValueError(f"sample_weight must be {len(data)} non-negative numbers, not all zero")
    kept = weight > 0
    return (data, weight) if kept.all() else (data[kept], weight[kept])


def checked_start(weights: ArrayLike, means: ArrayLike, covariances: ArrayLike, X: Array) -> tuple[Array, Array, Array]:
    w, m, c = (np.asarray(values, dtype=np.float64) for values in (weights, means, covariances))
    n_features = X.shape[1]
    if w.ndim != 1 or len(w) == 0 or not (np.isfinite(w).all() and (w >= 0).all() and w.sum() > 0):
        raise ValueError(f"weights must be non-negative numbers, not all zero, got {weights!r}")
    for name, values, shape in (
        ("means", m, (len(w), n_features)),
        ("covariances", c, (len(w), n_features, n_features)),
    ):
        if values.shape != shape or not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite and have shape {shape}, got shape {values.shape}")
    if len(X) < len(w):
        raise ValueError(f"weights must have at most as many components as there are samples ({len(X)}), got {len(w)}")
    # A component without any weight would never get some: it starts with that of one sample.
    w = np.maximum(w / w.sum(), 1.0 / len(X))
    return w / w.sum(), m, c


def check_settings(method: str, parametrization: str, tol: float, prior_weight: float, concentration: float) -> None:
    if method not in ("lbfgs", "cg", "sgd"):
        raise ValueError(f"method must be 'lbfgs', 'cg' or 'sgd', got {method!r}")
    if parametrization not in ("augmented", "original", "cholesky"):
        raise ValueError(f"parametrization must be 'augmented', 'original' or 'cholesky', got {parametrization!r}")
    if method == "sgd" and parametrization != "augmented":
        raise ValueError(f"parametrization must be 'augmented' with method='sgd', got {parametrization!r}")
    if not isinstance(tol, Real) or not tol >= 0:
        raise ValueError(f"tol must be a non-negative number, got {tol!r}")
    for name, value in {"covariance_prior_weight": prior_weight, "weight_concentration": concentration}.items():
        if not isinstance(value, Real) or not (value >= 0 and math.isfinite(value)):
            raise ValueError(f"{name} must be a non-negative number, got {value!r}")


def standardized_prior(
    X: Array,
    sample_weight: Array | None,
    total: float,
    prior: ArrayLike | None,
    prior_mean: ArrayLike | None,
    prior_weight: float,
    concentration: float,
) -> tuple[Standardization, Penalty]:
    """Standardise the data, and the prior with them."""
    n_features = X.shape[1]
    scatter: Array | None = None
    if prior is not None:
        scatter = np.asarray(prior, dtype=np.float64)
        if scatter.shape != (n_features, n_features) or not np.isfinite(scatter).all():
            raise ValueError(
                f"covariance_prior must be a finite matrix of shape {(n_features,) * 2}, got {scatter.shape}"
            )
        if not np.allclose(scatter, scatter.T) or np.linalg.eigvalsh(scatter)[0] < 0:
            raise ValueError("covariance_prior must be symmetric and positive semi-definite")
    share = prior_weight / total
    frame = standardize(X, sample_weight, scatter / total if scatter is not None and share else None, share)
    second = np.zeros((n_features + 1, n_features + 1))
    if share:
        mean = frame.shift if prior_mean is None else np.asarray(prior_mean, dtype=np.float64)
        if mean.shape != (n_features,) or not np.isfinite(mean).all():
            raise ValueError(f"covariance_prior_mean must be {n_features} finite numbers, got shape {mean.shape}")
        white = np.eye(n_features) if scatter is None else frame.forward_covariances(scatter) / prior_weight
        second = share * augment(frame.forward(mean[None]), white[None])[0]
    return frame, Penalty(second, share, concentration / total)


def augmented_start(frame: Standardization, weights: Array, means: Array, covariances: Array) -> tuple[Array, Array]:
    """Augmented matrices and log weights; singular covariances are replaced by that of all data."""
    white = frame.forward_covariances(covariances)
    white = 0.5 * (white + np.swapaxes(white, 1, 2))
    flat = ~(np.linalg.eigvalsh(white)[:, 0] > 1e-8)
    white[flat] = np.eye(means.shape[1])
    return augment(frame.forward(means), white), np.log(weights)
