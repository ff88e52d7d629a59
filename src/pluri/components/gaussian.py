"""A set of Gaussian components: densities, weighted moments, the MAP update and sampling.

Shared by the Gaussian mixture, the Gaussian HMM (a component for each state) and the Gaussian-mixture HMM.
The prior on component c, in the form that makes the M-step closed, is

    log p(mu, S) = -1/2 [ w log|S| + tr(Psi S^-1) + lambda (mu - m)^T S^-1 (mu - m) ] + const,

a normal-inverse-Wishart (or inverse-gamma) density; w = 0, Psi = 0, lambda = 0 is maximum likelihood. Its update is

    mu = (lambda m + sum q x) / (lambda + n),      S = (Psi + lambda (mu-m)(mu-m)^T + scatter) / (w + n).

No variance falls below a floor; the update then maximises the same objective among covariances above it, which only
raises the eigenvalues of S that are too small.

A missing value (NaN) is integrated out: with diagonal covariances it drops from the sums, with full ones its
conditional mean and covariance given the observed features enter them (Dempster, Laird and Rubin 1977).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pluri.components import _gaussian_kernels as kernels
from pluri.components.padding import padded_width
from pluri.engine import Statistics

Array = NDArray[np.float64]

LOG_2PI = float(np.log(2.0 * np.pi))
#: The floor of a feature's variance, as a share of its mean variance at the start.
RELATIVE_FLOOR = 1e-6
#: Larger values overflow when they are squared and summed.
LARGEST = 1e140
#: A component with a smaller expected number (share, if all weigh less than one) of observations keeps its parameters.
NEGLIGIBLE = 1e-10


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

    @cached_property
    def whitening(self) -> tuple[Array, Array]:
        """Inverse Cholesky factors and log determinants of full covariances: computed once for all batches."""
        return _whitening(self.covariances)

    @cached_property
    def precisions(self) -> Array:
        """Inverses (G, D, D) of full covariances."""
        whitening, _ = self.whitening
        return np.ascontiguousarray(whitening.transpose(0, 2, 1) @ whitening)


def variance_floor(covariances: Array, kind: str) -> Array:
    """Smallest variance of each feature that EM may reach, given the covariances it starts from."""
    variances = np.diagonal(covariances, axis1=1, axis2=2) if kind == "full" else covariances
    floor = np.asarray(RELATIVE_FLOOR * variances.mean(axis=0))
    if kind == "full":
        # In units of the floor, no starting matrix may have an eigenvalue below one.
        root = np.sqrt(floor)
        return floor * min(1.0, float(np.linalg.eigvalsh(covariances / (root[:, None] * root)).min()))
    return np.minimum(floor, variances.min(axis=0))


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


def check_magnitude(X: Array) -> Array:
    """Refuse values whose square is not a number any more; NaN is a missing value."""
    largest = float(np.fmax.reduce(np.abs(X), axis=None, initial=0.0))
    if largest > LARGEST:
        raise ValueError(f"X must hold values below {LARGEST:g} in size, got {largest:g}: rescale the data")
    return X


def _work(n_features: int) -> Array:
    return np.empty((2 * padded_width(n_features) + n_features + 2, kernels.CHUNK))


def _variances(parameters: GaussianParameters) -> Array:
    """(C, D) variances of spherical and diagonal covariances."""
    if parameters.kind == "spherical":
        return np.repeat(parameters.covariances[:, None], parameters.means.shape[1], axis=1)
    return parameters.covariances


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


def log_prob(parameters: GaussianParameters, X: Array, out: Array) -> None:
    """Write log N(x_t | component c) into ``out[:, :C]`` and -inf into the padding; out: (n_samples, width)."""
    n_components, n_features = parameters.means.shape
    out[:, n_components:] = -np.inf
    shift = parameters.means.mean(axis=0)
    means = parameters.means - shift
    work = _work(n_features)
    if parameters.kind != "full":
        variances = _variances(parameters)
        kernels.log_prob_diagonal(X, shift, means, 1.0 / variances, np.log(variances) + LOG_2PI, out, work)
        return
    whitening, log_determinant = parameters.whitening
    whitening, log_determinant = whitening[parameters.group], log_determinant[parameters.group]
    padded = np.zeros((n_components, n_features, padded_width(n_features)))
    padded[:, :, :n_features] = whitening
    whitened_means = np.einsum("cde,ce->cd", whitening, means)
    if kernels.log_prob_full(X, shift, padded, whitened_means, log_determinant + n_features * LOG_2PI, out, work):
        _log_prob_missing(parameters, X, out)


def _log_prob_missing(parameters: GaussianParameters, X: Array, out: Array) -> None:
    """Write the densities of the rows that miss something."""
    n_components, n_features = parameters.means.shape
    whitening, log_determinant = parameters.whitening
    factor, work = np.empty((n_features, n_features)), np.empty(n_features)
    for rows, observed, missing in _missing_patterns(X):
        if observed.size == 0:
            out[rows, :n_components] = 0.0
            continue
        kernels.log_prob_missing(
            X, rows, parameters.means, parameters.group, whitening, parameters.precisions,
            log_determinant + observed.size * LOG_2PI, observed, missing, out, factor, work,
        )  # fmt: skip


def _missing_patterns(X: Array) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """Row numbers, observed and missing features of each pattern among the rows that miss something."""
    gone = np.isnan(X)
    incomplete = np.flatnonzero(gone.any(axis=1))
    # Rows of bits as one string of bytes each: sorting these is far cheaper than sorting rows.
    bits = np.ascontiguousarray(np.packbits(gone[incomplete], axis=1))
    keys = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(which.reshape(-1)))
    for row, members in zip(incomplete[first], np.split(incomplete[order], ends[:-1])):
        yield members, np.flatnonzero(~gone[row]), np.flatnonzero(gone[row])


def accumulate(parameters: GaussianParameters, X: Array, posterior: Array) -> GaussianStatistics:
    """Moments of X under the weights `posterior`, (n_samples, padded width)."""
    n_components, n_features = parameters.means.shape
    work = _work(n_features)
    shift = parameters.means.mean(axis=0)
    means = parameters.means - shift
    first: Array = np.zeros((n_components, n_features))
    count: Array
    second: Array
    if parameters.kind != "full":
        count, second = np.zeros_like(first), np.zeros_like(first)
        kernels.accumulate_diagonal(X, shift, posterior, means, count, first, second, work)
        return GaussianStatistics(count, first, second)
    count, second = np.zeros(n_components), np.zeros((n_components, n_features, n_features))
    if kernels.accumulate_full(X, shift, posterior, means, count, first, second, work):
        factor, inverse = np.empty((2, n_features, n_features))
        for rows, observed, missing in _missing_patterns(X):
            kernels.accumulate_missing(
                X, rows, posterior, parameters.means, parameters.group, parameters.precisions, observed, missing,
                count, first, second, factor, inverse, np.empty(n_features),
            )  # fmt: skip
    return GaussianStatistics(count, first, second)


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
    """The M-step of the module docstring; a component that explains nothing keeps its parameters.

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
    numerator = prior.scale.copy()
    total = prior.degrees.copy()
    occupancy = np.zeros(len(total))
    np.add.at(numerator, parameters.group, scatter)
    np.add.at(total, parameters.group, count)
    np.add.at(occupancy, parameters.group, count)
    usable = (occupancy > negligible(stats)) & (total > 0)
    updated = numerator / np.where(usable, total, 1.0)[:, None, None]
    return np.where(usable[:, None, None], _raise_eigenvalues(updated, parameters.floor), parameters.covariances)


