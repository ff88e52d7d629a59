"""The M-step of Gaussian components under a conjugate prior; the formulas are in `pluri.components.gaussian`."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian.records import GaussianParameters, GaussianPrior, GaussianStatistics

Array = NDArray[np.float64]

#: A component with a smaller expected number (share, if all weigh less than one) of observations keeps its parameters.
NEGLIGIBLE = 1e-10


def negligible(stats: GaussianStatistics) -> float:
    """Expected number of observations below which a component explains nothing."""
    return NEGLIGIBLE * min(1.0, float(stats.count.sum(axis=0).max()))


def maximize(
    stats: GaussianStatistics,
    parameters: GaussianParameters,
    prior: GaussianPrior,
    *,
    update_means: bool = True,
    update_covariances: bool = True,
    means: Array | None = None,
) -> GaussianParameters:
    """The M-step of the package docstring; a component that explains nothing keeps its parameters.

    With `means` given, they are taken as they are and the covariances are those that suit them best.
    """
    old = parameters.means
    count = stats.count if stats.count.ndim == 2 else np.repeat(stats.count[:, None], old.shape[1], axis=1)
    alive = count > negligible(stats)
    safe = np.where(alive, count, 1.0)
    weight = prior.weight[:, None]
    if means is None and not update_means:
        means = old
    elif means is None:
        step = (weight * (prior.location - old) + stats.first) / np.where(alive, weight + count, 1.0)
        means = np.where(alive, old + step, old)
    if not update_covariances:
        return dataclasses.replace(parameters, means=means)
    shift = stats.first / safe  # the weighted mean of x, seen from the old mean
    from_mean = shift - (means - old)
    from_prior = means - prior.location
    if parameters.kind == "full":
        covariances = _updated_full(stats, parameters, prior, shift, from_mean, from_prior)
    else:
        scatter = stats.second - count * shift**2 + count * from_mean**2
        numerator = prior.scale + weight * from_prior**2 + np.maximum(scatter, 0.0)
        denominator = prior.degrees + count
        covariances = _updated_diagonal(parameters, numerator, denominator, alive)
    return dataclasses.replace(parameters, means=means, covariances=covariances)


def _updated_diagonal(
    parameters: GaussianParameters, numerator: Array, denominator: Array, alive: NDArray[np.bool_]
) -> Array:
    if parameters.kind == "spherical":
        numerator, denominator = numerator.sum(axis=1), denominator.sum(axis=1)
        alive = np.asarray(alive.any(axis=1))
    usable = alive & (denominator > 0)
    updated = np.maximum(numerator / np.where(usable, denominator, 1.0), parameters.floor)
    return np.where(usable & (updated > 0), updated, parameters.covariances)


def _updated_full(
    stats: GaussianStatistics,
    parameters: GaussianParameters,
    prior: GaussianPrior,
    shift: Array,
    from_mean: Array,
    from_prior: Array,
) -> Array:
    count = stats.count
    second = stats.second + np.tril(stats.second, -1).transpose(0, 2, 1)
    scatter = second + count[:, None, None] * (_outer(from_mean) - _outer(shift))
    scatter = scatter + prior.weight[:, None, None] * _outer(from_prior)
    if len(prior.degrees) == len(count):  # a covariance for each component
        numerator, total, occupancy = prior.scale + scatter, prior.degrees + count, count
    else:
        numerator, total, occupancy = prior.scale.copy(), prior.degrees.copy(), np.zeros(len(prior.degrees))
        np.add.at(numerator, parameters.group, scatter)
        np.add.at(total, parameters.group, count)
        np.add.at(occupancy, parameters.group, count)
    usable = (occupancy > negligible(stats)) & (total > 0)
    updated = numerator / np.where(usable, total, 1.0)[:, None, None]
    return np.where(usable[:, None, None], raise_eigenvalues(updated, parameters.floor), parameters.covariances)


def raise_eigenvalues(matrices: Array, floor: Array | float) -> Array:
    """The nearest matrices, in the sense of the M-step, above diag(floor); the same bits where they are already."""
    root = np.sqrt(np.broadcast_to(floor, matrices.shape[-1:]))
    if not (root > 0).all():
        return matrices
    units = root[:, None] * root
    scaled = matrices / units
    if _is_above_one(scaled):
        return matrices
    low = [g for g, matrix in enumerate(scaled) if not _is_above_one(matrix)]
    values, vectors = np.linalg.eigh(scaled[low])
    raised = matrices.copy()
    raised[low] = (vectors * np.maximum(values, 1.0)[:, None, :]) @ vectors.transpose(0, 2, 1) * units
    return raised


def _is_above_one(matrices: Array) -> bool:
    """Whether all eigenvalues exceed one, by Cholesky factors: far cheaper than eigenvalues, and usually enough."""
    try:
        np.linalg.cholesky(matrices - np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError:
        return False
    return True


def _outer(vectors: Array) -> Array:
    return vectors[:, :, None] * vectors[:, None, :]


def log_prior(parameters: GaussianParameters, prior: GaussianPrior) -> float:
    """The log density of the package docstring, up to its constant."""
    difference = parameters.means - prior.location
    if parameters.kind != "full":
        variances = parameters.variances
        terms = prior.degrees * np.log(variances) + (prior.scale + prior.weight[:, None] * difference**2) / variances
        return float(-0.5 * terms.sum())
    whitening, log_determinant = parameters.whitening
    total = float(prior.degrees @ log_determinant)
    if prior.scale.any():
        total += float(((whitening @ prior.scale) * whitening).sum())
    whitened = np.einsum("cij,cj->ci", whitening[parameters.group], difference)
    total += float(prior.weight @ (whitened**2).sum(axis=1))
    return -0.5 * total
