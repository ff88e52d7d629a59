r"""Emissions that regress on what is known before each step: p(x_t | z_t, state i) = N(x_t | b_i + B_i z_t, S_i).

The regressors z_t are inputs, the last observations, or both. With the prior

    log p(B, S) = -1/2 [ w log|S| + tr(S^-1 (Psi + alpha B L B^T)) ] + const,    L = diag(variances of the regressors),

the M-step is a ridge regression on weighted moments: B = C_xz (C_zz + alpha L)^-1 and S = (R + Psi) / (n + w), where C
are moments about the weighted means and R is the scatter of the residuals plus alpha B L B^T. The unit of alpha is one
observation, whatever the units of the data; intercepts have no prior.

A step whose value or regressors are missing, if only in part, carries no information: its log density is 0.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pluri.components.gaussian import (
    GaussianParameters,
    GaussianStatistics,
    check_magnitude,
    log_prior,
    maximize,
    n_covariance_parameters,
    negligible,
    sample,
)
from pluri.components.gaussian import _kernels as kernels
from pluri.components.gaussian.conversions import pack, unpack
from pluri.components.gaussian.family import LOG_2PI
from pluri.components.k_means import spread_covariance
from pluri.engine.aligned import padded_width
from pluri.sequences.driven.regression_start import pooled_start, start_from_windows
from pluri.sequences.gaussian import GaussianEmission
from pluri.validation import check_covariances, check_width, plain_array

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class RegressionParameters:
    """Coefficients (k, D, P), and intercepts (as means) and covariances of the noise."""

    coef: Array
    noise: GaussianParameters


@dataclass(frozen=True)
class GaussianRegression:
    """The family; it reads rows (z_t, x_t) with the regressors first.

    Attributes
    ----------
    noise : covariances, their prior and whether they and the intercepts are updated
    columns : (P + D,): where regressors and outputs stand in the rows that `prepare` is given
    n_regressors : P
    alpha : weight of the prior on the coefficients, in observations
    center, scale : (P + D,), (P,): a point amid the rows, and variances of the regressors
    update_coef : whether the M-step changes the coefficients
    coef, intercept, covariances : starting values, chosen from the data if None
    encodes : whether `prepare` still has columns to put in order
    """

    noise: GaussianEmission
    columns: Integers
    n_regressors: int
    alpha: float
    center: Array
    scale: Array
    update_coef: bool = True
    coef: Array | None = None
    intercept: Array | None = None
    covariances: Array | None = None
    encodes: bool = True

    def prepare(self, X: NDArray[Any]) -> Array:
        if self.encodes:
            check_width(X, len(self.columns))
            X = np.take(X, self.columns, axis=1)
        return check_magnitude(plain_array(X))

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> RegressionParameters:
        return self._started(start_from_windows(X, self.n_regressors, n_components, self.scale, rng), n_components)

    def initialize_labelled(
        self, X: Array, states: Integers, n_components: int, rng: np.random.Generator
    ) -> RegressionParameters:
        """Parameters for statistics of labelled rows to refer to: one regression for all states."""
        return self._started(pooled_start(X, self.n_regressors, n_components, self.scale), n_components)

    def _started(self, found: tuple[Array, Array, Array], n_components: int) -> RegressionParameters:
        coef, intercept, covariance = found
        n_outputs = intercept.shape[1]
        for name, given, shape in (("coef_", self.coef, coef.shape), ("intercept_", self.intercept, intercept.shape)):
            if given is not None and (given.shape != shape or not np.isfinite(given).all()):
                raise ValueError(f"{name} must be finite and have shape {shape}, got shape {given.shape}")
        covariances = self.covariances
        if covariances is None:
            covariance = covariance + self.noise.min_covar * np.eye(n_outputs)
            covariances = spread_covariance(covariance, self.noise.covariance_type, n_components)
        check_covariances(covariances, self.noise.covariance_type, n_components, n_outputs)
        noise = self.noise.parameters(intercept if self.intercept is None else self.intercept, covariances)
        self.noise.prior(noise)  # refuses hyper-parameters that do not fit, before the first sweep
        return RegressionParameters(coef if self.coef is None else self.coef, noise)

    def log_prob(self, parameters: RegressionParameters, X: Array, out: Array) -> None:
        k, n_outputs = parameters.noise.means.shape
        P, width = self.n_regressors, self.n_regressors + n_outputs
        check_width(X, width)
        whitening, log_determinant = _whitening(parameters.noise)
        # The residual is linear in the row: a square map whose first P rows are zero is one of a plain Gaussian.
        maps = np.zeros((k, width, padded_width(width)))
        maps[:, P:, :P] = -whitening @ parameters.coef
        maps[:, P:, P:width] = whitening
        level = parameters.noise.means + parameters.coef @ self.center[:P] - self.center[P:]
        whitened = np.zeros((k, width))
        whitened[:, P:] = np.einsum("kde,ke->kd", whitening, level)
        out[:, k:] = -np.inf
        work = np.empty((2 * padded_width(width) + width + 2, kernels.CHUNK))
        if kernels.log_prob_full(X, self.center, maps, whitened, log_determinant + n_outputs * LOG_2PI, out, work):
            out[np.isnan(X).any(axis=1), :k] = 0.0

    def means(self, parameters: RegressionParameters, X: Array) -> Array:
        """Expected outputs of each state at each step: (n_samples, k, D); NaN where a regressor is missing."""
        regressors = X[:, : self.n_regressors]
        return parameters.noise.means + np.einsum("kdp,tp->tkd", parameters.coef, regressors)

    def accumulate(self, parameters: RegressionParameters, X: Array, posterior: Array) -> GaussianStatistics:
        """Moments of the rows (z_t, x_t) about the center, without those that miss something."""
        k, width = len(parameters.coef), X.shape[1]
        count, first, second = np.zeros(k), np.zeros((k, width)), np.zeros((k, width, width))
        work = np.empty((2 * padded_width(width) + width + 2, kernels.CHUNK))
        kernels.accumulate_full(X, self.center, posterior, np.zeros((k, width)), count, first, second, work)
        return GaussianStatistics(count, first, second)

    def maximize(self, stats: GaussianStatistics, parameters: RegressionParameters) -> RegressionParameters:
        coef, intercept = self._coefficients(stats, parameters)
        noise = dataclasses.replace(parameters.noise, means=intercept)
        if not self.noise.update_covariances:
            return RegressionParameters(coef, noise)
        moments = _about(stats, self._fitted_point(stats, coef, intercept))
        n_outputs = coef.shape[1]
        eye = np.broadcast_to(np.eye(n_outputs), (len(coef), n_outputs, n_outputs))
        residual = np.concatenate([-coef, eye], axis=2)
        scatter = residual @ moments @ residual.transpose(0, 2, 1)
        scatter = scatter + self.alpha * (coef * self.scale) @ coef.transpose(0, 2, 1)
        if noise.kind == "full":
            found = GaussianStatistics(stats.count, np.zeros_like(intercept), np.tril(scatter))
        else:
            count = np.repeat(stats.count[:, None], n_outputs, axis=1)
            found = GaussianStatistics(count, np.zeros_like(intercept), np.diagonal(scatter, axis1=1, axis2=2))
        return RegressionParameters(coef, maximize(found, noise, self.noise.prior(noise), update_means=False))

    def _coefficients(self, stats: GaussianStatistics, parameters: RegressionParameters) -> tuple[Array, Array]:
        """Coefficients and intercepts of the M-step; a state that explains nothing keeps them."""
        P, intercept, coef = self.n_regressors, parameters.noise.means, parameters.coef
        alive = stats.count > negligible(stats)
        mean = stats.first / np.where(alive, stats.count, 1.0)[:, None]
        if self.update_coef:
            about = mean
            if not self.noise.update_means:  # the regression goes through the intercept where the regressors are zero
                zero = np.broadcast_to(-self.center[:P], (len(coef), P))
                about = np.concatenate([zero, intercept - self.center[P:]], axis=1)
            moments = _about(stats, about)
            root = np.sqrt(self.scale)
            normal = moments[:, :P, :P] / (root[:, None] * root) + self.alpha * np.eye(P)
            inverse = np.linalg.pinv(normal, hermitian=True) / (root[:, None] * root)
            coef = np.where(alive[:, None, None], moments[:, P:, :P] @ inverse, coef)
        if self.noise.update_means:
            best = self.center[P:] + mean[:, P:] - np.einsum("kdp,kp->kd", coef, self.center[:P] + mean[:, :P])
            intercept = np.where(alive[:, None], best, intercept)
        return coef, intercept

    def _fitted_point(self, stats: GaussianStatistics, coef: Array, intercept: Array) -> Array:
        """Mean regressors of each state and what they predict, seen from the center: (k, P + D)."""
        P = self.n_regressors
        mean = stats.first[:, :P] / np.maximum(stats.count, negligible(stats))[:, None]
        predicted = intercept + np.einsum("kdp,kp->kd", coef, self.center[:P] + mean)
        return np.concatenate([mean, predicted - self.center[P:]], axis=1)

    def log_prior(self, parameters: RegressionParameters) -> float:
        if not (self.update_coef or self.noise.update_means or self.noise.update_covariances):
            return 0.0
        whitened = _whitening(parameters.noise)[0] @ parameters.coef
        ridge = 0.5 * self.alpha * float((whitened**2 * self.scale).sum())
        return log_prior(parameters.noise, self.noise.prior(parameters.noise)) - ridge

    def sample(self, parameters: RegressionParameters, states: Integers, rng: np.random.Generator) -> Array:
        """Outputs where all regressors are zero: the intercept and noise."""
        return sample(parameters.noise, states, rng)

    def n_free(self, parameters: RegressionParameters) -> int:
        return parameters.coef.size + parameters.noise.means.size + n_covariance_parameters(parameters.noise)

    def pack(self, parameters: RegressionParameters) -> Array:
        return np.concatenate([parameters.coef.ravel(), pack(parameters.noise)])

    def unpack(self, vector: Array, like: RegressionParameters) -> RegressionParameters:
        size = like.coef.size
        noise = unpack(
            vector[size:],
            like.noise,
            update_means=self.noise.update_means,
            update_covariances=self.noise.update_covariances,
        )
        return RegressionParameters(vector[:size].reshape(like.coef.shape) if self.update_coef else like.coef, noise)


def _whitening(noise: GaussianParameters) -> tuple[Array, Array]:
    """Inverse Cholesky factors (k, D, D) and log determinants (k,) of the covariances of all states."""
    if noise.kind == "full":
        whitening, log_determinant = noise.whitening
        return whitening[noise.group], log_determinant[noise.group]
    variances = noise.variances
    return np.eye(variances.shape[1]) / np.sqrt(variances)[:, :, None], np.log(variances).sum(axis=1)


def _about(stats: GaussianStatistics, point: Array) -> Array:
    """Second moments (k, Q, Q) about points seen from the center: (k, Q)."""
    second = stats.second + np.tril(stats.second, -1).transpose(0, 2, 1)
    cross = stats.first[:, :, None] * point[:, None, :]
    square = stats.count[:, None, None] * point[:, :, None] * point[:, None, :]
    return second - cross - cross.transpose(0, 2, 1) + square