def _raise_eigenvalues(matrices: Array, floor: Array | float) -> Array:
    """The nearest matrices, in the sense of the M-step, above diag(floor); the same bits where they are already."""
    root = np.sqrt(np.broadcast_to(floor, matrices.shape[-1:]))
    if not (root > 0).all():
        return matrices
    units = root[:, None] * root
    scaled = matrices / units
    low = [g for g, matrix in enumerate(scaled) if not _is_above_one(matrix)]
    if not low:
        return matrices
    values, vectors = np.linalg.eigh(scaled[low])
    raised = matrices.copy()
    raised[low] = (vectors * np.maximum(values, 1.0)[:, None, :]) @ vectors.transpose(0, 2, 1) * units
    return raised


def _is_above_one(matrix: Array) -> bool:
    """Whether all eigenvalues exceed one, by a Cholesky factor: far cheaper than eigenvalues, and usually enough."""
    try:
        np.linalg.cholesky(matrix - np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def _outer(vectors: Array) -> Array:
    return vectors[:, :, None] * vectors[:, None, :]


def log_prior(parameters: GaussianParameters, prior: GaussianPrior) -> float:
    """The log density of the module docstring, up to its constant."""
    difference = parameters.means - prior.location
    if parameters.kind != "full":
        variances = _variances(parameters)
        terms = prior.degrees * np.log(variances) + (prior.scale + prior.weight[:, None] * difference**2) / variances
        return float(-0.5 * terms.sum())
    whitening, log_determinant = parameters.whitening
    total = float(prior.degrees @ log_determinant)
    if prior.scale.any():
        total += float(((whitening @ prior.scale) * whitening).sum())
    whitened = np.einsum("cij,cj->ci", whitening[parameters.group], difference)
    total += float(prior.weight @ (whitened**2).sum(axis=1))
    return -0.5 * total


def sample(parameters: GaussianParameters, components: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """One draw from each of the named components: (len(components), D)."""
    noise = rng.standard_normal((len(components), parameters.means.shape[1]))
    means = parameters.means[components]
    if parameters.kind == "full":
        # An eigenvalue root, not Cholesky: a user may set a covariance that is only semi-definite and still sample.
        values, vectors = np.linalg.eigh(parameters.covariances)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        return means + np.einsum("tij,tj->ti", root[parameters.group[components]], noise)
    return means + noise * np.sqrt(_variances(parameters)[components])


def rebased(stats: GaussianStatistics, old: Array, new: Array) -> GaussianStatistics:
    """Moments about the means `new`, given those about `old`."""
    shift = new - old
    if stats.count.ndim == 2:
        second = stats.second - 2.0 * shift * stats.first + stats.count * shift**2
        return GaussianStatistics(stats.count, stats.first - stats.count * shift, second)
    cross = stats.first[:, :, None] * shift[:, None, :]
    second = stats.second - np.tril(cross + cross.transpose(0, 2, 1))
    second = second + np.tril(stats.count[:, None, None] * _outer(shift))
    return GaussianStatistics(stats.count, stats.first - stats.count[:, None] * shift, second)


def expected(parameters: GaussianParameters, mass: Array) -> GaussianStatistics:
    """Moments about the means that rows of the components' own distributions have, `mass` (C,) of each."""
    first = np.zeros_like(parameters.means)
    if parameters.kind == "full":
        second = np.tril(mass[:, None, None] * parameters.covariances[parameters.group])
        return GaussianStatistics(mass.copy(), first, second)
    return GaussianStatistics(
        np.repeat(mass[:, None], first.shape[1], axis=1), first, mass[:, None] * _variances(parameters)
    )


def conditional_means(parameters: GaussianParameters, X: Array, posterior: Array) -> Array:
    """X with its missing values replaced by their expectation, given the rest and P(component | row), (n, C)."""
    filled = X.copy()
    for rows, observed, missing in _missing_patterns(X):
        part = np.zeros((len(rows), len(missing)))
        for c, mean in enumerate(parameters.means):
            expected = np.broadcast_to(mean[missing], part.shape)
            if parameters.kind == "full" and len(observed):
                covariance = parameters.covariances[parameters.group[c]]
                cross = covariance[np.ix_(observed, missing)]
                slope = np.linalg.solve(covariance[np.ix_(observed, observed)], cross)
                expected = expected + (X[np.ix_(rows, observed)] - mean[observed]) @ slope
            part += posterior[rows, c, None] * expected
        filled[np.ix_(rows, missing)] = part
    return filled


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


def unpack(vector: Array, like: GaussianParameters) -> GaussianParameters:
    """The inverse of `pack`, above the variance floor: a guess below it would beat every answer of the M-step."""
    means = vector[: like.means.size].reshape(like.means.shape)
    rest = vector[like.means.size :]
    if like.kind != "full":
        variances = np.maximum(np.exp(rest).reshape(like.covariances.shape), like.floor)
        return dataclasses.replace(like, means=means, covariances=variances)
    n_features = like.means.shape[1]
    rows, columns = np.tril_indices(n_features)
    factors = np.zeros_like(like.covariances)
    factors[:, rows, columns] = rest.reshape(len(factors), -1)
    diagonal = np.arange(n_features)
    factors[:, diagonal, diagonal] = np.exp(factors[:, diagonal, diagonal])
    covariances = _raise_eigenvalues(factors @ factors.transpose(0, 2, 1), like.floor)
    return dataclasses.replace(like, means=means, covariances=covariances)
