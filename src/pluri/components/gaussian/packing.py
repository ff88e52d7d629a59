"""Gaussian components as one unconstrained vector, for accelerated EM."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian.records import GaussianParameters
from pluri.components.gaussian.update import raise_eigenvalues

Array = NDArray[np.float64]


def n_covariance_parameters(parameters: GaussianParameters) -> int:
    """Number of free scalars in the covariances."""
    n_features = parameters.means.shape[1]
    if parameters.kind == "full":
        return len(parameters.covariances) * n_features * (n_features + 1) // 2
    return parameters.covariances.size


def pack(parameters: GaussianParameters) -> Array:
    """Means, then log variances or log-Cholesky factors: an unconstrained vector."""
    if parameters.kind != "full":
        return np.concatenate([parameters.means.ravel(), np.log(parameters.covariances).ravel()])
    factors = np.linalg.cholesky(parameters.covariances)
    n_features = parameters.means.shape[1]
    diagonal = np.arange(n_features)
    factors[:, diagonal, diagonal] = np.log(factors[:, diagonal, diagonal])
    rows, columns = np.tril_indices(n_features)
    return np.concatenate([parameters.means.ravel(), factors[:, rows, columns].ravel()])


def unpack(
    vector: Array, like: GaussianParameters, *, update_means: bool = True, update_covariances: bool = True
) -> GaussianParameters:
    """The inverse of `pack`, above the variance floor: a guess below it would beat every answer of the M-step.

    What is not updated stays as it is in `like`.
    """
    means = vector[: like.means.size].reshape(like.means.shape) if update_means else like.means
    covariances = _covariances(vector[like.means.size :], like) if update_covariances else like.covariances
    return dataclasses.replace(like, means=means, covariances=covariances)


def _covariances(vector: Array, like: GaussianParameters) -> Array:
    if like.kind != "full":
        return np.maximum(np.exp(vector).reshape(like.covariances.shape), like.floor)
    n_features = like.means.shape[1]
    rows, columns = np.tril_indices(n_features)
    factors = np.zeros_like(like.covariances)
    factors[:, rows, columns] = vector.reshape(len(factors), -1)
    diagonal = np.arange(n_features)
    factors[:, diagonal, diagonal] = np.exp(factors[:, diagonal, diagonal])
    return raise_eigenvalues(factors @ factors.transpose(0, 2, 1), like.floor)
