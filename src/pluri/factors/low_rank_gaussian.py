"""Gaussians whose covariance is a low-rank matrix plus a diagonal one: ``N(m_j, W_j W_j' + diag(psi_j))``.

They are the distributions of ``y = W x + m + noise`` with ``x ~ N(0, I_q)``. Nothing of size (D, D) is formed: with
``M = I + W' diag(1/psi) W = L L'`` (Woodbury),

    log det = sum log psi + log det M,    quad(e) = e' diag(1/psi) e - ||L^-1 W' diag(1/psi) e||^2,

and ``x | y ~ N(M^-1 W' diag(1/psi) (y - m), M^-1)``. NaN is a missing value and is integrated out: M is then a matrix
for each pattern of what is observed. All costs are O(n K D q), and O(q^2 D) for each pattern besides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

LOG_2_PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class LowRankGaussians:
    """Means (k, D), loadings (k, D, q) and variances of the noise (k, D)."""

    means: Array
    loadings: Array
    noise: Array

    @property
    def n_factors(self) -> int:
        """Number of factors q."""
        return int(self.loadings.shape[2])

    def covariances(self) -> Array:
        """Dense covariance matrices (k, D, D)."""
        found = self.loadings @ self.loadings.transpose(0, 2, 1)
        diagonal = np.arange(found.shape[1])
        found[:, diagonal, diagonal] += self.noise
        return found


@dataclass(frozen=True, eq=False)
class Patterns:
    """Rows with zeros for what is missing, and which values are there.

    Attributes
    ----------
    values : (n, D): the rows, 0 where missing
    observed : (n, D) of zeros and ones, or None if nothing is missing
    distinct : (n_patterns, D): the different rows of `observed`
    index : (n,): the pattern of each row
    """

    values: Array
    observed: Array | None
    distinct: Array
    index: Integers

    @classmethod
    def of(cls, X: Array) -> Patterns:
        """Find the patterns of NaN in the rows."""
        missing = np.isnan(X)
        if not missing.any():
            return cls(X, None, np.ones((1, X.shape[1])), np.zeros(len(X), dtype=np.int64))
        # Rows of bits as one number of bytes each: sorting them is far cheaper than sorting rows.
        bits = np.ascontiguousarray(np.packbits(missing, axis=1))
        keys = bits.view(np.dtype((np.void, bits.shape[1]))).ravel()
        _, first, index = np.unique(keys, return_index=True, return_inverse=True)
        observed = (~missing).astype(np.float64)
        return cls(np.where(missing, 0.0, X), observed, observed[first], index.reshape(-1).astype(np.int64))


@dataclass(frozen=True, eq=False)
class FactorPosterior:
    """Posterior of the factors of all rows under one component.

    Attributes
    ----------
    deviations : (n, D): y - m, 0 where missing
    means : (n, q): posterior means of x
    covariances : (n_patterns, q, q): posterior covariances, by pattern
    log_density : (n,): log density of what is observed of each row
    """

    deviations: Array
    means: Array
    covariances: Array
    log_density: Array


def factor_posterior(law: LowRankGaussians, component: int, rows: Patterns) -> FactorPosterior:
    """Posterior of the factors under one of the Gaussians, and the density of the rows."""
    mean, W, psi = law.means[component], law.loadings[component], law.noise[component]
    E = rows.values - mean
    if rows.observed is not None:
        E *= rows.observed
    q = W.shape[1]
    weighted = W / psi[:, None]
    n_seen = rows.distinct.sum(axis=1)
    log_det = rows.distinct @ np.log(psi)
    quad = (E * E) @ (1 / psi)
    if q:
        outer = (weighted[:, :, None] * W[:, None, :]).reshape(len(W), q * q)
        M = np.eye(q) + (rows.distinct @ outer).reshape(-1, q, q)
        root = np.linalg.cholesky(M)
        log_det += 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        covariances = np.linalg.inv(M)
        T = E @ weighted
        if len(M) == 1:
            means = T @ covariances[0]
        else:
            means = np.matmul(covariances[rows.index], T[:, :, None])[:, :, 0]
        quad -= np.einsum("nq,nq->n", T, means)
    else:
        means, covariances = np.zeros((len(E), 0)), np.zeros((len(rows.distinct), 0, 0))
    constant = n_seen * LOG_2_PI + log_det
    return FactorPosterior(E, means, covariances, -0.5 * (constant[rows.index] + np.maximum(quad, 0.0)))


def each_posterior(law: LowRankGaussians, rows: Patterns) -> Iterator[tuple[int, FactorPosterior]]:
    """Posteriors of the factors, component by component."""
    for component in range(len(law.means)):
        yield component, factor_posterior(law, component, rows)


def log_density(law: LowRankGaussians, rows: Patterns, out: Array | None = None) -> Array:
    """Log density of the rows under each Gaussian: (n, k), or the first k columns of `out`."""
    found = np.empty((len(rows.values), len(law.means))) if out is None else out
    if rows.observed is None:
        found[:, : len(law.means)] = _complete_log_density(law, rows.values)
        return found
    for component, posterior in each_posterior(law, rows):
        found[:, component] = posterior.log_density
    return found


def _complete_log_density(law: LowRankGaussians, X: Array) -> Array:
    """The densities of rows without missing values: all components in three matrix products."""
    k, D, q = law.loadings.shape
    center = law.means.mean(axis=0)  # squares are expanded, so that numbers should be small
    means, E = law.means - center, X - center
    weighted = means / law.noise
    constant = D * LOG_2_PI + np.log(law.noise).sum(axis=1) + (means * weighted).sum(axis=1)
    found = (E * E) @ (1 / law.noise).T
    found -= E @ (2 * weighted).T
    if q:
        root, projection = whitened(law)
        constant += 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        U = E @ projection.transpose(1, 0, 2).reshape(D, k * q)
        U -= np.einsum("kd,kdq->kq", means, projection).reshape(-1)
        U *= U
        found -= U.reshape(-1, k, q).sum(axis=2)
    found += constant
    found *= -0.5
    return found


def whitened(law: LowRankGaussians) -> tuple[Array, Array]:
    """Cholesky factors L (k, q, q) of ``M = I + W' diag(1/psi) W``, and ``diag(1/psi) W L'^-1`` (k, D, q)."""
    scaled = law.loadings / law.noise[:, :, None]
    M = np.eye(law.n_factors) + law.loadings.transpose(0, 2, 1) @ scaled
    root = np.asarray(np.linalg.cholesky(M), dtype=np.float64)
    return root, scaled @ np.linalg.inv(root).transpose(0, 2, 1)


def draw(law: LowRankGaussians, components: Integers, rng: np.random.Generator) -> Array:
    """One row from each of the named Gaussians."""
    n, (_, D, q) = len(components), law.loadings.shape
    factors = rng.standard_normal((n, q))
    rows = rng.standard_normal((n, D)) * np.sqrt(law.noise[components]) + law.means[components]
    for component in np.unique(components):
        mine = components == component
        rows[mine] += factors[mine] @ law.loadings[component].T
    return rows


def principal_factors(X: Array, weight: Array, n_factors: int, floor: float) -> tuple[Array, Array, float]:
    """Mean (D,), loadings (D, q) and noise of weighted rows by maximum likelihood, all noise variances being equal.

    ``W = U_q (Lambda_q - s2 I)^(1/2)`` and s2 the mean of the other eigenvalues of the covariance (Tipping and Bishop
    1999), at least `floor`.
    """
    share = weight / weight.sum()
    mean = share @ X
    D = X.shape[1]
    values, directions = np.zeros(0), np.zeros((D, 0))
    if len(X) > 1:
        _, singular, right = np.linalg.svd(np.sqrt(share)[:, None] * (X - mean), full_matrices=False)
        values, directions = singular**2, with_fixed_signs(right.T)
    q = min(n_factors, len(values))
    noise = max(float(values[q:].sum()) / max(D - q, 1), floor)
    loadings = np.zeros((D, n_factors))
    loadings[:, :q] = directions[:, :q] * np.sqrt(np.maximum(values[:q] - noise, 0.0))
    return mean, loadings, noise


def with_fixed_signs(columns: Array) -> Array:
    """Columns (..., D, q) with the sign that makes the sum of the cubes of their entries positive."""
    signs = np.where((columns**3).sum(axis=-2, keepdims=True) < 0, -1.0, 1.0)
    return np.asarray(columns * signs)


def canonical(law: LowRankGaussians) -> LowRankGaussians:
    """The same Gaussians with factors turned so that W' diag(1/psi) W is diagonal, largest first, signs fixed."""
    if law.n_factors == 0:
        return law
    root = np.sqrt(law.noise)[:, :, None]
    _, _, right = np.linalg.svd(law.loadings / root, full_matrices=False)
    if right.shape[1] < law.n_factors:  # more factors than features: the rest of the columns is zero
        rest = np.zeros((len(right), law.n_factors - right.shape[1], law.n_factors))
        right = np.concatenate([right, rest], axis=1)
    return LowRankGaussians(law.means, with_fixed_signs(law.loadings @ right.transpose(0, 2, 1)), law.noise)
