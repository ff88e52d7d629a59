"""Gaussian components: parameters, statistics, densities and the M-step, and the family that models are made of.

The prior, its update and what is done about missing values are in the docstring of the package.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian import _kernels as kernels
from pluri.components.gaussian._missing_kernels import Moments
from pluri.components.imputation import Filled
from pluri.engine import Statistics
from pluri.engine.aligned import apart, padded_width, zeros_apart
from pluri.validation import check_width, plain_array

Array = NDArray[np.float64]

COVARIANCE_TYPES = ("spherical", "diag", "full", "tied")
#: The floor of a feature's variance, as a share of its mean variance at the start.
RELATIVE_FLOOR = 1e-6
#: Larger values overflow when they are squared and summed.
LARGEST = 1e140
#: A component with a smaller expected number (share, if all weigh less than one) of observations keeps its parameters.
NEGLIGIBLE = 1e-10
LOG_2PI = float(np.log(2.0 * np.pi))


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
        """Inverse Cholesky factors (lower triangular) and log determinants of full covariances, (G, D, D) and (G,)."""
        try:
            factors = np.linalg.cholesky(self.covariances)
        except np.linalg.LinAlgError as error:
            raise CollapsedComponentError(
                "covars_ must be symmetric and positive definite, and one is not; a component may have collapsed onto "
                "too few points: raise covars_prior or min_covar"
            ) from error
        log_determinant = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
        return np.linalg.inv(factors), log_determinant

    @cached_property
    def precisions(self) -> Array:
        """Inverses (G, D, D) of full covariances."""
        whitening, _ = self.whitening
        return np.ascontiguousarray(whitening.transpose(0, 2, 1) @ whitening)


@dataclass(frozen=True)
class GaussianPrior:
    """Normal-inverse-Wishart hyper-parameters, one of each for every component or covariance (package docstring)."""

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


def log_prob(parameters: GaussianParameters, X: Array, out: Array) -> None:
    """Write log N(x_t | component c) into ``out[:, :C]`` and -inf into the padding; out: (n_samples, width)."""
    n_components, n_features = parameters.means.shape
    out[:, n_components:] = -np.inf
    shift = parameters.means.mean(axis=0)
    means = parameters.means - shift
    work = _work(n_features)
    if parameters.kind != "full":
        variances = parameters.variances
        kernels.log_prob_diagonal(X, shift, means, 1.0 / variances, np.log(variances) + LOG_2PI, out, work)
        return
    whitening, log_determinant = parameters.whitening
    whitening, log_determinant = whitening[parameters.group], log_determinant[parameters.group]
    padded = np.zeros((n_components, n_features, padded_width(n_features)))
    padded[:, :, :n_features] = whitening
    whitened_means = np.einsum("cde,ce->cd", whitening, means)
    if kernels.log_prob_full(X, shift, padded, whitened_means, log_determinant + n_features * LOG_2PI, out, work):
        from pluri.components.gaussian.missing import log_prob_missing

        log_prob_missing(parameters, X, out)


def accumulate(parameters: GaussianParameters, X: Array, posterior: Array) -> GaussianStatistics:
    """Moments of X under the weights `posterior`, (n_samples, padded width)."""
    n_components, n_features = parameters.means.shape
    work = _work(n_features)
    shift = parameters.means.mean(axis=0)
    means = parameters.means - shift
    first: Array = zeros_apart((n_components, n_features))
    count: Array
    second: Array
    if parameters.kind != "full":
        count, second = zeros_apart(first.shape), zeros_apart(first.shape)
        kernels.accumulate_diagonal(X, shift, posterior, means, count, first, second, work)
        return GaussianStatistics(count, first, second)
    count, second = zeros_apart(n_components), zeros_apart((n_components, n_features, n_features))
    if kernels.accumulate_full(X, shift, posterior, means, count, first, second, work):
        from pluri.components.gaussian.missing import accumulate_missing

        accumulate_missing(parameters, X, posterior, Moments(count, first, second))
    return GaussianStatistics(count, first, second)


def _work(n_features: int) -> Array:
    return apart((2 * padded_width(n_features) + n_features + 2, kernels.CHUNK))


def sample(parameters: GaussianParameters, components: NDArray[np.int64], rng: np.random.Generator) -> Array:
    """One draw from each of the named components: (len(components), D)."""
    noise = rng.standard_normal((len(components), parameters.means.shape[1]))
    means = parameters.means[components]
    if parameters.kind == "full":
        # An eigenvalue root, not Cholesky: a user may set a covariance that is only semi-definite and still sample.
        values, vectors = np.linalg.eigh(parameters.covariances)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        return means + np.einsum("tij,tj->ti", root[parameters.group[components]], noise)
    return means + noise * np.sqrt(parameters.variances[components])


def negligible(stats: GaussianStatistics) -> float:
    """Expected number of observations below which a component explains nothing."""
    return NEGLIGIBLE * min(1.0, float(stats.count.sum(axis=0).max()))


def maximize(
    stats: GaussianStatistics, parameters: GaussianParameters, prior: GaussianPrior, *, update_means: bool = True,
    update_covariances: bool = True, means: Array | None = None,
) -> GaussianParameters:  # fmt: skip
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
    stats: GaussianStatistics, parameters: GaussianParameters, prior: GaussianPrior, shift: Array, from_mean: Array,
    from_prior: Array,
) -> Array:  # fmt: skip
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


def n_covariance_parameters(parameters: GaussianParameters) -> int:
    """Number of free scalars in the covariances."""
    n_features = parameters.means.shape[1]
    if parameters.kind == "full":
        return len(parameters.covariances) * n_features * (n_features + 1) // 2
    return parameters.covariances.size


class GaussianComponents:
    """Gaussian components with covariances of one type: a `ComponentFamily` but for starting values and the prior.

    A subclass gives `initialize` and `prior`.
    """

    covariance_type: str
    update_means: bool = True
    update_covariances: bool = True

    def prior(self, parameters: GaussianParameters) -> GaussianPrior:
        """The prior in the form of `pluri.components.gaussian`."""
        raise NotImplementedError  # abstract

    def _floor(self, covariances: Array, kind: str) -> Array | float:
        """Least variances, given the covariances to start from."""
        return variance_floor(covariances, kind)

    def prepare(self, X: NDArray[Any]) -> Array:
        return check_magnitude(plain_array(X))

    def parameters(self, means: Array, covariances: Array) -> GaussianParameters:
        """Record of `means` (k, D) and covariances in the shape of `covariance_type`."""
        kind, group = self.covariance_type, np.arange(len(means))
        if kind == "tied":
            kind, group, covariances = "full", np.zeros(len(means), dtype=np.int64), covariances[None]
        return GaussianParameters(means, covariances, kind, group, self._floor(covariances, kind))

    def log_prob(self, parameters: GaussianParameters, X: Array, out: Array) -> None:
        check_width(X, parameters.means.shape[1])
        log_prob(parameters, X, out)

    def accumulate(self, parameters: GaussianParameters, X: Array, posterior: Array) -> GaussianStatistics:
        return accumulate(parameters, X, posterior)

    def maximize(self, stats: GaussianStatistics, parameters: GaussianParameters) -> GaussianParameters:
        prior, update_means, update_covariances = self.prior(parameters), self.update_means, self.update_covariances
        return maximize(stats, parameters, prior, update_means=update_means, update_covariances=update_covariances)

    def log_prior(self, parameters: GaussianParameters) -> float:
        if not (self.update_means or self.update_covariances):
            return 0.0
        return log_prior(parameters, self.prior(parameters))

    def sample(self, parameters: GaussianParameters, states: NDArray[np.int64], rng: np.random.Generator) -> Array:
        return sample(parameters, states, rng)

    def impute(self, parameters: GaussianParameters, X: Array, posterior: Array) -> Filled:
        """Rows with their missing values filled, given the probabilities of the components (n, C)."""
        from pluri.components.gaussian.missing import fill_missing

        return fill_missing(parameters, X, posterior)

    def n_free(self, parameters: GaussianParameters) -> int:
        return parameters.means.size + n_covariance_parameters(parameters)

    def pack(self, parameters: GaussianParameters) -> Array:
        from pluri.components.gaussian.conversions import pack

        return pack(parameters)

    def unpack(self, vector: Array, like: GaussianParameters) -> GaussianParameters:
        from pluri.components.gaussian.conversions import unpack

        return unpack(vector, like, update_means=self.update_means, update_covariances=self.update_covariances)
