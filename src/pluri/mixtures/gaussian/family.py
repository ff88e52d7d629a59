"""The Gaussian family as a mixture uses it: starting values, conjugate priors, and components that repel each other.

With the diversity prior the M-step comes in two parts, each of which raises the objective: the means climb

    Q(mu) = -1/2 sum_j n_j (mu_j - xbar_j)^T S_j^-1 (mu_j - xbar_j) + log p(mu) + w log det K(mu),

then the covariances take the closed form that suits the new means. K is the Bhattacharyya kernel of components that all
have one reference covariance, K_ij = exp(-|R^-1 (mu_i - mu_j)|^2 / 8), R R^T being the covariance of the data within
clusters; with it the prior concerns the means alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from pluri.components import gaussian as components
from pluri.components.diverse_update import ascend
from pluri.components.gaussian import (
    CollapsedComponentError,
    GaussianComponents,
    GaussianParameters,
    GaussianPrior,
    GaussianStatistics,
)
from pluri.components.k_means import MAX_ROWS, filled
from pluri.components.starting_shares import divide_rows, some_rows
from pluri.priors import DeterminantalPrior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class RepulsiveMeans:
    """The diversity prior on the means; `whitening` (D, D), if given, takes them to the units of the kernel."""

    prior: DeterminantalPrior
    whitening: Array | None = None

    def log_density(self, means: Array) -> float:
        return self.prior.log_density(self._units(means))

    def gradient(self, means: Array) -> Array:
        slope = np.asarray(self.prior.gradient(self._units(means)))
        return slope if self.whitening is None else slope @ self.whitening

    def _units(self, means: Array) -> Array:
        return means if self.whitening is None else means @ self.whitening.T


@dataclass(frozen=True)
class GaussianFamily(GaussianComponents):
    """Hyper-parameters of the Gaussian components of a mixture.

    Parameters
    ----------
    covariance_type : "full", "tied", "diag" or "spherical"
    reg_covar : no variance, in any direction, falls below it
    init_params : how rows are given to components at the start
    means, covariances : starting values that take the place of those from the data
    mean_prior, mean_precision : location (D,) and weight of the normal prior on the means
    covariance_scale, degrees : scale (shaped as one covariance) and degrees of freedom of the inverse-Wishart prior
    repulsion : the diversity prior on the means
    """

    covariance_type: str = "full"
    reg_covar: float = 1e-6
    init_params: str = "kmeans"
    means: Array | None = None
    covariances: Array | None = None
    mean_prior: Array | None = None
    mean_precision: float = 0.0
    covariance_scale: Array | None = None
    degrees: float = 0.0
    repulsion: RepulsiveMeans | None = None
    advice: ClassVar[str] = "raise reg_covar, use a prior, or use fewer components"

    def _floor(self, covariances: Array, kind: str) -> float:
        return self.reg_covar

    # Starting values --------------------------------------------------------------------------------------------

    def initialize(self, X: Array, n_components: int, rng: np.random.Generator) -> GaussianParameters:
        return self.start(X, None, n_components, rng)[1]

    def start(
        self, X: Array, weight: Array | None, n_components: int, rng: np.random.Generator
    ) -> tuple[Array, GaussianParameters]:
        """Weights and components of the rows as `init_params` divides them."""
        if self.means is not None and self.covariances is not None:
            weights = np.full(n_components, 1.0 / n_components)
            return weights, self.parameters(self.means, self.covariances)
        weight = np.ones(len(X)) if weight is None else weight
        complete = filled(X)
        share = divide_rows(complete, weight, n_components, self.init_params, rng)
        return self._moments(complete, share * weight[:, None])

    def _moments(self, X: Array, share: Array) -> tuple[Array, GaussianParameters]:
        """Weights, means and covariances of rows that belong to components in shares (n, k)."""
        count = np.maximum(share.sum(axis=0), 10.0 * np.finfo(np.float64).eps)
        means = (share.T @ X) / count[:, None] if self.means is None else self.means
        covariances = self.covariances
        if covariances is None:
            covariances = self._scatter(X, share, count, means)
        return count / count.sum(), self.parameters(means, covariances)

    def _scatter(self, X: Array, share: Array, count: Array, means: Array) -> Array:
        n_features = X.shape[1]
        if self.covariance_type in ("full", "tied"):
            each = np.empty((len(means), n_features, n_features))
            for j, mean in enumerate(means):
                members = np.flatnonzero(share[:, j])  # of k-means, a few of all rows
                centered = X[members] - mean
                each[j] = (centered * share[members, j, None]).T @ centered / count[j]
            pooled = np.einsum("j,jde->de", count / count.sum(), each)
            if self.covariance_type == "tied":
                return _above(pooled[None], self.reg_covar)[0]
            # A cluster of few rows has no covariance of its own: it starts from everybody's.
            effective = count**2 / np.maximum((share**2).sum(axis=0), 1e-300)
            few = effective <= n_features + 1
            return _above(np.where(few[:, None, None], pooled, each), self.reg_covar)
        second = np.stack([share[:, j] @ (X - mean) ** 2 for j, mean in enumerate(means)]) / count[:, None]
        few = count**2 / np.maximum((share**2).sum(axis=0), 1e-300) <= 2
        pooled = (count[:, None] * second).sum(axis=0) / count.sum()
        second = np.where(few[:, None], pooled, second)
        if self.covariance_type == "spherical":
            second = second.mean(axis=1)
        if not (second > 0).all():
            _refuse_without_floor(self.reg_covar)
        return np.maximum(second, self.reg_covar)

    # EM ---------------------------------------------------------------------------------------------------------

    def prior(self, parameters: GaussianParameters) -> GaussianPrior:
        """The conjugate prior in the form of `pluri.components.gaussian`."""
        k, n_features = parameters.means.shape
        location = np.zeros((k, n_features)) if self.mean_prior is None else np.tile(self.mean_prior, (k, 1))
        weight = np.full(k, self.mean_precision)
        normal = 1.0 if self.mean_precision > 0 else 0.0  # the normal density has a share in log|S|
        scale = self.covariance_scale
        degrees: Array
        if parameters.kind == "full":
            n_matrices = len(parameters.covariances)
            matrix = np.zeros((n_features, n_features)) if scale is None else scale
            wishart = 0.0 if scale is None else self.degrees + n_features + 1.0
            members = np.bincount(parameters.group, minlength=n_matrices).astype(np.float64)
            degrees = wishart + normal * members
            return GaussianPrior(location, weight, np.tile(matrix, (n_matrices, 1, 1)), degrees)
        variances = np.zeros(n_features) if scale is None else np.broadcast_to(scale, (n_features,))
        gamma = 0.0 if scale is None else self.degrees + 2.0
        degrees = np.full((k, n_features), gamma + normal)
        return GaussianPrior(location, weight, np.tile(variances, (k, 1)), degrees)

    def maximize(self, stats: GaussianStatistics, parameters: GaussianParameters) -> GaussianParameters:
        if self.repulsion is None:
            return super().maximize(stats, parameters)
        prior = self.prior(parameters)
        return components.maximize(stats, parameters, prior, means=self._spread_means(stats, parameters, prior))

    def _spread_means(self, stats: GaussianStatistics, parameters: GaussianParameters, prior: GaussianPrior) -> Array:
        """Means that raise Q (module docstring) at the old covariances."""
        assert self.repulsion is not None
        repulsion, old = self.repulsion, parameters.means
        plain = components.maximize(stats, parameters, prior, update_covariances=False).means
        precisions = _precisions(parameters)
        # With missing values and diagonal covariances every feature has a count of its own.
        count = stats.count if stats.count.ndim == 2 else stats.count[:, None]
        curvature = (count + prior.weight[:, None])[:, :, None] * precisions
        alive = count > components.negligible(stats)  # the others stay where they are: no data would hold them back

        def value_and_gradient(vector: Array) -> tuple[float, Array]:
            means = vector.reshape(old.shape)
            pull = np.einsum("jde,je->jd", curvature, means - plain)
            value = -0.5 * float((pull * (means - plain)).sum()) + repulsion.log_density(means)
            return value, np.where(alive, repulsion.gradient(means) - pull, 0.0).ravel()

        diagonal = np.einsum("jdd->jd", curvature).ravel()
        return ascend(value_and_gradient, [old.ravel(), plain.ravel()], curvature=diagonal).reshape(old.shape)

    def log_prior(self, parameters: GaussianParameters) -> float:
        total = super().log_prior(parameters)
        return total if self.repulsion is None else total + self.repulsion.log_density(parameters.means)

    def rebase(self, stats: GaussianStatistics, old: GaussianParameters, new: GaussianParameters) -> GaussianStatistics:
        """Statistics about the new means, for a stream that goes on."""
        return components.rebased(stats, old.means, new.means)

    def expected(self, parameters: GaussianParameters, mass: Array) -> GaussianStatistics:
        """Statistics of rows that the components expect, `mass` (k,) of each, for a stream after a fit."""
        return components.expected(parameters, mass)


def reference_whitening(X: Array, weight: Array | None, n_components: int, reg_covar: float) -> Array:
    """R^-1 of the module docstring, with the unit that makes an RBF kernel of length one the Bhattacharyya kernel."""
    rows, weight = some_rows(filled(X), weight, MAX_ROWS, np.random.default_rng(0))
    share = divide_rows(rows, weight, n_components, "kmeans", np.random.default_rng(0)) * weight[:, None]
    centers = share.T @ rows / np.maximum(share.sum(axis=0), np.finfo(np.float64).tiny)[:, None]
    centered = rows - centers[share.argmax(axis=1)]
    covariance = (weight[:, None] * centered).T @ centered / weight.sum()
    factor = np.linalg.cholesky(_above(covariance[None], reg_covar)[0])
    return np.asarray(linalg.solve_triangular(factor, np.eye(len(factor)), lower=True)) / 2.0


def _precisions(parameters: GaussianParameters) -> Array:
    """(k, D, D) inverse covariances."""
    n_features = parameters.means.shape[1]
    if parameters.kind == "full":
        whitening, _ = parameters.whitening
        return np.einsum("gji,gjk->gik", whitening, whitening)[parameters.group]
    return np.einsum("jd,de->jde", 1.0 / parameters.variances, np.eye(n_features))


def _above(matrices: Array, reg_covar: float) -> Array:
    """Matrices whose eigenvalues are at least `reg_covar`, which must then be positive."""
    if reg_covar == 0:
        if not _is_regular(matrices):
            _refuse_without_floor(reg_covar)
        return matrices
    # The trace is at least the largest eigenvalue, and a Cholesky factor far cheaper than eigenvalues.
    if _is_above(matrices, max(reg_covar, 1e-14 * float(np.einsum("jdd->j", matrices).max(initial=0.0)))):
        return matrices
    values, vectors = np.linalg.eigh(matrices)
    if (values >= max(reg_covar, 1e-14 * float(values.max(initial=0.0)))).all():
        return matrices
    return (vectors * np.maximum(values, reg_covar)[:, None, :]) @ vectors.transpose(0, 2, 1)


def _is_above(matrices: Array, floor: float) -> bool:
    """Whether all eigenvalues exceed a floor, as far as Cholesky factors tell."""
    try:
        np.linalg.cholesky(matrices - floor * np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError:
        return False
    return True


def _is_regular(matrices: Array) -> bool:
    """Whether all matrices are positive definite, whatever the units of the features: by the correlations."""
    spread = np.sqrt(np.maximum(np.einsum("jdd->jd", matrices), 0.0))
    if not (spread > 0).all():
        return False
    correlations = matrices / spread[:, :, None] / spread[:, None, :]
    return bool((np.linalg.eigvalsh(correlations) > 1e-14).all())


def _refuse_without_floor(reg_covar: float) -> None:
    if reg_covar == 0:
        raise CollapsedComponentError("a covariance of the starting values is singular and reg_covar is 0")
