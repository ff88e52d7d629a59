r"""Normal-Wishart distributions over the means and precision matrices of a set of Gaussian components.

    precision ~ Wishart(nu, S^-1),    mean | precision ~ N(m, (beta precision)^-1),    E[precision] = nu S^-1.

The expected log density of an observation is that of a plain Gaussian, plus a constant of the component:

    E[log N(x)] = log N(x | m, S / nu) + 1/2 [ sum_d psi((nu - d + 1) / 2) + D log(2 / nu) - D / beta ].

"diag" and "spherical" restrict S to such matrices, as hmmlearn does: the Wishart distribution stays one over full
matrices in D dimensions (so that nu > D - 1), and only its scale is simpler. Prior plus counts is still the best
choice of all four hyper-parameters within the restriction, so the evidence lower bound never falls.

A missing value (NaN) is a latent variable with a Gaussian factor of its own, its conditional distribution under
N(m, S / nu); a row without any value says nothing.

References
----------
Gruhl and Sick (2016), Variational Bayesian inference for hidden Markov models with multivariate Gaussian output
distributions. Bishop (2006), Pattern recognition and machine learning, section 10.2.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, multigammaln

from pluri.components import gaussian as components
from pluri.components.gaussian import GaussianParameters, GaussianStatistics
from pluri.components.k_means import centers_and_covariance, spread_covariance
from pluri.validation import check_width, plain_array

Array = NDArray[np.float64]


@dataclass(frozen=True)
class NormalWishart:
    """C components in D dimensions, with G scale matrices: G = C unless the components share one ("tied").

    Attributes
    ----------
    means : m (C, D)
    beta : (C,)
    dof : nu (G,)
    scale : S (C,) spherical, (C, D) diagonal, or (G, D, D) full
    kind : "spherical", "diag" or "full"
    group : (C,): which scale matrix each component has
    """

    means: Array
    beta: Array
    dof: Array
    scale: Array
    kind: str
    group: NDArray[np.int64]

    @cached_property
    def center(self) -> GaussianParameters:
        """The Gaussians N(m, S / nu)."""
        dof = self.dof.reshape(-1, *[1] * (self.scale.ndim - 1))
        return GaussianParameters(self.means, self.scale / dof, self.kind, self.group)

    @cached_property
    def log_offset(self) -> Array:
        """E[log N(x)] - log N(x | m, S / nu), the same for every x: (C,)."""
        n_features = self.means.shape[1]
        spread = _digammas(self.dof, n_features) + n_features * np.log(2.0 / self.dof)
        return 0.5 * (spread[self.group] - n_features / self.beta)


def _digammas(dof: Array, n_features: int) -> Array:
    return digamma(0.5 * (dof[:, None] - np.arange(n_features))).sum(axis=1)


def _diagonal(q: NormalWishart) -> Array:
    """(C, D) scales of spherical and diagonal components."""
    return np.broadcast_to(q.scale[:, None], q.means.shape) if q.kind == "spherical" else q.scale


def expected_log_prob(q: NormalWishart, X: Array, out: Array) -> None:
    """Write E[log N(x_t | component c)] into ``out[:, :C]`` and -inf into the padding; 0 for a row without values."""
    components.log_prob(q.center, X, out)
    out[:, : len(q.means)] += q.log_offset
    out[np.isnan(X).all(axis=1), : len(q.means)] = 0.0


def accumulate(q: NormalWishart, X: Array, posterior: Array) -> GaussianStatistics:
    """Expected moments about the means m; `count` is (C,) for all kinds."""
    silent = np.isnan(X).all(axis=1)
    if silent.any():
        X, posterior = np.ascontiguousarray(X[~silent]), np.ascontiguousarray(posterior[~silent])
    stats = components.accumulate(q.center, X, posterior)
    if q.kind == "full":
        return stats
    count = posterior[:, : len(q.means)].sum(axis=0)
    # A missing value has mean m and variance S / nu under its factor: it adds nothing to the first moment.
    missing = np.maximum(count[:, None] - stats.count, 0.0)
    return GaussianStatistics(count, stats.first, stats.second + missing * _diagonal(q) / q.dof[:, None])


def update(
    stats: GaussianStatistics,
    q: NormalWishart,
    prior: NormalWishart,
    *,
    update_means: bool = True,
    update_covariances: bool = True,
) -> NormalWishart:
    """Prior plus expected moments; `q` is where the moments were taken, and gives what is not to be updated."""
    count = stats.count
    means, beta, dof, scale = q.means, q.beta, q.dof, q.scale
    if update_means:
        beta = prior.beta + count
        means = (prior.beta[:, None] * prior.means + count[:, None] * q.means + stats.first) / beta[:, None]
    if update_covariances:
        shift = stats.first / np.where(count > 0, count, 1.0)[:, None]  # the weighted mean, seen from the old one
        from_mean, from_prior = shift - (means - q.means), means - prior.means
        if q.kind == "full":
            second = stats.second + np.tril(stats.second, -1).transpose(0, 2, 1)
            scatter = second + _weighted_outer(count, from_mean) - _weighted_outer(count, shift)
            scale, dof = prior.scale.copy(), prior.dof.copy()
            np.add.at(scale, q.group, scatter + _weighted_outer(prior.beta, from_prior))
            np.add.at(dof, q.group, count)
        else:
            weight = count[:, None]
            scatter = np.maximum(stats.second - weight * shift**2, 0.0) + weight * from_mean**2
            scatter = scatter + prior.beta[:, None] * from_prior**2
            scale = prior.scale + (scatter.mean(axis=1) if q.kind == "spherical" else scatter)
            dof = prior.dof + count
    return NormalWishart(means, beta, dof, scale, q.kind, q.group)


def _weighted_outer(weight: Array, vectors: Array) -> Array:
    return weight[:, None, None] * vectors[:, :, None] * vectors[:, None, :]


def divergence(q: NormalWishart, prior: NormalWishart) -> float:
    """KL(q | prior), summed over the components (and over the scale matrices that they share)."""
    n_features = q.means.shape[1]
    difference = q.means - prior.means
    if q.kind == "full":
        factor = np.linalg.cholesky(q.scale)
        log_det = 2.0 * np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        log_det_prior = np.linalg.slogdet(prior.scale)[1]
        trace = np.trace(np.linalg.solve(q.scale, prior.scale), axis1=1, axis2=2)
        whitened = np.linalg.solve(factor[q.group], difference[:, :, None])[:, :, 0]
        distance = (whitened**2).sum(axis=1)
    else:
        scale, scale_prior = _diagonal(q), _diagonal(prior)
        log_det, log_det_prior = np.log(scale).sum(axis=1), np.log(scale_prior).sum(axis=1)
        trace = (scale_prior / scale).sum(axis=1)
        distance = (difference**2 / scale).sum(axis=1)
    ratio = prior.beta / q.beta
    of_means = n_features * (ratio - 1.0 - np.log(ratio)) + prior.beta * q.dof[q.group] * distance
    gammas = [multigammaln(0.5 * dof, n_features) for dof in (prior.dof, q.dof)]
    of_precisions = (
        0.5 * (q.dof - prior.dof) * _digammas(q.dof, n_features)
        + 0.5 * prior.dof * (log_det - log_det_prior)
        + 0.5 * q.dof * (trace - n_features)
        + gammas[0]
        - gammas[1]
    )
    return float(0.5 * of_means.sum() + of_precisions.sum())


def pack(q: NormalWishart) -> Array:
    """An unconstrained vector: log beta, log(nu - D + 1), then means and scales as in `pluri.components.gaussian`."""
    least = q.means.shape[1] - 1
    scales = GaussianParameters(q.means, q.scale, q.kind, q.group)
    return np.concatenate([np.log(q.beta), np.log(q.dof - least), components.pack(scales)])


def unpack(vector: Array, like: NormalWishart) -> NormalWishart:
    """The inverse of `pack`."""
    n_beta, n_dof = len(like.beta), len(like.dof)
    scales = GaussianParameters(like.means, like.scale, like.kind, like.group)
    unpacked = components.unpack(vector[n_beta + n_dof :], scales)
    return dataclasses.replace(
        like,
        means=unpacked.means,
        scale=unpacked.covariances,
        beta=np.exp(vector[:n_beta]),
        dof=np.exp(vector[n_beta : n_beta + n_dof]) + like.means.shape[1] - 1,
    )


@dataclass(frozen=True)
class VariationalGaussianEmission:
    """The Gaussian observation model with normal-Wishart posteriors.

    `start` has the hyper-parameters to start from where `keep_means` and `keep_covariances` say so; the others are
    chosen from the data.
    """

    covariance_type: str
    prior: NormalWishart
    min_covar: Any = 1e-3
    update_means: bool = True
    update_covariances: bool = True
    keep_means: bool = False
    keep_covariances: bool = False
    start: NormalWishart | None = None

    def prepare(self, X: NDArray[Any]) -> Array:
        return components.check_magnitude(plain_array(X))

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> NormalWishart:
        prior, share = self.prior, len(X) / n_components
        means, covariance = centers_and_covariance(X, n_components, rng, with_centers=not self.keep_means)
        covariance = covariance + self.min_covar * np.eye(X.shape[1])
        beta = prior.beta + share
        dof = prior.dof + share * (n_components / len(prior.dof))
        spread = spread_covariance(covariance, self.covariance_type, n_components).reshape(prior.scale.shape)
        scale = spread * dof.reshape(-1, *[1] * (spread.ndim - 1))
        if self.start is not None and self.keep_means:
            means, beta = self.start.means, self.start.beta
        if self.start is not None and self.keep_covariances:
            dof, scale = self.start.dof, self.start.scale
        return dataclasses.replace(prior, means=means, beta=beta, dof=dof, scale=scale)

    def log_prob(self, parameters: NormalWishart, X: Array, out: Array) -> None:
        check_width(X, parameters.means.shape[1])
        expected_log_prob(parameters, X, out)

    def accumulate(self, parameters: NormalWishart, X: Array, posterior: Array) -> GaussianStatistics:
        return accumulate(parameters, X, posterior)

    def maximize(self, stats: GaussianStatistics, parameters: NormalWishart) -> NormalWishart:
        return update(
            stats,
            parameters,
            self.prior,
            update_means=self.update_means,
            update_covariances=self.update_covariances,
        )

    def log_prior(self, parameters: NormalWishart) -> float:
        return -divergence(parameters, self.prior)

    def sample(self, parameters: NormalWishart, states: NDArray[np.int64], rng: np.random.Generator) -> Array:
        return components.sample(parameters.center, states, rng)

    def n_free(self, parameters: NormalWishart) -> int:
        return parameters.means.size + components.n_covariance_parameters(parameters.center)

    def pack(self, parameters: NormalWishart) -> Array:
        return pack(parameters)

    def unpack(self, vector: Array, like: NormalWishart) -> NormalWishart:
        unpacked = unpack(vector, like)
        if not self.update_means:
            unpacked = dataclasses.replace(unpacked, means=like.means, beta=like.beta)
        if not self.update_covariances:
            unpacked = dataclasses.replace(unpacked, dof=like.dof, scale=like.scale)
        return unpacked
