"""Gaussian-mixture emissions for hidden Markov models: p(x_t | state i) = sum_m w_im N(x_t | mu_im, S_im)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components import gaussian as components
from pluri.components.gaussian import GaussianParameters, GaussianPrior, GaussianStatistics
from pluri.components.imputation import Filled
from pluri.components.k_means import filled, kmeans_centers, nearest_center, within_covariance
from pluri.components.probability_rows import rows_from_logits, softmax
from pluri.engine import Statistics
from pluri.engine.aligned import padded_width
from pluri.priors import Dirichlet
from pluri.validation import check_broadcast, check_distributions, check_positive_definite, check_width, plain_array

Array = NDArray[np.float64]


@dataclass(frozen=True)
class MixtureParameters:
    """weights (k, M), and k * M Gaussian components, those of a state side by side."""

    weights: Array
    gaussians: GaussianParameters


@dataclass(frozen=True)
class MixtureStatistics(Statistics):
    """weights (k, M): expected number of samples of each component; gaussians: their moments."""

    weights: Array
    gaussians: GaussianStatistics


@dataclass(frozen=True)
class MixtureEmission:
    """The Gaussian-mixture observation model; `weights`, `means`, `covariances` are starting values."""

    n_mix: int = 1
    covariance_type: str = "diag"
    min_covar: Any = 1e-3
    weights_prior: Any = 1.0
    means_prior: Any = 0.0
    means_weight: Any = 0.0
    covars_prior: Any = None
    covars_weight: Any = None
    update_weights: bool = True
    update_means: bool = True
    update_covariances: bool = True
    weights: Array | None = None
    means: Array | None = None
    covariances: Array | None = None

    def prepare(self, X: NDArray[Any]) -> Array:
        return components.check_magnitude(plain_array(X))

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> MixtureParameters:
        means = self.means if self.means is not None else _nested_centers(filled(X), n_components, self.n_mix, rng)
        return self._starting_at(means, X, n_components, rng)

    def initialize_labelled(
        self, X: Array, states: NDArray[np.int64], n_components: int, rng: np.random.Generator
    ) -> MixtureParameters:
        """Starting values when the state of each row is known: only the components are to be found."""
        complete = filled(X)
        parts = [kmeans_centers(complete[states == state], self.n_mix, rng) for state in range(n_components)]
        means = self.means if self.means is not None else np.stack(parts)
        return self._starting_at(means, X, n_components, rng)

    def _starting_at(self, means: Array, X: Array, k: int, rng: np.random.Generator) -> MixtureParameters:
        n_mix, n_features = self.n_mix, X.shape[1]
        weights, covariances = self.weights, self.covariances
        if weights is None:
            weights = np.full((k, n_mix), 1.0 / n_mix)
        if covariances is None:
            flat = means.reshape(k * n_mix, -1)
            covariance = within_covariance(filled(X), flat) if flat.shape[1] == n_features else np.eye(n_features)
            covariance = covariance + self.min_covar * np.eye(n_features)
            covariances = {
                "spherical": np.full((k, n_mix), np.trace(covariance) / n_features),
                "diag": np.tile(np.diag(covariance), (k, n_mix, 1)),
                "full": np.tile(covariance, (k, n_mix, 1, 1)),
                "tied": np.tile(covariance, (k, 1, 1)),
            }[self.covariance_type]
        check_mixture(weights, means, covariances, self.covariance_type, (k, n_mix, n_features))
        parameters = self.parameters(weights, means, covariances)
        self.prior(parameters)  # refuses hyper-parameters that do not fit, before the first sweep
        return parameters

    def parameters(self, weights: Array, means: Array, covariances: Array) -> MixtureParameters:
        """Record of arrays in hmmlearn's shapes: weights (k, M), means (k, M, D), covariances by type."""
        k, n_mix, n_features = means.shape
        group = np.repeat(np.arange(k), n_mix) if self.covariance_type == "tied" else np.arange(k * n_mix)
        kind = "full" if self.covariance_type == "tied" else self.covariance_type
        shape = {"spherical": (-1,), "diag": (-1, n_features), "full": (-1, n_features, n_features)}[kind]
        flat = covariances.reshape(shape)
        floor = components.variance_floor(flat, kind)
        gaussians = GaussianParameters(means.reshape(k * n_mix, n_features), flat, kind, group, floor)
        return MixtureParameters(weights, gaussians)

    def prior(self, parameters: MixtureParameters) -> GaussianPrior:
        """Hmmlearn's hyper-parameters in the form of `pluri.components.gaussian`; the defaults are flat."""
        k, n_mix = parameters.weights.shape
        n_features = parameters.gaussians.means.shape[1]
        n = k * n_mix
        location = check_broadcast("means_prior", self.means_prior, (k, n_mix, n_features)).reshape(n, n_features)
        weight = check_broadcast("means_weight", self.means_weight, (k, n_mix), least=0.0).reshape(n)
        scale, degrees = self.covars_prior, self.covars_weight
        if self.covariance_type in ("full", "tied"):
            # Inverse Wishart (Psi, nu) times normal: log|S| has the weight nu + D + 1 + (number of means).
            lead = (k, n_mix) if self.covariance_type == "full" else (k,)
            n_means = 1 if self.covariance_type == "full" else n_mix
            shape = (*lead, n_features, n_features)
            psi = np.zeros(shape)
            if scale is not None:
                matrix = scale * np.eye(n_features) if np.ndim(scale) == 0 else scale
                psi = check_broadcast("covars_prior", matrix, shape)
            nu = -(n_means + n_features + 1.0) if degrees is None else degrees
            return GaussianPrior(
                location,
                weight,
                psi.reshape(-1, n_features, n_features),
                (check_broadcast("covars_weight", nu, lead) + n_features + 1.0 + n_means).reshape(-1),
            )
        if self.covariance_type == "diag":
            # Inverse gamma (alpha, beta) times normal: log v has the weight 2 (alpha + 1) + 1.
            each = (k, n_mix, n_features)
            alpha = check_broadcast("covars_prior", -1.5 if scale is None else scale, each)
            psi = 2.0 * check_broadcast("covars_weight", 0.0 if degrees is None else degrees, each, least=0.0)
            log_weight = 2.0 * (alpha + 1.0) + 1.0
        else:
            # One variance for all features: its prior is spread evenly over them.
            lead = (k, n_mix)
            alpha = check_broadcast("covars_prior", -(n_features + 2.0) / 2.0 if scale is None else scale, lead)
            beta = check_broadcast("covars_weight", 0.0 if degrees is None else degrees, lead, least=0.0)
            whole = 2.0 * beta, n_features + 2.0 * (alpha + 1.0)
            psi, log_weight = (np.repeat(part[:, :, None] / n_features, n_features, axis=2) for part in whole)
        return GaussianPrior(location, weight, psi.reshape(n, n_features), log_weight.reshape(n, n_features))

    def _component_log_prob(self, parameters: MixtureParameters, X: Array) -> Array:
        """Log w_im + log N(x_t | im): (n_samples, k, M)."""
        k, n_mix = parameters.weights.shape
        check_width(X, parameters.gaussians.means.shape[1])
        out = np.empty((len(X), padded_width(k * n_mix)))
        components.log_prob(parameters.gaussians, X, out)
        with np.errstate(divide="ignore"):
            return out[:, : k * n_mix].reshape(len(X), k, n_mix) + np.log(parameters.weights)

    def _component_posterior(self, parameters: MixtureParameters, X: Array, posterior: Array) -> Array:
        """Probability of each component of each state, given that of the states: (n_samples, k * M)."""
        joint = self._component_log_prob(parameters, X)
        # A state that cannot have made x_t at all has no shares to give (and no posterior): zeros, not 0 / 0.
        shares = softmax(np.where(np.isneginf(joint.max(axis=2, keepdims=True)), 0.0, joint))
        return (posterior[:, : len(parameters.weights), None] * shares).reshape(len(X), -1)

    def log_prob(self, parameters: MixtureParameters, X: Array, out: Array) -> None:
        k = len(parameters.weights)
        joint = self._component_log_prob(parameters, X)
        largest = joint.max(axis=2)
        shift = np.where(np.isfinite(largest), largest, 0.0)
        out[:, k:] = -np.inf
        with np.errstate(divide="ignore"):
            out[:, :k] = shift + np.log(np.exp(joint - shift[:, :, None]).sum(axis=2))

    def accumulate(self, parameters: MixtureParameters, X: Array, posterior: Array) -> MixtureStatistics:
        k, n_mix = parameters.weights.shape
        weighted = np.zeros((len(X), padded_width(k * n_mix)))
        weighted[:, : k * n_mix] = self._component_posterior(parameters, X, posterior)
        totals = weighted.sum(axis=0)[: k * n_mix].reshape(k, n_mix)
        return MixtureStatistics(totals, components.accumulate(parameters.gaussians, X, weighted))

    def maximize(self, stats: MixtureStatistics, parameters: MixtureParameters) -> MixtureParameters:
        weights = parameters.weights
        if self.update_weights:
            support = None if (weights > 0).all() else weights > 0
            counts = stats.weights if support is None else stats.weights * support
            weights = Dirichlet(self.weights_prior).maximize(counts, weights, support=support)
        gaussians = components.maximize(
            stats.gaussians,
            parameters.gaussians,
            self.prior(parameters),
            update_means=self.update_means,
            update_covariances=self.update_covariances,
        )
        return MixtureParameters(weights, gaussians)

    def log_prior(self, parameters: MixtureParameters) -> float:
        total = 0.0
        if self.update_weights:
            weights = parameters.weights
            total += Dirichlet(self.weights_prior).log_density(weights, support=weights > 0)
        if self.update_means or self.update_covariances:
            total += components.log_prior(parameters.gaussians, self.prior(parameters))
        return total

    def sample(self, parameters: MixtureParameters, states: NDArray[np.int64], rng: np.random.Generator) -> Array:
        n_mix = parameters.weights.shape[1]
        cumulative = np.cumsum(parameters.weights, axis=1)[states]
        picked = (rng.random((len(states), 1)) * cumulative[:, -1:] >= cumulative).sum(axis=1)
        return components.sample(parameters.gaussians, states * n_mix + picked, rng)

    def impute(self, parameters: MixtureParameters, X: Array, posterior: Array) -> Filled:
        """Rows with their missing values filled, given the probabilities of the states (n_samples, k)."""
        return components.fill_missing(parameters.gaussians, X, self._component_posterior(parameters, X, posterior))

    def n_free(self, parameters: MixtureParameters) -> int:
        k, n_mix = parameters.weights.shape
        gaussians = parameters.gaussians
        return k * (n_mix - 1) + gaussians.means.size + components.n_covariance_parameters(gaussians)

    def pack(self, parameters: MixtureParameters) -> Array:
        with np.errstate(divide="ignore"):
            return np.concatenate([np.log(parameters.weights).ravel(), components.pack(parameters.gaussians)])

    def unpack(self, vector: Array, like: MixtureParameters) -> MixtureParameters:
        logits = vector[: like.weights.size].reshape(like.weights.shape)
        weights = rows_from_logits(logits, like.weights, Dirichlet(self.weights_prior))
        gaussians = components.unpack(
            vector[like.weights.size :],
            like.gaussians,
            update_means=self.update_means,
            update_covariances=self.update_covariances,
        )
        return MixtureParameters(weights if self.update_weights else like.weights, gaussians)


