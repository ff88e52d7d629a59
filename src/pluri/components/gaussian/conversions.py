"""Gaussian components in other forms: as one unconstrained vector, and moments about other means or to be expected."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian.family import GaussianParameters, GaussianStatistics, raise_eigenvalues

Array = NDArray[np.float64]


def expected(parameters: GaussianParameters, mass: Array) -> GaussianStatistics:
    """Moments about the means that rows of the components' own distributions have, `mass` (C,) of each."""
    first = np.zeros_like(parameters.means)
    if parameters.kind == "full":
        second = np.tril(mass[:, None, None] * parameters.covariances[parameters.group])
        return GaussianStatistics(mass.copy(), first, second)
    return GaussianStatistics(
        np.repeat(mass[:, None], first.shape[1], axis=1), first, mass[:, None] * parameters.variances
    )


def rebased(stats: GaussianStatistics, old: Array, new: Array) -> GaussianStatistics:
    """Moments about the means `new`, given those about `old`."""
    shift = new - old
    if stats.count.ndim == 2:
        second = stats.second - 2.0 * shift * stats.first + stats.count * shift**2
        return GaussianStatistics(stats.count, stats.first - stats.count * shift, second)
    cross = stats.first[:, :, None] * shift[:, None, :]
    second = stats.second - np.tril(cross + cross.transpose(0, 2, 1))
    second = second + np.tril(stats.count[:, None, None] * shift[:, :, None] * shift[:, None, :])
    return GaussianStatistics(stats.count, stats.first - stats.count[:, None] * shift, second)


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
