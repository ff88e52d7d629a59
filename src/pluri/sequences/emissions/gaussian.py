"""Gaussian emissions for hidden Markov models, and their defaults in the units of the data.

hmmlearn's ``covars_prior=1e-2`` and ``min_covar=1e-3`` are in the squared unit of the data, whatever that is: 200 daily
returns with a standard deviation of 0.006 have a sum of squares of 0.0072, less than the prior adds to it. "auto" is a
share of each feature's variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.covariance import check_covariances, spread_covariance
from pluri.components.first_rows import weighted_initial_rows
from pluri.components.gaussian import GaussianParameters, GaussianPrior, check_magnitude, variance_floor
from pluri.components.gaussian.family import GaussianComponents
from pluri.components.starting_values import centers_and_covariance
from pluri.engine import Source
from pluri.validation import check_broadcast

Array = NDArray[np.float64]

#: Scale of the prior, and what is added to the starting variances, as a share of each feature's variance.
SHARE = 1e-3


@dataclass(frozen=True)
class GaussianEmission(GaussianComponents):
    """The Gaussian observation model; `means` and `covariances` are starting values, chosen from the data if None."""

    covariance_type: str = "diag"
    min_covar: Any = 1e-3
    means_prior: Any = 0.0
    means_weight: Any = 0.0
    covars_prior: Any = 1e-2
    covars_weight: Any = 1.0
    update_means: bool = True
    update_covariances: bool = True
    means: Array | None = None
    covariances: Array | None = None

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> GaussianParameters:
        means, covariances = self.means, self.covariances
        if means is not None and means.shape != (n_components, X.shape[1]):
            raise ValueError(f"means_ must have shape ({n_components}, {X.shape[1]}), got {means.shape}")
        if means is not None and not np.isfinite(means).all():
            raise ValueError("means_ must be finite")
        if means is None or covariances is None:
            centers, covariance = centers_and_covariance(X, n_components, rng, with_centers=means is None)
            covariance = covariance + self.min_covar * np.eye(X.shape[1])
            means = centers if means is None else means
            if covariances is None:
                covariances = spread_covariance(covariance, self.covariance_type, n_components)
        check_covariances(covariances, self.covariance_type, n_components)
        check_covariance_width(covariances, self.covariance_type, X.shape[1])
        parameters = self.parameters(means, covariances)
        self.prior(parameters)  # refuses hyper-parameters that do not fit, before the first sweep
        return parameters

    def _floor(self, covariances: Array, kind: str) -> Array:
        return variance_floor(covariances, kind)

    def prior(self, parameters: GaussianParameters) -> GaussianPrior:
        """Hmmlearn's hyper-parameters in the form of `pluri.components.gaussian`.

        A scalar `covars_prior` of a matrix-valued covariance is that multiple of the identity.
        """
        k, n_features = parameters.means.shape
        location = check_broadcast("means_prior", _per_state(self.means_prior, k), (k, n_features))
        weight = check_broadcast("means_weight", self.means_weight, (k,), least=0.0)
        if parameters.kind == "full":
            n_matrices = len(parameters.covariances)
            scale = self.covars_prior
            if np.ndim(scale) < 2:
                scale = check_broadcast("covars_prior", scale, (n_matrices,), least=0.0)[:, None, None]
                scale = scale * np.eye(n_features)
            degrees = check_broadcast("covars_weight", self.covars_weight, (n_matrices,)) - n_features
            return GaussianPrior(
                location,
                weight,
                check_broadcast("covars_prior", scale, (n_matrices, n_features, n_features)),
                np.maximum(degrees, 0.0),
            )
        degrees = check_broadcast("covars_weight", _per_state(self.covars_weight, k), (k, n_features)) - 1.0
        return GaussianPrior(
            location,
            weight,
            check_broadcast("covars_prior", _per_state(self.covars_prior, k), (k, n_features), least=0.0),
            np.maximum(degrees, 0.0),
        )


def check_covariance_width(covariances: Array, covariance_type: str, n_features: int) -> None:
    """Refuse covariances of another number of features than the means have."""
    if covariance_type != "spherical" and covariances.shape[-1] != n_features:
        raise ValueError(
            f"{covariance_type!r} covars_ must have {n_features} features, as means_ does, got {covariances.shape[-1]}"
        )


def _per_state(value: Any, n_components: int) -> Any:
    """A scalar, a value for each state (k,), or a (k, D) array, ready to broadcast against (k, D)."""
    return np.asarray(value)[:, None] if np.shape(value) == (n_components,) else value


def feature_variance(source: Source) -> Array:
    """Variance of each feature in the first rows of the data (D,); 1 for a feature that is constant or never seen."""
    rows, weight = weighted_initial_rows(source, lambda X: check_magnitude(np.asarray(X, dtype=np.float64)))
    seen = ~np.isnan(rows)
    shares = seen * (1.0 if weight is None else weight[:, None] / weight.sum())
    total = shares.sum(axis=0)
    shares = shares / np.where(total > 0, total, 1.0)
    mean = (shares * np.where(seen, rows, 0.0)).sum(axis=0)
    variance = (shares * np.where(seen, rows - mean, 0.0) ** 2).sum(axis=0)
    # What rounding leaves of a constant is no scale to go by.
    return np.where(variance > (1e-12 * np.abs(mean)) ** 2, variance, 1.0)


def is_auto(value: Any) -> bool:
    """Whether a setting is left to the data."""
    return isinstance(value, str) and value == "auto"


class InUnitsOfTheData:
    """For models with Gaussian emissions: learns the variances of the features before the fit."""

    min_covar: Any
    feature_variance_: Array

    def _source(self, X: Any, lengths: Any, sequence_weight: Any, labels: Any = None) -> Any:
        source, n_samples = super()._source(X, lengths, sequence_weight, labels)  # type: ignore[misc]
        self.feature_variance_ = feature_variance(source)
        return source, n_samples

    def _feature_variance(self) -> Array | float:
        """The variances; 1 if the parameters were set by hand, when nothing depends on it."""
        return getattr(self, "feature_variance_", 1.0)

    def _starting_addition(self) -> Array:
        """What is added to the starting variances: a number, or one for each feature."""
        if is_auto(self.min_covar):
            return np.asarray(SHARE * self._feature_variance())
        return check_broadcast("min_covar", self.min_covar, (), least=0.0)