def check_mixture(
    weights: Array, means: Array, covars: Array, covariance_type: str, shape: tuple[int, int, int]
) -> None:
    """Refuse parameters that do not describe k states, M components and D features (-1: any number)."""
    k, n_mix, n_features = shape
    if weights.shape != (k, n_mix):
        raise ValueError(f"weights_ must have shape ({k}, {n_mix}), got {weights.shape}")
    check_distributions("weights_", weights)
    if means.shape != shape:
        width = "n_features" if n_features < 0 else n_features
        raise ValueError(f"means_ must have shape ({k}, {n_mix}, {width}), got {means.shape}")
    if not np.isfinite(means).all():
        raise ValueError("means_ must be finite")
    expected = {
        "spherical": (k, n_mix),
        "diag": (k, n_mix, n_features),
        "full": (k, n_mix, n_features, n_features),
        "tied": (k, n_features, n_features),
    }[covariance_type]
    if covars.shape != expected:
        raise ValueError(f"{covariance_type!r} covars_ must have shape {expected}, got {covars.shape}")
    if covariance_type in ("full", "tied"):
        check_positive_definite(covars.reshape(-1, n_features, n_features), f"{covariance_type!r} covars_")
    elif not (covars > 0).all():
        raise ValueError(f"{covariance_type!r} covars_ must be positive, got {covars.min()}")


def _nested_centers(X: Array, n_components: int, n_mix: int, rng: np.random.Generator) -> Array:
    """Cluster the rows into states, then each state's rows into components: (k, M, D)."""
    centers = kmeans_centers(X, n_components, rng)
    nearest = nearest_center(X, centers)
    means = np.empty((n_components, n_mix, X.shape[1]))
    for state in range(n_components):
        rows = X[nearest == state]
        if len(rows) == 0:
            rows = centers[state : state + 1]
        means[state] = kmeans_centers(rows, n_mix, rng)
    return means
