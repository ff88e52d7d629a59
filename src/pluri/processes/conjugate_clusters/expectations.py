"""Means under the posteriors of the parameters of clusters, and how far these are from the prior.

With statistics that need not be whole numbers the posterior q of a cluster's parameters has the form of the prior;
variational inference needs ``E_q log p(x | parameters)`` and ``KL(q || prior)``. Their link, which tests use, is
``E_q log p(rows | parameters) - KL(q || prior) = log p(rows)`` if the rows are those that made q.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import digamma, gammaln

from pluri.metrics.distribution_information import beta_kl, dirichlet_kl, gamma_kl
from pluri.processes.conjugate_clusters._kernels import BINARY, COLUMNS, GAUSSIAN, TOKENS
from pluri.processes.conjugate_clusters.records import Array, kind_of, row_constants, safe_cholesky

#: Whitened numbers that are in memory at once.
AT_ONCE = 1 << 18


class NormalWishart(NamedTuple):
    """Posteriors of Gaussian clusters: the precision is Wishart, the mean Gaussian given the precision.

    Attributes
    ----------
    strength, df : arrays of shape (n_clusters,)
    center : array of shape (n_clusters, n_features)
        Posterior means, from the prior mean.
    whitening : array of shape (n_clusters, n_features, n_features)
        Inverses of the Cholesky factors of the scatter matrices.
    log_root : array of shape (n_clusters,)
        Half the log determinants of the scatter matrices.
    log_precision : array of shape (n_clusters,)
        ``E log |precision|``.
    """

    strength: Array
    df: Array
    center: Array
    whitening: Array
    log_root: Array
    log_precision: Array


@dataclass(frozen=True, eq=False)
class ClusterPosteriors:
    """Posteriors of the parameters of clusters with given weighted statistics, (n_clusters, n_statistics)."""

    likelihood: Any
    statistics: Array

    @cached_property
    def gaussian(self) -> NormalWishart:
        """Of Gaussian clusters with full covariances: what densities and divergences share."""
        strength, df, center, scatter = self.likelihood._posterior(self.statistics)
        d = scatter.shape[-1]
        factor = safe_cholesky(scatter)
        log_root = np.log(np.diagonal(factor, axis1=1, axis2=2)).sum(axis=1)
        log_precision = digamma((df[:, None] - np.arange(d)) / 2).sum(axis=1) + d * np.log(2.0) - 2 * log_root
        return NormalWishart(strength, df, center, np.asarray(np.linalg.inv(factor)), log_root, log_precision)


def expected_log_density(posteriors: ClusterPosteriors, data: Any) -> Array:
    """``E_q log p(x | parameters)`` for each row and cluster: (n_samples, n_clusters)."""
    likelihood, statistics = posteriors.likelihood, posteriors.statistics
    kind, d = kind_of(likelihood), likelihood.n_features
    if kind == GAUSSIAN:
        q = posteriors.gaussian
        out = _squared_distances(data - likelihood.mean, q)
        out *= -0.5 * q.df
        out += 0.5 * (q.log_precision - d * np.log(2 * np.pi) - d / q.strength)
        return out
    if kind == COLUMNS:
        k, center, shape, rate = likelihood._posterior(statistics)
        rows, precision = data - np.asarray(likelihood.mean), shape / rate
        squares = rows**2 @ precision.T - 2 * rows @ (center * precision).T + (center**2 * precision).sum(axis=1)
        logs = (digamma(shape) - np.log(rate) - np.log(2 * np.pi) - 1 / k).sum(axis=1)
        return np.asarray(0.5 * (logs - squares))
    if kind == TOKENS:
        counts = likelihood._alpha + statistics
        return np.asarray(data @ (digamma(counts) - digamma(counts.sum(axis=1, keepdims=True))).T)
    if kind == BINARY:
        heads, tails = likelihood._heads_and_tails(statistics)
        missing = digamma(tails) - digamma(heads + tails)
        return np.asarray(data @ (digamma(heads) - digamma(tails)).T) + missing.sum(axis=1)
    shape, rate = likelihood._prior
    shape, rate = shape + statistics[:, 2:], rate + statistics[:, :1]
    logs = np.asarray(data @ (digamma(shape) - np.log(rate)).T)
    return logs - (shape / rate).sum(axis=1) + row_constants(likelihood, data)[:, None]


def _squared_distances(rows: Array, q: NormalWishart) -> Array:
    """Of rows to the centers of clusters, in units of their scatter: (n_samples, n_clusters), column by column."""
    n_clusters, d = q.center.shape
    out = np.empty((n_clusters, len(rows)))
    together = max(1, AT_ONCE // (d * max(len(rows), 1)))
    for begin in range(0, n_clusters, together):
        whitening, center = q.whitening[begin : begin + together], q.center[begin : begin + together]
        whitened = whitening.reshape(-1, d) @ rows.T
        whitened -= (whitening @ center[:, :, None]).reshape(-1, 1)
        whitened *= whitened
        whitened.reshape(len(center), d, -1).sum(axis=1, out=out[begin : begin + together])
    return out.T


def divergence(posteriors: ClusterPosteriors) -> Array:
    """``KL(q || prior)`` of each cluster: (n_clusters,)."""
    likelihood, statistics = posteriors.likelihood, posteriors.statistics
    kind, d = kind_of(likelihood), likelihood.n_features
    if kind == GAUSSIAN:
        q = posteriors.gaussian
        k0, v0 = likelihood.strength, likelihood.df
        prior, prior_normaliser = _prior_of(likelihood)
        away = ((q.whitening @ q.center[:, :, None]) ** 2).sum(axis=(1, 2))
        means = 0.5 * (d * (np.log(q.strength / k0) - 1 + k0 / q.strength) + k0 * q.df * away)
        trace = ((q.whitening @ prior) ** 2).sum(axis=(1, 2))
        normaliser = prior_normaliser - _log_wishart_normaliser(q.df, q.log_root, d)
        return np.asarray(means + normaliser + 0.5 * ((q.df - v0) * q.log_precision + q.df * (trace - d)))
    if kind == COLUMNS:
        k, center, shape, rate = likelihood._posterior(statistics)
        k0 = likelihood.strength
        means = 0.5 * (np.log(k / k0) - 1 + k0 / k + k0 * shape / rate * center**2)
        return np.asarray((means + gamma_kl(shape, rate, likelihood.shape, likelihood.rate)).sum(axis=1))
    if kind == TOKENS:
        alpha = likelihood._alpha
        return np.asarray(dirichlet_kl(alpha + statistics, np.broadcast_to(alpha, statistics.shape)))
    if kind == BINARY:
        heads, tails = likelihood._heads_and_tails(statistics)
        return np.asarray(beta_kl(heads, tails, *likelihood._prior)).sum(axis=1)
    shape, rate = likelihood._prior
    return np.asarray(gamma_kl(shape + statistics[:, 2:], rate + statistics[:, :1], shape, rate)).sum(axis=1)


@lru_cache(maxsize=1)
def _prior_of(likelihood: Any) -> tuple[Array, Array]:
    """Cholesky factor and log normaliser of the prior of a Gaussian likelihood, which every sweep asks for."""
    factor = np.linalg.cholesky(likelihood.scale)
    log_root = np.log(np.diagonal(factor)).sum()
    return factor, _log_wishart_normaliser(np.array([likelihood.df]), log_root, len(factor))


def _log_wishart_normaliser(df: Array, log_root: Array, d: int) -> Array:
    """Up to a constant that depends on the number of features only."""
    log_gammas = gammaln((df[:, None] - np.arange(d)) / 2).sum(axis=1)
    return np.asarray(df * d / 2 * np.log(2.0) - df * log_root + log_gammas)
